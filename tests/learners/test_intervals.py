"""Intervals that hold at every round, and survivors: by their definition, in exact expectation, and when misused."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ContradictionWarning, ParameterError
from randomist.importance.intervals import AnytimeBets
from randomist.importance.intervals.anytime import CAP, LEVELS, NONE, STAKES, Bank, levels_of, log_prior
from randomist.learners.finite.certainty import RESERVE
from randomist.learners.finite.levels import OTHERS, STEEP
from tests import problems

NEAR = rd.Finite(rd.Gaussian([-0.6, 0.1, 0.5, 1.3], [1.0, 1.2, 0.9, 1.0]))
GRID = np.linspace(-12, 12, 48_001)


def chance(z):
    return 1 / (1 + np.exp(-np.asarray(z, float)))


def means(space, pays=chance):
    return np.exp(space.family.log_density(None, GRID)) @ pays(GRID) * (GRID[1] - GRID[0])


def play(learner, rounds, seed=0, pays=chance, low=0.0, high=1.0, batch=None):
    rng = np.random.default_rng([seed, 5])
    while learner.told < rounds:
        for trial in [learner.ask()] if batch is None else learner.ask(batch=batch):
            learner.tell(trial, low + (high - low) * float(rng.random() < pays(trial.mediator)))
    return learner


# Against the definition.


def naive_log_wealth(learner, truth):
    """Both sides' wealth of every decision by the formula, one row and stake after the other."""
    record, space = learner.record, learner.space
    density = space.family.log_density(None, record.mediators)
    found = np.empty((2, space.size))
    for side, k in itertools.product((0, 1), range(space.size)):
        total = 0.0
        for c, steep in enumerate(STEEP):
            for s, stake in enumerate(STAKES):
                log_wealth = 0.0
                for i, j in enumerate(record.decisions.tolist()):
                    if space.family.divergences_known:
                        d2 = math.exp(min(float(space.log_divergences_to(j)[k]), 700.0))
                        if j == k:
                            q = 0
                        elif math.isinf(steep):
                            q = NONE
                        else:
                            q = min(round(math.log2(1 + steep * (d2 - 1))), NONE)
                    else:
                        q = 0 if j == k else OTHERS[c]
                    if q >= NONE:
                        continue
                    weight = math.exp(density[k, i] - density[j, i])
                    y = record.payoffs[i] if side == 0 else 1 - record.payoffs[i]
                    m = truth[k] if side == 0 else 1 - truth[k]
                    scaled = stake / 2**q
                    log_wealth += math.log1p(scaled * min(weight * y, CAP)) - math.log1p(scaled * m)
                total += math.exp(log_prior(len(STEEP))[c, s] + log_wealth)
        found[side, k] = math.log(total)
    return found


@pytest.mark.parametrize("space", ["gaussians", "near-singular", "boxes", "categories", "mixed", "logged"])
def test_wealth_is_what_the_definition_says(space):
    learner = problems.make("randomist 1.1", space, seed=3)
    for _ in range(45):
        problems.tell(learner, learner.ask(), space)
    truth = np.linspace(0.2, 0.7, learner.space.size)
    np.testing.assert_allclose(learner.certainty.log_wealth(truth), naive_log_wealth(learner, truth), rtol=1e-9)


@pytest.mark.parametrize("space", ["likelihoods", "likelihoods-known"])
def test_wealth_of_likelihoods(space):
    learner = problems.make("realist", space, seed=3)
    for _ in range(40):
        problems.tell(learner, learner.ask(), space)
    truth = np.linspace(0.2, 0.7, 4)
    np.testing.assert_allclose(learner.certainty.log_wealth(truth), naive_log_wealth(learner, truth), rtol=1e-9)


