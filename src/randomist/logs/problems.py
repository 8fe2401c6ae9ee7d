"""Bad rows: what is wrong, how often, and where."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from randomist._types import Array, Indices
from randomist.logs import source, sums
from randomist.logs.rows import LoggedRows

SHOWN = 8  # row numbers that a problem keeps
FALSE_ALARM = 0.01  # how often rows that are bad by pure chance are said to differ by payoff, at most


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with some rows; rows are counted from 0."""

    reason: str
    count: int
    rows: tuple[int, ...]  # the first few

    def __str__(self) -> str:
        more = f" and {self.count - len(self.rows)} more" if self.count > len(self.rows) else ""
        word = "row" if self.count == 1 else "rows"
        return f"{self.reason} in {self.count} {word} ({', '.join(map(str, self.rows))}{more})"

    def to_dict(self) -> dict[str, Any]:
        return {"reason": self.reason, "count": self.count, "rows": list(self.rows)}


class Problems:
    """Collects what `flag_rows` finds, chunk by chunk."""

    def __init__(self, payoff_range: tuple[float, float], likelihoods: Sequence[str]) -> None:
        self._range = payoff_range
        self._outside = (math.inf, -math.inf)  # the least and the most payoff that is finite
        self._left, self._all = Payoffs(), Payoffs()
        self._reasons = {
            sums.PAYOFF: "payoff is not finite",
            sums.RANGE: f"payoff is outside payoff_range {payoff_range}",
            sums.LOGGER: "logger is missing or has no likelihood column",
            sums.IMPOSSIBLE: "log-likelihood is -inf under the policy that logged it",
            sums.PROPENSITY: "log_propensity is not the logarithm of a number in (0, 1]",
            sums.ABOVE_ONE: "a log-likelihood is above 0 in a log of propensities",
            sums.ID: "id is missing",
            sums.REPEATED: "id repeats that of an earlier row",
        }
        self._likelihoods = likelihoods
        self._counts: dict[str, int] = {}
        self._first: dict[str, list[int]] = {}
        self.rows = 0  # rows with at least one problem

    def add(self, start: int, flags: Indices, payoffs: Array, log_likelihoods: Array) -> None:
        """What is wrong with the rows of a chunk that begins at row `start`."""
        low, high = self._range
        with np.errstate(invalid="ignore"):
            share = (payoffs - low) / (high - low)
        known = flags & (sums.PAYOFF | sums.RANGE | sums.REPEATED) == 0  # a copy that is left out takes nothing away
        bad = np.flatnonzero(flags)
        self._all.add(share[known] if len(bad) else share)
        if not len(bad):
            return
        self._left.add(share[bad][known[bad]])
        outside = payoffs[flags & sums.RANGE != 0]
        if len(outside):
            self._outside = (min(self._outside[0], outside.min()), max(self._outside[1], outside.max()))
        self.rows += len(bad)
        for bit, reason in self._reasons.items():
            self._note(reason, start + np.flatnonzero(flags & bit))
        wrong = np.flatnonzero(flags & sums.LIKELIHOOD)
        if len(wrong):
            values = log_likelihoods[wrong]
            for name, is_wrong in zip(self._likelihoods, (np.isnan(values) | (values == np.inf)).T, strict=True):
                self._note(f"log_likelihood:{name} is not a number, or +inf", start + wrong[is_wrong])

    def _note(self, reason: str, rows: Indices) -> None:
        if len(rows):
            self._counts[reason] = self._counts.get(reason, 0) + len(rows)
            first = self._first.setdefault(reason, [])
            first += rows[: SHOWN - len(first)].tolist()

    def all(self) -> tuple[Problem, ...]:
        return tuple(Problem(reason, count, tuple(self._first[reason])) for reason, count in self._counts.items())

    def message(self, rows: int) -> str:
        words = "; ".join(str(problem) for problem in self.all())
        return f"{self.rows} of {rows} rows are bad (counted from 0): {words}; {self._remedy()}"

    def selected(self) -> str | None:
        """Why rows must not be left out: their payoffs are unlike the others'. None if nothing says so."""
        if self._outside[0] < math.inf:
            return (
                f"leaving rows out by their payoff would bias what is left; {self._remedy()}; or leave them out all "
                "the same with force=True (--force)"
            )
        if self._left.unlike(self._all):
            low, span = self._range[0], self._range[1] - self._range[0]
            left, mean = (low + span * payoffs.mean for payoffs in (self._left, self._all))
            return (
                f"the {self._left.rows} bad rows whose payoff is known earned {left:.4g} on average, all rows "
                f"{mean:.4g}: what is left would be biased; correct them, or leave them out all the same with "
                "force=True (--force)"
            )
        return None

    def _remedy(self) -> str:
        if self._outside[0] < math.inf:
            low, high = min(self._range[0], self._outside[0]), max(self._range[1], self._outside[1])
            return (
                f"payoffs go from {low:g} to {high:g}: say what they can be, with payoff_range=({low:g}, {high:g}) "
                f"(--payoff-range {low:g} {high:g}) or wider"
            )
        return "correct them, or leave them out with skip_bad_rows=True (--skip-bad-rows)"


