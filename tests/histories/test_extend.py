"""Many samples at once are the same samples one by one, bit for bit; what is refused changes nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ClosedTrialError, MediatorError, PayoffError, RandomistError, UnknownTrialError
from tests import problems
from tests.histories.cases import samples
from tests.histories.helpers import assert_same_bits, empty, told

PORTIONS = (1, 30, 2, 64, 33, 500, 393, 1, 76)  # TOLD in all
WRONG = {"boxes": (0, 3.5), "categories": (0, 3), "mixed": (1, 0.26)}  # what these decisions cannot draw
KINDS = [("harmonic", "paper"), ("mixture", "self-normalised"), ("empirical", "log-smoothing")]


def portions(*arrays):
    for start, end in itertools.pairwise(np.cumsum([0, *PORTIONS])):
        yield [array[start:end] for array in arrays]


@pytest.mark.parametrize(("divergence", "estimator"), KINDS)
@pytest.mark.parametrize("name", problems.DRAWN)
def test_extending_a_history_is_appending(name, divergence, estimator):
    space, every = problems.DRAWN[name], samples(name)
    one, many = (empty(space, divergence, estimator, size=128) for _ in range(2))
    for some in portions(*every):
        told(one, *some)
        many.extend(*some)
        assert_same_bits(many.state(), one.state())
        assert_same_bits(many.estimate(1.7), one.estimate(1.7))
    assert len(many) == len(one) == 1100
    assert (len(many.columns.distant) > 10) == (name == "near-singular")


@pytest.mark.parametrize("name", WRONG)
def test_a_sample_that_is_refused_changes_nothing(name):
    space, (decisions, mediators, payoffs) = problems.DRAWN[name], samples(name, 40)
    history = told(empty(space, "mixture"), decisions[:20], mediators[:20], payoffs[:20])
    state, estimates = history.state(), history.estimate(2.0)
    decisions[37], mediators[37] = WRONG[name]
    with pytest.raises(MediatorError, match=f"density 0 under decision {WRONG[name][0]}"):
        history.extend(decisions[20:], mediators[20:], payoffs[20:])
    assert len(history) == 20
    assert_same_bits(history.state(), state)
    assert_same_bits(history.estimate(2.0), estimates)


# The same of learners.

SETTINGS = {
    "known": {"payoff_range": (-1.0, 3.0)},
    "clipping": {"payoff_range": (0.2, 0.7), "out_of_range": "clip"},
    "running": {"payoff_range": "running"},
}
LEARNERS = {
    "optimist": rd.Optimist,
    "realist": rd.Realist,
    "log-smoothing": lambda space, **settings: rd.Randomist(space, estimator="log-smoothing", **settings),
    "ucb1": rd.UCB1,
}


def adopted(learner, decisions, mediators):
    trials = [rd.Trial(i, *drawn) for i, drawn in enumerate(zip(decisions.tolist(), mediators, strict=True))]
    for trial in trials:
        learner.adopt(trial)
    return trials


@pytest.mark.filterwarnings("ignore::randomist.errors.DriftWarning")
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("name", problems.DRAWN)
def test_telling_all_is_telling(name, learner, settings):
    decisions, mediators, payoffs = samples(name)
    growing = payoffs * np.linspace(0.5, 2, len(payoffs)) - 0.25 * (
        settings == "running"
    )  # records are broken late, too
    one, many = (LEARNERS[learner](problems.DRAWN[name], seed=3, **SETTINGS[settings]) for _ in range(2))
    trials = adopted(one, decisions, mediators)
    adopted(many, decisions, mediators)
    for n, (some, paid) in enumerate(portions(trials, growing)):
        for trial, payoff in zip(some, paid.tolist(), strict=True):
            one.tell(trial, payoff)
        many.tell_all([trial.id for trial in some] if n % 2 else some, paid.tolist())
        if n % 3 == 0:
            one.estimates()  # when estimates are made must not matter
    assert_same_bits(many.state(), one.state())
    assert_same_bits(many.estimates(), one.estimates())
    assert one.ask() == many.ask() if np.ndim(mediators) == 1 else one.ask().decision == many.ask().decision
    assert (many.clipped > 100) == (settings == "clipping")


@pytest.mark.parametrize("name", ["ftl", "realist", "ucb1", "mcmc one-step", "pgpe", "auto"])
def test_where_one_of_many_is_refused_none_is_told(name):
    learner = problems.make(name, "rectangle" if name in problems.BOX_LEARNERS else "gaussians", payoff_range=(0, 1))
    trials = learner.ask(batch=6)
    learner.tell_all(trials[:2], [0.25, 0.5])
    before = learner.state()
    for some, payoffs, error in (
        (trials[2:], [0.5, 0.5, 0.5, float("nan")], PayoffError),
        (trials[2:], [0.5, 0.5, 0.5, 1.5], PayoffError),
        (trials[2:], [0.5, 0.5, 0.5], RandomistError),
        (trials[2:4], [0.5, 0.5, 0.5], RandomistError),
        ([*trials[2:], trials[3]], [0.5] * 5, ClosedTrialError),
        ([*trials[2:], trials[3].id], [0.5] * 5, ClosedTrialError),
        ([*trials[2:], trials[0]], [0.5] * 5, ClosedTrialError),
        ([*trials[2:], 99], [0.5] * 5, UnknownTrialError),
    ):
        with pytest.raises(error):
            learner.tell_all(some, payoffs)
        assert_same_bits(learner.state(), before)
    learner.tell_all([], [])
    assert_same_bits(learner.state(), before)
    learner.tell_all(trials[2:], [0.5] * 4)
    assert learner.told == 6
    assert learner.pending == []
