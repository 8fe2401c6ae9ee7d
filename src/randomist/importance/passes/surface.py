"""Gaussian process regression with a Matérn kernel of smoothness 5/2: the loops. Everything in one order of additions.

k(x, z) = (1 + r + r²/3) exp(-r) with r = √5 |x - z| / ℓ (Rasmussen and Williams 2006, Eq. 4.17).
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array

TINY = 1e-12  # least pivot, where points coincide and nothing is noise


@compiled(fastmath=True)
def _distance(a: Array, i: int, b: Array, j: int) -> float:
    total = 0.0
    for k in range(a.shape[1]):
        step = a[i, k] - b[j, k]
        total += step * step
    return math.sqrt(total)


@compiled
def kernel(points: Array, others: Array, length: float) -> Array:
    """(n, d), (m, d) -> (n, m)"""
    out = np.empty((points.shape[0], others.shape[0]))
    rate = math.sqrt(5.0) / length
    for i in range(points.shape[0]):
        for j in range(others.shape[0]):
            r = rate * _distance(points, i, others, j)
            out[i, j] = (1.0 + r + r * r / 3.0) * math.exp(-r)
    return out


@compiled
def distances(points: Array) -> Array:
    """Between all pairs.  (n, d) -> (n, n)"""
    n = points.shape[0]
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            out[i, j] = out[j, i] = _distance(points, i, points, j)
    return out


@compiled
def nearest(points: Array, others: Array) -> Array:
    """How far the nearest of others is.  (n, d), (m, d) -> (n,)"""
    out = np.full(points.shape[0], np.inf)
    for i in range(points.shape[0]):
        for j in range(others.shape[0]):
            out[i] = min(out[i], _distance(points, i, others, j))
    return out


@compiled
def covariances(apart: Array, length: float) -> Array:
    """k of `distances`.  (n, n) -> (n, n)"""
    n = apart.shape[0]
    out = np.empty((n, n))
    rate = math.sqrt(5.0) / length
    for i in range(n):
        out[i, i] = 1.0
        for j in range(i):
            r = rate * apart[i, j]
            out[i, j] = out[j, i] = (1.0 + r + r * r / 3.0) * math.exp(-r)
    return out


@compiled(fastmath=True)
def _dot(a: Array, b: Array, size: int) -> float:
    total = 0.0
    for k in range(size):
        total += a[k] * b[k]
    return total


@compiled
def cholesky(matrix: Array, noise: Array) -> Array:
    """L with L Lᵀ = matrix + diag(noise), lower.  (n, n), (n,) -> (n, n)"""
    n = matrix.shape[0]
    factor = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            factor[i, j] = (matrix[i, j] - _dot(factor[i], factor[j], j)) / factor[j, j]
        factor[i, i] = math.sqrt(max(matrix[i, i] + noise[i] - _dot(factor[i], factor[i], i), TINY))
    return factor


@compiled
def forward(factor: Array, right: Array) -> Array:
    """L⁻¹ b.  (n,) -> (n,)"""
    out = np.empty(right.size)
    for i in range(right.size):
        out[i] = (right[i] - _dot(factor[i], out, i)) / factor[i, i]
    return out


@compiled
def backward(factor: Array, right: Array) -> Array:
    """L⁻ᵀ b.  (n,) -> (n,)"""
    out = right.copy()
    for i in range(right.size - 1, -1, -1):
        out[i] /= factor[i, i]
        for k in range(i):
            out[k] -= factor[i, k] * out[i]
    return out


@compiled
def regress(
    matrix: Array, noise: float, payoffs: Array, plays: Array, scatter: float
) -> tuple[float, float, Array, Array, float]:
    """Level, variance, weights, L and log evidence of y ~ N(level, variance·(K + noise·1)), the likeliest of these.

    `payoffs` are means of so many `plays` each, and `scatter` is the sum of squares around them; with one play each
    it is 0. The evidence is that of all plays, but for a constant.  (n, n), (n,), (n,) -> numbers, (n,), (n, n)
    """
    n, total = payoffs.size, plays.sum()
    factor = cholesky(matrix, noise / plays)
    ones, values = forward(factor, np.ones(n)), forward(factor, payoffs)
    level = _dot(ones, values, n) / _dot(ones, ones, n)
    rest = values - level * ones
    variance = max((_dot(rest, rest, n) + scatter / noise) / total, TINY)
    log_determinant = 0.5 * (total - n) * math.log(noise)
    for i in range(n):
        log_determinant += math.log(factor[i, i])
    return level, variance, backward(factor, rest), factor, -0.5 * total * math.log(variance) - log_determinant


@compiled
def means(points: Array, samples: Array, length: float, weights: Array, level: float) -> Array:
    """The posterior mean.  (n, d) -> (n,)"""
    out = np.empty(points.shape[0])
    rate = math.sqrt(5.0) / length
    for i in range(points.shape[0]):
        total = level
        for j in range(samples.shape[0]):
            r = rate * _distance(points, i, samples, j)
            total += (1.0 + r + r * r / 3.0) * math.exp(-r) * weights[j]
        out[i] = total
    return out


@compiled
def posterior(points: Array, samples: Array, length: float, weights: Array, factor: Array, level: float) -> Array:
    """The posterior mean, and what the samples leave of the prior variance, in [0, 1].  (n, d) -> (2, n)"""
    n = weights.size
    out = np.empty((2, points.shape[0]))
    cross = kernel(points, samples, length)
    for p in range(points.shape[0]):
        out[0, p] = level + _dot(cross[p], weights, n)
    for i in range(n):  # L⁻¹ of all points, in the place of `cross`: a row of L is read once
        for p in range(points.shape[0]):
            cross[p, i] = (cross[p, i] - _dot(factor[i], cross[p], i)) / factor[i, i]
    for p in range(points.shape[0]):
        out[1, p] = max(1.0 - _dot(cross[p], cross[p], n), 0.0)
    return out


@compiled
def slope(point: Array, samples: Array, length: float, weights: Array) -> Array:
    """The gradient of the posterior mean.  (d,) -> (d,)"""
    out = np.zeros(point.size)
    rate = math.sqrt(5.0) / length
    rows = point.reshape(1, -1)
    for j in range(samples.shape[0]):
        r = rate * _distance(rows, 0, samples, j)
        pull = -(rate * rate / 3.0) * (1.0 + r) * math.exp(-r) * weights[j]
        for k in range(point.size):
            out[k] += pull * (point[k] - samples[j, k])
    return out


@compiled
def climb(start: Array, steps: Array, most: int, samples: Array, length: float, weights: Array, level: float) -> Array:
    """The best points along the gradient of the posterior mean in the unit cube, each from the one before.

    `steps` are the lengths of steps that are compared; `most` is how many points at most.  (d,), (m,) -> (n, d)
    """
    d = start.size
    path = np.empty((most, d))
    line = np.empty((steps.size, d))
    point = start.copy()
    for n in range(most):
        up = slope(point, samples, length, weights)
        total = 0.0
        for k in range(d):
            if (point[k] <= 0.0 and up[k] < 0.0) or (point[k] >= 1.0 and up[k] > 0.0):
                up[k] = 0.0
            total += up[k] * up[k]
        if total < 1e-24:
            return path[:n]
        for i in range(steps.size):
            for k in range(d):
                line[i, k] = min(max(point[k] + steps[i] * up[k] / math.sqrt(total), 0.0), 1.0)
        values = means(line, samples, length, weights, level)
        point = line[np.argmax(values)].copy()
        path[n] = point
    return path
