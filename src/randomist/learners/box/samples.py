"""The samples that a search in a box looks at: a bounded number of all that are known, and what it makes of payoffs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from randomist._types import Array, Flags, Indices
from randomist.learners.box.pool import Pool, apart, cells, pooled

REMEMBERED = 1024  # samples: the last ones, and as many of those before
FEWEST, MOST, EACH = 200, 300, 15  # points of a surface: so many per dimension, between these bounds
NEAR = 0.5  # of these: the last and the nearest ones
SIZE = 0.25  # what the distance from the median counts in a score, beside the rank
FARTHEST = -10.0, 8.0  # standard deviations below and above the median: a payoff beyond counts as that far in a score
ABOVE = 11.0  # standard deviations above the median: a payoff beyond counts as that far
EXTREMES = 5  # payoffs that show the upper tail
QUARTILES = 1.349  # between the quartiles of a Gaussian, in standard deviations


class Samples(NamedTuple):
    """Points of the unit cube and what they paid."""

    points: Array  # (n, d)
    payoffs: Array  # in the user's units  (n,)
    scores: Array  # by rank, mostly, from 0 to 1  (n,)
    units: Array  # payoffs from 0 to 1, those far above all others drawn nearer  (n,)
    seen: Flags  # whether a point itself was played, to see what is there  (n,)

    @property
    def flat(self) -> bool:
        """Whether all paid the same."""
        return bool(self.payoffs.min() == self.payoffs.max())

    @property
    def ceiling(self) -> bool:
        """Whether the best payoff was seen more than once."""
        return int(np.sum(self.payoffs == self.payoffs.max())) > 1

    @property
    def tail(self) -> float:
        """By how much the best payoffs exceed the next one, of `units`."""
        return mean_excess(self.units)

    def near(self, point: Array, grain: float) -> Pool:
        """All of them; if these are too many, those in one cell as one, and if these are still too many, the cells of
        the last ones, the nearest cells, and some of all others."""
        n, most = len(self.payoffs), min(max(FEWEST, EACH * point.size), MOST)
        if n <= most:
            return apart(self.points)
        cell = cells(self.points, point, grain)
        found = pooled(self.points, cell)
        if len(found.points) <= most:
            return found
        distance = np.sum((found.points - point) ** 2, axis=1)
        distance[cell[-(most // 4) :]] = -1.0
        order, nearest = np.argsort(distance, kind="stable"), int(NEAR * most)
        spread = np.linspace(nearest, len(order) - 1, most - nearest).astype(np.int64)
        return found.only(np.sort(order[np.concatenate([np.arange(nearest), spread])]))

    def leaders(self, count: int) -> Indices:
        """Those with the best payoffs."""
        n = min(count, len(self.scores))
        return np.argpartition(-self.scores, n - 1)[:n]


def scores(payoffs: Array) -> Array:
    """Payoffs mostly by rank, so that none is too wild, from 0 to 1.  (n,) -> (n,)

    The normal score of a payoff's rank is the same for any range and any noise; a part of its distance from the median
    says that a cliff is a cliff.
    """
    _, place, counts = np.unique(payoffs, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - 0.5 * counts)[place]  # ties share
    middle, spread = middle_and_spread(payoffs)
    found = ndtri(rank / len(payoffs))
    if spread > 0:
        with np.errstate(over="ignore"):
            found += SIZE * np.clip((payoffs - middle) / spread, *FARTHEST)
    return from_0_to_1(found)


def units(payoffs: Array) -> Array:
    """Payoffs from 0 to 1; what is far above all others is luck more often than not.  (n,) -> (n,)"""
    middle, spread = middle_and_spread(payoffs)
    return from_0_to_1(np.minimum(payoffs, middle + ABOVE * spread))


def from_0_to_1(values: Array) -> Array:
    least, most = values.min(), values.max()
    return (values - least) / (most - least) if most > least else np.full(len(values), 0.5)


def middle_and_spread(values: Array) -> tuple[float, float]:
    """The median, and the standard deviation, judged by the middle half; by all, where that is one value."""
    n, ordered = len(values), np.sort(values)
    spread = float(ordered[3 * n // 4] - ordered[n // 4]) / QUARTILES
    return float(ordered[n // 2]), spread if spread > 0 else float(np.std(values))


def mean_excess(payoffs: Array) -> float:
    """By how much the largest exceed the next one."""
    n = min(EXTREMES, len(payoffs) - 1)
    if n < 1:
        return 0.0
    largest = np.partition(payoffs, -n - 1)[-n - 1 :]
    return float((largest - largest.min()).sum()) / n


def remembered(known: int) -> Indices:
    """The last samples, and those before them at even distances: a bounded number of all."""
    older = known - REMEMBERED
    if older <= REMEMBERED:
        return np.arange(known)
    stride = 2 ** math.ceil(math.log2(older / REMEMBERED))
    return np.concatenate([np.arange(0, older, stride), np.arange(older, known)])
