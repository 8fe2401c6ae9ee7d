"""Evaluations that may be looked at while rows come: confidence sequences, and sums that are saved for tomorrow.

Weights divide by the policy that acted, because balanced ones depend on who will act. Intervals hold at every row at
once, for all candidates, with probability `level`, if what a candidate is worth does not change (see
`importance.intervals.running`). Policies may be chosen by looking at payoffs.

Rows are summed in tiles of fixed numbers, as in `logs.kernel`. One that a log leaves unfinished is kept, row by row,
until the next log comes: it does not matter where one log ends and another begins, nor who sums them.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import zipfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from randomist import _checks
from randomist._files import LARGEST, check_regular
from randomist._types import Array, Indices
from randomist.errors import LogError, StateError
from randomist.importance.intervals import RunningBets
from randomist.logs.engine import find_engine
from randomist.logs.kernel import TILE, add_rows
from randomist.logs.log import Log
from randomist.logs.pieces import Piece, summed
from randomist.logs.report import Evaluation
from randomist.logs.rows import LogArrays
from randomist.logs.sums import Moments
from randomist.logs.totals import Plan, Total

_VERSION = 2
_UNCUT = 1e300  # no estimate with a threshold is asked for
_ENDLESS = 2**50  # rows: sums by slices of time are not asked for
_NOTED = [64]  # where intervals are: after row 64, and then 19% further each time
while _NOTED[-1] < _ENDLESS:
    _NOTED.append(math.ceil(_NOTED[-1] * 2**0.25))


def tile_ends(before: int, rows: int, span: int) -> Iterator[int]:
    """Where pieces of the next log end, counted from its first row, with so many rows before it.

    Tiles of all rows begin anew where intervals are noted. A piece has whole tiles, `span` rows at most, or is a part
    of one: where the log begins inside it, or ends there.
    """
    at, last = before, before + rows
    while at < last:
        following = _NOTED[bisect_right(_NOTED, at)]
        begun = _in_tile(at)
        end = min(following, at + (TILE - begun if begun else span))
        if end > last and not begun:
            end = at + (last - at) // TILE * TILE
        at = min(end, last) if end > at else last
        yield at - before


def ends_tile(row: int) -> bool:
    """Whether a tile ends after so many rows."""
    return _in_tile(row) == 0


def _in_tile(row: int) -> int:
    """How many of the first rows are in a tile that has not ended."""
    noted = bisect_right(_NOTED, row)
    return (row - (_NOTED[noted - 1] if noted else 0)) % TILE


def _plan(candidates: int) -> Plan:
    """Gains and losses as they are, with the same stakes in all rows."""
    bets = RunningBets(0, 0.5)
    stakes, caps = np.tile(bets.stakes, (2, candidates, 1, 1)), np.tile(bets.caps, (2, candidates, 1))
    thresholds, variables = np.full(candidates, _UNCUT), np.zeros((candidates, 1))
    return Plan(thresholds, 1.0, np.empty(0), 1.0, variables, stakes, caps, powers=False)


@dataclass(frozen=True, eq=False)
class Sequence:
    """Intervals at some of the rows, in the units of the payoffs."""

    rows: Indices  # (T,)
    low: Array  # (T, K)
    high: Array


class RunningEvaluation:
    """What is known about some candidates after the rows so far; logs are added as they come.

    Parameters
    ----------
    candidates
        Their names, in the order in which logs will have them.
    payoff_range
        What a payoff can be.
    level
        The probability with which all intervals hold, at every row.
    """

    def __init__(
        self, candidates: tuple[str, ...], payoff_range: tuple[float, float] = (0.0, 1.0), level: float = 0.95
    ) -> None:
        _checks.probability(level, "level")
        self.candidates, self.level = tuple(candidates), level
        self.payoff_range = _checks.payoff_range(payoff_range, bounded=True, why=", since intervals need it")
        self.sources: list[str] = []  # names of the logs so far
        self._plan = _plan(len(self.candidates))
        self._total = Total(len(self.candidates), self._plan)  # of all tiles that have ended
        self._open = np.empty((0, len(self.candidates) + 2))  # the rows after: payoff, log p of who acted, log p
        self._noted: list[tuple[int, Array, Array]] = []

    @property
    def rows(self) -> int:
        """How many there were."""
        return self._total.rows + len(self._open)

    def add(self, log: Log, name: str | None = None, *, engine: str = "threads", jobs: int | None = None) -> None:
        """The rows of one more log, after all before; `sources` keeps its name.

        `engine` and `jobs` are those of `evaluate`.
        """
        if log.candidates != self.candidates or log.payoff_range != self.payoff_range:
            raise LogError(
                f"a log of {log.candidates} with payoffs in {log.payoff_range} cannot be added to the sums of "
                f"{self.candidates} with payoffs in {self.payoff_range}; give it the same candidates and payoff_range"
            )
        weighing, before = dataclasses.replace(log.weighing(), balanced=False), self.rows
        parts: list[Piece] = []  # of tiles that do not begin and end in this log

        def whole(pieces: Iterable[Piece]) -> Iterator[Piece]:
            for piece in pieces:
                if ends_tile(before + piece.start + piece.rows):
                    yield piece
                else:  # the last one
                    parts.append(piece)

        with closing(find_engine(engine, jobs)) as workers:
            pieces = log.pieces(partial(tile_ends, before, len(log)), workers.remote)
            if len(self._open):
                self._extend(weighing.read(next(pieces)))
            for tables, _, _ in workers.map(summed, whole(pieces), weighing, self._plan, _ENDLESS):
                self._merge(tables)
        for piece in parts:
            self._extend(weighing.read(piece))
        self.sources += [name] if name is not None else []

    def _extend(self, batch: LogArrays) -> None:
        """Rows of the tile that is open."""
        more = np.column_stack([batch.payoffs, batch.log_own, batch.log_likelihoods])
        self._open = np.concatenate([self._open, more])
        if ends_tile(self.rows):
            tables, self._open = self._open_tables(), self._open[:0]
            self._merge(tables)

    def _open_tables(self) -> Array:
        n, own = len(self._open), self._open[:, 1].copy()
        nothing = (np.full(n, -1), np.zeros(n, np.bool_), np.empty((n, 0)))
        likelihoods = np.asfortranarray(self._open[:, 2:])
        return add_rows(self._open[:, 0].copy(), likelihoods, own, own, *nothing, False, 0, _ENDLESS, self._plan, 0)[0]

    def _merge(self, tables: Array) -> None:
        self._total.merge(tables)
        if self.rows in _NOTED:
            self._noted.append((self.rows, *self.interval()))

    def _sums(self) -> Array:
        """Of all rows.  (K, width)"""
        total = copy.deepcopy(self._total)
        total.merge(self._open_tables())
        return total.total()

    def interval(self) -> tuple[Array, Array]:
        """Low and high of every candidate, now, in the units of the payoffs.  (K,), (K,)"""
        bets = RunningBets(self.rows, (1.0 - self.level) / (2 * len(self.candidates)))
        gain, loss = self._plan.earned(self._sums())[1]  # (K, 1, S) each
        low, high = bets.lower_bounds(gain[:, 0]), 1.0 - bets.lower_bounds(loss[:, 0])
        low, high = np.where(low > high, 0.0, low), np.where(low > high, 1.0, high)  # nothing is known
        start, span = self.payoff_range[0], self.payoff_range[1] - self.payoff_range[0]
        return start + span * low, start + span * high

    def estimate(self) -> Array:
        """Σ ω y / Σ ω, in the units of the payoffs; NaN where every weight is 0.  (K,)"""
        sums = [Moments(table).relative_sums() for table in self._sums()]
        ratio = np.array([gain / total if total > 0 else math.nan for gain, total in sums])
        return np.asarray(self.payoff_range[0] + (self.payoff_range[1] - self.payoff_range[0]) * ratio)

    def sequence(self) -> Sequence:
        """The intervals so far, and now."""
        noted = [*self._noted, (self.rows, *self.interval())]
        rows, low, high = (np.array(part) for part in zip(*noted, strict=True))
        return Sequence(rows, low, high)

    # What is kept.

    def state(self) -> dict[str, Any]:
        """Plain arrays and numbers."""
        arrays = {"table": self._total.table.copy(), "rest": self._total.rest.copy(), "open": self._open.copy()}
        arrays["noted"] = np.array([[rows, *low, *high] for rows, low, high in self._noted])
        about: dict[str, Any] = {
            "version": _VERSION,
            "candidates": list(self.candidates),
            "payoff_range": list(self.payoff_range),
        }
        about |= {"level": self.level, "rows": self.rows, "sources": self.sources}
        return arrays | {"about": about}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> RunningEvaluation:
        """Go on from a state, to the bit."""
        about = state["about"]
        if about.get("version") != _VERSION:
            raise StateError(
                f"saved sums of version {about.get('version')} cannot be read, only {_VERSION}; start anew"
            )
        found = cls(tuple(about["candidates"]), tuple(about["payoff_range"]), about["level"])
        found.sources, K = list(about["sources"]), len(found.candidates)
        found._total.table[:], found._total.rest[:] = state["table"], state["rest"]
        found._open = np.array(state["open"])
        found._noted = [(int(part[0]), part[1 : K + 1], part[K + 1 :]) for part in state["noted"]]
        return found

    def save(self, path: str | Path) -> None:
        """Write the sums to a file (.npz); a crash leaves the old one."""
        state = self.state()
        about = json.dumps(state.pop("about"))
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez(file, about=np.array(about), **state)
        part.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> RunningEvaluation:
        """Read what `save` wrote."""
        check_regular(path, StateError)
        try:
            with zipfile.ZipFile(path) as packed:
                size = sum(part.file_size for part in packed.infolist())
            if size > LARGEST:
                raise ValueError(f"it unpacks to {size:,} bytes, and at most {LARGEST:,} are expected")
            with np.load(path, allow_pickle=False) as file:
                state: dict[str, Any] = {name: file[name] for name in ("table", "rest", "open", "noted")}
                state["about"] = json.loads(str(file["about"]))
            return cls.of(state)
        except StateError:
            raise
        except Exception as error:  # whatever a damaged archive, array or description makes of itself
            raise StateError(f"{path} does not hold saved sums: {error}; delete it to begin anew") from error


def evaluate_anytime(log: Log, plain: Evaluation, engine: str, jobs: int | None) -> Evaluation:
    """An evaluation of the rows so far whose intervals, and the verdict from them, hold at every row."""
    running = RunningEvaluation(log.candidates, log.payoff_range, plain.level)
    running.add(log, engine=engine, jobs=jobs)
    low, high = running.interval()
    apart = low[:, None] - high[None, :]
    np.fill_diagonal(apart, 0.0)
    leader = int(np.argmax(low))
    return dataclasses.replace(
        plain,
        low=low,
        high=high,
        leader=log.candidates[leader],
        leads=apart[leader],
        at_least=apart,
        contenders=tuple(name for k, name in enumerate(log.candidates) if not (apart[:, k] > 0.0).any()),
        anytime=running.sequence(),
    )
