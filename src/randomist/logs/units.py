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

import numpy as np
import polars as pl

from randomist._types import Array, Flags
from randomist.errors import LogError
from randomist.logs.log import Log
from randomist.logs.rows import LogArrays
from randomist.logs.sums import weights


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


def of_rows(batch: LogArrays, factor: float = 1.0) -> tuple[Units, Array]:
    """Every row is a unit; and log ω.  (n, K)

    Where propensities may be wrong by a factor, ω is at least what it seems to be, divided by it: that is bet on.
    """
    K, n = batch.log_likelihoods.shape[1], len(batch)
    log_weight, weight = np.empty((K, n)), np.empty((K, n))
    for k in range(K):
        log_weight[k], weight[k] = weights(batch.log_likelihoods[:, k], batch.log_density)
    weight /= factor
    return Units(weight * batch.payoffs, weight * (1.0 - batch.payoffs), weight, batch.unusual), log_weight


class Clusters:
    """Units by cluster, added up while rows come; memory grows with the clusters."""

    def __init__(self, log: Log, column: str) -> None:
        names = pl.concat(list(log.column(column)))
        if names.null_count():
            first = int(names.is_null().arg_max() or 0)
            raise LogError(
                f"column {column!r} is missing in {names.null_count()} rows (the first is {first}); give every row its "
                "cluster, or an own one"
            )
        codes = names.rank("dense").to_numpy().astype(np.int64) - 1
        self._codes, self.count = codes, int(codes.max()) + 1
        self.sizes = np.bincount(codes)
        shape = (len(log.candidates), self.count)
        self._gain, self._loss, self._weight = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._seen = 0

    def add(self, units: Units) -> None:
        """The next rows of the log."""
        codes = self._codes[self._seen : self._seen + units.gain.shape[1]]
        for total, part in ((self._gain, units.gain), (self._loss, units.loss), (self._weight, units.weight)):
            for k in range(len(total)):
                np.add.at(total[k], codes, part[k])
        self._seen += len(codes)

    def units(self) -> Iterator[Units]:
        """All clusters, scaled so that their mean is that of rows."""
        scale = self.count / self._seen
        yield Units(self._gain * scale, self._loss * scale, self._weight * scale, np.zeros(self.count, np.bool_))

    @property
    def largest(self) -> float:
        """How many rows of average size the largest cluster is."""
        return float(self.sizes.max()) * self.count / len(self._codes)
