"""RANDOMIST on Gaussians of one dimension as one compiled function: what ask/tell is measured against.

It makes the same passes over the same arrays with the same kernels as the learner, without tickets, checks or records.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from randomist.importance.passes import numba as passes
from randomist.importance.perturbation import choose

Array = NDArray[np.float64]


@numba.njit(cache=True)
def randomist_run(
    mean: Array,
    std: Array,
    log_divergence: Array,
    opening: NDArray[np.int64],
    scale: float,
    confidence: float,
    rounds: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Decisions of a run whose payoff is clip(z/4, 0, 1); row j of the divergences has those to j.  (rounds,)"""
    K = len(mean)
    ratios, mixture, payoffs = np.empty((K, rounds)), np.empty((2, rounds)), np.empty(rounds)
    plays, recent = np.zeros((3, K), np.int64), np.zeros(passes.FIRST + passes.ERA, np.int64)
    mixed, eta = np.array([0, -1, 0]), np.zeros((2, K))
    eta[passes.LOG_ETA] = -np.inf
    decisions = np.empty(rounds, np.int64)
    log_density, index = np.empty(K), np.empty(K)
    for m in range(rounds):
        if m < len(opening):
            decision = opening[m]
        else:
            term = confidence * math.log(m + 1.0)
            table = passes.estimate(ratios, mixture, payoffs, m, mixed, plays, recent, eta, term, m)
            for k in range(K):
                effective = max(eta[passes.ETA, k], 1e-300)
                perturbation = rng.binomial(math.ceil(scale * effective), 0.5) / effective
                index[k] = table[passes.VALUE, k] + perturbation + table[passes.WIDTH, k]
            decision = choose(index, eta[passes.LOG_ETA], rng.random())
        z = mean[decision] + std[decision] * rng.standard_normal()
        for k in range(K):
            log_density[k] = -0.5 * ((z - mean[k]) / std[k]) ** 2 - math.log(std[k])
        payoff = min(max(z / 4, 0.0), 1.0)
        divergence = log_divergence[decision]
        passes.append(ratios, payoffs, m, plays, recent, eta, divergence, log_density, decision, payoff)
        decisions[m] = decision
    return decisions
