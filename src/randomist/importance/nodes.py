"""Integrals under every decision against the mixture of what was played, at a price that does not grow with it.

E_{p_x}[f(p_x/Φ_t)] is a weighted sum over fixed nodes of p_x. At each node the ratio m Φ_t/p_x = Σ_j T_j p_j/p_x is
kept and grows by one term per play, so that a round costs O(K L) for L nodes however long the history. Two integrals
are of use: d2(p_x || Φ_t) = E_{p_x}[p_x/Φ_t], and the mass that truncation takes away, E_{p_x}[(1 - M Φ_t/p_x)_+].
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from randomist._types import Array
from randomist.families.base import Family

MOST_KEPT = 2**18  # ratios at nodes that are kept rather than computed again: 2 MiB


class Nodes:
    """Nodes of every member of a family, with the mixture of the plays so far at each."""

    def __init__(self, family: Family) -> None:
        self.family = family
        points, self.weights = family.nodes()  # (K, L, *shape), (K, L)
        self.points = points.reshape(-1, *family.shape)
        K, L = self.weights.shape
        own = np.empty((K, L))
        for k in range(K):
            own[k] = family.log_density([k], points[k])[0]
        self._own = own  # log p_k at its own nodes
        self.mixture = np.zeros((K, L))  # Σ_j T_j p_j/p_k
        self._ratios: dict[int, Array] | None = {} if K * K * L <= MOST_KEPT else None  # p_j/p_k of played j

    def add_play(self, decision: int, times: float = 1.0) -> None:
        """One more play of `decision`, or several: O(K L)."""
        ratios = None if self._ratios is None else self._ratios.get(decision)
        if ratios is None:
            log_density = self.family.log_density([decision], self.points).reshape(self.weights.shape)
            ratios = _ratios(log_density, self._own)
            if self._ratios is not None:
                self._ratios[decision] = ratios
        _add_ratios(ratios, self.mixture, times)

    def effective_samples(self) -> Array:
        """m / d2(p_x || Φ_t), by the nodes alone, which cannot see an infinite divergence.  (K,)"""
        effective: Array = _effective(self.weights, self.mixture)
        return effective

    def truncated_mass(self, threshold: Array, told: int) -> Array:
        """E_{p_x}[(1 - M Φ_t/p_x)_+]: what min(M, ω) lacks of 1, and the most that TMIS can lack of J.  (K,) -> (K,)"""
        mass: Array = _truncated_mass(self.weights, self.mixture, threshold, told)
        return mass

    def state(self) -> dict[str, Any]:
        return {"node_mixture": self.mixture.copy()}


@numba.njit(cache=True)
def _ratios(log_density: Array, own: Array) -> Array:
    """p_j/p_k at the nodes of k; 0 where these have no density."""
    out = np.zeros(own.shape)
    for k in range(own.shape[0]):
        for i in range(own.shape[1]):
            if own[k, i] > -math.inf:
                out[k, i] = math.exp(min(log_density[k, i] - own[k, i], 600.0))
    return out


@numba.njit(cache=True)
def _add_ratios(ratios: Array, mixture: Array, times: float) -> None:
    for k in range(ratios.shape[0]):
        for i in range(ratios.shape[1]):
            mixture[k, i] += times * ratios[k, i]


@numba.njit(cache=True)
def _effective(weights: Array, mixture: Array) -> Array:
    out = np.zeros(weights.shape[0])
    for k in range(weights.shape[0]):
        divergence = 0.0
        for i in range(weights.shape[1]):
            if weights[k, i] > 0.0:
                divergence += weights[k, i] / mixture[k, i] if mixture[k, i] > 0.0 else math.inf
        out[k] = 1.0 / divergence
    return out


@numba.njit(cache=True)
def _truncated_mass(weights: Array, mixture: Array, threshold: Array, told: int) -> Array:
    out = np.ones(threshold.shape[0])
    for k in range(threshold.shape[0]):
        if threshold[k] == math.inf:
            continue  # nothing is known
        out[k] = 0.0
        for i in range(weights.shape[1]):
            out[k] += weights[k, i] * max(0.0, 1.0 - threshold[k] * (mixture[k, i] / told))
    return out
