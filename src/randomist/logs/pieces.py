"""A log in pieces of fixed row numbers, for workers on this machine or on others.

Pieces end where stakes may change (after 256, 512, 1024, ... rows) and at multiples of a power of two, so that the
tiles of `kernel` are the same rows however many rows a piece has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from randomist._types import Array
from randomist.importance.intervals.plugin import FIRST
from randomist.logs import kernel, sums
from randomist.logs.columns import Reading
from randomist.logs.rows import LogArrays, LoggedRows
from randomist.logs.source import Scan
from randomist.logs.totals import Plan

_BYTES = 2**23  # of likelihoods in a piece, unless it has one tile
_LONGEST = 2**16  # rows
REMOTE = 16  # pieces of this machine that make one for another: it finds its rows by itself


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows that are used, from row `start` on: in memory, or where they can be read."""

    start: int
    rows: int
    frames: list[pl.DataFrame]
    scan: Scan | None = None

    def frame(self) -> pl.DataFrame:
        if self.scan is not None:
            return self.scan.part(self.start, self.rows)
        return pl.concat(self.frames) if len(self.frames) > 1 else self.frames[0]


@dataclass(frozen=True, eq=False)
class Weighing:
    """How rows become weights: whose likelihoods they are divided by."""

    reading: Reading
    candidates: int
    names_loggers: bool
    log_share: Array  # of each policy in the rows; -inf for one that never acted  (C,)
    balanced: bool  # divide by the mixture of several loggers
    payoff_range: tuple[float, float]

    def arrays(self, rows: LoggedRows) -> LogArrays:
        """Rows as estimates need them."""
        low, high = self.payoff_range
        n = len(rows)
        own = rows.log_likelihoods[np.arange(n), rows.loggers] if self.names_loggers else rows.log_propensity
        density = sums.log_mixture(rows.log_likelihoods, self.log_share.copy()) if self.balanced else own
        loggers = rows.loggers if self.names_loggers else np.full(n, -1)
        payoffs = np.clip((rows.payoffs - low) / (high - low), 0.0, 1.0)
        likelihoods = rows.log_likelihoods[:, : self.candidates]
        return LogArrays(payoffs, likelihoods, density, own, loggers, rows.unusual, rows.expected)

    def read(self, piece: Piece) -> LogArrays:
        return self.arrays(self.reading.rows(piece.start, piece.frame()))


def summed(piece: Piece, weighing: Weighing, plan: Plan, rows: int) -> tuple[Array, Array, Array]:
    """The work: tables of all tiles of a piece, out of `rows`."""
    batch = weighing.read(piece)
    policies = len(weighing.log_share)
    return kernel.add_rows(
        batch.payoffs, batch.log_likelihoods, batch.log_density, batch.log_own, batch.loggers, batch.unusual,
        batch.expected, weighing.balanced, piece.start, rows, plan, policies,
    )  # fmt: skip


def longest(columns: int) -> int:
    """How many rows of so many columns a piece may have: some tiles."""
    span = _LONGEST
    while span > kernel.TILE and span * columns * 8 > _BYTES:
        span //= 2
    return span


def ends(span: int, blocks: bool) -> Iterator[int]:
    """Where pieces end that have `span` rows at most; `blocks` asks for ends where stakes may change."""
    end = FIRST if blocks else span
    while True:
        yield end
        end = 2 * end if end < span else end + span


def stages(pieces: Iterable[Piece], blocks: bool) -> Iterator[Iterator[Piece]]:
    """Pieces in groups that are bet on alike: one, unless stakes may change."""
    for _, group in itertools.groupby(pieces, lambda piece: (piece.start // FIRST).bit_length() if blocks else 0):
        yield group


def cut(frames: Iterable[pl.DataFrame], at: Iterator[int]) -> Iterator[Piece]:
    """Frames of rows, in order, as pieces."""
    start, seen, end, kept = 0, 0, next(at), []
    for whole in frames:
        begin = 0
        while begin < whole.height:
            part = whole.slice(begin, end - seen)
            kept.append(part)
            begin, seen = begin + part.height, seen + part.height
            if seen == end:
                yield Piece(start, seen - start, kept)
                start, end, kept = seen, next(at, 0), []
    if kept:
        yield Piece(start, seen - start, kept)


def elsewhere(scan: Scan, rows: int, at: Iterator[int]) -> Iterator[Piece]:
    """Pieces that are read where they are summed."""
    start = 0
    for end in at:
        yield Piece(start, min(end, rows) - start, [], scan)
        if end >= rows:
            return
        start = end