def test_bounds_are_where_the_wealth_excludes():
    """The compiled inversion against `Bets.lower_bound`, and against the wealth at the bounds themselves."""
    learner = play(rd.Realist(NEAR, seed=1), 300)
    low, high = learner.intervals(0.9)
    gain, loss, _ = learner.certainty._interval_bets()
    error = 0.1 * (1 - RESERVE) / NEAR.size / 2
    for bank, bounds in ((gain, low), (loss, 1 - high)):
        for k in range(NEAR.size):
            bets = AnytimeBets.on(error, bank.counts[k])
            assert bets.lower_bound(bank.growth()[k], 0.0, 1.0) == pytest.approx(bounds[k], abs=1e-9)
    at_low = learner.certainty.log_wealth(low)[0]
    np.testing.assert_allclose(at_low, -math.log(error), atol=1e-6)


def test_priors_are_worth_no_more_than_one():
    for shapes in (1, 2, 3):
        assert np.exp(log_prior(shapes)).sum() == pytest.approx(1.0)
    learner = rd.Realist(NEAR)
    for k in range(6):
        assert learner.certainty._shares().sum() <= 1.0
        learner.tell(learner.ask(), 0.5)
        learner.add(rd.Gaussian(mean=[0.1 * k], std=1.0))


def test_levels_fall_with_the_divergence():
    excess = np.array([0.0, 0.4, 1.0, 100.0, 1e9, np.inf])
    assert levels_of(excess, 1.0).tolist() == [0, 0, 1, 7, NONE, NONE]
    assert levels_of(excess, math.inf).tolist() == [0, NONE, NONE, NONE, NONE, NONE]


def test_a_bank_does_not_depend_on_chunks():
    rng = np.random.default_rng(0)
    x, kinds = rng.exponential(size=(100, 3)), rng.integers(0, 2, 100)
    levels = rng.integers(0, NONE + 1, size=(2, 3, 3)).astype(np.int8)
    whole, parts = Bank(3, 3), Bank(3, 3)
    whole.add(x, kinds, levels)
    for begin, end in itertools.pairwise((0, 1, 2, 40, 63, 64, 100)):
        parts.add(x[begin:end], kinds[begin:end], levels)
    assert np.array_equal(whole.growth(), parts.growth())
    assert np.array_equal(whole.counts, parts.counts)
    assert whole.counts.sum() == (levels[kinds] < NONE).sum()


def test_looking_often_changes_nothing():
    often, once = rd.Realist(NEAR, seed=2), rd.Realist(NEAR, seed=2)
    rng = np.random.default_rng(0)
    for i in range(150):
        trial, same = often.ask(), once.ask()
        payoff = float(rng.random() < 0.6)
        often.tell(trial, payoff)
        once.tell(same, payoff)
        if i % 7 == 0:
            often.intervals(), often.surviving()
    assert all(map(np.array_equal, often.intervals(), once.intervals()))
    loaded = rd.load(often.state())
    assert all(map(np.array_equal, often.intervals(0.8), loaded.intervals(0.8)))
    assert np.array_equal(often.surviving(), loaded.surviving())


# In exact expectation.


@pytest.mark.parametrize("forget", [None, 0, 1])
def test_wealth_at_the_truth_is_a_supermartingale(forget):
    """Every outcome of four rounds, weighted by its probability: choices depend on payoffs, and so may failures.

    `forget` is a payoff whose trials never answer, the worst way to lose them.
    """
    table = np.array([[0.7, 0.3, 0.0], [0.2, 0.3, 0.5]])
    pays = np.array([0.2, 0.9, 0.4])
    space = rd.Finite(rd.Categorical(table))
    truth, expected = table @ pays, np.zeros((2, 2))
    for outcome in itertools.product(range(3), (0, 1), repeat=4):
        probability, played, learner = 1.0, 0, rd.UCB1(space)
        for i, (z, y) in enumerate(zip(outcome[::2], outcome[1::2], strict=True)):
            probability *= table[played, z] * (pays[z] if y else 1 - pays[z])
            if probability == 0:
                break
            trial = rd.Trial(i, played, z)
            learner.adopt(trial)
            if y == forget:
                learner.fail(trial, "lost")
            else:
                learner.tell(trial, float(y))
            played = (played + y + z) % 2  # as adaptive as can be
        if probability:
            expected += probability * np.exp(learner.certainty.log_wealth(truth))
    assert (expected <= 1 + 1e-12).all()
    if forget is None:  # all is covered but category 2 by decision 0
        assert expected[:, 0] == pytest.approx([1.0, 1.0], abs=1e-12)


