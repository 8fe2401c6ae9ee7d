"""Comparisons of candidates on paired rows: by how much one is better than another, at least and at most.

A lower bound on J_a - J_b bets on ω_a y + ω_b (1 - y), whose mean is J_a - J_b + 1, and, where weights or distances
between them are bounded, on (ω_a - ω_b)(y - c), whose mean is J_a - J_b: similar candidates have similar weights, and
little variance is left. An upper bound is a lower one on J_b - J_a. Each is wrong with probability at most its share of
the error, and the shares of all that may be looked at add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from randomist._types import Array
from randomist.importance.intervals import difference_baselines
from randomist.logs.tally import STEPS, bettor
from randomist.logs.units import Units


@dataclass(frozen=True)
class Difference:
    """J_a - J_b is between low and high, in the units of the payoffs."""

    a: str
    b: str
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether it is known which of the two is better."""
        return self.low > 0.0 or self.high < 0.0

    def __str__(self) -> str:
        if self.low > 0.0:
            return f"{self.a} is better than {self.b}, by {self.low:.4g} to {self.high:.4g}"
        if self.high < 0.0:
            return f"{self.a} is worse than {self.b}, by {-self.high:.4g} to {-self.low:.4g}"
        return f"{self.a} and {self.b}: not decided ({self.low:+.4g} to {self.high:+.4g})"


class Lead:
    """A lower bound on J_a - J_b, on the [0, 1] scale of payoffs."""

    def __init__(
        self,
        rows: int,
        error: float,
        bounds: tuple[float, float],
        distance: float,
        size: float,
        same_mean: bool,
        early: bool,
    ) -> None:
        steps = STEPS if same_mean else 2
        self._kinds, offsets, floors = difference_baselines(bounds[0] * size, bounds[1] * size, distance * size, steps)
        if early:
            floors = [max(floor, 1.0) if c is not None else 0.0 for c, floor in zip(self._kinds, floors, strict=True)]
        spans = [math.inf if c is None else max(c, 1.0 - c) * distance * size for c in self._kinds]
        self._bets = bettor(rows, error, offsets, floors, same_mean, spans)

    def add(self, units: Units, a: int, b: int) -> None:
        gained, apart = units.gain[a] - units.gain[b], units.weight[a] - units.weight[b]
        plain = units.gain[a] + units.loss[b]
        paired = [gained - c * apart for c in self._kinds if c is not None]
        if units.unusual.any():  # beyond the bounds: another variable with the same mean
            paired = [np.where(units.unusual, plain - 1.0, values) for values in paired]
        self._bets.add([plain, *paired])

    def low(self) -> float:
        return self._bets.lower_bound(-1.0, 1.0)


def leads(
    units: Iterable[Units],
    rows: int,
    error: float,
    pairs: Iterable[tuple[int, int]],
    bounds: Array,
    distances: Array,
    size: float,
    same_mean: bool,
    early: bool,
) -> Array:
    """Lower bounds on J_a - J_b for ordered pairs, -inf for all others; each wrong with probability at most `error`.

    `size` is how many rows of average size the largest unit is: 1 unless units are clusters. `early` says that bounds
    are those of the first rows, which unusual ones may exceed.  (K, K)
    """
    found = np.full((len(bounds), len(bounds)), -math.inf)
    laid = {
        (a, b): Lead(rows, error, (float(bounds[a]), float(bounds[b])), float(distances[a, b]), size, same_mean, early)
        for a, b in pairs
    }
    for part in units:
        for (a, b), lead in laid.items():
            lead.add(part, a, b)
    for (a, b), lead in laid.items():
        found[a, b] = lead.low()
    return found


def ordered_pairs(count: int, leader: int, compare: str | None, baseline: int | None) -> Iterator[tuple[int, int]]:
    """Which pairs are looked at."""
    for a in range(count):
        for b in range(count):
            asked = compare == "pairs" or (compare == "leader" and a == leader) or baseline in (a, b)
            if a != b and asked:
                yield a, b


def shared_by(count: int, compare: str | None, baseline: int | None) -> int:
    """How many comparisons the error is shared by: all that might have been looked at, whoever leads."""
    if compare is not None:
        return count * (count - 1)
    return 2 * (count - 1) if baseline is not None else 0
