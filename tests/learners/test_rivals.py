"""Thompson sampling with a Beta prior, KL-UCB and D-UCB against their definitions; the compiled loop of the table."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import beta, norm

import randomist as rd
from benchmarks import rivals
from randomist.errors import ParameterError
from randomist.importance import bernoulli, experts
from randomist.learners.finite.stochastic_experts import clip_level
from randomist.testing import check_task
from tests import problems

INFINITE = (-math.inf, math.inf)


def play(learner, rounds, seed=0):
    """Payoffs that are a function of the mediator and a coin."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, float(rng.random() < problems.payoff(trial)))
    return learner


# KL-UCB.


def test_the_upper_mean_is_the_root():
    """Against Brent's method, for means near 0 and 1 and levels from 1e-7, where kl itself has 1e-9 of its digits."""
    rng = np.random.default_rng(0)
    for _ in range(3000):
        mean = rng.choice([rng.random(), rng.random() ** 6, 1 - rng.random() ** 6])
        level, top = 10 ** rng.uniform(-7, 1.5), 1 - 1e-16
        reached = bernoulli.divergence(mean, top) > level
        excess = lambda q, p=mean, d=level: bernoulli.divergence(p, q) - d  # noqa: E731
        exact = brentq(excess, mean, top, xtol=1e-16) if reached else 1.0
        assert bernoulli.upper_mean(mean, level) == pytest.approx(exact, abs=1e-12), (mean, level)


def test_the_upper_mean_at_the_ends():
    assert bernoulli.upper_mean(1.0, 0.3) == 1.0
    assert bernoulli.upper_mean(0.4, math.inf) == 1.0
    assert bernoulli.upper_mean(0.4, 0.0) == 0.4
    assert bernoulli.upper_mean(0.0, 0.7) == pytest.approx(1 - math.exp(-0.7), abs=1e-15)
    assert bernoulli.upper_mean(-1e-17, 0.7) == pytest.approx(1 - math.exp(-0.7), abs=1e-15)  # rounding of a sum


def test_the_divergence_of_coins():
    for p, q in itertools.product((0.0, 0.2, 0.9, 1.0), (0.1, 0.5)):
        terms = [a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a]
        assert bernoulli.divergence(p, q) == pytest.approx(sum(terms), rel=1e-12)
    assert bernoulli.divergence(0.5, 1.0) == bernoulli.divergence(0.5, 0.0) == math.inf


@pytest.mark.parametrize(
    ("settings", "level"),
    [
        ({}, lambda t, K, T: math.log(t)),
        ({"log_log": 3.0}, lambda t, K, T: math.log(t) + 3 * math.log(math.log(t))),
        (
            {"variant": "kl-ucb++"},
            lambda t, K, T: max(math.log(t / (K * T) * (1 + max(math.log(t / (K * T)), 0) ** 2)), 0),
        ),
    ],
)
def test_kl_ucb_plays_the_largest_root(settings, level):
    learner = play(rd.KLUCB(problems.GAUSSIANS, seed=1, **settings), 80)
    for _ in range(20):
        t, K = learner.told + 1, 5
        index = [
            bernoulli.upper_mean(S / T, level(t, K, T) / T)
            for S, T in zip(learner.payoff_sums, learner.plays, strict=True)
        ]
        assert index[learner.ask().decision] == pytest.approx(max(index), abs=1e-13)
        play(learner, 1, seed=t)


# Thompson sampling.


def test_the_beta_prior_draws_from_the_posterior():
    """Choices of one state against P(each draw is the largest), integrated; 5 standard errors: 6e-7 each."""
    learner = rd.ThompsonSampling(rd.Finite(rd.Dirac([0.0, 1.0, 2.0])), prior="beta", seed=0)
    told = {0: [1.0, 0.0, 1.0], 1: [0.25, 0.75, 1.0], 2: [0.0]}
    for number, (decision, payoff) in enumerate((k, y) for k, payoffs in told.items() for y in payoffs):
        learner.adopt(rd.Trial(number, decision, float(decision)))
        learner.tell(number, payoff)
    posteriors = [beta(1 + sum(y), 1 + len(y) - sum(y)) for y in told.values()]
    draws = 4000
    chosen = np.bincount([trial.decision for trial in learner.ask(batch=draws)], minlength=3) / draws
    for k, posterior in enumerate(posteriors):
        others = [other for j, other in enumerate(posteriors) if j != k]
        exact = quad(lambda x, p=posterior, o=others: p.pdf(x) * o[0].cdf(x) * o[1].cdf(x), 0, 1)[0]
        assert abs(chosen[k] - exact) < 5 * math.sqrt(exact * (1 - exact) / draws)


def test_the_beta_prior_has_no_opening():
    learner = rd.ThompsonSampling(problems.GAUSSIANS, prior="beta", first=3, seed=0)
    assert learner.ask().decision == 3
    many = rd.ThompsonSampling(rd.Finite(rd.Dirac(np.arange(1000.0))), prior="beta", seed=0)
    assert len({trial.decision for trial in many.ask(batch=50)}) > 40
    assert [trial.decision for trial in rd.ThompsonSampling(problems.GAUSSIANS).ask(batch=5)] == list(range(5))


