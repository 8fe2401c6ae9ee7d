"""The largest optimistic estimate in a box: candidates, then steps along the gradient, compiled.

Everything is in units of the std, as in `continuum`. value⁺(x) = 1 - Σ_i min(c(x), w_i(x)) (1 - y_i) with
w_i = p_x(z_i)/Σ_j p_{x_j}(z_i) and the cut c = 1/sqrt(η α log t) is smooth but where a weight reaches the cut: there
∇w_i = w_i (z_i - x), ∇c = -c ∇(log η)/2 and ∇(log η) = -2 Σ_j T_j e^{-|x - x_j|²} (x - x_j) / η.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from randomist.importance.continuum import Samples, cut_at, log_effective_at, squared_distance, sums_at
from randomist.importance.kernels import WILD

Array: TypeAlias = NDArray[np.float64]


@numba.njit(cache=True)
def optimistic_at(points: Array, n: int, term: float, samples: Samples) -> float:
    """value⁺ at one point: O(t d)."""
    coverage, value = sums_at(points, n, cut_at(log_effective_at(points, n, samples), term), samples)
    return 1.0 - (coverage - value)


@numba.njit(cache=True)
def optimistic_gradient(points: Array, n: int, term: float, samples: Samples, gradient: Array) -> float:
    """value⁺ at one point, and its gradient into `gradient`: O(t d)."""
    mediators, log_mixture, payoffs, told, decisions, plays, used = samples
    log_effective = log_effective_at(points, n, samples)
    cut = cut_at(log_effective, term)
    log_cut = math.log(cut)
    loss = cut_loss = 0.0
    gradient[:] = 0.0
    for i in range(told):
        log_weight = -0.5 * squared_distance(mediators, i, points, n) - log_mixture[i]
        if log_weight >= log_cut:
            cut_loss += 1.0 - payoffs[i]
        elif log_weight > -WILD:
            lost = math.exp(log_weight) * (1.0 - payoffs[i])
            loss += lost
            for d in range(gradient.shape[0]):
                gradient[d] -= lost * (mediators[i, d] - points[n, d])
    if cut_loss > 0.0:
        for j in range(used):
            share = plays[j] * math.exp(-squared_distance(points, n, decisions, j) - log_effective)  # of η
            for d in range(gradient.shape[0]):
                gradient[d] -= cut_loss * cut * share * (points[n, d] - decisions[j, d])
    return 1.0 - loss - cut * cut_loss


@numba.njit(cache=True)
def climb(candidates: Array, steps: int, low: Array, high: Array, term: float, samples: Samples) -> tuple[Array, float]:
    """The best candidate, the first of equals, moved uphill inside the box.  (n, d) -> (d,), value⁺ there

    A step goes along the gradient; one that gains is accepted and the next is twice as long, else half.
    """
    best, value = 0, -math.inf
    for k in range(candidates.shape[0]):
        here = optimistic_at(candidates, k, term, samples)
        if here > value:
            best, value = k, here
    point, trial, gradient = candidates[best : best + 1].copy(), np.empty((1, low.size)), np.empty(low.size)
    length, fresh = 0.5, True
    for _ in range(steps):
        if fresh:
            optimistic_gradient(point, 0, term, samples, gradient)
        norm = math.sqrt(np.sum(gradient * gradient))
        if norm == 0.0:
            break
        for d in range(low.size):
            trial[0, d] = min(max(point[0, d] + length * gradient[d] / norm, low[d]), high[d])
        there = optimistic_at(trial, 0, term, samples)
        fresh = there > value
        if fresh:
            point[0], value = trial[0], there
            length *= 2.0
        else:
            length *= 0.5
    return point[0], value
