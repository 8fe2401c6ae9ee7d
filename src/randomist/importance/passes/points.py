"""Estimates anywhere in a box, for Gaussians of one fixed std: the same numbers as for a finite set, for any decision.

Everything is in units of the std (z = mediator/std, x = decision/std), so that log p_x(z) = -|z - x|²/2 up to a
constant that cancels in every ratio, and D_2(p_x || p_x') = |x - x'|².
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance.passes.layout import FAR, LOG_HUGE


class Samples(NamedTuple):
    """What a history hands to kernels."""

    mediators: Array
    log_mixture: Array  # log Σ_j p_{x_j}(z_i)
    payoffs: Array
    told: int
    decisions: Array  # distinct
    plays: Array
    used: int  # distinct decisions


@compiled
def squared_distance(a: Array, i: int, b: Array, j: int) -> float:
    """|a_i - b_j|²"""
    total = 0.0
    for d in range(a.shape[1]):
        difference = a[i, d] - b[j, d]
        total += difference * difference
    return total


@compiled
def log_add(a: float, b: float) -> float:
    """log(e^a + e^b), -inf allowed."""
    high, low = (a, b) if a > b else (b, a)
    if low < high - 60.0:  # too little to change it, or -inf
        return high
    return high + math.log1p(math.exp(low - high))


@compiled
def add_play(mediators: Array, log_mixture: Array, told: int, decisions: Array, decision: int) -> None:
    """One more play of a decision: log Σ_j p_{x_j}(z_i) gains its density at every told mediator."""
    for i in range(told):
        log_mixture[i] = log_add(log_mixture[i], -0.5 * squared_distance(mediators, i, decisions, decision))


@compiled
def mixture_at(mediators: Array, i: int, decisions: Array, plays: Array, used: int) -> float:
    """log Σ_j T_j p_{x_j}(z_i) over the distinct decisions."""
    nearest = math.inf
    for j in range(used):
        nearest = min(nearest, squared_distance(mediators, i, decisions, j))
    total = 0.0
    for j in range(used):
        excess = 0.5 * (squared_distance(mediators, i, decisions, j) - nearest)
        if excess < 60.0:
            total += plays[j] * math.exp(-excess)
    return math.log(total) - 0.5 * nearest


@compiled
def log_effective_at(points: Array, n: int, samples: Samples) -> float:
    """log η(x_n) = log Σ_j T_j exp(-|x_n - x_j|²), without underflow.

    The plain sum serves unless it is too small for float64; then the nearest decision's term is factored out.
    """
    _, _, _, _, decisions, plays, used = samples
    total, nearest = 0.0, math.inf
    for j in range(used):
        distance = squared_distance(points, n, decisions, j)
        nearest = min(nearest, distance)
        if distance < FAR:
            total += plays[j] * math.exp(-distance)
    if total > 1e-250:
        return math.log(total)
    if used == 0:
        return -math.inf
    total = 0.0
    for j in range(used):
        total += plays[j] * math.exp(nearest - squared_distance(points, n, decisions, j))
    return math.log(total) - nearest


@compiled
def sums_at(points: Array, n: int, cut: float, samples: Samples) -> tuple[float, float]:
    """Σ_i min(M, ω)/m and Σ_i min(M, ω) y / m at one decision; `cut` is M/m."""
    mediators, log_mixture, payoffs, told, _, _, _ = samples
    coverage = value = 0.0
    log_cut = math.log(cut)
    for i in range(told):
        log_weight = -0.5 * squared_distance(mediators, i, points, n) - log_mixture[i]
        if log_weight > -FAR:
            weight = cut if log_weight >= log_cut else math.exp(log_weight)
            coverage += weight
            value += weight * payoffs[i]
    return coverage, value


@compiled
def cut_at(log_effective: float, term: float) -> float:
    """M/m = 1/sqrt(η α log t), finite."""
    return math.exp(min(-0.5 * (log_effective + math.log(term)), LOG_HUGE))


@compiled
def estimate_at(points: Array, term: float, samples: Samples) -> tuple[Array, Array, Array]:
    """J̌, log η and coverage at every point, of a history that is not empty: O(n t d).  (n, d) -> (n,), (n,), (n,)"""
    n = points.shape[0]
    value, log_effective, coverage = np.empty(n), np.empty(n), np.empty(n)
    for k in range(n):
        log_effective[k] = log_effective_at(points, k, samples)
        coverage[k], value[k] = sums_at(points, k, cut_at(log_effective[k], term), samples)
    return value, log_effective, coverage


@compiled
def log_effective(points: Array, samples: Samples) -> Array:
    """log η at every point.  (n, d) -> (n,)"""
    out = np.empty(points.shape[0])
    for k in range(points.shape[0]):
        out[k] = log_effective_at(points, k, samples)
    return out


@compiled(fastmath=True)
def exponents(points: Array, rows: Array, used: int, rate: float, shift: Array) -> Array:
    """-rate |row_i - point_k|² - shift_i.  (n, used)"""
    n, d = points.shape
    out = np.empty((n, used))
    for k in range(n):
        for i in range(used):
            total = 0.0
            for j in range(d):
                difference = rows[i, j] - points[k, j]
                total += difference * difference
            out[k, i] = -rate * total - shift[i]
    return out


@compiled
def estimate_one(
    point: Array,
    term: float,
    mediators: Array,
    log_mixture: Array,
    payoffs: Array,
    told: int,
    decisions: Array,
    plays: Array,
    used: int,
) -> tuple[float, float, float]:
    """`estimate_at` of one point, its arrays one by one: a chain calls this ten times a round.  (d,)"""
    samples = Samples(mediators, log_mixture, payoffs, told, decisions, plays, used)
    points = point.reshape(1, point.size)
    log_eta = log_effective_at(points, 0, samples)
    coverage, value = sums_at(points, 0, cut_at(log_eta, term), samples)
    return value, log_eta, coverage
