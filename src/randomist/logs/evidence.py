"""What the rows of a log say about every candidate: moments, bets, and signs of trouble."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from randomist._types import Array
from randomist.logs import bounds as known
from randomist.logs import totals
from randomist.logs.engine import Engine
from randomist.logs.log import Log
from randomist.logs.models import DoublyRobust
from randomist.logs.pairs import Lead, leads
from randomist.logs.pieces import Piece, ends, stages, summed
from randomist.logs.sums import Moments
from randomist.logs.tally import Ends, Heavy
from randomist.logs.totals import Beside, Plan, Total
from randomist.logs.trouble import FALSE_ALARM, Disagreement, Neighbours, Slices, Trouble, drifts, warnings
from randomist.logs.units import Clusters, Units, bet_on


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
        self._weighing = log.weighing()
        self._sure = bounds if factor == 1.0 and log.fitted is None else np.full(K, math.inf)
        self._clusters = Clusters(log, cluster, factor, engine) if cluster is not None else None
        self.count = len(log) if self._clusters is None else self._clusters.count
        self.size = 1.0 if self._clusters is None else self._clusters.largest
        self.same_mean = self._clusters is None and (log.weights == "own" or len(log.loggers) == 1)
        self.same_mean = self.same_mean and log.fitted is None  # a classifier has seen the rows to come
        self._thresholds = thresholds
        self._begin()
        sums, neighbours = self._sum_rows()
        self.moments = [Moments(table) for table in sums]
        self._slices = [Slices(row[totals.TIME : totals.HEAVY].reshape(-1, 6), row[totals.MOST]) for row in sums]
        self._neighbours = Neighbours(neighbours)
        apart = sums[:, totals.APART : totals.APART + 3]
        self._apart = [Disagreement(len(log), row) for row in apart] if self._weighing.balanced else []
        self.robust = DoublyRobust(len(log) if log.modelled else 0, sums[:, totals.ROBUST : totals.ROBUST + 3].T)
        if self._clusters is not None:
            self._sum_clusters(self._clusters)
        if self.same_mean and drifts(self._slices) is not None:  # rows do not have the same mean
            self.same_mean = False
            self._begin()
            self._sum_rows()

    def _sum_rows(self) -> tuple[Array, Array]:
        """Sums of all rows, piece by piece; what bets earn goes to those who laid them.  (K, width), (C + 1, 5)"""
        by_rows = self._clusters is None
        total, beside = None, Beside(len(self._log.likelihoods))
        for pieces in self._stages():
            plan = self._plan(by_rows)
            total = total or Total(len(self._ends), plan)
            before = total.rows
            for tables, neighbours, edges in self._engine.map(summed, pieces, self._weighing, plan, len(self._log)):
                total.merge(tables)
                beside.merge(neighbours, edges)
            if by_rows:
                self._take(plan, total.total(), total.rows - before)
            total.clear_bets(totals.HEAVY)
        assert total is not None  # a log has rows
        return total.total(), beside.sums

    def _sum_clusters(self, clusters: Clusters) -> None:
        plan = self._plan(True)
        total = Total(len(self._ends), plan)
        for tables in self._engine.map(bet_on, clusters.units(), plan):
            total.merge(tables)
        self._take(plan, total.total(), clusters.count)

    def _stages(self) -> Iterator[Iterator[Piece]]:
        """The rows, in pieces that are bet on alike."""
        return stages(self._log.pieces(partial(ends, blocks=self.same_mean), self._engine.remote), self.same_mean)

    @property
    def early(self) -> bool:
        """Whether bounds of the first rows are used: stakes that follow the rows may look at them."""
        return self.same_mean and self._factor == 1.0 and bool(self._log.early_bounds)

    @property
    def bounds(self) -> Array:
        """What is known about the weights.  (K,)"""
        return np.minimum(self._sure, known.early_bounds(self._log)) if self.early else self._sure

    def _begin(self) -> None:
        shared, K = (self.count, self._side), len(self._log.candidates)
        self._heavy = [Heavy(self.count, FALSE_ALARM / K) for _ in range(K)]
        self._ends = [
            Ends(*shared, bound * self.size, self.same_mean, name in self._log.modelled, self._log.cuts.get(name, ()))
            for name, bound in zip(self._log.candidates, self.bounds.tolist(), strict=True)
        ]

    def _plan(self, bets: bool) -> Plan:
        """What the next units are bet on with; `bets` on values, or none."""
        most = max(len(each.variables) for each in self._ends) if bets else 0
        laid = [[side.laid_next() for side in each.sides] for each in self._ends]
        heavy, heavy_cap = self._heavy[0].laid_next()
        K, S = len(laid), laid[0][0][0].shape[1]
        variables = np.full((K, most), np.nan)
        stakes, caps = np.full((2, K, most, S), np.nan), np.full((2, K, most), np.nan)
        if bets:
            for k, each in enumerate(self._ends):
                F = len(each.variables)
                variables[k, :F] = each.variables
                for s in range(2):
                    stakes[s, k, :F], caps[s, k, :F] = laid[k][s]
        return Plan(self._thresholds, self._factor, heavy, heavy_cap, variables, stakes, caps, powers=self.same_mean)

    def _take(self, plan: Plan, table: Array, rows: int) -> None:
        heavy, growth, powers = plan.earned(table)
        for k, each in enumerate(self._ends):
            F = len(each.variables)
            self._heavy[k].take(rows, heavy[k])
            for s, side in enumerate(each.sides):
                side.take(rows, growth[s, k, :F], powers[s, k, :F])

    def leads(self, pairs: list[tuple[int, int]], error: float, distances: Array) -> Array:
        """Lower bounds on differences of ordered pairs, on the [0, 1] scale.  (K, K)"""
        found = np.full((len(self.bounds), len(self.bounds)), -math.inf)
        known_so_far = (self.size, self.same_mean, self.early)
        bounds = self.bounds.tolist()
        laid = {
            (a, b): Lead(self.count, error, (bounds[a], bounds[b]), float(distances[a, b]), *known_so_far)
            for a, b in pairs
        }
        parts: Iterable[Iterable[Piece | Units]] = self._stages()
        if self._clusters is not None:
            parts = [self._clusters.units()]
        leads(parts, laid, self._weighing, self._factor, self.same_mean, self._engine)
        for (a, b), lead in laid.items():
            found[a, b] = lead.low()
        return found

    def warnings(self, coverage: Array) -> list[Trouble]:
        clustered = self._clusters is not None
        return warnings(
            self._log, self._heavy, self._slices, self._neighbours, self._apart, self.moments, coverage, clustered
        )

    def intervals(self) -> tuple[Array, Array]:
        """On the [0, 1] scale.  (K,), (K,)"""
        return np.array([each.low() for each in self._ends]), np.array([each.high() for each in self._ends])
