"""The samples of a search in a box: a bounded number of all, as points and their plays."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from randomist._types import Array, Flags, Indices

# The widths of cells, in widths of the box: wider ones blur what a play teaches.
GRAIN = 0.001, 0.04
# A cell at more than so many times its width from the middle is wider: sooner blurs, later costs.
FARTHER = 4.0
# Payoffs that are looked at: the last ones, and as many of those before; more cost time.
REMEMBERED = 1024
# Points of a surface, at least, per dimension, and at most: fewer forget, more cost time.
POINTS = 200, 15, 300
# Points, near and far alike, by which smoothness is fitted: of all of them, the near ones decide.
SPREAD = 80
# What the distance from the median counts in a score: at 0 a cliff is one rank deep.
SIZE = 0.25
# Standard deviations from the median: a payoff beyond counts as that far, else wild ones hide all.
FARTHEST = -10.0, 8.0
# Standard deviations above the median: a payoff beyond is luck more often than not.
ABOVE = 11.0
# Payoffs that show the upper tail, and that no limit cuts: fewer are luck.
EXTREMES = 5
# Standard errors by which plays of a point refute a surface: at 1, bad luck loses a good point.
REFUTED = 2.5
# Neighbours of a failed call: if no more than half of them failed, too, that is chance, no region.
# Of fewer, chance looks like a region; of more, a region is seen late.
NEIGHBOURS = 8


class Payoffs(NamedTuple):
    """Of points that were played once or more."""

    means: Array  # (n,)
    plays: Array  # how many, of each  (n,)
    scatter: float  # the sum of squares around the means
    largest: float  # of all plays

    @property
    def total(self) -> float:
        """How many plays there are."""
        return float(self.plays.sum())

    @property
    def variance(self) -> float:
        """Of all plays."""
        middle = self.plays @ self.means / self.total
        return float((self.plays @ (self.means - middle) ** 2 + self.scatter) / self.total)


class Pool(NamedTuple):
    """Points that stand for samples."""

    points: Array  # (m, d)
    plays: Array  # how many samples each of them stands for  (m,)
    point: Indices  # the number of each sample's point, negative where it has none  (n,)

    def of(self, payoffs: Array) -> Payoffs:
        """What they paid, by what the samples did.  (n,)"""
        if len(self.points) == len(payoffs):
            return once(payoffs)
        kept = self.point >= 0
        point, payoffs = self.point[kept], payoffs[kept]
        means = np.bincount(point, payoffs) / self.plays
        scatter = float(np.sum((payoffs - means[point]) ** 2))
        return Payoffs(means, self.plays, scatter, float(payoffs.max()))

    def spread(self, point: Array) -> Pool:
        """At most so many of the points, at all distances from one alike.  (d,)

        Most samples are near the best point; through all of them a surface is as smooth as it is
        there, and too sure of what is far.
        """
        if len(self.points) <= SPREAD:
            return self
        distance = np.sqrt(((self.points - point) ** 2).sum(axis=1))
        order = np.argsort(distance, kind="stable")
        logs = np.log(np.maximum(distance[order], GRAIN[0] / 10))
        chosen = np.unique(np.searchsorted(logs, np.linspace(logs[0], logs[-1], SPREAD)))
        rest = np.setdiff1d(np.arange(len(logs)), chosen)
        more = np.linspace(0, len(rest) - 1, max(SPREAD - len(chosen), 0)).astype(np.int64)
        return self.only(np.sort(order[np.concatenate([chosen, rest[more]])]))

    def only(self, points: Indices) -> Pool:
        """Without all others."""
        number = np.full(len(self.points), -1)
        number[points] = np.arange(len(points))
        point = np.where(self.point < 0, -1, number[self.point])
        return Pool(self.points[points], self.plays[points], point)


def once(payoffs: Array) -> Payoffs:
    """Of points that were played once each.  (n,)"""
    return Payoffs(payoffs, np.ones(len(payoffs)), 0.0, float(payoffs.max()))


def apart(points: Array) -> Pool:
    """Each for itself.  (n, d)"""
    return Pool(points, np.ones(len(points)), np.arange(len(points)))


def pooled(points: Array, cell: Indices) -> Pool:
    """Those in one cell as one, where they are on average.  (n, d), (n,)"""
    plays = np.bincount(cell).astype(np.float64)
    middle = np.stack([np.bincount(cell, column) for column in points.T], axis=1) / plays[:, None]
    return Pool(middle, plays, cell)


def cells(points: Array, around: Array, width: float) -> Indices:
    """The number of each point's cell, in the order in which they come.

    Twice as far they are twice as wide.  (n, d), (d,) -> (n,)
    """
    distance = np.abs(points - around).max(axis=1)
    doublings = np.ceil(np.log2(np.maximum(distance / (FARTHER * width), 1.0)))
    corners = np.floor(points / (width * 2.0**doublings)[:, None])
    rows = np.concatenate([corners, doublings[:, None]], axis=1).astype(np.int64)
    key = rows @ np.random.default_rng(0).integers(2**62, size=rows.shape[1])  # modulo 2⁶⁴
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


class Samples(NamedTuple):
    """Points of the unit cube and what they paid."""

    points: Array  # (n, d)
    payoffs: Array  # in the user's units  (n,)
    scores: Array  # by rank, mostly, from 0 to 1  (n,)
    units: Array  # payoffs from 0 to 1, those far above all others drawn nearer  (n,)
    paid: Flags  # whether a call paid; a failed one counts as the worst payoff so far  (n,)

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
        """All of them; if these are too many, those in one cell as one, and if these are still too
        many, the cells of the last ones, the nearest cells, and some of all others."""
        n, most = len(self.payoffs), min(max(POINTS[0], POINTS[1] * point.size), POINTS[2])
        if n <= most:
            return apart(self.points)
        cell = cells(self.points, point, grain)
        found = pooled(self.points, cell)
        if len(found.points) <= most:
            return found
        distance = np.sum((found.points - point) ** 2, axis=1)
        distance[cell[-(most // 4) :]] = -1.0
        order, nearest = np.argsort(distance, kind="stable"), most // 2
        spread = np.linspace(nearest, len(order) - 1, most - nearest).astype(np.int64)
        return found.only(np.sort(order[np.concatenate([np.arange(nearest), spread])]))

    def refuted(self, points: Array, means: Array, noise: float) -> Flags:
        """Which points' own plays scored less than what is said of them, by more than chance.

        (n, d), (n,) -> (n,)
        """
        found = np.zeros(len(points), bool)
        for i, point in enumerate(points):
            own = self.scores[self.paid & self.at(point)]
            found[i] = len(own) and means[i] - own.mean() > REFUTED * math.sqrt(noise / len(own))
        return found

    def at(self, point: Array) -> Flags:
        """Which samples are plays of a point itself.  (d,) -> (n,)"""
        return np.asarray((np.abs(self.points - point) < 1e-9).all(axis=1))

    def leaders(self, count: int) -> Indices:
        """Those with the best payoffs."""
        n = min(count, len(self.scores))
        return np.argpartition(-self.scores, n - 1)[:n]


def scores(payoffs: Array) -> Array:
    """Payoffs mostly by rank, so that none is too wild, from 0 to 1.  (n,) -> (n,)

    The normal score of a payoff's rank is the same for any range and any noise; a part of its
    distance from the median says that a cliff is a cliff.
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
    """Payoffs from 0 to 1; what is far above all others is luck more often than not.  (n,) -> (n,)

    What several payoffs reach is no luck: where the middle half is a quiet plateau its spread is
    nothing, and all that is better would be cut down to it.
    """
    middle, spread = middle_and_spread(payoffs)
    several = np.sort(payoffs)[-min(EXTREMES, len(payoffs))]
    return from_0_to_1(np.minimum(payoffs, max(middle + ABOVE * spread, several)))


