"""What samples say about any point of a box: a Gaussian process through them, its smoothness and noise by evidence.

It is wide where nothing was seen, and there its mean is the level of all samples: a point that no sample supports has
no large value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array
from randomist.importance.passes import surface as passes

LENGTHS = np.array([0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0])  # in diagonals √d of the unit cube
NOISES = np.array([1e-4, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0])  # variance of the noise over that of the signal
USUAL = 4, 4  # where the search for them begins
DOUBT = 0.4, 0.05  # nats that a step away from the usual ones must earn, times its square
STEPS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
CAUTION = 0.5  # posterior deviations below the mean that make a point's value


class Surface(NamedTuple):
    """The posterior given samples; payoffs in whatever unit these had."""

    samples: Array  # (n, d)
    length: float  # ℓ
    level: float  # prior mean
    variance: float  # of the signal
    noise: float  # variance of a payoff around its mean
    weights: Array  # (n,)
    factor: Array  # (n, n)
    ceiling: float  # the largest payoff

    def means(self, points: Array) -> Array:
        """(n, d) -> (n,)"""
        return passes.means(np.ascontiguousarray(points), self.samples, self.length, self.weights, self.level)

    def posterior(self, points: Array) -> tuple[Array, Array]:
        """Mean payoffs and their standard deviations.  (n, d) -> (n,), (n,)"""
        rows = np.ascontiguousarray(points)
        mean, left = passes.posterior(rows, self.samples, self.length, self.weights, self.factor, self.level)
        return mean, np.sqrt(self.variance * left)

    def cautious(self, points: Array) -> Array:
        """Means that no payoff has exceeded, less a part of what is not known of them.  (n, d) -> (n,)"""
        mean, deviation = self.posterior(points)
        return np.minimum(mean, self.ceiling) - CAUTION * deviation

    def uphill(self, start: Array, steps: Array, most: int) -> Array:
        """Points in the unit cube, each the best along the gradient of `means` from the one before.  (n, d)"""
        found: Array = passes.climb(start, steps, most, self.samples, self.length, self.weights, self.level)
        return found


def surface(
    samples: Array, payoffs: Array, length: int, noise: int, pending: Array, apart: Array | None = None
) -> Surface:
    """Through samples, by numbers of `LENGTHS` and `NOISES`; pending points count as if they paid what is expected.

    `apart` are the distances between samples and pending points, where these are known.  (n, d), (n,), (p, d)
    """
    scale, n, ceiling = _length(length, samples), len(samples), float(payoffs.max())
    if len(pending):
        samples = np.concatenate([samples, pending])
    whole = passes.covariances(passes.distances(samples) if apart is None else apart, scale)
    matrix = whole if len(samples) == n else np.ascontiguousarray(whole[:n, :n])
    ratio = _signal(matrix) * float(NOISES[noise])
    level, variance, weights, factor, _ = passes.regress(matrix, ratio, payoffs)
    if len(pending):
        payoffs = np.concatenate([payoffs, level + whole[n:, :n] @ weights])
        factor = passes.cholesky(whole, ratio)
        weights = passes.backward(factor, passes.forward(factor, payoffs - level))
    return Surface(samples, scale, level, variance, ratio * variance, weights, factor, ceiling)


def likeliest(samples: Array, payoffs: Array, length: int, noise: int) -> tuple[int, int]:
    """Numbers of `LENGTHS` and `NOISES` to which no neighbour is preferred, from these on.  (n, d), (n,)"""
    apart, matrices = passes.distances(samples), dict[int, tuple[Array, float]]()
    found: dict[tuple[int, int], float] = {}

    def evidence(at: tuple[int, int]) -> float:
        if at not in found:
            if at[0] not in matrices:
                matrix = passes.covariances(apart, _length(at[0], samples))
                matrices[at[0]] = matrix, _signal(matrix)
            matrix, signal = matrices[at[0]]
            doubt = sum(d * (a - u) ** 2 for d, a, u in zip(DOUBT, at, USUAL, strict=True))
            found[at] = passes.regress(matrix, signal * float(NOISES[at[1]]), payoffs)[-1] - doubt
        return found[at]

    here = length, noise
    while True:
        around = [(here[0] + i, here[1] + j) for i, j in STEPS]
        best = max((at for at in around if 0 <= at[0] < len(LENGTHS) and 0 <= at[1] < len(NOISES)), key=evidence)
        if evidence(best) <= evidence(here):
            return here
        here = best


def _length(number: int, samples: Array) -> float:
    return float(LENGTHS[number]) * math.sqrt(samples.shape[1])


def _signal(matrix: Array) -> float:
    """How much of the prior variance lies between the samples, the rest being common to all."""
    return max(1.0 - float(matrix.mean()), 1e-9)
