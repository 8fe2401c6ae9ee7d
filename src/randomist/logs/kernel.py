"""All sums of an evaluation in one pass over some rows, compiled, without Python's lock.

Rows are summed in tiles of fixed row numbers. What a tile leaves, a table of `width` numbers per candidate, does not
depend on who summed it, and tables are merged in the order of rows: any number of workers gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Flags, Indices
from randomist.importance.growth import grow
from randomist.logs.source import CUTS

TILE = 2**13  # rows that are summed at a time: what is needed of them stays in the processor's cache
SLICES = 16  # of a log, in time

# Entries of a candidate's table. Weights are relative to e^shift; Σω, Σω², Σωy, Σω²y², Σω²y, Σmin(M,ω), Σmin(M,ω)y.
SHIFT, LARGEST, WEIGHT, SQUARED, GAIN, SQUARED_GAIN, CROSS, CUT, CUT_GAIN = range(9)
APART = 9  # Σd, Σd² and the largest d², d = (ω - ω') y with ω' the weight by the policy that acted
ROBUST = 12  # Σx, Σx² and Σf̄ of doubly robust estimates
TIME = 15  # for each slice: rows, Σω', Σω'y, Σω'², Σω'²y, Σω'²y²
HEAVY = TIME + 6 * SLICES  # what the bets on ω have earned, then those on the candidate's value
_FAR = 300.0  # logarithms of weights beyond this are summed relative to another shift
_MOST = 1e100  # so that squares are finite


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
    def width(self) -> int:
        """Entries of a candidate's table: after the others, for each side and variable, growth, ΣX, ΣX² and least X."""
        _, _, F, S = self.stakes.shape
        return int(HEAVY + len(self.heavy) + 2 * F * (S + 3))

    def earned(self, table: Array) -> tuple[Array, Array, Array]:
        """Growth of the bets on ω, growth of the others, and powers of their variables.

        (K, H), (2, K, F, S), (2, K, F, 3)
        """
        _, K, F, S = self.stakes.shape
        begin = HEAVY + len(self.heavy)
        of_sides = table[:, begin:].reshape(K, 2, F, S + 3).transpose(1, 0, 2, 3)
        return table[:, HEAVY:begin], of_sides[..., :S], of_sides[..., S:]


class Total:
    """Tables that were merged, in order."""

    def __init__(self, candidates: int, width: int, policies: int) -> None:
        self.table, self._rest = np.zeros((candidates, width)), np.zeros((candidates, width))
        self.table[:, SHIFT] = self.table[:, LARGEST] = -math.inf
        self.neighbours = np.zeros((policies + 1, 5))  # pairs, Σy, Σy', Σyy', Σy² by logger
        self._last = np.array([-2.0, 0.0])  # logger and payoff of the row before

    @property
    def rows(self) -> int:
        """How many rows were summed."""
        return int(self.table[0, TIME : TIME + 6 * SLICES : 6].sum())

    def merge(self, tables: Array, neighbours: Array, edges: Array, plan: Plan) -> None:
        """The tables of the next tiles.  (T, K, width), (T, policies + 1, 5), (T, 4)"""
        S = plan.stakes.shape[3]
        sides = HEAVY + len(plan.heavy)
        for tile in range(len(tables)):
            _merge(self.table, self._rest, tables[tile].copy(), sides, S)
            logger, payoff = edges[tile, 0], edges[tile, 1]
            if logger == self._last[0]:
                y = self._last[1]
                self.neighbours[int(logger)] += (1.0, y, payoff, y * payoff, y * y)
            self.neighbours += neighbours[tile]
            self._last = edges[tile, 2:].copy()

    def sums(self) -> Array:
        """(K, width)"""
        return np.asarray(self.table + self._rest)

    def clear_bets(self) -> None:
        """Forget what bets have earned: it was taken over, and the next rows are bet on otherwise."""
        self.table[:, HEAVY:], self._rest[:, HEAVY:] = 0.0, 0.0


@compiled
def _merge(total: Array, rest: Array, part: Array, sides: int, stakes: int) -> None:
    """Neumaier's compensated sums; the largest and the least of what is not summed."""
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
        total[k, LARGEST] = max(total[k, LARGEST], part[k, LARGEST])
        total[k, APART + 2] = max(total[k, APART + 2], part[k, APART + 2])
        for entry in range(WEIGHT, total.shape[1]):
            if entry >= sides and (entry - sides) % (stakes + 3) == stakes + 2:
                total[k, entry] = min(total[k, entry], part[k, entry])
            elif entry != APART + 2:
                value, before = part[k, entry], total[k, entry]
                total[k, entry] = before + value
                if abs(before) >= abs(value):
                    rest[k, entry] += (before - total[k, entry]) + value
                else:
                    rest[k, entry] += (value - total[k, entry]) + before


