"""Every learner keeps the contract, and the contract can be broken."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import pickle
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist import testing
from randomist.testing import check_learner
from randomist.testing.answers import world
from tests import problems

MAKERS = problems.FINITE_LEARNERS | problems.BOX_LEARNERS
SPACES = problems.FINITE | problems.BOXED
ELSEWHERE = {"gaussians", "rectangle"}  # checked in another process too, and for longer
MORE_BOX_LEARNERS = {
    "mcmc paper's b": partial(rd.MCMCRandomist, bias_correction="paper"),
    "mcmc short": partial(rd.MCMCRandomist, density="one-step", perturbation_scale=0.1, steps=5),
    "mcmc exact, wide": partial(rd.MCMCRandomist, exact=True, proposal_std=0.4),
    "mcmc optimistic": partial(rd.MCMCRandomist, estimator="optimistic"),
    "mcmc self-normalised": partial(rd.MCMCRandomist, density="one-step", estimator="self-normalised"),
    "grid optimistic": partial(rd.GridOptimist, kappa=3, estimator="optimistic"),
    "pgpe wild": partial(rd.PGPE, step_size=50.0, batch=7, baseline="none", natural=False),
    "pois bold": partial(rd.POIS, batch=8, failure_probability=0.95, iterations=3, payoff_bound=0.3),
}


class Elsewhere:
    """A process that stays, in the place of one for each check: starting one takes longer than all else here."""

    def __init__(self, pool):
        self.pool = pool

    def get_context(self, method):
        assert method == "spawn"
        return self

    def Pool(self, processes):  # noqa: N802
        assert processes == 1
        return contextlib.nullcontext(self.pool)


@pytest.fixture(scope="module")
def elsewhere():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield Elsewhere(pool)


@pytest.mark.parametrize(("name", "space"), problems.FINITE_CASES + problems.BOX_CASES)
@pytest.mark.filterwarnings("ignore::randomist.errors.ContradictionWarning")  # made-up likelihoods are not of policies
def test_contract(name, space, elsewhere, monkeypatch):
    monkeypatch.setattr(testing.learner, "multiprocessing", elsewhere)
    rounds, other_process = (60, True) if space in ELSEWHERE else (30, False)
    check_learner(MAKERS[name], SPACES[space], rounds=rounds, other_process=other_process)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda learner: pickle.loads(pickle.dumps(learner))])
@pytest.mark.parametrize(("name", "space"), problems.FINITE_CASES + problems.BOX_CASES)
@pytest.mark.filterwarnings("ignore::randomist.errors.ContradictionWarning")
def test_a_copy_goes_on_as_the_learner_does(name, space, copied):
    learner, answer = MAKERS[name](SPACES[space], seed=7), world(SPACES[space])
    for trial in learner.ask(6):
        answer(trial).tell(learner, trial)
    late = learner.ask()
    twin = copied(learner)
    for one in (learner, twin):
        answer(late).tell(one, late.id)
    assert learner.ask(3) == twin.ask(3)


@pytest.mark.parametrize("space", problems.BOXED)
@pytest.mark.parametrize("name", MORE_BOX_LEARNERS)
def test_contract_of_more_learners_in_a_box(name, space):
    check_learner(MORE_BOX_LEARNERS[name], problems.BOXED[space], rounds=30, other_process=False)


@pytest.mark.parametrize("space", ["likelihoods-known", "policies"])
def test_contract_in_another_process_where_mediators_are_told(space):
    check_learner(rd.Randomist, problems.FINITE[space], rounds=30)


@pytest.mark.parametrize("make", [rd.Randomist, rd.UCB1])
def test_contract_with_loggers_of_likelihoods(make):
    check_learner(make, rd.Finite.likelihoods(3, loggers=["old", "older"]), rounds=30, other_process=False)


@pytest.mark.parametrize("make", [rd.Randomist, rd.UCB1])
def test_contract_with_loggers_that_are_policies(make):
    *policies, old = problems.POLICY_LIST
    check_learner(make, rd.Finite.policies(policies, loggers={"old": old}), rounds=30, other_process=False)


def test_a_pending_trial_beside_loggers():
    """What a pending trial will tell concerns the decisions, not the loggers of the space."""
    learner = rd.Optimist(problems.LOGGED, first=0, seed=0)
    learner.tell(learner.ask(), 0.5)
    trials = [learner.ask() for _ in range(4)]
    assert all(trial.decision in range(3) for trial in trials)
    assert len({trial.decision for trial in trials}) > 1


def test_every_learner_of_the_table_is_checked():
    checked = {getattr(make, "func", make) for make in MAKERS.values()}
    assert set(rd.LEARNERS.values()) <= checked


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

    def tell(self, trial, payoff, **likelihoods):
        self.failures[-1] = str(payoff)
        super().tell(trial, payoff, **likelihoods)


@pytest.mark.parametrize("space", ["gaussians", "logged", "likelihoods-known"])
@pytest.mark.parametrize("broken", [Forgetful, Positional, Unscaled, Careless])
def test_a_broken_learner_is_caught(broken, space):
    with pytest.raises(AssertionError):
        check_learner(broken, problems.FINITE[space], other_process=False)
