"""All sums of an evaluation in one pass over some rows, compiled, without Python's lock.

Rows are summed in tiles of fixed row numbers; what a tile leaves is a table of `logs.totals`.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Flags, Indices
from randomist.importance.growth import grow
from randomist.logs.source import CUTS
from randomist.logs.totals import (
    APART,
    CROSS,
    CUT,
    CUT_GAIN,
    GAIN,
    HEAVY,
    LARGEST,
    MOST,
    ROBUST,
    SHIFT,
    SLICES,
    SQUARED,
    SQUARED_GAIN,
    TIME,
    WEIGHT,
    Plan,
)  # fmt: skip

TILE = 2**13  # rows that are summed at a time: what is needed of them stays in the processor's cache
_FAR = 300.0  # logarithms of weights beyond this are summed relative to another shift
_MOST = 1e100  # so that squares are finite
_REORDER = {"reassoc", "nnan", "nsz"}  # sums of four rows side by side: nothing is NaN there


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
    edges, laid = np.empty((tiles, 4)), _laid(plan)
    for tile in range(tiles):
        part = slice(tile * TILE, (tile + 1) * TILE)
        log_weight = likelihoods[part].T - log_density[part]  # (K, n)
        weight = np.exp(np.minimum(log_weight, 700.0))  # by NumPy, which is several times as fast as one by one
        ratio = (
            np.exp(np.minimum(log_density[part] - log_own[part], 700.0)) if balanced else np.ones(len(log_own[part]))
        )
        _add_tile(
            payoffs[part], log_weight, weight, ratio, loggers[part], unusual[part], expected[part], balanced,
            first + tile * TILE, rows, writeable(plan.thresholds), plan.factor, *laid, tables[tile], neighbours[tile],
            edges[tile],
        )  # fmt: skip
    return tables, neighbours, edges


def _laid(plan: Plan) -> tuple[Array, float, Array, Array, Array, bool]:
    """The bets of a plan, as compiled functions take them."""
    bets = writeable(plan.variables), writeable(plan.stakes), writeable(plan.caps), plan.powers
    return writeable(plan.heavy), plan.heavy_cap, *bets


def writeable(array: Array) -> Array:
    """What came from another process may be read-only, for which the kernel would be compiled once more."""
    return array if array.flags.writeable else array.copy()


@compiled(nogil=True)
def _add_tile(
    y: Array,
    log_weights: Array,
    weights: Array,
    ratio: Array,
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
    """Everything about one tile; `ratio` is the density that weights divide by, divided by that of who acted."""
    K, n = weights.shape
    own, side, control = np.empty(n), np.empty((2, n)), np.empty(n)
    work = np.empty((3, max(n, stakes.shape[3], len(heavy))))
    _add_neighbours(loggers, y, n, neighbours, edges)
    for k in range(K):
        table, log_weight, weight = tables[k], log_weights[k], weights[k]
        far = 0
        for i in range(n):
            own[i] = weight[i] * ratio[i]
            far += (log_weight[i] > _FAR) | (ratio[i] > 1e120)
        if far and balanced:
            for i in range(n):
                own[i] = math.exp(min(log_weight[i] + math.log(ratio[i]), 700.0))
        _add_moments(log_weight, weight, y, n, thresholds[k], table)
        if factor != 1.0:
            for i in range(n):
                weight[i] /= factor
                own[i] /= factor
        for i in range(n):
            side[0, i] = weight[i] * y[i]
            side[1, i] = weight[i] * (1.0 - y[i])
            control[i] = 1.0 if unusual[i] else weight[i]
        if balanced:
            _add_apart(weight, own, y, n, table)
        _add_slices(own, y, n, first, rows, table)
        if expected.shape[1]:
            _add_robust(weight, y, n, k, K, factor, expected, table)
        _add_bets(
            weight, side, control, n, k, heavy, heavy_cap, variables, stakes, caps, powers, unusual, expected, work,
            table,
        )  # fmt: skip


def add_units(gain: Array, loss: Array, weight: Array, plan: Plan) -> Array:
    """Tables of the tiles of units that are not rows: the bets on them alone.  (K, n) -> (T, K, width)"""
    tables = np.zeros((-(-gain.shape[1] // TILE), len(gain), plan.width))
    _add_units(
        gain, loss, weight, *_laid(plan), tables,
    )  # fmt: skip
    return tables


@compiled(nogil=True)
def _add_units(
    gain: Array,
    loss: Array,
    weight: Array,
    heavy: Array,
    heavy_cap: float,
    variables: Array,
    stakes: Array,
    caps: Array,
    powers: bool,
    tables: Array,
) -> None:
    K, units = gain.shape
    side, work = np.empty((2, TILE)), np.empty((3, max(TILE, stakes.shape[3], len(heavy))))
    for tile in range(len(tables)):
        begin = tile * TILE
        n = min(TILE, units - begin)
        unusual, expected = np.zeros(n, np.bool_), np.empty((n, 0))
        for k in range(K):
            side[0, :n], side[1, :n] = gain[k, begin : begin + n], loss[k, begin : begin + n]
            of_tile = weight[k, begin : begin + n]
            _add_bets(
                of_tile, side, of_tile, n, k, heavy, heavy_cap, variables, stakes, caps, powers, unusual, expected,
                work, tables[tile, k],
            )  # fmt: skip


@compiled(nogil=True)
def _add_bets(
    weight: Array,
    side: Array,
    control: Array,
    n: int,
    k: int,
    heavy: Array,
    heavy_cap: float,
    variables: Array,
    stakes: Array,
    caps: Array,
    powers: bool,
    unusual: Flags,
    expected: Array,
    work: Array,
    table: Array,
) -> None:
    """What bets on candidate k's weight, gain and loss earn; `work` is room for three columns."""
    K, F = variables.shape
    S, H = stakes.shape[3], len(heavy)
    _bet(weight, n, heavy, heavy_cap, work, table[HEAVY : HEAVY + H])
    for f in range(F):
        c = variables[k, f]
        if math.isnan(c):
            continue
        for s in range(2):
            values = side[s]
            if c > 0.0:
                values = work[0]
                for i in range(n):
                    values[i] = side[s, i] - c * control[i]
            elif c < -1.0:
                values = work[0]
                place = 2 * K + 2 + 2 * (k * CUTS + int(-c) - 2) + s
                for i in range(n):
                    values[i] = side[s, i] + expected[i, place]
            elif c < 0.0:
                values = work[0]
                for i in range(n):
                    helped = side[0, i] - weight[i] * expected[i, 0] + expected[i, 1 + k]
                    values[i] = helped if s == 0 else 1.0 - helped
                    if unusual[i]:  # nothing bounds it from below
                        values[i] = side[s, i]
            place = HEAVY + H + (s * F + f) * (S + 3)
            if not math.isnan(stakes[s, k, f, 0]):
                _bet(values, n, stakes[s, k, f], caps[s, k, f], work, table[place : place + S])
            if powers:
                add_powers(values, n, table[place + S : place + S + 3])


