"""All surfaces that samples allow: the likeliest, those that are not much less likely, and those with ripples.

Noise is new with every play, while ripples stay where they are: samples near one another share them. A surface that has
none takes them for noise, and is too sure of its mean.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array
from randomist.importance.passes import surface as passes
from randomist.learners.box.pool import Payoffs
from randomist.learners.box.surface import Evidence, Surface, length_of, surface

MUCH = 4.0  # nats by which a surface is much less likely than another
SHARES = 0.25, 1.0, 4.0  # variance of ripples over that of the noise


class Rippled(NamedTuple):
    """The posterior given samples, of a surface and ripples of a shorter length on it."""

    samples: Array  # (n, d)
    lengths: tuple[float, float]  # of the surface, and of its ripples
    height: float  # the variance of ripples over that of the surface
    level: float  # prior mean
    variance: float  # of both together
    noise: float  # variance of a payoff around its mean
    weights: Array  # (n,)
    factor: Array  # (n, n)

    def posterior(self, points: Array) -> tuple[Array, Array]:
        """Mean payoffs and their standard deviations.  (n, d) -> (n,), (n,)"""
        rows = np.ascontiguousarray(points)
        smooth, fine = (passes.kernel(rows, self.samples, length) for length in self.lengths)
        covariance = smooth + self.height * fine
        explained = np.array([passes.forward(self.factor, row) for row in covariance])
        whole = 1 + self.height
        left = np.maximum(whole - np.sum(explained**2, axis=1), 0.0) / whole
        return self.level + covariance @ self.weights, np.sqrt(self.variance * left)


def rippled(evidence: Evidence, at: tuple[int, int]) -> list[Rippled]:
    """Those that the samples prefer to the surface of a pair of numbers, which has no ripples."""
    samples, payoffs = evidence.samples, evidence.payoffs[:3]
    matrix, noise = evidence.model(at)
    plain, found = passes.regress(matrix, noise, *payoffs)[-1], []
    for shorter in range(at[0]):
        lengths = length_of(at[0], samples), length_of(shorter, samples)
        fine = passes.covariances(evidence.apart, lengths[1])
        for height in (share * noise for share in SHARES):
            level, variance, weights, factor, likelihood = passes.regress(matrix + height * fine, noise, *payoffs)
            if likelihood > plain:
                whole = (1 + height) * variance
                found.append(Rippled(samples, lengths, height, level, whole, noise * variance, weights, factor))
    return found


def possible(samples: Array, payoffs: Payoffs, smoothest: float = math.inf) -> tuple[Surface, list[Surface | Rippled]]:
    """The likeliest surface, and all others that the samples allow; none is longer than `smoothest`.  (n, d), (n,)"""
    evidence, none = Evidence(samples, payoffs, smoothest), np.empty((0, samples.shape[1]))
    best = evidence.best(evidence.usual)
    likely = [at for at in evidence.neighbours(best) if at != best and evidence(at) > evidence(best) - MUCH]
    first, *others = (surface(samples, payoffs, *at, none, evidence.apart) for at in (best, *likely))
    return first, [*others, *rippled(evidence, best)]