# By simulation, in small: `benchmarks/certainty.py` has 1,000 runs of eight problems.


@pytest.mark.parametrize(("make", "batch"), [(rd.Realist, None), (rd.UCB1, None), (rd.Randomist, 8)])
def test_intervals_hold_at_every_round(make, batch):
    """30 runs of 120 rounds, looked at after every tell; more than 5 that fail have a probability below 0.4%."""
    truth, missed = means(NEAR), 0
    needed = np.log(2 * NEAR.size / 0.05 / (1 - RESERVE))
    for seed in range(30):
        learner, rng, worst = make(NEAR, seed=seed), np.random.default_rng([seed, 6]), -np.inf
        while learner.told < 120:
            for trial in [learner.ask()] if batch is None else learner.ask(batch=batch):
                learner.tell(trial, float(rng.random() < chance(trial.mediator)))
                worst = max(worst, learner.certainty.log_wealth(truth).max())
        missed += worst >= needed
    assert missed <= 5


def test_width_of_the_most_played_is_near_that_of_a_fixed_design():
    ratios = []
    for seed in range(3):
        learner = play(rd.Realist(NEAR, seed=seed), 1000, seed)
        plays = np.bincount(learner.record.decisions, minlength=4)
        sources = np.repeat(np.arange(4), plays)
        rng = np.random.default_rng(seed)
        z = NEAR.family.sample(sources, rng)
        density = NEAR.family.log_density(None, z)
        log = rd.Log.from_arrays(
            payoffs=(rng.random(len(z)) < chance(z)).astype(float),
            log_likelihoods={f"p{k}": density[k] for k in range(4)},
            loggers=np.array([f"p{k}" for k in range(4)])[sources],
        )
        fixed, most, found = log.evaluate(), int(plays.argmax()), learner.intervals()
        ratios.append((found.high - found.low)[most] / (fixed.high - fixed.low)[most])
    assert np.mean(ratios) < 1.3  # the bar is 2


# What is counted, and what is not.


def test_failures_that_depend_on_payoffs_do_not_mislead():
    """A policy whose losses never answer: without counting them its mean would be 1."""
    space = rd.Finite(rd.Gaussian([0.0, 9.0], 1.0))
    learner, rng = rd.UCB1(space, seed=0), np.random.default_rng(0)
    for _ in range(600):
        trial = learner.ask()
        if trial.decision == 0 and rng.random() > 0.5:
            learner.fail(trial, "crashed")
        else:
            learner.tell(trial, 1.0 if trial.decision == 0 else float(rng.random() < 0.7))
    low, high = learner.intervals()
    assert low[0] < 0.5 < high[0]
    assert high[1] - low[1] < 0.6  # the other one is not harmed: it was played 100 times
    again = rd.load(learner.state())
    assert all(map(np.array_equal, again.intervals(), (low, high)))
    old = learner.state()
    old["failures"] = {name: old["failures"][name] for name in ("ids", "reasons")}  # as 0.1.0 wrote it
    worst = rd.load(old).intervals()
    assert (worst.low <= low).all()
    assert (worst.high >= high).all()
    assert worst.low[1] < low[1]


def test_pending_trials_count_as_the_worst_until_they_are_told():
    learner = play(rd.Realist(NEAR, seed=0), 200)
    before = learner.intervals()
    trials = learner.ask(batch=100)
    waiting = learner.intervals()
    assert (waiting.low < before.low).all()
    assert (waiting.high > before.high).all()
    for trial in trials:
        learner.tell(trial, float(np.random.default_rng(trial.id).random() < chance(trial.mediator)))
    assert (learner.intervals().high - learner.intervals().low < waiting.high - waiting.low).all()


