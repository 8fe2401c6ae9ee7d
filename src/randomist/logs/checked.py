"""The first pass over a log: every row is looked at, bad ones are named, and those that are used are counted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import polars as pl

from randomist._types import Flags, Indices
from randomist.errors import BadRowsError, NoDataError, SelectionError
from randomist.logs import sums
from randomist.logs.clean import clean_counts
from randomist.logs.columns import Columns, Reading
from randomist.logs.engine import Threads, processors
from randomist.logs.problems import Ids, Increasing, Problem, Problems, Seen, repeated_ids
from randomist.logs.rows import LoggedRows
from randomist.logs.source import ID
from randomist.logs.trouble import Hashes

SPAN = 2**16  # rows that are read at a time where nobody asked for fewer
_ROUNDING = 1e-6  # a log-probability computed in float32 may exceed 0 by as much


@dataclass(frozen=True, eq=False)
class Checked:
    """What the rows of a log are."""

    read: int  # all rows
    rows: int  # those that are used
    loggers: dict[str, int]  # rows that are used, by who acted
    problems: tuple[Problem, ...]
    copies: int  # how often every row is there
    side_by_side: float  # how many more rows equal their neighbour than rows further apart


class Check:
    """Says which rows are bad."""

    def __init__(self, columns: Columns, payoff_range: tuple[float, float], jobs: int | None) -> None:
        self._columns, self._range, self._jobs = columns, payoff_range, jobs or processors()
        self._most = math.inf if columns.names_loggers else _ROUNDING  # densities have no bound, propensities do
        self._repeated: Indices = np.empty(0, np.int64)

    def flags(self, chunk: LoggedRows) -> Indices:
        """What is wrong with each row of a chunk, as bits."""
        flags: Indices = sums.flag_rows(
            chunk.payoffs, *self._range, chunk.log_likelihoods, chunk.loggers, chunk.log_propensity, self._most
        )
        flags[chunk.nameless] |= sums.ID
        inside = slice(*np.searchsorted(self._repeated, [chunk.start, chunk.start + len(flags)]))
        flags[self._repeated[inside] - chunk.start] |= sums.REPEATED
        return flags

    def kept(self) -> Flags:
        """Which of all rows are used."""
        return np.concatenate([self.flags(chunk) == 0 for chunk in self._columns.rows()])

    def all(self, skip: bool, force: bool) -> Checked:
        """Look at all rows; raise if some are bad and must not be skipped."""
        names = self._columns.likelihoods
        clean = clean_counts(self._columns, self._range, self._most)
        if clean is not None:
            rows, counts = clean
            return Checked(rows, rows, _by_name(names, counts), (), 1, 0.0)
        found, counts, rows, hashes, increasing = self._looked_at()
        if not increasing:  # as most ids are, and then none repeats
            self._repeated = repeated_ids(self._columns.scan)
            if len(self._repeated):
                found, counts, rows, hashes, _ = self._looked_at()
        problems, used = found.all(), rows - found.rows
        if problems and not skip:
            raise BadRowsError(found.message(rows), problems)
        selected = None if force or not used else found.selected()
        if selected is not None:
            raise SelectionError(f"{problems[0]}: {selected}", problems)
        if not used:
            words = "; ".join(str(problem) for problem in problems)
            raise NoDataError(f"the log has no usable row of {rows}{': ' + words if words else ''}")
        return Checked(rows, used, _by_name(names, counts), problems, *hashes.copies())

    def _looked_at(self) -> tuple[Problems, Indices, int, Hashes, bool]:
        """What is wrong with rows, rows by logger, all rows, hashes where rows have no ids, whether ids increase."""
        likelihoods = self._columns.likelihoods
        found, ids = Problems(self._range, likelihoods), Increasing()
        counts, rows, hashes = np.zeros(len(likelihoods), np.int64), 0, Hashes()
        reading = self._columns.reading(hashed=ID not in self._columns)
        with closing(Threads(self._jobs)) as workers:
            for seen in workers.map(self._look, self._numbered(reading), reading):
                hashes.add(seen.chunk.hashes)
                found.add(seen.chunk.start, seen.flags, seen.chunk.payoffs, seen.chunk.log_likelihoods)
                counts += seen.counts
                rows += len(seen.flags)
                ids.add(seen.ids, ID in self._columns)
        return found, counts, rows, hashes, ids.increasing

    def _numbered(self, reading: Reading) -> Iterator[tuple[int, pl.DataFrame]]:
        start = 0
        for raw in self._columns.frames(reading, min(self._columns.chunk_rows, SPAN)):
            yield start, raw
            start += raw.height

    def _look(self, numbered: tuple[int, pl.DataFrame], reading: Reading) -> Seen:
        chunk = reading.rows(*numbered)
        flags = self.flags(chunk)
        counts = np.zeros(len(self._columns.likelihoods), np.int64)
        if self._columns.names_loggers:
            used = chunk.loggers[flags == 0]
            counts = np.bincount(used, minlength=len(counts))
        return Seen(chunk, flags, counts, Ids.of(numbered[1][ID]) if ID in self._columns else None)


def _by_name(names: tuple[str, ...], counts: Indices) -> dict[str, int]:
    return {name: int(count) for name, count in zip(names, counts, strict=True) if count}
