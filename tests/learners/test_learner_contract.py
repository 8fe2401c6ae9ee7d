"""Every learner keeps the contract, and the contract can be broken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.testing import check_learner

GAUSSIANS = rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3], [2, 2, 2, 0.1, 2]))
PLANE = rd.Finite(rd.Gaussian([[0, 30], [1, 10], [-0.5, 20]], [0.7, 9]))
NEAR_SINGULAR = rd.Finite(rd.Gaussian([0, 1, 3], 0.1))  # log d2 up to 900
BOXES = rd.Finite(rd.Uniform([0, 0.5, 3], [1, 2, 4]))
CATEGORIES = rd.Finite(rd.Categorical([[0.7, 0.3, 0, 0], [0.1, 0.2, 0.3, 0.4], [0, 0, 0.5, 0.5]]))
MIXED = rd.Finite([rd.Uniform(0, 1), rd.Dirac(0.25), rd.Gaussian(0.5, 0.2)])

LEARNERS = {
    "ftl": rd.FollowTheLeader,
    "ftl each": partial(rd.FollowTheLeader, start="each"),
    "optimist": rd.Optimist,
    "randomist 1.1": rd.Randomist,
    "randomist 8.1": partial(rd.Randomist, perturbation_scale=8.1),
    "randomist gaussian": partial(rd.Randomist, perturbation="gaussian", bias_correction=0.5),
    "ftl optimistic": partial(rd.FollowTheLeader, estimator="optimistic"),
    "ftl self-normalised": partial(rd.FollowTheLeader, estimator="self-normalised", divergence="empirical"),
    "optimist computed": partial(rd.Optimist, divergence="mixture", bias_correction="computed"),
    "randomist optimistic": partial(rd.Randomist, estimator="optimistic", divergence="empirical"),
    "realist": rd.Realist,
    "ucb1": rd.UCB1,
    "phe": rd.PerturbedHistory,
    "thompson": rd.ThompsonSampling,
    "gp-ucb": rd.GPUCB,
}
LOCATED = {"plane": PLANE, "near-singular": NEAR_SINGULAR}
SPACES = LOCATED | {"boxes": BOXES, "categories": CATEGORIES, "mixed": MIXED}
CASES = [(name, space) for name in LEARNERS for space in (LOCATED if name == "gp-ucb" else SPACES)]


@pytest.mark.parametrize("name", LEARNERS)
def test_contract_on_gaussians(name):
    check_learner(LEARNERS[name], GAUSSIANS)


@pytest.mark.parametrize(("name", "space"), CASES)
def test_contract_on_other_families(name, space):
    check_learner(LEARNERS[name], SPACES[space], rounds=30, other_process=False)


def test_every_learner_of_the_table_is_checked():
    checked = {getattr(make, "func", make) for make in LEARNERS.values()}
    finite = {cls for cls in rd.LEARNERS.values() if issubclass(cls, rd.FiniteLearner)}
    assert finite <= checked


@dataclass(eq=False, kw_only=True)
class Forgetful(rd.UCB1):
    """Breaks resume: a draw that the state does not know of."""

    def __post_init__(self):
        super().__post_init__()
        self._hidden = np.random.default_rng(0)

    def index(self, estimates, rng):
        return super().index(estimates, rng) + self._hidden.random(len(estimates.value))


@dataclass(eq=False, kw_only=True)
class Positional(rd.Optimist):
    """Breaks symmetry: estimates depend on where a decision stands in the list."""

    def _estimate(self):
        estimates = super()._estimate()
        return estimates._replace(value=estimates.value + 0.01 * np.arange(len(estimates.value)))


@dataclass(eq=False, kw_only=True)
class Unscaled(rd.ThompsonSampling):
    """Breaks scaling: decides by the payoffs as they were told."""

    def index(self, estimates, rng):
        return super().index(estimates, rng) + (self.record.payoffs.sum() - 0.6 * self.told) * np.arange(
            len(estimates.value)
        )


@dataclass(eq=False, kw_only=True)
class Careless(rd.UCB1):
    """Breaks atomicity: counts a payoff before it is checked."""

    def tell(self, trial, payoff):
        self.failures[-1] = str(payoff)
        super().tell(trial, payoff)


@pytest.mark.parametrize("broken", [Forgetful, Positional, Unscaled, Careless])
def test_a_broken_learner_is_caught(broken):
    with pytest.raises(AssertionError):
        check_learner(broken, GAUSSIANS, other_process=False)
