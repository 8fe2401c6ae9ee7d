"""Estimates from Gaussians of many scales: each play has its own point and its own std, the same in every dimension.

Coordinates are such that the box is the unit cube. log p(z) = -|z - x|²/(2 s²) - d log s up to a constant that cancels.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance.passes.points import log_add, squared_distance

FAR = 30.0  # nats below the largest weight of a point: too little to matter


@compiled
def _log_density(mediators: Array, i: int, points: Array, scales: Array, j: int) -> float:
    scale = scales[j]
    exponent = -0.5 * squared_distance(mediators, i, points, j) / (scale * scale)
    return float(exponent - points.shape[1] * math.log(scale))


@compiled
def add_play(mediators: Array, log_mixture: Array, told: int, points: Array, scales: Array, j: int) -> None:
    """Play number j: log Σ_j p_j(z_i) gains its density at every told mediator."""
    for i in range(told):
        log_mixture[i] = log_add(log_mixture[i], _log_density(mediators, i, points, scales, j))


@compiled
def mixture_at(mediators: Array, i: int, points: Array, scales: Array, used: int) -> float:
    """log Σ_j p_j(z_i) over the first `used` plays."""
    total = -math.inf
    for j in range(used):
        total = log_add(total, _log_density(mediators, i, points, scales, j))
    return total


@compiled(fastmath=True)
def _squared_distances(points: Array, k: int, mediators: Array, told: int, out: Array) -> None:
    for i in range(told):
        out[i] = squared_distance(mediators, i, points, k)


@compiled
def _weighted_mean(
    squares: Array, scale: float, dimension: int, log_mixture: Array, payoffs: Array, log_weight: Array
) -> tuple[float, float, float]:
    """Σ ω y / Σ ω, (Σ ω)²/Σ ω² and log Σ ω/m at a point with these squared distances to the mediators."""
    rate, log_volume, largest = -0.5 / (scale * scale), dimension * math.log(scale), -math.inf
    for i in range(squares.size):
        log_weight[i] = rate * squares[i] - log_volume - log_mixture[i]
        largest = max(largest, log_weight[i])
    total = squared = weighted = 0.0
    for i in range(squares.size):
        if log_weight[i] > largest - FAR:
            weight = math.exp(log_weight[i] - largest)
            total += weight
            squared += weight * weight
            weighted += weight * payoffs[i]
    return weighted / total, total * total / squared, largest + math.log(total)


@compiled
def weighted_means(
    points: Array, scale: float, mediators: Array, log_mixture: Array, payoffs: Array, told: int
) -> tuple[Array, Array, Array]:
    """Σ ω y / Σ ω, how many samples share the weight, (Σ ω)²/Σ ω², and log Σ ω/m, at points of one scale: O(n t d).

    (n, d) -> (n,), (n,), (n,)
    """
    n, d = points.shape
    mean, shared, log_coverage = np.empty(n), np.empty(n), np.empty(n)
    squares, log_weight = np.empty(told), np.empty(told)
    for k in range(n):
        _squared_distances(points, k, mediators, told, squares)
        mean[k], shared[k], log_coverage[k] = _weighted_mean(squares, scale, d, log_mixture, payoffs, log_weight)
    return mean, shared, log_coverage


@compiled
def drawn_means(
    points: Array,
    scale: float,
    wider: float,
    neighbours: float,
    mediators: Array,
    log_mixture: Array,
    payoffs: Array,
    told: int,
) -> Array:
    """The weighted mean at one scale, drawn towards the one at a wider scale as if it were that many samples.  (n,)"""
    n, d = points.shape
    value, squares, log_weight = np.empty(n), np.empty(told), np.empty(told)
    for k in range(n):
        _squared_distances(points, k, mediators, told, squares)
        mean, shared, _ = _weighted_mean(squares, scale, d, log_mixture, payoffs, log_weight)
        around, _, _ = _weighted_mean(squares, wider, d, log_mixture, payoffs, log_weight)
        value[k] = (shared * mean + neighbours * around) / (shared + neighbours)
    return value
