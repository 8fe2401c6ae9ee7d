"""What the rows of a log say about every candidate: moments, bets, and signs of trouble."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from randomist._types import Array
from randomist.logs import bounds as known
from randomist.logs.log import Log
from randomist.logs.models import DoublyRobust
from randomist.logs.pairs import leads
from randomist.logs.sums import Moments, weights
from randomist.logs.tally import Ends, Heavy
from randomist.logs.trouble import FALSE_ALARM, Disagreement, Neighbours, Slices, Trouble, drifts, warnings
from randomist.logs.units import Clusters, Units, of_rows


class Evidence:
    """The main pass over a log, by rows or by clusters."""

    def __init__(
        self, log: Log, side: float, bounds: Array, thresholds: Array, cluster: str | None, factor: float
    ) -> None:
        K = len(bounds)
        self._log, self._side, self._factor = log, side, factor
        self._sure = bounds if factor == 1.0 else np.full(K, math.inf)
        self._clusters = Clusters(log, cluster) if cluster is not None else None
        self.count = len(log) if self._clusters is None else self._clusters.count
        self.size = 1.0 if self._clusters is None else self._clusters.largest
        self.same_mean = self._clusters is None and (log.weights == "own" or len(log.loggers) == 1)
        self.moments = [Moments(cut) for cut in thresholds.tolist()]
        self._slices, self._neighbours = [Slices(len(log)) for _ in range(K)], Neighbours(len(log.likelihoods))
        self._apart = [Disagreement() for _ in range(K)] if log.weights == "balance" and len(log.loggers) > 1 else []
        self._heavy = [Heavy(self.count, FALSE_ALARM / K) for _ in range(K)]
        self.robust = DoublyRobust(K)
        self._ends = self._begin()
        for batch in log.batches():
            units, log_weight = of_rows(batch, self._factor)
            for k in range(K):
                self.moments[k].add(log_weight[k], batch.payoffs)
                own = (
                    weights(batch.log_likelihoods[:, k], batch.log_own)[1] / factor if self._apart else units.weight[k]
                )
                self._slices[k].add(own, batch.payoffs)
                if self._apart:
                    self._apart[k].add(units.weight[k], own, batch.payoffs)
            self._neighbours.add(batch.loggers, batch.payoffs)
            if batch.expected.shape[1]:
                self.robust.add(batch, units.weight * factor)
            if self._clusters is None:
                self._add(units)
            else:
                self._clusters.add(units)
        if self._clusters is not None:
            for units in self._clusters.units():
                self._add(units)
        if self.same_mean and drifts(self._slices) is not None:
            self._go_on_with_constant_stakes()

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
            Ends(*shared, bound * self.size, self.same_mean, name in self._log.modelled)
            for name, bound in zip(self._log.candidates, self.bounds.tolist(), strict=True)
        ]

    def _add(self, units: Units) -> None:
        for k, (ends, heavy) in enumerate(zip(self._ends, self._heavy, strict=True)):
            ends.add(units.gain[k], units.loss[k], units.control(k), units.with_model(k))
            heavy.add(units.weight[k])

    def _go_on_with_constant_stakes(self) -> None:
        """Payoffs drift: rows do not have the same mean, and stakes must not follow them."""
        self.same_mean = False
        self._ends = self._begin()
        for units in self.units():
            for k, ends in enumerate(self._ends):
                ends.add(units.gain[k], units.loss[k], units.control(k), units.with_model(k))

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
