"""The default box learner of this package, with nothing to tune. It narrows its own Gaussian: no std caps it."""

from __future__ import annotations

import numpy as np

import randomist as rd
from benchmarks.peers.problems import Array
from benchmarks.peers.search import Play, Search


def auto(start: Array, start_payoff: float, rng: np.random.Generator) -> Search:
    """The first decision is a narrow Gaussian around the start, whatever that returned."""
    d = start.size
    learner = rd.Auto(low=np.zeros(d), high=np.ones(d), first=start, seed=int(rng.integers(2**31)))

    def recommended() -> Array:
        return np.asarray(learner.recommend()) if learner.told else start

    while True:
        trial = learner.ask()
        learner.tell(trial, (yield Play(np.asarray(trial.mediator), recommended)))
