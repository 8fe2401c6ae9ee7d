"""What bets are laid on: rows, or clusters of rows that are not independent of each other.

A unit has for every candidate its gain ω y, its loss ω (1 - y) and its weight ω, payoffs in [0, 1]. Rows of one cluster
(a user's visits) are added up. With U clusters of n_u rows, n in all, and J the mean value over rows, given the sizes,

    E Π_u (1 + λ X_u) <= Π_u (1 + λ n_u J_u) <= (1 + λ n J / U)^U,    X_u = Σ_{rows of u} ω y,

if clusters are independent, because the logarithm is concave and Σ_u n_u J_u = n J. So X_u U/n is bet on as if it were
a row with mean J, with constant stakes (`importance.intervals.fixed`). What happens inside a cluster does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import polars as pl

from randomist._compiled import compiled
from randomist._types import Array, Flags, Indices
from randomist.errors import LogError
from randomist.logs.engine import Engine
from randomist.logs.kernel import TILE, add_units, writeable
from randomist.logs.log import Log
from randomist.logs.pieces import Piece, Weighing, ends
from randomist.logs.rows import LogArrays
from randomist.logs.sums import weights
from randomist.logs.totals import Plan

_SPAN = 8 * TILE  # clusters that are bet on at a time


@dataclass(frozen=True, eq=False)
class Units:
    """Some units; arrays are (K, n), contiguous by candidate."""

    gain: Array
    loss: Array
    weight: Array
    unusual: Flags  # where ω may exceed its bound, and E[ω | context] = 1 is subtracted in its place  (n,)

    def control(self, k: int) -> Array:
        """What may be subtracted from a gain or a loss: its mean is 1, and it does not exceed the bound.  (n,)"""
        return np.where(self.unusual, 1.0, self.weight[k]) if self.unusual.any() else self.weight[k]


def of_rows(batch: LogArrays, factor: float = 1.0) -> Units:
    """Every row is a unit.

    Where propensities may be wrong by a factor, ω is at least what it seems to be, divided by it: that is bet on.
    """
    weight = weights(batch.log_likelihoods, batch.log_density)
    weight /= factor
    return Units(weight * batch.payoffs, weight * (1.0 - batch.payoffs), weight, batch.unusual)


def units_of(part: Piece | Units, weighing: Weighing, factor: float) -> Units:
    """A piece's rows as units; clusters are."""
    if isinstance(part, Units):
        return Units(writeable(part.gain), writeable(part.loss), writeable(part.weight), part.unusual.copy())
    return of_rows(weighing.read(part), factor)


class Clusters:
    """Units by cluster; memory grows with the clusters.

    Each tile of rows is summed by the clusters that it has, and tiles are added in the order of rows.
    """

    def __init__(self, log: Log, column: str, factor: float, engine: Engine) -> None:
        names = pl.concat(list(log.column(column)))
        if names.null_count():
            first = int(names.is_null().arg_max() or 0)
            raise LogError(
                f"column {column!r} is missing in {names.null_count()} rows (the first is {first}); give every row its "
                "cluster, or an own one"
            )
        codes = names.rank("dense").to_numpy().astype(np.int64) - 1
        self.count, sizes = int(codes.max()) + 1, np.bincount(codes)
        self.largest = float(sizes.max()) * self.count / len(codes)  # how many of average size the largest one is
        self._sums = np.zeros((3, len(log.candidates), self.count))  # gain, loss, weight
        pieces = log.pieces(partial(ends, blocks=False), engine.remote)
        coded = ((piece, codes[piece.start : piece.start + piece.rows]) for piece in pieces)
        for tiles in engine.map(_by_cluster, coded, log.weighing(), factor):
            for found, sums in tiles:
                self._sums[:, :, found] += sums
        self._sums *= self.count / len(codes)  # so that their mean is that of rows

    def units(self) -> Iterator[Units]:
        """All clusters, some at a time."""
        for begin in range(0, self.count, _SPAN):
            gain, loss, weight = np.ascontiguousarray(self._sums[:, :, begin : begin + _SPAN])
            yield Units(gain, loss, weight, np.zeros(gain.shape[1], np.bool_))


def _by_cluster(coded: tuple[Piece, Indices], weighing: Weighing, factor: float) -> list[tuple[Indices, Array]]:
    """The clusters of each tile of a piece, and sums of its gains, losses and weights.  (u,), (3, K, u)"""
    units, tiles = of_rows(weighing.read(coded[0]), factor), []
    for begin in range(0, len(coded[1]), TILE):
        found, place = np.unique(coded[1][begin : begin + TILE], return_inverse=True)
        sums = np.zeros((3, len(units.gain), len(found)))
        for total, values in zip(sums, (units.gain, units.loss, units.weight), strict=True):
            _add_at(place, values[:, begin : begin + TILE], total)
        tiles.append((found, sums))
    return tiles


@compiled(nogil=True)
def _add_at(place: Indices, values: Array, total: Array) -> None:
    for k in range(len(values)):
        for i in range(len(place)):
            total[k, place[i]] += values[k, i]


def bet_on(units: Units, plan: Plan) -> Array:
    """The work: tables of all tiles of some clusters."""
    return add_units(writeable(units.gain), writeable(units.loss), writeable(units.weight), plan)
