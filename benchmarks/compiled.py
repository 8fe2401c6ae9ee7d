"""RANDOMIST on Gaussians of one dimension as one compiled function: what ask/tell is measured against.

It makes the same passes over the same arrays with the same kernels as the learner, without tickets, checks or records.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from randomist.importance import kernels

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
    """Decisions of a run whose payoff is clip(z/4, 0, 1).  (rounds,)"""
    K = len(mean)
    ratios, mixture, inverse, payoffs = np.empty((K, rounds)), np.empty(rounds), np.empty(rounds), np.empty(rounds)
    plays, effective, log_effective = np.zeros(K, np.int64), np.zeros(K), np.full(K, -np.inf)
    decisions = np.empty(rounds, np.int64)
    log_density, index = np.empty(K), np.empty(K)
    for m in range(rounds):
        if m < len(opening):
            decision = opening[m]
        else:
            table = kernels.estimate(
                effective, log_effective, confidence * math.log(m + 1.0), m, ratios, inverse, payoffs, m
            )
            for k in range(K):
                eta = max(effective[k], 1e-300)
                perturbation = rng.binomial(math.ceil(scale * eta), 0.5) / eta
                index[k] = table[kernels.VALUE, k] + perturbation + table[kernels.WIDTH, k]
            decision = kernels.choose(index, log_effective, rng.random())
        z = mean[decision] + std[decision] * rng.standard_normal()
        for k in range(K):
            log_density[k] = -0.5 * ((z - mean[k]) / std[k]) ** 2 - math.log(std[k])
        payoff = min(max(z / 4, 0.0), 1.0)
        kernels.append(
            *(ratios, mixture, inverse, payoffs, m, plays, effective, log_effective),
            *(log_divergence[:, decision], log_density, decision, payoff),
        )
        decisions[m] = decision
    return decisions