def from_0_to_1(values: Array) -> Array:
    least, most = values.min(), values.max()
    return (values - least) / (most - least) if most > least else np.full(len(values), 0.5)


def middle_and_spread(values: Array) -> tuple[float, float]:
    """The median, and the standard deviation by the middle half; by all if that is one value."""
    n, ordered = len(values), np.sort(values)
    spread = float(ordered[3 * n // 4] - ordered[n // 4]) / 1.349  # of a Gaussian
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


def gathered(points: Array, payoffs: Array, failed: Array) -> Samples:
    """Samples of what is known; failed calls come first.  (n, d), (n,), (m, d)

    Where calls fail, one that failed counts as the worst payoff so far, so that a search keeps away
    from there. Calls that fail by chance, among others that paid, say nothing of a place.
    """
    if len(failed):
        failed = failed[in_regions(failed, points)]
    m = len(failed)
    worth = np.concatenate([np.full(m, payoffs.min()), payoffs])
    paid = np.arange(len(worth)) >= m
    return Samples(np.concatenate([failed, points]), worth, scores(worth), units(worth), paid)


def in_regions(failed: Array, paid: Array) -> Flags:
    """Which failed calls have mostly failed ones around.  (m, d), (n, d) -> (m,)"""
    every = np.concatenate([failed, paid])
    squares = (every**2).sum(axis=1)
    distance = squares[: len(failed), None] + squares - 2 * failed @ every.T  # (m, m + n)
    np.fill_diagonal(distance, np.inf)
    k = min(NEIGHBOURS, len(every) - 1)
    nearest = np.argpartition(distance, k - 1, axis=1)[:, :k]
    return np.asarray(2 * (nearest < len(failed)).sum(axis=1) > k)
