"""Payoffs that drift: learners that forget, and a warning for those that do not."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import randomist as rd
from benchmarks import drift as benchmark
from randomist.importance.drift import LEVEL, SHARE, TEST, DriftTest
from tests.problems import GAUSSIANS

# The test.


def naive(payoffs, share):
    """When the payoffs of one decision are first seen to contradict each other: (plays then, plays before)."""
    times = [math.ceil(16 * 1.5**j) for j in range(40)]
    for j, now in enumerate(times):
        if now > len(payoffs):
            return None
        for before in times[:j]:
            older, recent = payoffs[:before], payoffs[before:now]
            level, n, m = share / (j * (j + 1)) / j, before, now - before
            difference = abs(older.mean() - recent.mean())
            radii = [
                math.sqrt(2 * part.var(ddof=1) * math.log(16 / level) / len(part))
                + 7 * math.log(16 / level) / (3 * (len(part) - 1))
                for part in (older, recent)
            ]
            if difference > min(math.sqrt(math.log(4 / level) / 2 * (1 / n + 1 / m)), sum(radii)):
                return now, before
    return None


@pytest.mark.parametrize("seed", range(12))
def test_the_definition(seed):
    rng = np.random.default_rng(seed)
    change, n = int(rng.integers(30, 800)), 1500
    payoffs = rng.beta(8, 2, n) if seed % 2 else rng.random(n)
    payoffs[change:] *= rng.random()
    test, decisions = DriftTest(3), rng.integers(3, size=4 * n)
    own = np.flatnonzero(decisions == 1)[:n]
    told = np.full(4 * n, 0.5)
    told[own] = payoffs[: len(own)]
    fired = None
    for i, (decision, payoff) in enumerate(zip(decisions.tolist(), told.tolist(), strict=True)):
        if i > own[-1]:
            break
        test.add(decision, payoff)
        if test.found and fired is None:
            fired = int(np.sum(decisions[: i + 1] == 1)), test.found[1]
    assert fired == naive(payoffs, LEVEL / 2 / 3)
    at_once = DriftTest(3)
    at_once.add_all(decisions[: own[-1] + 1], told[: own[-1] + 1])
    assert at_once.found == test.found
    np.testing.assert_array_equal(at_once.tables, test.tables)


@pytest.mark.parametrize("law", ["uniform", "rare", "bernoulli", "constant"])
def test_false_alarms(law):
    """At most 1% of runs, at any time; the bounds are far from tight, so that 5 of 500 have never been seen."""
    rng, alarms = np.random.default_rng(7), 0
    draw = {
        "uniform": lambda n: rng.random(n),
        "rare": lambda n: (rng.random(n) < 0.02).astype(float),
        "bernoulli": lambda n: (rng.random(n) < 0.5).astype(float),
        "constant": lambda n: np.full(n, 0.3),
    }[law]
    for _ in range(500):
        test = DriftTest(4)
        test.add_all(rng.integers(4, size=4000), draw(4000))
        alarms += test.found is not None
    assert alarms <= 5


def test_a_newcomer_has_a_part_of_the_level():
    test = DriftTest(2)
    test.add_all(np.array([0, 1] * 40), np.full(80, 0.5))
    for _ in range(50):
        test.grow()
    assert test.tables[TEST, SHARE].sum() <= LEVEL
    test.add_all(np.repeat(51, 400), np.repeat([0.0, 1.0], 200))
    assert test.found == (51, test.found[1])


# The warning.


def world(decision, t, change):
    return [0.05, 0.9, 0.1, 0.95, 0.15][(decision + (t >= change)) % 5]


def drifting(learner, rounds=1200, change=400):
    for t in range(learner.told, rounds):
        trial = learner.ask()
        learner.tell(trial, world(trial.decision, t, change))


def test_a_learner_warns_once_and_goes_on():
    learner = rd.Randomist(GAUSSIANS, seed=0)
    with pytest.warns(rd.errors.DriftWarning, match="window") as caught:
        drifting(learner)
    assert len(caught) == 1
    assert learner.told == 1200
    loaded = rd.load(learner.state())
    drifting(loaded, 1300)  # it has been said: a warning would be an error here


def test_nothing_is_lost_where_the_warning_is_an_error():
    learner, other = rd.Randomist(GAUSSIANS, seed=0), rd.Randomist(GAUSSIANS, seed=0)
    with pytest.raises(rd.errors.DriftWarning):
        drifting(learner)
    told = learner.told
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drifting(other, told)
    assert not learner.pending
    np.testing.assert_array_equal(learner.record.payoffs, other.record.payoffs)
    np.testing.assert_array_equal(learner.estimates().value, other.estimates().value)
    drifting(learner)


def test_many_told_at_once_warn_too():
    learner = rd.Randomist(GAUSSIANS, seed=0)
    trials = [rd.Trial(t, t % 5, float(t % 5)) for t in range(1200)]
    for trial in trials:
        learner.adopt(trial)
    with pytest.warns(rd.errors.DriftWarning):
        learner.tell_all(trials, [world(trial.decision, t, 400) for t, trial in enumerate(trials)])


@pytest.mark.parametrize(
    "settings", [{"window": 100}, {"discount": 0.98}, {"payoff_range": "running"}, {"payoff_range": (-np.inf, np.inf)}]
)
def test_no_warning_where_it_is_known_or_cannot_be(settings):
    """Those that forget have been told of the drift; without a range of payoffs the test would have no level."""
    drifting(rd.Randomist(GAUSSIANS, seed=0, **settings))


def test_no_drift_no_warning():
    for seed in range(10):
        learner = rd.Randomist(GAUSSIANS, seed=seed)
        rng = np.random.default_rng(seed)
        for _ in range(500):
            trial = learner.ask()
            learner.tell(trial, float(rng.random() < 0.1 + 0.2 * trial.decision))


# Learners that forget.


def test_a_window_follows_a_best_policy_that_changes():
    """Reduced from `benchmarks.drift`: 3 changes, 4 seeds; the benchmark's bar is one half."""
    regrets = {name: benchmark.mean_regret(name, rounds=2400, period=600, window=200, seeds=range(4)) for name in (
        "window", "stationary", "sliding UCB1")}  # fmt: skip
    assert regrets["window"] <= 0.6 * min(regrets["stationary"], regrets["sliding UCB1"])


def test_absorbed_rows_have_no_age():
    pytest.importorskip("polars")
    log = rd.Log.from_arrays([0.5, 0.25], {"a": [0.0, 0.0], "b": [0.0, 0.0]}, loggers=["a", "b"])
    learner = rd.Optimist(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0)), window=10)
    with pytest.raises(rd.errors.ParameterError, match="age"):
        learner.absorb(log)


def test_steps_are_not_forgotten_one_by_one():
    from tests import problems

    with pytest.raises(rd.errors.ParameterError, match="per-decision"):
        rd.Optimist(problems.PER_DECISION, window=10)
    with pytest.raises(rd.errors.ParameterError, match="empirical"):
        rd.Optimist(problems.POLICIES, window=10, divergence="per-step")


def test_a_forgetful_record_is_bounded():
    learner = rd.Randomist(GAUSSIANS, window=50, keep_record=False, seed=0)
    drifting(learner, 1000)
    assert learner.told == len(learner.record) == 1000
    assert len(learner.record.payoffs) == 50
    assert len(learner.state()["record"]["payoffs"]) == 50
    loaded = rd.load(learner.state())
    for one in (learner, loaded):
        drifting(one, 1100)
    np.testing.assert_array_equal(learner.estimates().value, loaded.estimates().value)
