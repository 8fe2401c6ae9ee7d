"""`propose` changes nothing, `commit` makes it true, and a trial that was asked elsewhere can be adopted."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from tests import problems
from tests.histories.helpers import assert_same_bits

CASES = problems.FINITE_CASES + problems.BOX_CASES


def grown(name, space, rounds=12, seed=3):
    """A learner that has been told, has failed trials, and has some pending."""
    learner = problems.make(name, space, seed=seed, **problems.settings(space))
    for n in range(rounds):
        trial = learner.ask()
        if n % 5 == 4:
            learner.fail(trial, "lost")
        elif n != 7:
            problems.tell(learner, trial, space)
    return learner


def assert_same_trials(ours, theirs):
    assert [trial.id for trial in ours] == [trial.id for trial in theirs]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.decision, other.decision)
        np.testing.assert_array_equal(one.mediator, other.mediator)


@pytest.mark.parametrize(("name", "space"), CASES)
def test_proposing_changes_nothing_and_committing_is_asking(name, space):
    learner, asking = grown(name, space), grown(name, space)
    before = learner.state()
    proposal = learner.propose(3)
    assert_same_bits(learner.state(), before)
    assert_same_trials(learner.propose(3).trials, proposal.trials)  # the same again
    assert_same_trials(learner.propose(2).trials, proposal.trials[:2])
    assert_same_bits(learner.state(), before)

    searches = []
    for trial in proposal.trials:
        assert_same_trials([asking.ask()], [trial])
        searches.append(asking.search_state())
    assert_same_bits(list(proposal.searches), searches)
    learner.commit(proposal)
    assert_same_bits(learner.state(), asking.state())
    assert_same_trials(learner.pending, asking.pending)

    for stale in (proposal, learner.propose(1)._replace(trials=())):
        with pytest.raises(ParameterError, match="propose again"):
            learner.commit(stale)
    assert_same_bits(learner.state(), asking.state())
    for each in (learner, asking):
        problems.tell(each, each.pending[-1], space)
    assert_same_trials([learner.ask()], [asking.ask()])


@pytest.mark.parametrize(("name", "space"), CASES)
def test_a_trial_with_its_own_stream_draws_from_that_alone(name, space):
    learner = grown(name, space)
    before, streams = learner.state(), [(2, 40), (2, 41), (7,)]
    together = learner.propose(3, streams=streams)
    assert_same_bits(learner.state(), before)
    assert_same_trials(learner.propose(1, streams=streams[:1]).trials, together.trials[:1])
    family = learner.space.family
    for trial, key in zip(together.trials, streams, strict=True):
        _, stream = np.random.SeedSequence(learner.entropy, spawn_key=key).spawn(2)
        drawn = family.draw(trial.decision, np.random.default_rng(stream))
        np.testing.assert_array_equal(trial.mediator, drawn)
    learner.commit(together)
    again = rd.load(before)  # asked elsewhere, one after the other
    for trial, search, key in zip(together.trials, together.searches, streams, strict=True):
        assert_same_trials(again.propose(1, streams=[key]).trials, [trial])
        again.adopt(trial, search)
    assert_same_bits(again.state() | {"generators": None}, learner.state() | {"generators": None})


@pytest.mark.parametrize(("name", "space"), CASES)
def test_adopting_and_telling_is_asking_and_telling(name, space):
    asking, adopting = (problems.make(name, space, seed=5, **problems.settings(space)) for _ in range(2))
    for n in range(14):
        trial = asking.ask()
        adopting.adopt(trial, asking.search_state())
        if n % 6 != 3:
            for learner in (asking, adopting):
                problems.tell(learner, trial, space)
    assert_same_bits(adopting.state() | {"generators": None}, asking.state() | {"generators": None})
    points = () if space in problems.FINITE else (np.clip(asking.record.mediators, *asking.space.corners),)
    for one, other in zip(
        *(getattr(learner, "estimate" if points else "estimates")(*points) for learner in (asking, adopting)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_a_proposal_that_fails_changes_nothing():
    learner = rd.GridOptimist(problems.HYPERBOX, kappa=2, seed=0, max_points=200)
    for _ in range(9):
        learner.tell(learner.ask(), 0.5)
    before = learner.state()
    for n, error in ((2, "max_points"), (0, "n must be"), (1.5, "n must be")):
        with pytest.raises(ParameterError, match=error):
            learner.propose(n)
        assert_same_bits(learner.state(), before)


def test_a_proposal_that_was_overtaken_is_refused():
    learner = grown("randomist 1.1", "gaussians")
    proposal = learner.propose(2)
    trial = learner.ask()
    before = learner.state()
    with pytest.raises(ParameterError, match=f"begins with trial .{trial.id}.*at {trial.id + 1}; propose again"):
        learner.commit(proposal)
    assert_same_bits(learner.state(), before)
