"""Rows of a log in memory: as they were logged, and as estimates need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from randomist._types import Array, Flags, Indices
from randomist.logs.source import ID, LOGGER, PAYOFF, PROPENSITY, UNUSUAL


@dataclass(frozen=True, eq=False)
class LogArrays:
    """Rows of a log as arrays."""

    payoffs: Array  # in [0, 1], mapped from payoff_range   (n,)
    log_likelihoods: Array  # of every candidate             (n, K)
    log_density: Array  # of what drew the row: the mixture of the loggers, or the policy that acted  (n,)
    log_own: Array  # of the policy that acted  (n,)
    loggers: Indices  # who acted, as an index into `Log.likelihoods`; -1 where only the propensity is known  (n,)
    unusual: Flags  # where weights may exceed the bounds of the first rows  (n,)
    expected: Array  # by a model: see `Columns`  (n, 2K+2), (n, 2K+2 + 2 CUTS K) or (n, 0)

    def __len__(self) -> int:
        return len(self.payoffs)


@dataclass(frozen=True, eq=False)
class LoggedRows:
    """Consecutive rows as they are in the source."""

    start: int  # the number of the first row, counted from 0
    payoffs: Array  # in the log's units  (n,)
    log_likelihoods: Array  # of all that are read, `Log.likelihoods`; column by column in memory  (n, C)
    loggers: Indices  # who acted, as an index into `Log.likelihoods`; empty where the log does not say
    log_propensity: Array  # empty where it is not used
    nameless: Flags  # rows whose id is missing
    hashes: Indices  # of what is in the row; empty where rows have ids
    unusual: Flags
    expected: Array

    @classmethod
    def of(
        cls, start: int, frame: pl.DataFrame, columns: list[str], hashes: Indices, expected: list[str]
    ) -> LoggedRows:
        likelihoods = np.empty((frame.height, len(columns)), order="F")
        for c, name in enumerate(columns):
            likelihoods[:, c] = frame[name].to_numpy()
        return cls(
            start,
            np.array(frame[PAYOFF].to_numpy(), dtype=np.float64),
            likelihoods,
            np.array(frame[LOGGER].to_numpy()) if LOGGER in frame.columns else np.empty(0, np.int64),
            np.array(frame[PROPENSITY].to_numpy()) if PROPENSITY in frame.columns else np.empty(0),
            np.array(frame[ID].to_numpy()) if ID in frame.columns else np.zeros(frame.height, np.bool_),
            hashes,
            np.array(frame[UNUSUAL].to_numpy()) if UNUSUAL in frame.columns else np.zeros(frame.height, np.bool_),
            np.array(frame.select(expected).to_numpy()) if expected else np.empty((frame.height, 0)),
        )

    def __len__(self) -> int:
        return len(self.payoffs)

    def kept(self, mask: Flags) -> LoggedRows:
        """Some of the rows; `start` stays."""
        if mask.all():
            return self
        return LoggedRows(
            self.start,
            self.payoffs[mask],
            np.asfortranarray(self.log_likelihoods[mask]),
            self.loggers[mask] if len(self.loggers) else self.loggers,
            self.log_propensity[mask] if len(self.log_propensity) else self.log_propensity,
            self.nameless[mask],
            self.hashes[mask] if len(self.hashes) else self.hashes,
            self.unusual[mask],
            self.expected[mask],
        )