@compiled(nogil=True)
def _bet(values: Array, n: int, stakes: Array, cap: float, work: Array, table: Array) -> None:
    products, growth = work[1, : len(stakes)], work[2, : len(stakes)]
    growth[:] = 0.0
    grow(values, n, stakes, cap, products, growth)
    table[:] = growth


@compiled(nogil=True, fastmath=_REORDER)
def _add_moments(log_weight: Array, weight: Array, y: Array, n: int, threshold: float, table: Array) -> None:
    """The sums behind every point estimate."""
    largest = -math.inf
    for i in range(n):
        largest = max(largest, log_weight[i])
    table[LARGEST] = largest
    if largest == -math.inf:
        table[SHIFT] = -math.inf
        return
    scaled = weight
    if abs(largest) > _FAR:
        table[SHIFT] = largest
        scaled = np.exp(log_weight - largest)
    a, b, c, d, e, p, q = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        w = scaled[i]
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


@compiled(nogil=True, fastmath=_REORDER)
def _add_apart(weight: Array, own: Array, y: Array, n: int, table: Array) -> None:
    total, squares, most = 0.0, 0.0, 0.0
    for i in range(n):
        d = (min(weight[i], _MOST) - min(own[i], _MOST)) * y[i]
        total += d
        squares += d * d
        most = max(most, d * d)
    table[APART], table[APART + 1], table[APART + 2] = total, squares, most


@compiled(nogil=True, fastmath=_REORDER)
def _add_slices(own: Array, y: Array, n: int, first: int, rows: int, table: Array) -> None:
    """Sums by parts of the log in time; a tile is in few of them."""
    begin, most = 0, 0.0
    for part in range(len(SLICES)):
        end = min(n, -(-SLICES[part] * rows // SLICES[-1]) - first)
        if end <= begin:
            continue
        a, b, c, d, e = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(begin, end):
            w = min(own[i], _MOST)
            gain = w * y[i]
            most = max(most, w)
            a += w
            b += gain
            c += w * w
            d += w * gain
            e += gain * gain
        place = TIME + 6 * part
        table[place : place + 6] += np.array([end - begin, a, b, c, d, e])
        begin = end
    table[MOST] = most


@compiled(nogil=True)
def _add_robust(weight: Array, y: Array, n: int, k: int, K: int, factor: float, expected: Array, table: Array) -> None:
    """ω (y - f) + f̄ with models that were fitted on other rows."""
    total, squares, direct = 0.0, 0.0, 0.0
    for i in range(n):
        mean = expected[i, K + 2 + k]
        x = weight[i] * factor * (y[i] - expected[i, K + 1]) + mean
        total += x
        squares += x * x
        direct += mean
    table[ROBUST], table[ROBUST + 1], table[ROBUST + 2] = total, squares, direct


@compiled(nogil=True)
def add_powers(values: Array, n: int, table: Array) -> None:
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