def add_rows(
    payoffs: Array,
    likelihoods: Array,
    log_density: Array,
    log_own: Array,
    loggers: Indices,
    unusual: Flags,
    expected: Array,
    balanced: bool,
    first: int,
    rows: int,
    plan: Plan,
    policies: int,
) -> tuple[Array, Array, Array]:
    """Tables of the tiles of consecutive rows, of which `first` is the number of the first, out of `rows`."""
    tiles, K = -(-len(payoffs) // TILE), likelihoods.shape[1]
    tables, neighbours = np.zeros((tiles, K, plan.width)), np.zeros((tiles, policies + 1, 5))
    edges = np.empty((tiles, 4))
    _add_rows(
        payoffs, likelihoods, log_density, log_own, loggers, unusual, expected, balanced, first, rows,
        _own(plan.thresholds), plan.factor, _own(plan.heavy), plan.heavy_cap, _own(plan.variables), _own(plan.stakes),
        _own(plan.caps), plan.powers, tables, neighbours, edges,
    )  # fmt: skip
    return tables, neighbours, edges


def _own(array: Array) -> Array:
    """What came from another process may be read-only, for which the kernel would be compiled once more."""
    return array if array.flags.writeable else array.copy()


@compiled(nogil=True)
def _add_rows(
    payoffs: Array,
    likelihoods: Array,
    log_density: Array,
    log_own: Array,
    loggers: Indices,
    unusual: Flags,
    expected: Array,
    balanced: bool,
    first: int,
    rows: int,
    thresholds: Array,
    factor: float,
    heavy: Array,
    heavy_cap: float,
    variables: Array,
    stakes: Array,
    caps: Array,
    powers: bool,
    tables: Array,
    neighbours: Array,
    edges: Array,
) -> None:
    K, S, H = likelihoods.shape[1], stakes.shape[3], len(heavy)
    y, log_weight, weight, own = np.empty(TILE), np.empty(TILE), np.empty(TILE), np.empty(TILE)
    side, values, control = np.empty((2, TILE)), np.empty(TILE), np.empty(TILE)
    modelled, ratio = np.empty(TILE), np.ones(TILE)
    products, growth = np.empty(max(S, H)), np.empty(max(S, H))
    for tile in range(len(tables)):
        begin = tile * TILE
        n = min(TILE, len(payoffs) - begin)
        for i in range(n):
            y[i] = payoffs[begin + i]
            ratio[i] = math.exp(log_density[begin + i] - log_own[begin + i]) if balanced else 1.0
        _add_neighbours(loggers[begin : begin + n], y, n, neighbours[tile], edges[tile])
        for k in range(K):
            table = tables[tile, k]
            column = likelihoods[:, k]
            odd = 0
            for i in range(n):
                log_w = column[begin + i] - log_density[begin + i]
                log_weight[i] = log_w
                weight[i] = math.exp(min(log_w, 700.0))
                if abs(log_w) > _FAR or ratio[i] > 1e120:
                    odd += 1
                    own[i] = math.exp(min(column[begin + i] - log_own[begin + i], 700.0)) if balanced else weight[i]
                else:
                    own[i] = weight[i] * ratio[i]
            _add_moments(log_weight, weight, y, n, thresholds[k], odd > 0, table)
            if factor != 1.0:
                for i in range(n):
                    weight[i] /= factor
                    own[i] /= factor
            for i in range(n):
                side[0, i] = weight[i] * y[i]
                side[1, i] = weight[i] * (1.0 - y[i])
                control[i] = 1.0 if unusual[begin + i] else weight[i]
            if balanced:
                _add_apart(weight, own, y, n, table)
            _add_slices(own, y, n, first + begin, rows, table)
            growth[:] = 0.0
            grow(weight, n, heavy, heavy_cap, products[:H], growth[:H])
            for j in range(H):
                table[HEAVY + j] = growth[j]
            if expected.shape[1]:
                _add_robust(weight, y, begin, n, k, K, factor, expected, table)
            for f in range(variables.shape[1]):
                c = variables[k, f]
                if math.isnan(c):
                    continue
                if c == -1.0:
                    for i in range(n):
                        modelled[i] = weight[i] * (y[i] - expected[begin + i, 0]) + expected[begin + i, 1 + k]
                for s in range(2):
                    for i in range(n):
                        if c >= 0.0:
                            values[i] = side[s, i] - c * control[i]
                        elif c < -1.0:
                            values[i] = side[s, i] + expected[begin + i, 2 * K + 2 + 2 * (k * CUTS + int(-c) - 2) + s]
                        elif unusual[begin + i]:  # nothing bounds it from below
                            values[i] = side[s, i]
                        else:
                            values[i] = modelled[i] if s == 0 else 1.0 - modelled[i]
                    place = HEAVY + H + (s * variables.shape[1] + f) * (S + 3)
                    if not math.isnan(stakes[s, k, f, 0]):
                        growth[:] = 0.0
                        grow(values, n, stakes[s, k, f], caps[s, k, f], products[:S], growth[:S])
                        for j in range(S):
                            table[place + j] = growth[j]
                    if powers:
                        _add_powers(values, n, table[place + S : place + S + 3])


@compiled(nogil=True)
def _add_moments(log_weight: Array, weight: Array, y: Array, n: int, threshold: float, far: bool, table: Array) -> None:
    """The sums behind every point estimate."""
    largest = -math.inf
    for i in range(n):
        largest = max(largest, log_weight[i])
    table[LARGEST] = largest
    if largest == -math.inf:
        table[SHIFT] = -math.inf
        return
    shift = 0.0
    if far and (largest > _FAR or largest < -_FAR):
        shift = largest
    table[SHIFT] = shift
    a, b, c, d, e, p, q = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        w = weight[i] if shift == 0.0 else math.exp(log_weight[i] - shift)
        gain = w * y[i]
        a += w
        b += w * w
        c += gain
        d += gain * gain
        e += w * gain
        cut = min(weight[i], threshold)
        p += cut
        q += cut * y[i]
    table[WEIGHT], table[SQUARED], table[GAIN], table[SQUARED_GAIN], table[CROSS] = a, b, c, d, e
    table[CUT], table[CUT_GAIN] = p, q


@compiled(nogil=True)
def _add_apart(weight: Array, own: Array, y: Array, n: int, table: Array) -> None:
    total, squares, most = 0.0, 0.0, 0.0
    for i in range(n):
        d = (min(weight[i], _MOST) - min(own[i], _MOST)) * y[i]
        total += d
        squares += d * d
        most = max(most, d * d)
    table[APART], table[APART + 1], table[APART + 2] = total, squares, most


@compiled(nogil=True)
def _add_slices(own: Array, y: Array, n: int, first: int, rows: int, table: Array) -> None:
    """Sums by parts of the log in time; a tile is in few of them."""
    begin = 0
    while begin < n:
        part = min((first + begin) * SLICES // rows, SLICES - 1)
        end = n if part == SLICES - 1 else min(n, -(-(part + 1) * rows // SLICES) - first)
        a, b, c, d, e = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(begin, end):
            w = min(own[i], _MOST)
            gain = w * y[i]
            a += w
            b += gain
            c += w * w
            d += w * gain
            e += gain * gain
        place = TIME + 6 * part
        table[place] += end - begin
        table[place + 1] += a
        table[place + 2] += b
        table[place + 3] += c
        table[place + 4] += d
        table[place + 5] += e
        begin = end


@compiled(nogil=True)
def _add_robust(
    weight: Array, y: Array, begin: int, n: int, k: int, K: int, factor: float, expected: Array, table: Array
) -> None:
    """ω (y - f) + f̄ with models that were fitted on other rows."""
    total, squares, direct = 0.0, 0.0, 0.0
    for i in range(n):
        mean = expected[begin + i, K + 2 + k]
        x = weight[i] * factor * (y[i] - expected[begin + i, K + 1]) + mean
        total += x
        squares += x * x
        direct += mean
    table[ROBUST], table[ROBUST + 1], table[ROBUST + 2] = total, squares, direct


@compiled(nogil=True)
def _add_powers(values: Array, n: int, table: Array) -> None:
    """ΣX, ΣX² and the least X, at most 0; cut where squares would overflow."""
    total, squares, least = 0.0, 0.0, 0.0
    for i in range(n):
        x = min(values[i], _MOST)
        total += x
        squares += x * x
        least = min(least, x)
    table[0], table[1], table[2] = total, squares, least


@compiled(nogil=True)
def _add_neighbours(loggers: Indices, y: Array, n: int, table: Array, edges: Array) -> None:
    """Payoffs of neighbouring rows of one logger; the first and the last row are kept for the tiles beside."""
    edges[0], edges[1], edges[2], edges[3] = loggers[0], y[0], loggers[n - 1], y[n - 1]
    for i in range(1, n):
        logger = loggers[i]  # -1, the unnamed logger, is the last of them
        if logger == loggers[i - 1]:
            before = y[i - 1]
            table[logger, 0] += 1.0
            table[logger, 1] += before
            table[logger, 2] += y[i]
            table[logger, 3] += before * y[i]
            table[logger, 4] += before * before
