"""What callbacks that write a run somewhere have in common: the figures of each round, and that they never break it."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from randomist.errors import ParameterError, TrackingWarning
from randomist.learners.base import Learner
from randomist.simulation import Outcome, Run


class Round(NamedTuple):
    """The figures of one round; the first three are None where it failed."""

    number: int  # 1, 2, 3 and so on; failed ones count
    payoff: float | None
    average_payoff: float | None  # of all rounds so far that paid
    best_so_far: float | None  # the largest payoff, of costs the smallest
    failures: int  # so far


class Tracker(ABC):
    """A callback for `rd.optimize`, for one run after the other.

    What cannot be opened is an error before the first round, when nothing is lost yet. After that an error of the
    tracker is a `TrackingWarning`, and the run goes on without it.
    """

    _learner: Learner | None = None  # of the run that is followed
    _best: float | None

    @abstractmethod
    def _open(self, learner: Learner, run: Run) -> None:
        """Begin to write about a run that has no rounds yet."""

    @abstractmethod
    def _write(self, rounds: list[Round]) -> None:
        """Write the figures of rounds."""

    @abstractmethod
    def _close(self, run: Run, error: BaseException | None) -> None:
        """Write what came of the run, and close what was opened."""

    def on_begin(self, learner: Learner, run: Run) -> None:
        self._open(learner, run)
        self._learner, self._broken = learner, False
        self._sign = 1 if run.direction == "maximize" else -1
        self._total, self._told, self._best, self._failures = 0.0, 0, None, 0

    def __call__(self, outcome: Outcome) -> None:
        if self._learner is None:
            raise ParameterError(
                f"{type(self).__name__} follows a run from its beginning; give it to rd.optimize(callbacks=[...])"
            )
        rounds = [*self._earlier(outcome), self._round(outcome.round, outcome.payoff)]
        self._safely(lambda: self._write(rounds))

    def on_end(self, run: Run, error: BaseException | None) -> None:
        if self._learner is not None:
            self._learner = None
            self._safely(lambda: self._close(run, error), again=True)

    def _earlier(self, outcome: Outcome) -> Iterator[Round]:
        """Rounds that a saved run had before it went on: these were not played again."""
        assert self._learner is not None
        if self._told or self._failures or outcome.round == 1:
            return
        paid, failed = outcome.payoff is not None, outcome.payoff is None
        payoffs = (self._sign * self._learner.record.payoffs[: self._learner.told - paid]).tolist()
        self._failures = len(self._learner.failures) - failed
        for number, payoff in enumerate(payoffs, outcome.round - len(payoffs)):
            yield self._round(number, payoff)

    def _round(self, number: int, payoff: float | None) -> Round:
        if payoff is None:
            self._failures += 1
            return Round(number, None, None, None, self._failures)
        self._total += payoff
        self._told += 1
        better = max if self._sign > 0 else min
        self._best = payoff if self._best is None else better(self._best, payoff)
        return Round(number, payoff, self._total / self._told, self._best, self._failures)

    def _safely(self, write: Callable[[], None], again: bool = False) -> None:
        """Write, unless that went wrong before; `again` tries it all the same, without another warning."""
        if self._broken and not again:
            return
        try:
            write()
        except Exception as error:
            warned, self._broken = self._broken, True
            if not warned:
                what = f"{type(self).__name__} could not write ({type(error).__name__}: {error})"
                warnings.warn(f"{what}; the run goes on without it", TrackingWarning, stacklevel=2)


def settings_of(learner: Learner) -> dict[str, Any]:
    """The settings of a learner, without those that are left at None."""
    found = {entry.name: getattr(learner, entry.name) for entry in fields(learner) if entry.name != "space"}
    return {name: value for name, value in found.items() if value is not None}


def described(learner: Learner, run: Run) -> dict[str, str]:
    """What a run is, before its first round: names and texts."""
    space = {"space": repr(learner.space)} if run.space is None else run.space.describe()
    return {
        "task": run.task,
        "learner": run.learner,
        "seed": str(run.seed),
        "direction": run.direction,
        **{f"setting.{name}": str(value) for name, value in settings_of(learner).items() if name != "seed"},
        **{name if run.space is None else f"parameter.{name}": text for name, text in space.items()},
    }


def recommended(run: Run) -> dict[str, Any]:
    """What a run recommends, by name."""
    if run.best is None:
        return {}
    return (
        {f"best.{name}": value for name, value in run.best.items()}
        if isinstance(run.best, dict)
        else {"best": run.best}
    )