def test_units_are_the_users():
    unit, scaled = rd.Realist(NEAR, seed=4), rd.Realist(NEAR, seed=4, payoff_range=(-3.0, 5.0))
    play(unit, 120), play(scaled, 120, low=-3.0, high=5.0)
    for ours, theirs in zip(unit.intervals(), scaled.intervals(), strict=True):
        np.testing.assert_allclose(-3 + 8 * ours, theirs, atol=1e-9)
    np.testing.assert_array_equal(unit.surviving(), scaled.surviving())


def test_what_a_bandit_and_a_sharing_learner_were_told_is_the_same():
    sharing, bandit = play(rd.Realist(NEAR, seed=1), 80), rd.UCB1(NEAR)
    record = sharing.record
    for i, (decision, z, y) in enumerate(zip(record.decisions, record.mediators, record.payoffs, strict=True)):
        bandit.adopt(rd.Trial(i, int(decision), float(z)))
        bandit.tell(i, float(y))
    assert all(map(np.array_equal, sharing.intervals(), bandit.intervals()))


def test_an_absorbed_log_is_in_the_estimates_and_not_in_the_intervals():
    space = rd.Finite.likelihoods(2)
    rng = np.random.default_rng(0)
    log = rd.Log.from_arrays(
        payoffs=(rng.random(500) < 0.3).astype(float),
        log_likelihoods={"a": np.zeros(500), "b": np.zeros(500)},
        loggers=np.repeat(["a", "b"], 250),
    )
    learner = rd.Realist(space)
    learner.absorb(log)
    assert learner.told == 500
    assert np.array_equal(learner.intervals(), [[0, 0], [1, 1]])
    assert np.array_equal(learner.surviving(), [0, 1])


def test_an_added_decision_is_bet_on_from_its_arrival():
    learner = play(rd.Realist(NEAR, seed=0), 300)
    before = learner.intervals()
    late = learner.ask(batch=5)
    added = learner.add(rd.Gaussian(mean=[1.5], std=1.0))
    assert learner.estimates().effective_samples[added] > 50
    for trial in late:
        learner.tell(trial, 1.0)
    found = learner.intervals()
    assert (found.low[added], found.high[added]) == (0.0, 1.0)  # it may have been made with all of these in view
    assert (found.low[:added] > 0).all()
    assert (np.abs(found.low - np.append(before.low, 0.0))[:added] < 0.1).all()
    play(learner, 600, seed=3)
    narrower, loaded = learner.intervals(), rd.load(learner.state()).intervals()
    assert narrower.high[added] - narrower.low[added] < 0.5
    assert all(map(np.array_equal, narrower, loaded))
    assert learner.certainty._lead_of(added).paired.counts[0].sum() == 2 * 295  # rows asked after it came, two shapes


def test_a_retired_decision_does_not_survive():
    learner = play(rd.Realist(NEAR, seed=0), 30)
    assert 1 in learner.surviving()
    learner.retire(1)
    assert 1 not in learner.surviving()


def test_bounds_that_contradict_each_other_say_so():
    """Likelihoods that cannot be: all that policy 0 does is three times as likely under policy 1."""
    learner = rd.UCB1(rd.Finite.likelihoods(2))
    for _ in range(100):
        trial = learner.ask()
        learner.tell(trial, 0.5, log_likelihoods=[0.0, math.log(3.0)] if trial.decision == 0 else [-3.0, 0.0])
    with pytest.warns(ContradictionWarning, match="decision 1"):
        low, high = learner.intervals()
    assert (low[1], high[1]) == (0.0, 1.0)


# Survivors.


@pytest.mark.parametrize("seed", range(3))
def test_one_survives_and_it_is_the_best(seed):
    learner, left = rd.Realist(NEAR, seed=seed), []
    for rounds in (20, 100, 400, 1500):
        play(learner, rounds, seed=100 * seed + rounds)
        left.append((len(learner.surviving()), learner.rounds_left()))
    assert left[0][0] == 4
    assert left[-1] == (1, 0.0)
    assert learner.surviving().tolist() == [3] == [learner.recommend()]
    assert len(learner.surviving(level=0.999999)) >= 1


