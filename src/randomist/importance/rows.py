"""Ratios of a growing set of decisions to a growing set of samples: what lets a box learner estimate many decisions.

The same layout and the same pass as a finite set's columns, with rows added as decisions are. Ratios are kept for as
many decisions as `MOST_KEPT` has room for; those of the others are computed again for each estimate.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance.passes import numba as passes
from randomist.importance.passes.layout import FAR
from randomist.importance.passes.points import Samples, squared_distance

MOST_KEPT = 2**23  # ratios: 64 MiB
BUFFER = 2**17  # ratios that are made at once where they are not kept


class Rows:
    """Ratios r = p_x(z_i) / p_{x_i}(z_i) and effective samples of n decisions x, for t samples.

    Everything is in units of the std. A sample costs O(n d), a decision O(t d), an estimate one pass over (n, t).
    """

    def __init__(self, dimension: int, rows: int = 64, samples: int = 64) -> None:
        self.points = np.empty((rows, dimension))
        self.eta = np.empty((2, rows))
        self.ratios = np.empty((min(rows, max(1, MOST_KEPT // samples)), samples))
        self.own = np.empty(samples)  # |z_i - x_i|²/2
        self.used = 0  # rows
        self.told = 0  # samples

    @property
    def kept(self) -> int:
        """How many decisions have their ratios kept."""
        return min(self.used, len(self.ratios))

    def add_decision(self, point: Array, samples: Samples) -> None:
        """One more row: a decision that is to be estimated from all samples so far."""
        if self.used == len(self.points):
            self._grow(2 * self.used, self.ratios.shape[1])
        self.points[self.used] = point
        _sum_effective(self.points, self.used, samples.decisions, samples.plays, samples.used, self.eta)
        if self.used < len(self.ratios):
            _fill(self.points, self.used, self.used + 1, self.own, samples.mediators, self.told, self.ratios, 0)
        self.used += 1

    def add_sample(self, samples: Samples) -> None:
        """One more sample, the last one told, drawn from the last decision."""
        if self.told == self.ratios.shape[1]:
            self._grow(len(self.points), 2 * self.told)
        i, played = self.told, samples.used - 1
        self.own[i] = 0.5 * squared_distance(samples.mediators, i, samples.decisions, played)
        _fill_column(
            self.points, self.used, self.kept, self.ratios, self.own, samples.mediators, i, samples.decisions, played,
            self.eta,
        )  # fmt: skip
        self.told += 1

    def replaced(self, points: Array, samples: Samples) -> Rows:
        """Other decisions for the same samples."""
        rows = Rows(self.points.shape[1], len(points), self.ratios.shape[1])
        rows.own, rows.told = self.own, self.told
        for point in points:
            rows.add_decision(point, samples)
        return rows

    def estimate(self, term: float, samples: Samples) -> Array:
        """The table of `passes.estimate`, one column per row of this.  (7, n)"""
        n, t, kept = self.used, self.told, self.kept
        mixture = np.exp(-self.own[:t] - samples.log_mixture[:t])  # 1/D_i
        table = np.empty((7, n))
        passes.begin_estimate(self.eta[:, :n], term, t, table)
        passes.add_sums(self.ratios[:kept], mixture, samples.payoffs, t, table[:, :kept])
        size = max(4, BUFFER // max(t, 1))
        buffer = np.empty((size, t)) if kept < n else self.ratios
        for first in range(kept, n, size):
            last = min(first + size, n)
            _fill(self.points, first, last, self.own, samples.mediators, t, buffer, first)
            passes.add_sums(buffer[: last - first], mixture, samples.payoffs, t, table[:, first:last])
        return table

    def _grow(self, rows: int, samples: int) -> None:
        grown = Rows(self.points.shape[1], rows, samples)
        n, t = self.used, self.told
        kept = min(self.kept, len(grown.ratios))
        grown.points[:n], grown.eta[:, :n], grown.own[:t] = self.points[:n], self.eta[:, :n], self.own[:t]
        grown.ratios[:kept, :t] = self.ratios[:kept, :t]
        self.points, self.eta, self.ratios, self.own = grown.points, grown.eta, grown.ratios, grown.own


@compiled
def _sum_effective(points: Array, row: int, decisions: Array, plays: Array, distinct: int, eta: Array) -> None:
    eta[0, row], eta[1, row] = 0.0, -math.inf
    for j in range(distinct):
        passes.add_term(eta, row, plays[j], squared_distance(points, row, decisions, j))


@compiled
def _fill(
    points: Array, first: int, last: int, own: Array, mediators: Array, told: int, out: Array, start: int
) -> None:
    """The ratios of some rows; row `start` is the first one of `out`."""
    for row in range(first, last):
        for i in range(told):
            out[row - start, i] = math.exp(min(own[i] - 0.5 * squared_distance(mediators, i, points, row), FAR))


@compiled
def _fill_column(
    points: Array,
    used: int,
    kept: int,
    ratios: Array,
    own: Array,
    mediators: Array,
    i: int,
    decisions: Array,
    played: int,
    eta: Array,
) -> None:
    for row in range(used):
        if row < kept:
            ratios[row, i] = math.exp(min(own[i] - 0.5 * squared_distance(mediators, i, points, row), FAR))
        passes.add_term(eta, row, 1.0, squared_distance(points, row, decisions, played))
