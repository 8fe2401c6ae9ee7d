"""What tiles of rows leave, merged in the order of rows.

A tile leaves a table of so many numbers per candidate, which does not depend on who summed it. Tables are merged in the
order of rows, so that any number of workers gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array

# Where slices of a log end, in time, as shares of 1/1024: sixteenths, the last of which is halved again and again.
SLICES = (*range(64, 1024, 64), 992, 1008, 1016, 1020, 1022, 1023, 1024)

# Entries of a candidate's table. Weights are relative to e^shift; Σω, Σω², Σωy, Σω²y², Σω²y, Σmin(M,ω), Σmin(M,ω)y.
SHIFT, LARGEST, WEIGHT, SQUARED, GAIN, SQUARED_GAIN, CROSS, CUT, CUT_GAIN = range(9)
APART = 9  # Σd, Σd² and the largest d², d = (ω - ω') y with ω' the weight by the policy that acted
ROBUST = 12  # Σx, Σx² and Σf̄ of doubly robust estimates
MOST = 15  # the largest ω'
TIME = 16  # for each slice: rows, Σω', Σω'y, Σω'², Σω'²y, Σω'²y²
HEAVY = TIME + 6 * len(SLICES)  # what the bets on ω have earned, then those on the candidate's value


@dataclass(frozen=True, eq=False)
class Plan:
    """What is bet on, and how much: known before the rows are. Sides are gain and loss."""

    thresholds: Array  # M  (K,)
    factor: float  # by which propensities may be wrong
    heavy: Array  # stakes on ω  (H,)
    heavy_cap: float
    variables: Array  # c of ω (y - c); -1 for what has a model's help, -2 and so on with its cuts; or NaN  (K, F)
    stakes: Array  # NaN where a variable is not bet on  (2, K, F, S)
    caps: Array  # (2, K, F)
    powers: bool  # whether sums for later stakes are wanted

    @property
    def first(self) -> int:
        """Where the bets on values begin: for each side and variable, growth of each stake, ΣX, ΣX² and least X."""
        return HEAVY + len(self.heavy)

    @property
    def width(self) -> int:
        """Entries of a candidate's table."""
        _, _, F, S = self.stakes.shape
        return int(self.first + 2 * F * (S + 3))

    def earned(self, table: Array) -> tuple[Array, Array, Array]:
        """Growth of the bets on ω, growth of the others, and powers of their variables.

        (K, H), (2, K, F, S), (2, K, F, 3)
        """
        _, K, F, S = self.stakes.shape
        of_sides = table[:, self.first :].reshape(K, 2, F, S + 3).transpose(1, 0, 2, 3)
        return table[:, HEAVY : self.first], of_sides[..., :S], of_sides[..., S:]


class Sums:
    """Tables that were merged, by compensated sums; from entry `first` on, bets with so many stakes."""

    def __init__(self, count: int, width: int, first: int, stakes: int) -> None:
        self.table, self.rest = np.zeros((count, width)), np.zeros((count, width))
        self._first, self._stakes = first, stakes

    def merge(self, tables: Array) -> None:
        """The tables of the next tiles.  (T, count, width)"""
        for table in tables:
            _merge(self.table, self.rest, table, self._first, self._stakes)

    def total(self) -> Array:
        """(count, width)"""
        return np.asarray(self.table + self.rest)

    def clear_bets(self, first: int) -> None:
        """Forget what bets have earned: it was taken over, and the next rows are bet on otherwise."""
        self.table[:, first:], self.rest[:, first:] = 0.0, 0.0


class Total(Sums):
    """Merged tables of candidates."""

    def __init__(self, candidates: int, plan: Plan) -> None:
        super().__init__(candidates, plan.width, plan.first, plan.stakes.shape[3])
        self.table[:, SHIFT] = self.table[:, LARGEST] = -math.inf

    @property
    def rows(self) -> int:
        """How many rows were summed."""
        return int(self.table[0, TIME:HEAVY:6].sum())

    def merge(self, tables: Array) -> None:
        aligned = tables.copy()
        for table in aligned:
            _align(self.table, self.rest, table)
            super().merge(table[None])


class Beside:
    """Payoffs of neighbouring rows, across tiles, too."""

    def __init__(self, policies: int) -> None:
        self.sums = np.zeros((policies + 1, 5))  # pairs, Σy, Σy', Σyy', Σy² by logger
        self._last = np.array([-2.0, 0.0])  # logger and payoff of the row before

    def merge(self, neighbours: Array, edges: Array) -> None:
        """Sums of the next tiles, and logger and payoff of their first and last rows.  (T, policies + 1, 5), (T, 4)"""
        for of_tile, (logger, payoff, *last) in zip(neighbours, edges, strict=True):
            if logger == self._last[0]:
                y = self._last[1]
                self.sums[int(logger)] += (1.0, y, payoff, y * payoff, y * y)
            self.sums += of_tile
            self._last = np.array(last)


@compiled
def _align(total: Array, rest: Array, part: Array) -> None:
    """Make weights relative to the same shift; take over what is not summed, and leave nothing of it to be summed."""
    for k in range(len(total)):
        shift = part[k, SHIFT]
        if shift > -math.inf and shift != total[k, SHIFT]:
            highest = max(total[k, SHIFT], shift)
            for entry in range(WEIGHT, CUT):
                power = 1.0 if entry in (WEIGHT, GAIN) else 2.0
                if total[k, SHIFT] > -math.inf:
                    old = math.exp(power * (total[k, SHIFT] - highest))
                    total[k, entry] *= old
                    rest[k, entry] *= old
                part[k, entry] *= math.exp(power * (shift - highest))
            total[k, SHIFT] = highest
        part[k, SHIFT] = 0.0
        for entry in (LARGEST, APART + 2, MOST):
            total[k, entry] = max(total[k, entry], part[k, entry])
            part[k, entry] = 0.0


@compiled
def _merge(total: Array, rest: Array, part: Array, first: int, stakes: int) -> None:
    """Neumaier's compensated sums, and the least of what bets have as their least."""
    for k in range(len(total)):
        for entry in range(total.shape[1]):
            value, before = part[k, entry], total[k, entry]
            if entry >= first and (entry - first) % (stakes + 3) == stakes + 2:
                total[k, entry] = min(before, value)
            elif value != 0.0:
                total[k, entry] = before + value
                if abs(before) >= abs(value):
                    rest[k, entry] += (before - total[k, entry]) + value
                else:
                    rest[k, entry] += (value - total[k, entry]) + before