def test_telling_draws_nothing():
    learner = rd.ThompsonSampling(problems.GAUSSIANS, prior="beta", seed=0)
    trial = learner.ask()
    before = learner.state()["generators"]
    learner.tell(trial, 0.37)
    assert learner.state()["generators"] == before


# D-UCB.


def naive_experts(learner):
    """M, Z and the samples' weights by their definitions, one at a time."""
    family, record, K = learner.space.family, learner.record, learner.space.size
    for x in range(K):
        rows = []
        for decision, mediator, payoff in zip(record.decisions, record.mediators, record.payoffs, strict=True):
            log_density = family.log_density(None, mediator[None])[:, 0]
            rows.append((decision, math.exp(log_density[x] - log_density[decision]), payoff))
        yield x, rows


def test_the_median_of_means_by_its_definition():
    learner = play(rd.StochasticExperts(problems.GAUSSIANS, seed=2), 70)
    estimates, divergences = learner.estimates(), problems.GAUSSIANS.family.log_renyi(None, None)
    groups = 4 * math.floor(math.log(experts.epoch(70)))
    for x, rows in naive_experts(learner):
        sums, seen, order = np.zeros((2, groups)), {}, []
        for j, ratio, payoff in rows:
            if j not in order:
                order.append(j)
            group = (order.index(j) + seen.get(j, 0)) % groups
            seen[j] = seen.get(j, 0) + 1
            sums[:, group] += np.array([1, ratio * payoff]) * math.exp(-divergences[x, j] / 2)
        known = sums[0] > 0
        mass = sums[0].sum()
        assert estimates.value[x] == pytest.approx(np.median(sums[1, known] / sums[0, known]), rel=1e-10)
        assert estimates.width[x] == pytest.approx(math.sqrt(2 * 70 * math.log(71)) / mass, rel=1e-10)


RARE = rd.Finite(rd.Categorical([[1e-6, 0.4, 0.6 - 1e-6], [5e-8, 0.5, 0.5 - 5e-8]]))  # a ratio of 20, M of 6


def told_of_rare_mediators(learner):
    """Each decision in turn; every tenth mediator is the one that hardly ever comes."""
    for number in range(70):
        mediator = 0 if number % 10 == 1 else 1 + number % 3 % 2
        learner.adopt(rd.Trial(number, number % 2, mediator))
        learner.tell(number, (number % 7) / 7)
    return learner


