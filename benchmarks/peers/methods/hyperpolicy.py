"""MCMC-RANDOMIST of this package, one-step density, with the range of payoffs that it has seen.

It chooses the mean of a Gaussian over parameters and plays a draw from it, as the paper does: each episode is still one
deterministic policy, but the fixed std caps the average return. Its decision's mean is what it recommends.
"""

from __future__ import annotations

import numpy as np

import randomist as rd
from benchmarks.peers.problems import Array
from benchmarks.peers.search import Play, Search


def mcmc_randomist(
    start: Array, start_payoff: float, rng: np.random.Generator, std: float = 0.1, perturbation_scale: float = 0.1
) -> Search:
    """Ten Metropolis steps a round from the last decision; the first decision is the start, whatever it returned."""
    d = start.size
    learner = rd.MCMCRandomist(
        rd.Box(rd.Gaussian(std=np.full(d, std)), np.zeros(d), np.ones(d)),
        density="one-step",
        perturbation_scale=perturbation_scale,
        payoff_range="running",
        first=start,
        seed=int(rng.integers(2**31)),
    )

    def recommended() -> Array:
        return np.asarray(learner.recommend()) if learner.told else start

    while True:
        trial = learner.ask()
        learner.tell(trial, (yield Play(np.asarray(trial.mediator), recommended)))
