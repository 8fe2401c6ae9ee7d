"""What samples say about any point: a Gaussian process, its smoothness and noise by evidence.

It is wide where nothing was seen, and there its mean is the level of all samples: a point that no
sample supports has no large value.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array
from randomist.importance.passes import surface as passes
from randomist.learners.box.auto.samples import GRAIN, Payoffs

# Lengths in diagonals √d of the cube, and variances of the noise over that of the signal: coarser
# grids miss what samples say, finer ones cost time.
LENGTHS = np.array([0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0])
NOISES = np.array([1e-4, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0])
# Where the search for them begins: elsewhere few samples are taken for noise.
USUAL = 4, 4
# Nats that a step away from these must earn, times its square: with less, luck decides.
DOUBT = 0.4, 0.05
# Of the noise: what may differ within a cell, beside it; more blurs what a play teaches.
SHARE = 0.1
# Samples, and one more per dimension, whose noise is that near a point: of fewer it is luck.
NEAREST = 10
# Points along a gradient: with one a search is slow, with more it outruns the surface.
CLIMBS = 4
# Posterior deviations below the mean that make a value: without, luck is followed.
CAUTION = 0.5


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
    plays: Array  # that each sample stands for; pending ones, which come last, have none  (m,)

    def means(self, points: Array) -> Array:
        """(n, d) -> (n,)"""
        return passes.means(
            np.ascontiguousarray(points), self.samples, self.length, self.weights, self.level
        )

    def posterior(self, points: Array) -> tuple[Array, Array]:
        """Mean payoffs and their standard deviations.  (n, d) -> (n,), (n,)"""
        rows = np.ascontiguousarray(points)
        mean, left = passes.posterior(
            rows, self.samples, self.length, self.weights, self.factor, self.level
        )
        return mean, np.sqrt(self.variance * left)

    def taught(self, points: Array) -> tuple[Array, Array]:
        """Mean payoffs, and how far one payoff there moves them.  (n, d) -> (n,), (n,)"""
        mean, deviation = self.posterior(points)
        return mean, deviation**2 / np.sqrt(deviation**2 + self.noise + 1e-300)

    def cautious(self, points: Array) -> Array:
        """Means that no payoff has exceeded, less a part of their doubt.  (n, d) -> (n,)"""
        mean, deviation = self.posterior(points)
        return np.minimum(mean, self.ceiling) - CAUTION * deviation

    def noise_near(self, point: Array) -> float:
        """The std of a payoff among the nearest samples, by the median of what is left of it.

        The surface leaves y - mean = noise / variance · weight / plays of a sample, and √plays
        times that of one play.  (d,)
        """
        n = len(self.plays)
        most, distance = (
            min(NEAREST + point.size, n),
            np.sum((self.samples[:n] - point) ** 2, axis=1),
        )
        near = np.argpartition(distance, most - 1)[:most]
        left = self.noise / self.variance * self.weights[near] / np.sqrt(self.plays[near])
        return float(np.median(np.abs(left))) / 0.6745  # of a Gaussian

    def uphill(self, start: Array, steps: Array) -> Array:
        """Points of the cube, each the best along the gradient from the one before.  (n, d)"""
        found: Array = passes.climb(
            start, steps, CLIMBS, self.samples, self.length, self.weights, self.level
        )
        return found


def surface(
    samples: Array,
    payoffs: Payoffs,
    length: int,
    noise: int,
    pending: Array,
    apart: Array | None = None,
) -> Surface:
    """Through samples, by numbers of `LENGTHS` and `NOISES`.  (n, d), (n,), (p, d)

    Pending points count as if they paid what is expected. `apart` are the distances between all of
    these, where they are known.
    """
    scale, n = length_of(length, samples), len(samples)
    if len(pending):
        samples = np.concatenate([samples, pending])
    whole = passes.covariances(passes.distances(samples) if apart is None else apart, scale)
    matrix = whole if len(samples) == n else np.ascontiguousarray(whole[:n, :n])
    ratio = _signal(matrix) * float(NOISES[noise])
    level, variance, weights, factor, _ = passes.regress(matrix, ratio, *payoffs[:3])
    if len(pending):
        values = np.concatenate([payoffs.means, level + whole[n:, :n] @ weights])
        factor = passes.cholesky(
            whole, ratio / np.concatenate([payoffs.plays, np.ones(len(pending))])
        )
        weights = passes.backward(factor, passes.forward(factor, values - level))
    noise_there = ratio * variance
    return Surface(
        samples,
        scale,
        level,
        variance,
        noise_there,
        weights,
        factor,
        payoffs.largest,
        payoffs.plays,
    )


class Evidence:
    """How likely numbers of `LENGTHS` and `NOISES` make samples, each pair computed once."""

    def __init__(self, samples: Array, payoffs: Payoffs) -> None:
        self.samples, self.payoffs, self.apart = samples, payoffs, passes.distances(samples)
        self._matrices: dict[int, tuple[Array, float]] = {}
        self._found: dict[tuple[int, int], float] = {}

    def __call__(self, at: tuple[int, int]) -> float:
        """Log evidence, less what a pair must earn for being unusual."""
        if at not in self._found:
            matrix, noise = self.model(at)
            doubt = sum(d * (a - u) ** 2 for d, a, u in zip(DOUBT, at, USUAL, strict=True))
            self._found[at] = passes.regress(matrix, noise, *self.payoffs[:3])[-1] - doubt
        return self._found[at]

    def best(self, start: tuple[int, int]) -> tuple[int, int]:
        """The pair to which no neighbour is preferred, from one on."""
        while True:
            best = max(self.neighbours(start), key=self)
            if self(best) <= self(start):
                return start
            start = best

    def neighbours(self, at: tuple[int, int]) -> list[tuple[int, int]]:
        """Pairs of numbers beside one, and itself."""
        around = [(at[0] + i, at[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        return [(i, j) for i, j in around if 0 <= i < len(LENGTHS) and 0 <= j < len(NOISES)]

    def grain(self, at: tuple[int, int]) -> float:
        """The width of cells within which mean payoffs differ by no more than a part of the noise.

        A slope of the process has the variance 5/3ℓ² times its own (Rasmussen and Williams 2006,
        Eq. 4.17), and points of a cell have that of w²/12 in each of d coordinates, so it is
        5dw²/36ℓ² that is added to the noise.
        """
        return float(LENGTHS[at[0]]) * math.sqrt(36 / 5 * SHARE * self.model(at)[1])

    def model(self, at: tuple[int, int]) -> tuple[Array, float]:
        """Covariances, and the noise beside them."""
        if at[0] not in self._matrices:
            matrix = passes.covariances(self.apart, length_of(at[0], self.samples))
            self._matrices[at[0]] = matrix, _signal(matrix)
        matrix, signal = self._matrices[at[0]]
        return matrix, signal * float(NOISES[at[1]])


class Fit(NamedTuple):
    """What samples prefer."""

    length: int  # a number of `LENGTHS`
    noise: int  # a number of `NOISES`
    gain: float  # by how many nats it is preferred to mere noise
    grain: float  # the width of cells within which samples are as good as plays of one point


def likeliest(samples: Array, payoffs: Payoffs, length: int, noise: int) -> Fit:
    """The pair to which no neighbour is preferred, from one on.  (n, d), (n,)"""
    evidence = Evidence(samples, payoffs)
    best = evidence.best((length, noise))
    variance = max(payoffs.variance, 1e-300)
    # As `regress` has it:
    alone = 0.5 * float(np.log(payoffs.plays).sum() - payoffs.total * math.log(variance))
    return Fit(*best, evidence(best) - alone, float(np.clip(evidence.grain(best), *GRAIN)))


def length_of(number: int, samples: Array) -> float:
    """One of `LENGTHS`, in widths of the box."""
    return float(LENGTHS[number]) * math.sqrt(samples.shape[1])


def _signal(matrix: Array) -> float:
    """How much of the prior variance lies between the samples, the rest being common to all."""
    return max(1.0 - float(matrix.mean()), 1e-9)
