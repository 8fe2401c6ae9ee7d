"""Values against their definitions: optimistic and self-normalised ones, what they need, and what is refused."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from tests import naive
from tests.histories.cases import SPACES, fed, history_of


@pytest.mark.parametrize("name", SPACES)
def test_values_equal_their_definitions(name):
    """The optimistic value is 1 minus the paper's estimate of the loss, in 60 digits; the other a weighted mean."""
    space = SPACES[name]
    counts = np.random.default_rng(5).integers(0, 12, space.size)
    _, decisions, mediators, payoffs = history_of(space, counts)
    family = space.family
    table = family.log_density(None, mediators), family.log_renyi(None, None), decisions
    loss, gain = naive.estimates(*table, 1 - payoffs, 1.7), naive.estimates(*table, payoffs, 1.7)
    optimistic = fed(
        rd.FollowTheLeader, space, decisions, mediators, payoffs, estimator="optimistic", confidence=1.7
    ).estimates()
    mean = fed(
        rd.FollowTheLeader, space, decisions, mediators, payoffs, estimator="self-normalised", confidence=1.7
    ).estimates()
    for x in range(space.size):
        want = 1 - loss["value"][x] if loss["effective_samples"][x] else mpmath.mpf(1)
        assert abs(optimistic.value[x] - want) <= 1e-11 * max(1, abs(want)), (x, optimistic.value[x], want)
        weighed = gain["value"][x] / gain["coverage"][x] if gain["coverage"][x] > 1e-300 else 0
        assert abs(mean.value[x] - weighed) <= 1e-9, (x, mean.value[x], weighed)
        assert 0 <= mean.value[x] <= 1  # a mean of payoffs


def test_the_optimistic_value_is_one_where_nothing_is_known_and_no_opening_is_needed():
    space = SPACES["illustrative (2, 0.1)"]
    learner = rd.FollowTheLeader(space, estimator="optimistic", first=3)
    np.testing.assert_array_equal(learner.estimates().value, 1.0)  # before the first payoff too
    trial = learner.ask()
    assert trial.decision == 3
    learner.tell(trial, 0.2)
    estimates = learner.estimates()
    assert estimates.log_effective_samples[:3].tolist() == [-np.inf] * 3  # N(2.95, 0.1²) says nothing of the others
    assert estimates.value[[0, 1, 2, 4]].tolist() == [1.0] * 4
    assert estimates.value[3] == pytest.approx(1 - 0.8 * min(1 / math.sqrt(2 * math.log(2)), 1))
    assert {rd.FollowTheLeader(space, estimator="optimistic", seed=s).ask().decision for s in range(60)} == {*range(5)}
    for settings in ({}, {"estimator": "self-normalised"}):  # these do need Remark 1's
        assert [t.decision for t in rd.FollowTheLeader(space, **settings).ask(batch=4)] == [0, 1, 2, 4]


@pytest.mark.parametrize("cls", [rd.FollowTheLeader, rd.Optimist, rd.Randomist])
def test_optimistic_learners_reach_every_decision_that_nothing_is_known_of(cls):
    """Disjoint mediators, losses wherever one plays: unknown decisions are worth 1, so all are played.

    RANDOMIST's only coin for such a decision decides it: 50 rounds leave one out with probability below 1e-12.
    """
    space = rd.Finite(rd.Dirac(np.arange(6.0)))
    learner = cls(space, estimator="optimistic", seed=3)
    for _ in range(50 if cls is rd.Randomist else 6):
        learner.tell(learner.ask(), 0.0)
    assert (learner.estimates().plays >= 1).all()


def test_the_optimistic_value_is_not_confused_by_the_scale_of_payoffs():
    """The same losses on another scale have the same values in its units: 1 is the top of the range."""
    space = SPACES["stds that differ"]
    _, decisions, mediators, payoffs = history_of(space, [4, 0, 7, 2])
    unit = fed(rd.Optimist, space, decisions, mediators, payoffs, estimator="optimistic")
    other = fed(
        rd.Optimist, space, decisions, mediators, 30 * payoffs - 7, estimator="optimistic", payoff_range=(-7, 23)
    )
    np.testing.assert_allclose(30 * unit.estimates().value - 7, other.estimates().value, rtol=1e-12)
    np.testing.assert_allclose(30 * unit.estimates().width, other.estimates().width, rtol=1e-12)


def test_the_bias_correction_is_what_the_estimator_needs_by_default():
    space = SPACES["stds that differ"]
    _, *told = history_of(space, [4, 0, 7, 2])
    for estimator, factor in (("paper", 1.0), ("optimistic", 0.0), ("self-normalised", 0.0), ("log-smoothing", 0.5)):
        learner = fed(rd.Randomist, space, *told, estimator=estimator)
        np.testing.assert_allclose(learner.bias(learner.estimates()), factor * learner.estimates().width)
    for given, factor in (("paper", 1.0), (0.3, 0.3), (0, 0.0)):
        learner = fed(rd.Randomist, space, *told, estimator="optimistic", bias_correction=given)
        np.testing.assert_allclose(learner.bias(learner.estimates()), factor * learner.estimates().width)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"estimator": "pessimistic"},
            "estimator must be one of 'paper', 'optimistic', 'self-normalised', 'log-smoothing', got",
        ),
        ({"estimator": None}, "estimator must be one of"),
        ({"divergence": "exact"}, "divergence must be one of 'harmonic', 'mixture', 'empirical', 'per-step', got"),
        ({"bias_correction": "none"}, "bias_correction must be"),
        ({"bias_correction": -0.1}, "bias_correction must be"),
        ({"bias_correction": math.nan}, "bias_correction must be"),
        ({"bias_correction": True}, "bias_correction must be"),
        ({"estimator": "optimistic", "payoff_range": (-math.inf, math.inf)}, "needs to know the range of payoffs"),
    ],
)
@pytest.mark.parametrize("cls", [rd.FollowTheLeader, rd.Optimist, rd.Randomist, rd.Realist])
def test_settings_that_make_no_sense_are_refused(cls, settings, message):
    with pytest.raises(ParameterError, match=message):
        cls(SPACES["stds that differ"], **settings)


def test_an_unknown_range_is_no_obstacle_when_it_is_learned():
    learner = rd.FollowTheLeader(SPACES["stds that differ"], estimator="optimistic", payoff_range="running")
    for payoff in (-3.0, 40.0, 12.0, 7.0):
        learner.tell(learner.ask(), payoff)
    assert np.isfinite(learner.estimates().value).all()
