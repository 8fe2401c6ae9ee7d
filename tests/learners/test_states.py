"""A loaded learner goes on as the saved one would have, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from tests import problems
from tests.histories.cases import SPACES
from tests.histories.helpers import assert_same_bits


@pytest.mark.parametrize(("name", "space"), problems.FINITE_CASES + problems.BOX_CASES)
def test_a_learner_whose_seed_the_system_gave_goes_on_the_same(name, space):
    learner = problems.make(name, space, seed=None, **problems.settings(space))
    for n in range(16):
        trial = learner.ask()
        if n != 5:
            problems.tell(learner, trial, space)
    state = learner.state()
    loaded, unlike = rd.load(state), problems.make(name, space, seed=None, **problems.settings(space))
    assert loaded.seed is learner.seed is None
    assert loaded.entropy == learner.entropy == state["entropy"] != unlike.entropy
    assert_same_bits(loaded.state(), state)
    for _ in range(5):
        one, other = learner.ask(), loaded.ask()
        np.testing.assert_array_equal(one.decision, other.decision)
        np.testing.assert_array_equal(one.mediator, other.mediator)
        for each, trial in ((learner, one), (loaded, other)):
            problems.tell(each, trial, space)
    streams = [(1, 2)]  # streams are of the seed, so that it must be known to the loaded one, too
    one, other = (each.propose(1, streams=streams).trials[0] for each in (learner, loaded))
    np.testing.assert_array_equal(one.mediator, other.mediator)
    assert_same_bits(loaded.state(), learner.state())


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (rd.Realist, {}),
        (rd.Optimist, {"divergence": "mixture", "bias_correction": "computed"}),
        (rd.Randomist, {"estimator": "optimistic", "divergence": "mixture"}),
        (rd.Randomist, {"bias_correction": "computed"}),
    ],
)
@pytest.mark.parametrize("name", ["stds that differ", "Gaussian, Uniform and Dirac", "categories"])
def test_a_loaded_learner_with_nodes_goes_on_bit_for_bit(cls, settings, name):
    task, rng = SPACES[name], np.random.default_rng(4)
    payoffs = rng.random(80)
    learner = cls(task, seed=5, **settings)
    for payoff in payoffs[:40]:
        learner.tell(learner.ask(), float(payoff))
    state = learner.state()
    loaded = rd.load(state)
    assert loaded.history.nodes is not learner.history.nodes
    for payoff in payoffs[40:]:
        trials = [each.ask() for each in (learner, loaded)]
        assert trials[0] == trials[1]
        for each, trial in zip((learner, loaded), trials, strict=True):
            each.tell(trial, float(payoff))
    np.testing.assert_array_equal(learner.estimates(), loaded.estimates())
    np.testing.assert_array_equal(
        *(each.history.truncated_mass(each.estimates().threshold) for each in (learner, loaded))
    )
    np.testing.assert_array_equal(learner.history.nodes.sums, loaded.history.nodes.sums)
