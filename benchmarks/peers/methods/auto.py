"""The default box learner of this package, with nothing to tune. It narrows its own Gaussian: no std caps it."""

from __future__ import annotations

import numpy as np

import randomist as rd
from benchmarks.peers.problems import Array
from benchmarks.peers.search import Play, Search


def auto(start: Array, start_payoff: float, rng: np.random.Generator, batch: int = 1) -> Search:
    """The first point is the start, whatever that returned."""
    d = start.size
    learner = rd.Auto(low=np.zeros(d), high=np.ones(d), first=start, seed=int(rng.integers(2**31)))

    def recommended() -> Array:
        return np.atleast_1d(learner.recommend()) if learner.told else start

    while True:
        trials = learner.ask(batch=batch)
        payoffs = []
        for trial in trials:
            to_see = trial.purpose not in ("cloud", "axis")
            payoffs.append((yield Play(np.atleast_1d(trial.mediator), recommended, scout=to_see)))
        for trial, payoff in zip(trials, payoffs, strict=True):
            learner.tell(trial, payoff)
