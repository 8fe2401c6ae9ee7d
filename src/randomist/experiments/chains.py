"""Figure 4: the Metropolis chains of MCMC-RANDOMIST early and late in a Mountain Car run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from randomist._json import for_json
from randomist._types import Array
from randomist.experiments.paper import MCMC_FULL
from randomist.learners.box.mcmc_randomist import MCMCRandomist
from randomist.learners.registry import make
from randomist.spaces import Box
from randomist.tasks import MountainCar

EARLY = (2, 3, 4, 5, 6)  # the first five rounds that have a chain
LATE = (501, 502, 503, 504, 505)


@dataclass(frozen=True, eq=False)
class Chains:
    """Paths of single rounds in the box, each (steps + 1, d)."""

    early: list[Array]
    late: list[Array]
    early_rounds: list[int]
    late_rounds: list[int]
    low: Array
    high: Array
    std: Array

    def state(self) -> dict[str, Any]:
        """Plain lists, for JSON."""
        return {name: for_json(value) for name, value in vars(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Chains:
        early, late = ([np.array(path) for path in state[part]] for part in ("early", "late"))
        low, high, std = (np.array(state[name]) for name in ("low", "high", "std"))
        return cls(early, late, state["early_rounds"], state["late_rounds"], low, high, std)

    def distances(self, paths: list[Array]) -> Array:
        """How far each chain travelled from its start to its end, in units of the std.  (n,)"""
        return np.array([np.linalg.norm((path[-1] - path[0]) / self.std) for path in paths])


def record_chains(seed: int = 0) -> Chains:
    """The chains of rounds 2-6 and 501-505 of the run that Figure 3 has for this seed."""
    task = MountainCar()
    learner = make(MCMC_FULL.name, task, seed=seed, **MCMC_FULL.settings)
    assert isinstance(learner, MCMCRandomist)
    assert isinstance(task.space, Box)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))  # as `optimize` has it
    paths: dict[int, Array] = {}
    for done in range(1, LATE[-1] + 1):
        trial = learner.ask()
        if learner.chain is not None:
            paths[done] = learner.chain.points
        learner.tell(trial, float(task.payoff(trial.mediator[None], rng)[0]))
    return Chains(
        [paths[t] for t in EARLY],
        [paths[t] for t in LATE],
        list(EARLY),
        list(LATE),
        task.space.low,
        task.space.high,
        np.asarray(task.space.family.std),
    )
