"""Comparisons of candidates on paired rows: by how much one is better than another, at least and at most.

A lower bound on J_a - J_b bets on ω_a y + ω_b (1 - y), whose mean is J_a - J_b + 1, and, where weights or distances
between them are bounded, on (ω_a - ω_b)(y - c), whose mean is J_a - J_b: similar candidates have similar weights, and
little variance is left. An upper bound is a lower one on J_b - J_a. Each is wrong with probability at most its share of
the error, and the shares of all that may be looked at add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Flags, Indices
from randomist.importance.growth import grow
from randomist.importance.intervals import difference_baselines
from randomist.logs.engine import Engine
from randomist.logs.kernel import TILE, add_powers, writeable
from randomist.logs.pieces import Piece, Weighing
from randomist.logs.tally import STEPS, bettor
from randomist.logs.totals import Sums
from randomist.logs.units import Units, units_of

_PLAIN = -1.0  # in the place of c


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
        kinds, offsets, floors = difference_baselines(bounds[0] * size, bounds[1] * size, distance * size, steps)
        if early:
            floors = [max(floor, 1.0) if c is not None else 0.0 for c, floor in zip(kinds, floors, strict=True)]
        spans = [math.inf if c is None else max(c, 1.0 - c) * distance * size for c in kinds]
        self.variables = [_PLAIN if c is None else c for c in kinds]
        self.bets = bettor(rows, error, offsets, floors, same_mean, spans)

    def low(self) -> float:
        return self.bets.lower_bound(-1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Pairing:
    """What is bet on for each of P pairs, and how much."""

    pairs: Indices  # (P, 2)
    variables: Array  # c of (ω_a - ω_b)(y - c), -1 for ω_a y + ω_b (1 - y), or NaN  (P, F)
    stakes: Array  # NaN where a variable is not bet on  (P, F, S)
    caps: Array  # (P, F)
    powers: bool  # whether sums for later stakes are wanted

    @classmethod
    def of(cls, leads: Mapping[tuple[int, int], Lead], powers: bool) -> Pairing:
        """The bets on the next units."""
        laid = [lead.bets.laid_next() for lead in leads.values()]
        P, F, S = len(laid), max(len(stakes) for stakes, _ in laid), laid[0][0].shape[1]
        variables, stakes, caps = np.full((P, F), np.nan), np.full((P, F, S), np.nan), np.full((P, F), np.nan)
        for p, lead in enumerate(leads.values()):
            count = len(lead.variables)
            variables[p, :count], (stakes[p, :count], caps[p, :count]) = lead.variables, laid[p]
        return cls(np.array(list(leads)), variables, stakes, caps, powers)


def paired(part: Piece | Units, weighing: Weighing, factor: float, plan: Pairing) -> tuple[int, Array]:
    """The work: how many units a part has, and tables of all of its tiles.  (T, P, F (S + 3))"""
    units = units_of(part, weighing, factor)
    P, F, S = plan.stakes.shape
    count = units.gain.shape[1]
    tables = np.zeros((-(-count // TILE), P, F * (S + 3)))
    _add_pairs(
        units.gain, units.loss, units.weight, units.unusual, plan.pairs.copy(), writeable(plan.variables),
        writeable(plan.stakes), writeable(plan.caps), plan.powers, tables,
    )  # fmt: skip
    return count, tables


@compiled(nogil=True)
def _add_pairs(
    gain: Array,
    loss: Array,
    weight: Array,
    unusual: Flags,
    pairs: Indices,
    variables: Array,
    stakes: Array,
    caps: Array,
    powers: bool,
    tables: Array,
) -> None:
    P, F, S = stakes.shape
    values, products = np.empty(TILE), np.empty(S)
    for tile in range(len(tables)):
        begin = tile * TILE
        n = min(TILE, gain.shape[1] - begin)
        for p in range(P):
            a, b = pairs[p, 0], pairs[p, 1]
            for f in range(F):
                c = variables[p, f]
                if math.isnan(c):
                    continue
                for i in range(n):
                    j = begin + i
                    if c == _PLAIN:
                        values[i] = gain[a, j] + loss[b, j]
                    elif unusual[j]:  # beyond the bounds: another variable with the same mean
                        values[i] = gain[a, j] + loss[b, j] - 1.0
                    else:
                        values[i] = gain[a, j] - gain[b, j] - c * (weight[a, j] - weight[b, j])
                place = tables[tile, p, f * (S + 3) : (f + 1) * (S + 3)]
                if not math.isnan(stakes[p, f, 0]):
                    grow(values, n, stakes[p, f], caps[p, f], products, place)
                if powers:
                    add_powers(values, n, place[S:])


def leads(
    parts: Iterable[Iterable[Piece | Units]],
    laid: Mapping[tuple[int, int], Lead],
    weighing: Weighing,
    factor: float,
    powers: bool,
    engine: Engine,
) -> None:
    """Lay the bets, on parts of the log in stages: parts of one stage are bet on alike."""
    for stage in parts:
        plan = Pairing.of(laid, powers)
        P, F, S = plan.stakes.shape
        sums, rows = Sums(P, F * (S + 3), 0, S), 0
        for count, tables in engine.map(paired, stage, weighing, factor, plan):
            sums.merge(tables)
            rows += count
        earned = sums.total().reshape(P, F, S + 3)
        for lead, of_pair in zip(laid.values(), earned, strict=True):
            of_lead = of_pair[: len(lead.variables)]
            lead.bets.take(rows, of_lead[:, :S], of_lead[:, S:])


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