@dataclass(frozen=True, eq=False)
class Ids:
    """The ids of some rows, if they are whole numbers that increase: then none repeats."""

    first: int
    last: int

    @classmethod
    def of(cls, ids: pl.Series) -> Ids | None:
        if not ids.dtype.is_integer() or ids.null_count() or not len(ids):
            return None
        numbers = ids.to_numpy()
        return cls(int(numbers[0]), int(numbers[-1])) if (numbers[1:] > numbers[:-1]).all() else None


class Increasing:
    """Whether ids increase from row to row, over all rows; a log without ids has nothing that repeats."""

    def __init__(self) -> None:
        self.increasing, self._last = True, -math.inf

    def add(self, ids: Ids | None, there: bool = True) -> None:
        if there:
            self.increasing = self.increasing and ids is not None and ids.first > self._last
            self._last = ids.last if ids is not None else math.inf


@dataclass(frozen=True, eq=False)
class Seen:
    """What a look at some rows found."""

    chunk: LoggedRows
    flags: Indices  # what is wrong with each row, as bits
    counts: Indices  # rows that are used, by who acted
    ids: Ids | None  # None where they do not increase


class Payoffs:
    """Mean and variance of payoffs in [0, 1]."""

    def __init__(self) -> None:
        self.rows, self._sum, self._squares = 0, 0.0, 0.0

    def add(self, payoffs: Array) -> None:
        self.rows += len(payoffs)
        self._sum += float(payoffs.sum())
        self._squares += float((payoffs * payoffs).sum())

    @property
    def mean(self) -> float:
        return self._sum / self.rows

    def unlike(self, population: Payoffs) -> bool:
        """Whether the mean is too far from the population's for a subset drawn without looking.

        Bernstein's inequality at `FALSE_ALARM`, which holds for draws without replacement as well (Hoeffding 1963,
        "Probability inequalities for sums of bounded random variables", Theorem 4): |difference| >= t has a
        probability of at most 2 exp(-m t² / (2 (σ² + t/3))).
        """
        if not self.rows:
            return False
        gap = abs(self.mean - population.mean)
        variance = max(population._squares / population.rows - population.mean**2, 0.0)
        return self.rows * gap**2 > 2.0 * math.log(2.0 / FALSE_ALARM) * (variance + gap / 3.0)


def repeated_ids(scan: source.Scan) -> Indices:
    """Rows whose id an earlier row has, in order: exact, with eight bytes per row in memory."""
    read = scan.select(source.ID).chunks(source.SLICE_ROWS)
    parts = [frame[source.ID].drop_nulls().hash(0).to_numpy() for frame in read]
    if not parts:
        return np.empty(0, np.int64)
    hashes = np.concatenate(parts)
    del parts
    hashes.sort()
    twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    del hashes
    if not len(twice):
        return np.empty(0, np.int64)
    suspects, start, values = [], 0, pl.Series(twice)
    for frame in scan.select(source.ID).chunks(source.SLICE_ROWS):
        numbered = frame.with_row_index("row", offset=start)
        suspects.append(
            numbered.filter(pl.col(source.ID).is_not_null() & pl.col(source.ID).hash(0).is_in(values.implode()))
        )
        start += frame.height
    frame = pl.concat(suspects)  # a hash may collide: compare the ids themselves
    rows = frame.filter(~pl.col(source.ID).is_first_distinct())["row"]
    return rows.to_numpy().astype(np.int64)
