"""Evaluations that may be looked at while rows come: confidence sequences, and sums that are saved for tomorrow.

Weights divide by the policy that acted, because balanced ones depend on who will act. Intervals hold at every row at
once, for all candidates, with probability `level`, if what a candidate is worth does not change (see
`importance.intervals.running`). Policies may be chosen by looking at payoffs.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from randomist import _checks
from randomist._types import Array, Indices
from randomist.errors import LogError, StateError
from randomist.importance.intervals import Running
from randomist.logs.log import Log
from randomist.logs.report import Evaluation
from randomist.logs.rows import LogArrays
from randomist.logs.sums import Moments, weights

_VERSION = 1
_UNCUT = 1e300  # no estimate with a threshold is asked for
_FIRST, _RATIO = 64, 2**0.25  # where intervals are noted: row 64, and then 19% further each time


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
        self.rows = 0
        self.sources: list[str] = []  # names of the logs so far
        self._gain, self._loss = [Running() for _ in self.candidates], [Running() for _ in self.candidates]
        self._moments = [Moments(_UNCUT) for _ in self.candidates]
        self._noted: list[tuple[int, Array, Array]] = []
        self._next = _FIRST

    def add(self, log: Log, name: str | None = None) -> None:
        """The rows of one more log, after all before; `sources` keeps its name."""
        if log.candidates != self.candidates or log.payoff_range != self.payoff_range:
            raise LogError(
                f"a log of {log.candidates} with payoffs in {log.payoff_range} cannot be added to the sums of "
                f"{self.candidates} with payoffs in {self.payoff_range}; give it the same candidates and payoff_range"
            )
        for batch in log.batches():
            begin = 0
            while begin < len(batch):
                end = min(len(batch), begin + self._next - self.rows)
                self._add(batch, slice(begin, end))
                begin = end
                if self.rows == self._next:
                    self._noted.append((self.rows, *self.interval()))
                    self._next = math.ceil(self._next * _RATIO)
        self.sources += [name] if name is not None else []

    def _add(self, batch: LogArrays, part: slice) -> None:
        payoffs = batch.payoffs[part]
        for k in range(len(self.candidates)):
            log_weight, weight = weights(batch.log_likelihoods[part, k], batch.log_own[part])
            self._moments[k].add(log_weight, payoffs)
            self._gain[k].add(weight * payoffs)
            self._loss[k].add(weight * (1.0 - payoffs))
        self.rows += len(payoffs)

    def interval(self) -> tuple[Array, Array]:
        """Low and high of every candidate, now, in the units of the payoffs.  (K,), (K,)"""
        side = (1.0 - self.level) / (2 * len(self.candidates))
        low = np.array([bets.lower_bound(side) for bets in self._gain])
        high = 1.0 - np.array([bets.lower_bound(side) for bets in self._loss])
        low, high = np.where(low > high, 0.0, low), np.where(low > high, 1.0, high)  # nothing is known
        start, span = self.payoff_range[0], self.payoff_range[1] - self.payoff_range[0]
        return start + span * low, start + span * high

    def estimate(self) -> Array:
        """Σ ω y / Σ ω, in the units of the payoffs; NaN where every weight is 0.  (K,)"""
        sums = [moments.relative_sums() for moments in self._moments]
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
        arrays = {
            "gain": np.array([bets.state() for bets in self._gain]),
            "loss": np.array([bets.state() for bets in self._loss]),
            "moments": np.array([moments.state() for moments in self._moments]),
            "noted": np.array([[rows, *low, *high] for rows, low, high in self._noted]),
        }
        about: dict[str, Any] = {
            "version": _VERSION,
            "candidates": list(self.candidates),
            "payoff_range": list(self.payoff_range),
        }
        about |= {"level": self.level, "rows": self.rows, "next": self._next, "sources": self.sources}
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
        found.rows, found._next, found.sources = about["rows"], about["next"], list(about["sources"])
        found._gain = [Running.of(part) for part in state["gain"]]
        found._loss = [Running.of(part) for part in state["loss"]]
        found._moments = [Moments.of(part) for part in state["moments"]]
        K = len(found.candidates)
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
        try:
            with np.load(path, allow_pickle=False) as file:
                state: dict[str, Any] = {name: file[name] for name in ("gain", "loss", "moments", "noted")}
                state["about"] = json.loads(str(file["about"]))
        except (ValueError, KeyError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise StateError(f"{path} does not hold saved sums: {error}") from error
        return cls.of(state)


def evaluate_anytime(log: Log, plain: Evaluation) -> Evaluation:
    """An evaluation of the rows so far whose intervals, and the verdict from them, hold at every row."""
    running = RunningEvaluation(log.candidates, log.payoff_range, plain.level)
    running.add(log)
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
