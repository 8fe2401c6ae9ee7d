"""Samples that are so near to one another that they count as plays of one point: many rounds, few points."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from randomist._types import Array, Indices

FINEST, WIDEST = 0.001, 0.04  # a cell, in widths of the box
FARTHER = 4.0  # a cell at more than so many times its width from the middle is wider


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
        return Payoffs(means, self.plays, float(np.sum((payoffs - means[point]) ** 2)), float(payoffs.max()))

    def only(self, points: Indices) -> Pool:
        """Without all others."""
        number = np.full(len(self.points), -1)
        number[points] = np.arange(len(points))
        return Pool(self.points[points], self.plays[points], number[self.point])


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
    """The number of each point's cell, in the order in which they come. Twice as far they are twice as wide.  (n, d)"""
    distance = np.abs(points - around).max(axis=1)
    doublings = np.ceil(np.log2(np.maximum(distance / (FARTHER * width), 1.0)))
    corners = np.floor(points / (width * 2.0**doublings)[:, None])
    rows = np.concatenate([corners, doublings[:, None]], axis=1).astype(np.int64)
    key = rows @ np.random.default_rng(0).integers(2**62, size=rows.shape[1])  # one number for a row, modulo 2⁶⁴
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
