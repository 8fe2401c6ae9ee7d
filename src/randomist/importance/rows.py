"""Ratios of a growing set of decisions to a growing set of samples: what lets a box learner estimate many decisions.

The same layout and the same pass as a finite set's history, with rows added as decisions are.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance import kernels
from randomist.importance.continuum import Samples, squared_distance
from randomist.importance.kernels import WILD


class Rows:
    """Ratios r = p_x(z_i) / p_{x_i}(z_i) and effective samples of n decisions x, for t samples.

    Everything is in units of the std. A sample costs O(n d), a decision O(t d), an estimate one pass over (n, t).
    """

    def __init__(self, dimension: int, rows: int = 64, samples: int = 64) -> None:
        self.points = np.empty((rows, dimension))
        self.effective = np.zeros(rows)
        self.log_effective = np.full(rows, -np.inf)
        self.ratios = np.empty((rows, samples))
        self.own = np.empty(samples)  # |z_i - x_i|²/2
        self.used = 0  # rows
        self.told = 0  # samples

    def add_decision(self, point: Array, mediators: Array, decisions: Array, plays: Array, distinct: int) -> None:
        """One more row: a decision that is to be estimated from all samples so far."""
        if self.used == len(self.points):
            self._grow(2 * self.used, self.ratios.shape[1])
        self.points[self.used] = point
        _fill_row(
            *(self.points, self.used, self.ratios, self.own, mediators, self.told),
            *(decisions, plays, distinct, self.effective, self.log_effective),
        )
        self.used += 1

    def add_sample(self, mediators: Array, i: int, decisions: Array, played: int) -> None:
        """One more sample, number i, drawn from decision number `played`."""
        if self.told == self.ratios.shape[1]:
            self._grow(len(self.points), 2 * self.told)
        self.own[i] = 0.5 * squared_distance(mediators, i, decisions, played)
        _fill_column(
            *(self.points, self.used, self.ratios, self.own, mediators, i, decisions, played),
            *(self.effective, self.log_effective),
        )
        self.told += 1

    def replaced(self, points: Array, samples: Samples) -> Rows:
        """Other decisions for the same samples."""
        mediators, _, _, _, decisions, plays, distinct = samples
        rows = Rows(self.points.shape[1], len(points), self.ratios.shape[1])
        rows.own, rows.told = self.own, self.told
        for point in points:
            rows.add_decision(point, mediators, decisions, plays, distinct)
        return rows

    def estimate(self, term: float, log_mixture: Array, payoffs: Array) -> Array:
        """The table of `kernels.estimate`, one column per row of this.  (7, n)"""
        inverse = np.exp(-self.own[: self.told] - log_mixture[: self.told])
        n = self.used
        return kernels.estimate(
            self.effective[:n], self.log_effective[:n], term, self.told, self.ratios[:n], inverse, payoffs, self.told
        )

    def _grow(self, rows: int, samples: int) -> None:
        grown = Rows(self.points.shape[1], rows, samples)
        n, t = self.used, self.told
        grown.points[:n], grown.effective[:n] = self.points[:n], self.effective[:n]
        grown.log_effective[:n], grown.own[:t] = self.log_effective[:n], self.own[:t]
        grown.ratios[:n, :t] = self.ratios[:n, :t]
        self.points, self.effective, self.log_effective = grown.points, grown.effective, grown.log_effective
        self.ratios, self.own = grown.ratios, grown.own


@compiled
def _fill_row(
    points: Array,
    row: int,
    ratios: Array,
    own: Array,
    mediators: Array,
    told: int,
    decisions: Array,
    plays: Array,
    distinct: int,
    effective: Array,
    log_effective: Array,
) -> None:
    for i in range(told):
        ratios[row, i] = math.exp(min(own[i] - 0.5 * squared_distance(mediators, i, points, row), WILD))
    effective[row], log_effective[row] = 0.0, -math.inf
    for j in range(distinct):
        kernels.add_effective(effective, log_effective, row, plays[j], squared_distance(points, row, decisions, j))


@compiled
def _fill_column(
    points: Array,
    used: int,
    ratios: Array,
    own: Array,
    mediators: Array,
    i: int,
    decisions: Array,
    played: int,
    effective: Array,
    log_effective: Array,
) -> None:
    for row in range(used):
        ratios[row, i] = math.exp(min(own[i] - 0.5 * squared_distance(mediators, i, points, row), WILD))
        kernels.add_effective(effective, log_effective, row, 1.0, squared_distance(points, row, decisions, played))
