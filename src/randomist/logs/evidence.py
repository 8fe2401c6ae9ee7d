"""What the rows of a log say about every candidate: moments, bets, and signs of trouble."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from randomist._types import Array
from randomist.importance.intervals.plugin import FIRST
from randomist.logs import bounds as known
from randomist.logs import kernel
from randomist.logs.engine import Engine
from randomist.logs.log import Log
from randomist.logs.models import DoublyRobust
from randomist.logs.pairs import leads
from randomist.logs.pieces import Piece, summed
from randomist.logs.sums import Moments
from randomist.logs.tally import Ends, Heavy
from randomist.logs.trouble import FALSE_ALARM, Disagreement, Neighbours, Slices, Trouble, drifts, warnings
from randomist.logs.units import Clusters, Units, of_rows


class Evidence:
    """The main pass over a log, by rows or by clusters."""

    def __init__(
        self,
        log: Log,
        side: float,
        bounds: Array,
        thresholds: Array,
        cluster: str | None,
        factor: float,
        engine: Engine,
    ) -> None:
        K = len(bounds)
        self._log, self._side, self._factor, self._engine = log, side, factor, engine
        self._sure = bounds if factor == 1.0 and log.fitted is None else np.full(K, math.inf)
        self._clusters = Clusters(log, cluster) if cluster is not None else None
        self.count = len(log) if self._clusters is None else self._clusters.count
        self.size = 1.0 if self._clusters is None else self._clusters.largest
        self.same_mean = self._clusters is None and (log.weights == "own" or len(log.loggers) == 1)
        self.same_mean = self.same_mean and log.fitted is None  # a classifier has seen the rows to come
        self._thresholds = thresholds
        self._heavy = [Heavy(self.count, FALSE_ALARM / K) for _ in range(K)]
        self._ends = self._begin()
        sums, neighbours = self._sum_rows()
        self.moments = [Moments.of_table(*of) for of in zip(sums, thresholds.tolist(), strict=True)]
        self._slices = [Slices(part.reshape(-1, 6)) for part in sums[:, kernel.TIME : kernel.HEAVY]]
        self._neighbours = Neighbours(neighbours)
        balanced = log.weights == "balance" and len(log.loggers) > 1
        self._apart = [Disagreement(len(log), row[kernel.APART : kernel.APART + 3]) for row in sums] if balanced else []
        self.robust = DoublyRobust(len(log) if log.modelled else 0, sums[:, kernel.ROBUST : kernel.ROBUST + 3].T)
        if self._clusters is not None:
            for batch in log.batches():
                self._clusters.add(of_rows(batch, factor)[0])
            for units in self._clusters.units():
                for k, (end, heavy) in enumerate(zip(self._ends, self._heavy, strict=True)):
                    end.add(units.gain[k], units.loss[k], units.control(k))
                    heavy.add(units.weight[k])
        if self.same_mean and drifts(self._slices) is not None:  # rows do not have the same mean
            self.same_mean = False
            self._ends = self._begin()
            self._heavy = [Heavy(self.count, FALSE_ALARM / K) for _ in range(K)]
            self._sum_rows()

    def _sum_rows(self) -> tuple[Array, Array]:
        """Sums of all rows, piece by piece; what bets earn goes to those who laid them.  (K, width), (C + 1, 5)"""
        log, total = self._log, None
        weighing = log.weighing()
        for _, pieces in itertools.groupby(log.pieces(self.same_mean, self._engine.remote), self._stage):
            plan = self._plan()
            if total is None:
                total = kernel.Total(len(self._ends), plan.width, len(log.likelihoods))
            before = total.rows
            for found in self._engine.map(summed, pieces, weighing, plan, len(log)):
                total.merge(*found, plan)
            self._take(plan, total.sums(), total.rows - before)
            total.clear_bets()
        assert total is not None  # a log has rows
        return total.sums(), total.neighbours

    def _stage(self, piece: Piece) -> int:
        """Pieces of one stage are bet on alike."""
        return (piece.start // FIRST).bit_length() if self.same_mean else 0

    @property
    def early(self) -> bool:
        """Whether bounds of the first rows are used: stakes that follow the rows may look at them."""
        return self.same_mean and self._factor == 1.0 and bool(self._log.early_bounds)

    @property
    def bounds(self) -> Array:
        """What is known about the weights.  (K,)"""
        return np.minimum(self._sure, known.early_bounds(self._log)) if self.early else self._sure

    def _begin(self) -> list[Ends]:
        shared = (self.count, self._side)
        return [
            Ends(*shared, bound * self.size, self.same_mean, name in self._log.modelled, self._log.cuts.get(name, ()))
            for name, bound in zip(self._log.candidates, self.bounds.tolist(), strict=True)
        ]

    def _plan(self) -> kernel.Plan:
        """What the next rows are bet on with; clusters are bet on when all are known."""
        by_rows = self._clusters is None
        most = max(len(ends.variables) for ends in self._ends) if by_rows else 0
        laid = [[side.laid_next() for side in ends.sides] for ends in self._ends]
        heavy, heavy_cap = self._heavy[0].laid_next()
        K, S = len(laid), laid[0][0][0].shape[1]
        variables = np.full((K, most), np.nan)
        stakes, caps = np.full((2, K, most, S), np.nan), np.full((2, K, most), np.nan)
        if by_rows:
            for k, ends in enumerate(self._ends):
                F = len(ends.variables)
                variables[k, :F] = ends.variables
                for s in range(2):
                    stakes[s, k, :F], caps[s, k, :F] = laid[k][s]
        return kernel.Plan(
            self._thresholds, self._factor, heavy, heavy_cap, variables, stakes, caps, powers=self.same_mean
        )

    def _take(self, plan: kernel.Plan, table: Array, rows: int) -> None:
        if self._clusters is not None:
            return
        heavy, growth, powers = plan.earned(table)
        for k, ends in enumerate(self._ends):
            F = len(ends.variables)
            self._heavy[k].take(rows, heavy[k])
            for s, side in enumerate(ends.sides):
                side.take(rows, growth[s, k, :F], powers[s, k, :F])

    def leads(self, pairs: list[tuple[int, int]], error: float, distances: Array) -> Array:
        """Lower bounds on differences of ordered pairs, on the [0, 1] scale.  (K, K)"""
        known_so_far = (self.bounds, distances, self.size, self.same_mean, self.early)
        return leads(self.units(), self.count, error, pairs, *known_so_far)

    def units(self) -> Iterator[Units]:
        """What is bet on, once more."""
        if self._clusters is not None:
            yield from self._clusters.units()
        else:
            for batch in self._log.batches():
                yield of_rows(batch, self._factor)[0]

    def warnings(self, coverage: Array) -> list[Trouble]:
        clustered = self._clusters is not None
        return warnings(
            self._log, self._heavy, self._slices, self._neighbours, self._apart, self.moments, coverage, clustered
        )

    def intervals(self) -> tuple[Array, Array]:
        """On the [0, 1] scale.  (K,), (K,)"""
        return np.array([ends.low() for ends in self._ends]), np.array([ends.high() for ends in self._ends])