@pytest.mark.parametrize(
    ("space", "tell", "some"),
    [(problems.CATEGORIES, lambda x: play(x, 70), False), (RARE, told_of_rare_mediators, True)],
)
def test_clipping_by_its_definition(space, tell, some):
    learner = tell(rd.StochasticExperts(space, mean="clipped", seed=2))
    estimates, atoms = learner.estimates(), space.family.nodes()[0].max() + 1
    p, K = np.exp(space.family.log_density(None, np.arange(atoms))), range(space.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = p[:, None] / p[None]  # (x, j, atom)
    moment = np.array([[np.sum(p[x][p[x] > 0] * np.exp(ratios[x, j][p[x] > 0])) for j in K] for x in K])
    M, last = np.log(moment), experts.epoch(70)
    clipped = 0
    for x, rows in naive_experts(learner):
        then = sum(1 / M[x, j] for j, _, _ in rows[:last])
        width = math.sqrt(2 * last * math.log(last + 1)) / then
        lost = brentq(lambda b, w=width: b / math.log(2 / b) - w, 1e-12, 2 - 1e-12, xtol=1e-15)  # ε
        mass = sum(1 / M[x, j] for j, _, _ in rows)
        keeps = [ratio <= 2 * math.log(2 / lost) * M[x, j] for j, ratio, _ in rows]
        clipped += len(keeps) - sum(keeps)
        value = sum(ratio * y / M[x, j] for (j, ratio, y), kept in zip(rows, keeps, strict=True) if kept) / mass
        assert estimates.value[x] == pytest.approx(value, rel=1e-10)
        now = math.sqrt(2 * 70 * math.log(71)) / mass
        excess = brentq(lambda b, w=now: b / math.log(2 / b) - w, 1e-12, 2 - 1e-12, xtol=1e-15)  # β
        index = learner.index(estimates, np.random.default_rng(0))[x]
        assert index == pytest.approx(value + excess + lost / 2, rel=1e-9)
    assert (clipped > 0) == some


@pytest.mark.parametrize("mean", ["median-of-means", "clipped"])
def test_a_range_that_grows_right_after_a_load(mean):
    learner = play(rd.StochasticExperts(problems.CATEGORIES, mean=mean, payoff_range="running", seed=3), 40)
    trial = learner.ask()
    loaded = rd.load(learner.state())
    for one in (learner, loaded):
        one.tell(trial.id, 7.0)
    for ours, theirs in zip(learner.estimates(), loaded.estimates(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_exponential_divergences_of_gaussians():
    """One narrower than the other has a bounded ratio, and an integral; all others have none."""
    family = rd.Gaussian([0.0, 0.4, 0.1], [1.0, 0.5, 1.0])
    found = experts.exponential_divergences(family, 0)
    wide, narrow = norm(0, 1), norm(0.4, 0.5)
    exact = quad(lambda z: narrow.pdf(z) * math.exp(narrow.pdf(z) / wide.pdf(z)), -8, 8, epsabs=1e-13)[0]
    assert found[1] == pytest.approx(math.log(exact), rel=1e-3)
    assert found[0] == pytest.approx(1.0, rel=1e-12)
    assert found[2] == math.inf
    assert experts.exponential_divergences(family, 1)[0] == math.inf


def test_clip_levels_solve_their_equation():
    width = np.array([1e-6, 0.01, 0.3, 2.0, 50.0])
    excess = 2 * np.exp(-clip_level(width) / 2)
    np.testing.assert_allclose(excess / np.log(2 / excess), width, rtol=1e-9)
    assert clip_level(np.array([math.inf]))[0] == 0.0


def test_epochs_are_few_and_never_far_behind():
    seen = [experts.epoch(told) for told in range(20_000)]
    assert seen[:9] == list(range(9))
    assert len(set(seen)) < 60
    assert all(last <= told <= 1.25 * last + 1 for told, last in enumerate(seen))


def test_experts_share_where_they_overlap_and_not_where_they_do_not():
    alike, apart = (rd.task("illustrative", sigma=s, lambda_=s) for s in (2, 0.1))
    shared, ucb = (np.mean([run.regret[-1] for run in rd.optimize_many(alike, name, 500, 4)])
                   for name in ("stochastic-experts", "ucb1"))  # fmt: skip
    assert shared < ucb / 2
    lone, ucb = (np.mean([run.regret[-1] for run in rd.optimize_many(apart, name, 500, 4)])
                 for name in ("stochastic-experts", "ucb1"))  # fmt: skip
    assert lone > ucb


# Misuse.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rd.ThompsonSampling(problems.GAUSSIANS, prior="cauchy"), "prior must be one of .*, got 'cauchy'"),
        (
            lambda: rd.ThompsonSampling(problems.GAUSSIANS, prior="beta", payoff_range=INFINITE),
            'prior="beta" needs to know the range',
        ),
        (lambda: rd.KLUCB(problems.GAUSSIANS, payoff_range=INFINITE), "KLUCB needs to know the range"),
        (lambda: rd.KLUCB(problems.GAUSSIANS, log_log=-1), "log_log must be .* >= 0, got -1"),
        (lambda: rd.KLUCB(problems.GAUSSIANS, variant="ucb"), "variant must be one of .*, got 'ucb'"),
        (lambda: rd.StochasticExperts(problems.GAUSSIANS, mean="mode"), "mean must be one of .*, got 'mode'"),
        (lambda: rd.StochasticExperts(problems.LIKELIHOODS), "they are not known here: give Finite.likelihoods"),
        (lambda: rd.StochasticExperts(problems.POLICIES), "they are not known here"),
        (
            lambda: rd.StochasticExperts(problems.LIKELIHOODS_KNOWN, mean="clipped"),
            "needs a family to integrate under",
        ),
        (lambda: rd.task("bernoulli", means=[0.5, 1.2]), r"means must be a list of numbers in \[0, 1\]"),
        (lambda: rd.task("bernoulli", means=[]), r"means must be a list of numbers in \[0, 1\]"),
        (lambda: rd.task("bernoulli", means=0.5), r"means must be a list of numbers in \[0, 1\]"),
    ],
)
def test_misuse_is_named(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_the_bernoulli_task_keeps_the_contract():
    check_task(rd.task("bernoulli", means=[0.2, 0.9, 0.0, 1.0]))


# The table of rivals.


@pytest.mark.parametrize("name", rivals.LEARNERS)
def test_the_compiled_loop_decides_as_the_learner(name):
    number, learner, settings = rivals.LEARNERS[name]
    for seed, means in ((0, [0.5, 0.45]), (3, [0.02, 0.01, 0.03]), (7, [1.0, *[0.9] * 6])):
        run = rd.optimize(rd.task("bernoulli", means=means), learner, 700, seed, **settings)
        np.testing.assert_array_equal(rivals.decisions(number, np.array(means), 700, seed), run.decisions)


def test_the_order_of_rivals():
    """A small part of the table, 20 runs of 2,000 rounds: gaps of more than 10 standard errors."""
    regret = {
        name: np.mean([rivals.regret(rivals.LEARNERS[name][0], rivals.PROBLEMS["twenty: 1, .9"], 2000, seed)
                       for seed in range(20)])
        for name in ("UCB1", "KL-UCB", "TS Beta", "TS normal")
    }  # fmt: skip
    assert regret["KL-UCB"] < regret["TS Beta"] < regret["TS normal"] / 5 < regret["UCB1"] / 4
