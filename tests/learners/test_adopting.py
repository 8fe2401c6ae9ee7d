"""What a learner adopts, it checks first: a trial that could not have been asked changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist import _json, errors

FINITE = rd.Finite(rd.Gaussian(mean=[0.0, 1.0, 2.0], std=1.0))
PLANE = rd.Box(rd.Gaussian(std=[0.1, 0.2]), low=[0, -1], high=[1, 1])
KEPT = rd.Box(rd.TruncatedGaussian(std=[0.1, 0.2]), low=[0, -1], high=[1, 1])
LEARNERS = {
    "realist": lambda: rd.Realist(FINITE),
    "ucb1": lambda: rd.UCB1(FINITE),
    "safe": lambda: rd.Safe(rd.Realist(FINITE), baseline=0, fraction=0.5),
    "mcmc": lambda: rd.MCMCRandomist(PLANE),
    "kept": lambda: rd.MCMCRandomist(KEPT),
    "auto": lambda: rd.Auto(rd.Parameters(x=(0.0, 1.0), y=(0.0, 2.0))),
    "told": lambda: rd.Realist(rd.Finite.likelihoods(3)),
    "categories": lambda: rd.Realist(rd.Finite(rd.Categorical([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]))),
}
IDS = [-1, 0.5, True, None, "4", 2**70, np.float64(4), [4]]
BAD = [math.nan, math.inf, None, "0.5", np.array("0.5"), 1j, [0.5], [0.1, 0.2, 0.3], [[0.1, 0.2]], [0.1, math.nan]]
BAD += [np.array([0.1, 0.2], dtype=object), [[0.1], [0.1, 0.2]], 1e300, [0.1, None], {}, -3]


def played(name):
    learner = LEARNERS[name]()
    for i in range(4):
        trial = learner.ask()
        if i < 2:
            learner.tell(trial, 0.5, **({"log_likelihoods": [-1.0, -1.0, -1.0]} if name == "told" else {}))
        elif i == 2:
            learner.fail(trial, "lost")
    return learner


def good(name):
    other = LEARNERS[name]()
    return next(trial for trial in (other.ask() for _ in range(99)) if trial.id == 4)


@pytest.mark.parametrize("name", LEARNERS)
def test_what_could_not_have_been_asked_changes_nothing(name):
    learner, trial = played(name), good(name)
    before = _json.dumps(learner.state())
    wrong = [trial._replace(id=id_) for id_ in [*IDS, 0, 2, 3]] + [4, None, tuple(trial)]
    wrong += [trial._replace(decision=value) for value in BAD]
    drawn = dict.fromkeys(("categories", "realist", "ucb1", "safe"), (-3, 1e300))  # what densities refuse, when told
    may_be = ({"told": (None,)} | drawn).get(name, ())
    wrong += [trial._replace(mediator=value) for value in BAD if not any(value is one for one in may_be)]
    for one in wrong:
        with pytest.raises(errors.RandomistError):
            learner.adopt(one)
    if name == "auto":
        with pytest.raises(errors.StateError):
            learner.adopt(trial, {"best": math.nan})
    assert _json.dumps(learner.state()) == before
    learner.adopt(trial)
    assert learner.is_pending(4)
    assert learner.ask().id == 5
    with pytest.raises(errors.ClosedTrialError, match="adopted once"):
        learner.adopt(trial)


def test_what_is_adopted_stays_as_it_was():
    decision, mediator, learner = np.array([0.5, 0.5]), np.array([0.4, 0.6]), rd.MCMCRandomist(PLANE)
    learner.adopt(rd.Trial(0, decision, mediator))
    decision[:], mediator[:] = math.nan, math.nan
    (trial,) = learner.pending
    assert (trial.decision.tolist(), trial.mediator.tolist()) == ([0.5, 0.5], [0.4, 0.6])
    learner.tell(0, 0.5)
    assert np.isfinite(learner.ask().mediator).all()


def test_trials_are_adopted_in_any_order():
    learner, trials = rd.Realist(FINITE), rd.Realist(FINITE).ask(batch=5)
    for i in (3, 0, 4, 1):
        learner.adopt(trials[i])
        learner.tell(i, 0.5)
    for i in (3, 0, 4, 1):
        with pytest.raises(errors.ClosedTrialError):
            learner.adopt(trials[i])
    learner.adopt(trials[2])
    assert [trial.id for trial in learner.pending] == [2]
    assert learner.ask().id == 5


def test_numbers_of_other_kinds_are_what_they_are():
    learner = rd.MCMCRandomist(PLANE)
    learner.adopt(rd.Trial(np.int64(0), [0, 1], (np.float32(0.25), 1)))
    assert learner.pending[0].mediator.tolist() == [0.25, 1.0]
    learner = rd.Realist(FINITE)
    learner.adopt(rd.Trial(0, np.int64(1), np.array(1)))
    assert learner.pending[0].mediator == 1.0
    learner.tell(0, 0.5)
    assert learner.told == 1
