"""Bad input gets a typed error that names the value, the bound and the remedy; nothing told before is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist import errors

SPACE = rd.Finite(rd.Gaussian([0, 1], 1.0))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rd.Gaussian([0, 1], 0.0), errors.ParameterError, "std must be > 0.*Dirac"),
        (lambda: rd.Gaussian([0, 1], [1, -2]), errors.ParameterError, "std must be > 0.*-2"),
        (lambda: rd.Gaussian([0, math.nan], 1), errors.ParameterError, "mean must be finite.*nan"),
        (lambda: rd.Gaussian([[0, 1], [2, 3], [4, 5]], [1, 2, 3]), errors.ShapeError, r"\(3,\).*\(K, 1\)"),
        (lambda: rd.Gaussian([]), errors.EmptySpaceError, "no members"),
        (lambda: rd.Finite([]), errors.EmptySpaceError, "at least one decision"),
        (lambda: rd.Finite(rd.Gaussian(std=1.0)), errors.ParameterError, "no members.*Finite.grid.*Box"),
        (lambda: rd.Finite.grid(rd.Gaussian(std=1.0), 0, 1, 0), errors.EmptySpaceError, "points.*>= 1.*0"),
        (lambda: rd.Box(rd.Gaussian(std=1.0), 1, 1), errors.EmptySpaceError, "low must be below high"),
        (lambda: rd.Box(rd.Gaussian(std=[1.0, 1.0]), [0, 0, 0], 1), errors.ShapeError, r"shape \(2,\).*\(3,\)"),
        (lambda: rd.Box(rd.Gaussian([0, 1], 1), 0, 1), errors.ParameterError, "without a mean"),
        (lambda: rd.UCB1(SPACE, confidence=1.0), errors.ParameterError, "confidence must be a number > 1.*1.0"),
        (lambda: rd.UCB1(SPACE, payoff_range=(1, 0)), errors.ParameterError, "low < high.*1.0, 0.0"),
        (lambda: rd.UCB1(SPACE, payoff_range=(0, math.inf)), errors.ParameterError, "finite"),
        (lambda: rd.UCB1(SPACE, payoff_range=3), errors.ParameterError, "pair"),
        (lambda: rd.UCB1(SPACE, out_of_range="ignore"), errors.ParameterError, "refuse.*clip.*ignore"),
        (lambda: rd.UCB1(SPACE, seed=-1), errors.ParameterError, "seed.*-1"),
        (lambda: rd.UCB1(SPACE, first=2), errors.ParameterError, r"0\.\.1, got 2"),
        (lambda: rd.UCB1(rd.Box(rd.Gaussian(std=1.0), 0, 1)), errors.ParameterError, "Finite.*Box"),
        (lambda: rd.Randomist(SPACE, perturbation_scale=-1), errors.ParameterError, "perturbation_scale.*>= 0.*-1"),
        (lambda: rd.Randomist(SPACE, perturbation="cauchy"), errors.ParameterError, "binomial.*gaussian.*cauchy"),
        (lambda: rd.Randomist(SPACE, bias_correction="none"), errors.ParameterError, "paper.*none"),
        (lambda: rd.FollowTheLeader(SPACE, start="all"), errors.ParameterError, "remark-1.*each.*all"),
        (lambda: rd.PerturbedHistory(SPACE, perturbation_scale=0), errors.ParameterError, "> 0"),
        (lambda: rd.GPUCB(SPACE, noise_std=0), errors.ParameterError, "noise_std.*> 0"),
        (lambda: rd.GPUCB(SPACE, failure_probability=1), errors.ParameterError, r"\(0, 1\)"),
        (lambda: rd.GPUCB(SPACE, features=[[0.0]]), errors.ShapeError, r"\(2, d\)"),
        (lambda: rd.GPUCB(rd.Finite(rd.Categorical([[1, 0], [0, 1]]))), errors.ParameterError, "features"),
        (lambda: rd.task("no-such-task"), errors.TaskError, "unknown task 'no-such-task'.*illustrative"),
        (lambda: rd.task("illustrative", colour=1), errors.TaskError, "colour"),
        (lambda: rd.optimize("illustrative", "no-such-learner", 3), errors.ParameterError, "randomist.*ucb1"),
        (lambda: rd.optimize("illustrative", rd.UCB1, 0), errors.ParameterError, "rounds.*>= 1.*0"),
        (lambda: rd.load({}), errors.StateError, "format"),
        (lambda: rd.load({"format": 99}), errors.StateError, "99"),
        (lambda: rd.UCB1(SPACE).recommend(), errors.NoDataError, "told"),
    ],
)  # fmt: skip
def test_constructors_and_calls(make, error, words):
    with pytest.raises(error, match=f"(?s){words}") as caught:
        make()
    assert isinstance(caught.value, rd.RandomistError)


def test_payoffs_and_tickets_name_value_bound_and_remedy():
    learner = rd.Randomist(SPACE, payoff_range=(-1, 3), seed=0)
    trial = learner.ask()
    for payoff, words in (
        (math.nan, "finite number, got nan.*fail"),
        (-math.inf, "finite number, got -inf"),
        ("0.5", "finite number, got the text '0.5'"),
        (3.0001, r"payoff 3.0001 is outside payoff_range \(-1.0, 3.0\).*widen.*clip"),
        (np.zeros(2), r"one number.*\(2,\)"),
        ([0.5], "finite number"),
    ):
        with pytest.raises(errors.RandomistError, match=f"(?s){words}"):
            learner.tell(trial, payoff)
    assert learner.told == 0
    learner.tell(trial, 3.0)
    with pytest.raises(errors.ClosedTrialError, match=r"trial 0 was told before.*once"):
        learner.tell(trial, 1.0)
    with pytest.raises(errors.UnknownTrialError, match=r"never asked.*0\.\.0"):
        learner.tell(12, 1.0)
    stranger = rd.Randomist(SPACE, seed=1)
    learner.ask()
    stranger.ask()
    with pytest.raises(errors.UnknownTrialError, match="is not the trial"):
        learner.tell(stranger.ask(), 1.0)
    assert learner.told == 1


def test_a_learner_whose_index_is_nan_says_so():
    class Broken(rd.UCB1):
        def index(self, estimates, rng):
            return np.full(2, np.nan)

    learner = Broken(SPACE)
    for _ in range(2):
        learner.tell(learner.ask(), 0.5)
    with pytest.raises(errors.ParameterError, match=r"Broken\.index returned a NaN"):
        learner.ask()


@pytest.mark.parametrize("payoff_range", [(0, 1e-310), (-1e308, 1e308)])
def test_a_range_that_cannot_be_mapped_is_refused(payoff_range):
    with pytest.raises(errors.ParameterError, match="payoff_range"):
        rd.UCB1(SPACE, payoff_range=payoff_range)


def test_a_running_range_too_narrow_for_float64_is_one_value():
    learner = rd.Optimist(SPACE, payoff_range="running")
    for payoff in (0.0, 1e-310, 0.0):
        learner.tell(learner.ask(), payoff)
    assert np.isfinite(learner.estimates().value).all()


def test_odd_tickets_payoffs_and_first_decisions():
    learner = rd.UCB1(SPACE, first=np.int64(1))
    learner.ask(batch=2)
    with pytest.raises(errors.PayoffError):
        learner.tell(0, 10**400)
    for odd in ([0], True, "0", None):
        with pytest.raises(errors.UnknownTrialError):
            learner.tell(odd, 0.5)
    for first in (True, np.array([1]), 7):
        with pytest.raises(errors.ParameterError, match="first"):
            rd.Optimist(SPACE, first=first)
    assert rd.Optimist(SPACE, first=1.0).ask().decision == 1


@pytest.mark.parametrize("payoff", [1.7e308, -1.7e308, 1e151])
@pytest.mark.parametrize("name", ["auto", "prospector", "randomist", "gp-ucb"])
def test_payoffs_whose_squares_are_infinite(name, payoff):
    space = SPACE if name in ("randomist", "gp-ucb") else rd.Box(rd.Gaussian(std=0.2), 0.0, 1.0)
    learner = rd.make(name, space, seed=0, payoff_range=(-math.inf, math.inf) if name == "randomist" else "running")
    first, second = learner.ask(batch=2)
    learner.tell(first, 1e150)
    with pytest.raises(errors.PayoffError, match=r"at most 1e\+150.*larger units"):
        learner.tell(second, payoff)
    learner.tell(second, -1e150)
    for _ in range(5):
        learner.tell(learner.ask(), 0.0)
    assert learner.told == 7
