"""The densities of MCMC-RANDOMIST against their definitions, written with scipy.stats.binom and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

import randomist as rd
from randomist.importance import chains, coins, perturbed
from randomist.importance.coins import TABLE
from randomist.importance.estimators import find_estimator


def naive_at_most(theirs, ours):
    """log P(Y' <= Y), App. F.2's display with each decision's own number of coins."""
    (center_j, log_eta_j, flips_j), (center, log_eta, flips) = theirs, ours
    terms = []
    for i in range(flips + 1):
        argument = math.exp(log_eta_j - log_eta) * i + math.exp(log_eta_j) * (center - center_j)
        terms.append(binom.logpmf(i, flips, 0.5) + binom.logcdf(math.floor(argument), flips_j, 0.5))
    return float(logsumexp(terms))


def naive_density(ours, others, plays):
    center, log_eta, flips = ours
    terms = []
    for i in range(flips + 1):
        term = binom.logpmf(i, flips, 0.5)
        for (center_j, log_eta_j, flips_j), count in zip(others, plays, strict=True):
            argument = math.exp(log_eta_j - log_eta) * i + math.exp(log_eta_j) * (center - center_j)
            term += count * binom.logcdf(math.floor(argument), flips_j, 0.5)
        terms.append(term)
    return float(logsumexp(terms))


def random_estimate(rng, scale, low=-6.0, high=6.0):
    log_eta = rng.uniform(low, high)
    return rng.uniform(0, 1), log_eta, perturbed.flips_of(log_eta, scale)


def random_history(rng, n, scale, low=0.0, high=6.0):
    others = [random_estimate(rng, scale, low, high) for _ in range(n)]
    plays = rng.integers(1, 4, n).astype(float)
    return others, plays


def arrays(others):
    centers, log_etas, flips = map(np.array, zip(*others, strict=True))
    return centers, log_etas, flips.astype(np.int64)


def test_coin_table_equals_scipy_and_its_limits():
    table = TABLE.upto(5000)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 7, 16, 64, 101, 1000, 5000):
        for k in {-3, -1, 0, n // 2, n - 1, n, n + 5, *rng.integers(0, n + 1, 40).tolist()}:
            ours, want = coins.log_cdf(table, n, float(k)), binom.logcdf(k, n, 0.5)
            assert ours == want or abs(ours - want) <= 1e-11 * max(1, abs(want)), (n, k)


def test_more_coins_than_the_table_has_are_summed():
    table = TABLE.upto(coins.MOST + 4000)
    n = coins.MOST + 4000
    for k in (n // 2 - 700, n // 2 - 3, n // 2, n // 2 + 5, n // 2 + 200):
        assert abs(coins.log_cdf(table, n, float(k)) - binom.logcdf(k, n, 0.5)) < 1e-9


@pytest.mark.parametrize("scale", [0.1, 1.1, 8.1])
def test_one_step_density_equals_its_definition(scale):
    rng, table = np.random.default_rng(1), TABLE.upto(4000)
    for _ in range(150):
        theirs, ours = random_estimate(rng, scale), random_estimate(rng, scale)
        got, want = perturbed.log_at_most(table, theirs, ours), naive_at_most(theirs, ours)
        assert math.exp(got) == pytest.approx(math.exp(want), rel=1e-9, abs=1e-300)


def test_one_step_density_of_a_decision_against_itself_is_a_tie():
    """P(Y' <= Y) with Y' and Y alike: (1 + P(Y' = Y)) / 2; rounding must not shift the floor."""
    table, rng = TABLE.upto(4000), np.random.default_rng(2)
    for _ in range(200):
        one = random_estimate(rng, 1.1)
        tie = (binom.pmf(np.arange(one[2] + 1), one[2], 0.5) ** 2).sum()
        assert math.exp(perturbed.log_at_most(table, one, one)) == pytest.approx((1 + tie) / 2, rel=1e-10)


def test_one_step_density_where_almost_nothing_is_known():
    """η = e^-270 and e^-800 (beyond float64) and exactly 0: what the definition says, in exact arithmetic."""
    table = TABLE.upto(100)
    known = (0.6, math.log(50.0), 55)
    for log_eta in (-270.0, -800.0):
        better, worse = (0.7, log_eta, 1), (0.5, log_eta, 1)
        assert math.exp(perturbed.log_at_most(table, worse, known)) == pytest.approx(
            0.5 * (1 if 0.5 <= 0.6 else 0), rel=1e-12
        )  # its coin shows 0
        # Y = 0.7 + (0 or e^270): the known one is below it if the coin shows 1, else as its own law says.
        tail = binom.cdf(math.floor(50 * 0.1), 55, 0.5)
        assert math.exp(perturbed.log_at_most(table, known, better)) == pytest.approx(0.5 + 0.5 * tail, rel=1e-9)
        assert perturbed.log_at_most(table, known, worse) == pytest.approx(
            math.log(0.5), rel=1e-12
        )  # floor(-tiny) = -1
    unknown = (0.0, -math.inf, 0)
    assert perturbed.log_at_most(table, known, unknown) == 0.0
    assert perturbed.log_at_most(table, unknown, known) == -math.inf
    assert perturbed.log_at_most(table, unknown, unknown) == 0.0


@pytest.mark.parametrize("scale", [0.1, 1.1, 8.1])
def test_direct_full_density_equals_its_definition(scale):
    rng, table = np.random.default_rng(3), TABLE.upto(4000)
    for n in (1, 2, 5, 12):
        for _ in range(8):
            others, plays = random_history(rng, n, scale, high=4.0)
            ours = random_estimate(rng, scale, high=4.0)
            got, want = (
                perturbed.log_direct_density(table, ours, (*arrays(others), plays)),
                naive_density(ours, others, plays),
            )
            assert got == want or abs(got - want) <= 1e-9 * max(1.0, abs(want))


def acceptance(here, there):
    return 1.0 if here == -math.inf else min(1.0, math.exp(min(there - here, 0.0)))


@pytest.mark.parametrize("scale", [0.1, 1.1, 8.1])
@pytest.mark.parametrize("n", [3, 40, 400, 1500])
def test_tabulated_density_changes_no_acceptance_probability_by_more_than_two_percent(n, scale):
    """On random histories of small and large η, candidates that almost nothing is known of included."""
    rng, table = np.random.default_rng(n), TABLE.upto(8000)
    worst = 0.0
    for _ in range(6):
        others, plays = random_history(rng, n, scale, low=0.0, high=rng.choice([2.0, 5.0, 6.5]))
        centers, log_etas, flips = arrays(others)
        rivals = (centers, log_etas, flips, plays)
        grid = perturbed.tabulate(table, rivals)
        candidates = [random_estimate(rng, scale, *bounds) for bounds in [(-300, 0), *[(0, 6.5)] * 12]]
        candidates += [(center + rng.normal(0, 0.02), log_eta, n) for center, log_eta, n in others[:8]]
        exact = [perturbed.log_direct_density(table, x, rivals) for x in candidates]
        fast = [perturbed.log_tabulated_density(table, x, rivals, grid) for x in candidates]
        for i in range(len(candidates)):
            for j in range(len(candidates)):
                worst = max(worst, abs(acceptance(exact[i], exact[j]) - acceptance(fast[i], fast[j])))
    assert worst <= 0.02


def test_tabulated_density_on_a_real_history():
    learner = played(density="full", rounds=1200)
    history, term, table = learner.history, learner._term(), TABLE.upto(2000)
    values, log_etas = learner._played(term)
    flips = np.array([perturbed.flips_of(e, 1.1) for e in log_etas])
    others = (values, log_etas, flips, history.plays.rows)
    grid = perturbed.tabulate(table, others)
    rng, pairs = np.random.default_rng(0), []
    for _ in range(60):
        point = rng.uniform(*learner._bounds)[None]
        value, log_eta, _ = history.sums(point, term, find_estimator("paper"))
        x = chains.perturbed(value[0], log_eta[0], 1.1, 0.0, term)
        fast = perturbed.log_tabulated_density(table, x, others, grid)
        pairs.append((perturbed.log_direct_density(table, x, others), fast))
    worst = max(abs(acceptance(a[0], b[0]) - acceptance(a[1], b[1])) for a in pairs for b in pairs)
    assert worst <= 0.02
    assert any(a != b for a, b in pairs)  # the table was used


def played(rounds=60, seed=0, task="mountain-car", **settings):
    problem = rd.task(task)
    rng = np.random.default_rng(1)
    learner = rd.make("mcmc-randomist", problem, seed=seed, **settings)
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, float(problem.payoff(trial.mediator[None], rng)[0]))
    return learner


def test_whole_effective_samples_stay_whole():
    """η comes as exp(log η): ⌈a η⌉ and ties of the floors must not see its rounding."""
    table = TABLE.upto(200)
    for eta in range(1, 60):
        assert perturbed.flips_of(math.log(eta), 1.0) == eta
    for eta_j, eta in ((6, 3), (8, 4), (29, 29), (3, 9), (22, 11)):
        ours, theirs = (0.5, math.log(eta), eta), (0.5, math.log(eta_j), eta_j)
        exact = sum(binom.pmf(i, eta, 0.5) * binom.cdf((eta_j * i) // eta, eta_j, 0.5) for i in range(eta + 1))
        assert math.exp(perturbed.log_at_most(table, theirs, ours)) == pytest.approx(exact, rel=1e-10)