def test_survivors_where_nothing_is_shared():
    space = rd.Finite(rd.Gaussian([0.0, 20.0, 40.0], 1.0))
    learner = play(rd.UCB1(space, seed=0), 900, pays=lambda z: 0.2 + 0.6 * (z > 30))
    assert learner.surviving().tolist() == [2]
    low, high = learner.intervals()
    assert low[2] > high[0]


def test_rounds_left_is_of_the_right_size():
    learner = play(rd.Identify(NEAR, seed=5), 60)
    predicted = learner.rounds_left() + 60
    while not learner.finished:
        play(learner, learner.told + 1, seed=learner.told)
    assert learner.told / 6 < predicted < 6 * learner.told


def test_nothing_told_and_one_decision():
    assert rd.Realist(NEAR).surviving().tolist() == [0, 1, 2, 3]
    assert rd.Realist(NEAR).rounds_left() == math.inf
    alone = rd.Realist(rd.Finite(rd.Gaussian([0.5], 1.0)))
    assert alone.surviving().tolist() == [0]
    assert alone.rounds_left() == 0.0


def test_the_paired_and_the_separate_bets_are_supermartingales_where_the_rival_is_as_good():
    """Two decisions with one mean: after 150 rounds, the mean evidence of 150 runs is at most 1 and some."""
    space = rd.Finite(rd.Gaussian([-0.5, 0.5], 1.0))
    evidence = []
    for seed in range(150):
        learner = play(rd.Realist(space, seed=seed), 60, seed=seed, pays=lambda z: np.exp(-(z**2)))
        evidence.append(np.exp(learner.certainty.evidence().log_evidence).max())
    assert np.mean(evidence) < 1.0  # about 0.45 · 1/2 in expectation, and heavy-tailed


# Misuse and growth.


@pytest.mark.parametrize("level", [0, 1, -0.1, 1.5, "high", None, math.nan])
def test_a_level_that_is_none(level):
    learner = play(rd.Realist(NEAR), 5)
    for call in (learner.intervals, learner.surviving, learner.rounds_left):
        with pytest.raises(ParameterError, match="level"):
            call(level)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"payoff_range": "running"}, "running"),
        ({"payoff_range": (-math.inf, math.inf)}, "payoff_range=.*low, high"),
    ],
)
def test_a_range_that_is_not_known(settings, words):
    learner = rd.Randomist(NEAR, **settings)
    learner.tell(learner.ask(), 0.5)
    for call in (learner.intervals, learner.surviving, learner.rounds_left):
        with pytest.raises(ParameterError, match=words):
            call()
    learner.tell(learner.ask(), 0.5)  # and nothing is lost


def test_a_record_that_was_not_kept():
    learner = rd.Randomist(problems.CATEGORIES, keep_record=False)
    learner.tell(learner.ask(), 0.5)
    with pytest.raises(ParameterError, match="keep_record"):
        learner.intervals()


def test_weights_beyond_float64_are_cut():
    """Mediators that the other decision has a density of e^-900 for."""
    learner = rd.Randomist(problems.NEAR_SINGULAR, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(40):
            learner.tell(learner.ask(), 1.0)
        low, high = learner.intervals()
    assert np.isfinite([low, high]).all()
    assert (low >= 0).all()
    assert (high <= 1).all()


def test_the_last_level_bets_least():
    assert STAKES[0] / 2 ** (LEVELS - 1) < 1e-6  # what a million rows of an unlike policy may need


def test_a_weight_of_infinity_and_a_payoff_of_nothing():
    """What one policy all but never does, and another one always: w = inf in float64, times y = 0."""
    learner = rd.UCB1(rd.Finite.likelihoods(2))
    for _ in range(20):
        trial = learner.ask()
        learner.tell(trial, 0.0, log_likelihoods=[-900.0, 0.0] if trial.decision == 0 else [0.0, -900.0])
    low, high = learner.intervals()
    assert np.isfinite([low, high]).all()
    assert not np.isnan(learner.certainty.evidence().log_evidence).any()
