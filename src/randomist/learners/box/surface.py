"""What samples say about any point of a box: a Gaussian process through them, its smoothness and noise by evidence.

It is wide where nothing was seen, and there its mean is the level of all samples: a point that no sample supports has
no large value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array, Flags
from randomist.importance.passes import surface as passes

LENGTHS = np.array([0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0])  # in diagonals √d of the unit cube
NOISES = np.array([1e-4, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0])  # variance of the noise over that of the signal
USUAL = 4, 4  # where the search for them begins
DOUBT = 0.4, 0.05  # nats that a step away from the usual ones must earn, times its square
STEPS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
CAUTION = 0.5  # posterior deviations below the mean that make a point's value
FORBIDDEN = 1e9  # added to the loss of a point that is more likely infeasible than not
REACH, BLUR = 0.12, 0.05  # length, in diagonals, and noise of the surface through what is feasible


class Border(NamedTuple):
    """A surface through 1 at feasible and 0 at infeasible samples; far from all of them it is 1."""

    samples: Array  # (n, d)
    length: float
    weights: Array  # (n,)

    def chances(self, points: Array) -> Array:
        """About the chance that a point is feasible.  (n, d) -> (n,)"""
        return passes.means(np.ascontiguousarray(points), self.samples, self.length, self.weights, 1.0)


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
    border: Border | None = None  # where infeasible trials were

    def means(self, points: Array) -> Array:
        """(n, d) -> (n,)"""
        return passes.means(np.ascontiguousarray(points), self.samples, self.length, self.weights, self.level)

    def deviations(self, points: Array) -> Array:
        """Posterior standard deviations of the mean payoff.  (n, d) -> (n,)"""
        left = passes.remaining(np.ascontiguousarray(points), self.samples, self.length, self.factor)
        return np.sqrt(self.variance * left)

    def safe(self, points: Array) -> Array:
        """What makes a point a good one to play: a cautious mean; below all others where it may be infeasible.

        (n, d) -> (n,)
        """
        values = np.minimum(self.means(points), self.ceiling) - CAUTION * self.deviations(points)
        if self.border is not None:
            chances = self.border.chances(points)
            values = np.where(chances >= 0.5, values, chances - FORBIDDEN)
        return values

    def allowed(self, points: Array) -> Flags:
        """Whether points are more likely feasible than not.  (n, d) -> (n,)"""
        return np.ones(len(points), bool) if self.border is None else self.border.chances(points) >= 0.5

    def slope(self, point: Array) -> Array:
        """The gradient of `means`.  (d,) -> (d,)"""
        return passes.slope(np.ascontiguousarray(point), self.samples, self.length, self.weights)


def surface(samples: Array, payoffs: Array, length: int, noise: int, pending: Array) -> Surface:
    """Through samples, by numbers of `LENGTHS` and `NOISES`; pending points count as if they paid what is expected.

    (n, d), (n,), (p, d)
    """
    scale, matrix = _length(length, samples), passes.covariances(samples, _length(length, samples))
    ratio, ceiling = _signal(matrix) * float(NOISES[noise]), float(payoffs.max())
    level, variance, weights, factor, _ = passes.regress(matrix, ratio, payoffs)
    if len(pending):
        expected = passes.means(pending, samples, scale, weights, level)
        samples, payoffs = np.concatenate([samples, pending]), np.concatenate([payoffs, expected])
        factor = passes.cholesky(passes.covariances(samples, scale), ratio)
        weights = passes.backward(factor, passes.forward(factor, payoffs - level))
    return Surface(samples, scale, level, variance, ratio * variance, weights, factor, ceiling)


def likeliest(samples: Array, payoffs: Array, length: int, noise: int) -> tuple[int, int]:
    """Numbers of `LENGTHS` and `NOISES` to which no neighbour is preferred, from these on.  (n, d), (n,)"""
    matrices: dict[int, tuple[Array, float]] = {}
    found: dict[tuple[int, int], float] = {}

    def evidence(at: tuple[int, int]) -> float:
        if at not in found:
            if at[0] not in matrices:
                matrix = passes.covariances(samples, _length(at[0], samples))
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


def border(feasible: Array, infeasible: Array) -> Border | None:
    """Between samples of both kinds; None where none is infeasible.  (n, d), (m, d)"""
    if not len(infeasible):
        return None
    samples = np.concatenate([feasible, infeasible])
    length = REACH * math.sqrt(samples.shape[1])
    factor = passes.cholesky(passes.covariances(samples, length), BLUR)
    below = np.append(np.zeros(len(feasible)), np.full(len(infeasible), -1.0))
    return Border(samples, length, passes.backward(factor, passes.forward(factor, below)))


def _length(number: int, samples: Array) -> float:
    return float(LENGTHS[number]) * math.sqrt(samples.shape[1])


def _signal(matrix: Array) -> float:
    """How much of the prior variance lies between the samples, the rest being common to all."""
    return max(1.0 - float(matrix.mean()), 1e-9)
