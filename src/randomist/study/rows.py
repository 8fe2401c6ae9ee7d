"""Decisions and mediators as text of a row, and back: checked against the space; an error names the row."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from types import NoneType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from randomist._json import frozen
from randomist._types import Indices
from randomist.errors import ShapeError, StudyDataError
from randomist.learners.trial import Trial, purpose_of
from randomist.spaces import Finite, Space
from randomist.study import observed
from randomist.study.records import AskedRow, ChangeRow, ClosedRow, Page, State, StudyTrial, TrialRow

NOTHING = "null"  # the mediator of a trial that the environment has not answered
CLOSED = {("told", float), ("told", int), ("failed", NoneType)}  # the state of a closed trial, the type of its payoff


class Extra(NamedTuple):
    """What a trial was told besides its payoff."""

    feasible: bool | None  # None where that was not said
    payoff: float | None  # of one that was not
    observed: NDArray[Any] | None = None  # what was done, where the environment produces it


def infeasible(payoff: float | None) -> str:
    """What the row of a trial that broke a constraint has as its `extra`."""
    said = {"feasible": False} if payoff is None else {"feasible": False, "payoff": payoff}
    return json.dumps(said, allow_nan=False, separators=(",", ":"))


class Shapes:
    """What the decisions and mediators of a space look like.

    `arrivals` has the trial with which each decision of a finite set came: it grows where decisions are added.
    """

    def __init__(self, study: str, space: Space) -> None:
        self.study, self.space = study, space
        self.arrivals: Indices = np.zeros(space.size if isinstance(space, Finite) else 0, np.int64)
        self.finite = isinstance(space, Finite)
        self.decision_shape: tuple[int, ...] = () if self.finite else space.family.decision_shape
        self.shape, self.whole = space.family.shape, space.family.dtype is not float
        self.drawn = space.family.drawn  # else a mediator is null when it is asked, and comes with the payoff

    def follow(self, arrivals: Indices, rows: Sequence[ChangeRow]) -> None:
        """The decisions that came so far, and those that these changes add."""
        self.arrivals = np.array([*arrivals.tolist(), *(row.asked for row in rows if row.kind == "add")], np.int64)

    # Writing.

    def texts(self, trial: Trial) -> tuple[str, str]:
        """A trial's decision and mediator."""
        decision = json.dumps(int(trial.decision)) if self.finite else _text(trial.decision, self.decision_shape, False)
        if not self.drawn:
            return decision, NOTHING if trial.mediator is None else _text(trial.mediator, (), False)
        return decision, _text(trial.mediator, self.shape, self.whole)

    # Reading.

    def decisions(self, numbers: Sequence[int], texts: Sequence[Any]) -> NDArray[Any]:
        """(n,) indices, or (n, *shape) points."""
        if not set(map(type, numbers)) <= {int}:
            odd = next(number for number in numbers if type(number) is not int)
            raise self.wrong(odd, f"a trial's number is a whole number, got {odd!r:.80}")
        values = self._read(numbers, texts, "decision", self.decision_shape, self.finite)
        inside = self._inside(values, numbers)
        if not inside.all():
            at = int(np.argmin(inside))
            there = np.count_nonzero(self.arrivals <= numbers[at])
            where = f"0..{there - 1}" if self.finite else "inside the box"
            raise self.wrong(numbers[at], f"the decision {texts[at]!r} is not {where}")
        return values

    def mediators(self, numbers: Sequence[int], texts: Sequence[Any]) -> NDArray[Any]:
        """(n, *shape); None for each where none was drawn"""
        if not self.drawn:
            odd = next((i for i, text in enumerate(texts) if text != NOTHING), None)
            if odd is not None:
                raise self.wrong(numbers[odd], f"the mediator must be {NOTHING}, got {texts[odd]!r:.80}")
            return np.full(len(texts), None)
        return self._read(numbers, texts, "mediator", self.shape, self.whole)

    def asked(self, rows: Sequence[AskedRow]) -> list[Trial]:
        """Rows as the trials that were asked."""
        numbers = [row.number for row in rows]
        decisions = self.decisions(numbers, [row.decision for row in rows])
        mediators = self.mediators(numbers, [row.mediator for row in rows])
        columns = zip(numbers, decisions, mediators, strict=True)
        trials = [Trial.of(self.space, i, frozen(x), self._mediator(z)) for i, x, z in columns]
        return [t._replace(purpose=asked_for(row.search)) for t, row in zip(trials, rows, strict=True)]

    def study_trials(self, page: Page) -> list[StudyTrial]:
        """Rows as users read them."""
        numbers = [row.number for row in page.rows]
        decisions = self.decisions(numbers, [row.decision for row in page.rows])
        mediators = self.mediators(numbers, [row.mediator for row in page.rows])
        return [
            self._study_trial(row, page.now, frozen(x), self._mediator(z))
            for row, x, z in zip(page.rows, decisions, mediators, strict=True)
        ]

    def check_closed(self, row: TrialRow | ClosedRow, place: int | None) -> None:
        """Refuse a row that is not the `place`-th closing, or not told or failed as it should be."""
        if row.closing != place:
            raise self.wrong(row.number, f"closing must be {place}, got {row.closing!r}")
        if (row.state, type(row.payoff)) not in CLOSED or (row.payoff is not None and not math.isfinite(row.payoff)):
            raise self.wrong(
                row.number, f"a closed trial is told a finite payoff, or failed; got {row.state!r} and {row.payoff!r}"
            )
        self.extra(row.number, row.state, row.extra)

    def check_retracted(self, number: int, state: str, why: Any) -> None:
        """Refuse a mark that says of something else than a closed trial that it was taken back."""
        if why is not None and (not isinstance(why, str) or state == "asked"):
            raise self.wrong(number, f"retracted must be empty, or say why a closed trial was; got {why!r:.80}")

    def extra(self, number: int, state: str, text: Any) -> Extra:
        """What a trial was told besides a payoff, checked: a failed one may have been infeasible."""
        if not self.drawn:
            return self._observed(number, state, text)
        if text is None:
            return Extra(True if state == "told" else None, None)
        try:
            said = json.loads(text)
            good = state == "failed" and said["feasible"] is False and said.keys() <= {"feasible", "payoff"}
            payoff = said.get("payoff")
            if good and (payoff is None or (type(payoff) in (int, float) and math.isfinite(payoff))):
                return Extra(False, None if payoff is None else float(payoff))
        except (*_UNREADABLE, AttributeError, LookupError):
            pass
        raise self.wrong(
            number, f"extra must be empty, or say of a failed trial that it was not feasible; got {text!r:.80}"
        )

    def _observed(self, number: int, state: str, text: Any) -> Extra:
        """What was done, of a trial that was told."""
        if state != "told" and text is None:
            return Extra(None, None)
        try:
            if state == "told":
                return Extra(True, None, observed.read(self.space.family, text))
        except (*_UNREADABLE, AttributeError, LookupError):
            pass
        raise self.wrong(number, f"extra must say how likely policies were to do what was done; got {text!r:.80}")

    def wrong(self, number: Any, what: str) -> StudyDataError:
        """The error that names a row."""
        return StudyDataError(
            f"trial {number} of study {self.study!r} (a row of randomist_trials) was changed: {what}; repair the row "
            "or restore a backup"
        )

    def wrong_change(self, place: int, what: str) -> StudyDataError:
        """The error that names a change of the set of decisions."""
        return StudyDataError(
            f"change {place} of study {self.study!r} (a row of randomist_changes) was changed: {what}; repair the row "
            "or restore a backup"
        )

    def _study_trial(self, row: TrialRow, now: float, decision: Any, mediator: Any) -> StudyTrial:
        state, extra = self._state(row, now), self.extra(row.number, row.state, row.extra)
        payoff = extra.payoff if row.payoff is None else row.payoff
        named = Trial.of(self.space, row.number, decision, mediator).parameters
        done = None if extra.observed is None else observed.by_name(cast(Finite, self.space), extra.observed)
        return StudyTrial(
            *(row.number, state, decision, mediator, payoff, row.worker),
            row.reason if row.retracted is None else row.retracted,
            *(row.asked_at, row.lease_until, row.closed_at, row.closing),
            *(extra.feasible, named, done, row.closed_by),
        )

    def _mediator(self, value: Any) -> Any:
        return frozen(value) if self.drawn else None

    def _state(self, row: TrialRow, now: float) -> State:
        """What the row and the clock say, checked."""
        times = [row.asked_at, row.lease_until, *([] if row.closed_at is None else [row.closed_at])]
        if not all(isinstance(moment, float | int) and math.isfinite(moment) for moment in times):
            raise self.wrong(row.number, f"its times must be finite numbers, got {times}")
        if row.state != "asked":
            self.check_closed(row, row.closing)
            self.check_retracted(row.number, row.state, row.retracted)
            return cast(State, row.state if row.retracted is None else "retracted")
        if row.closing is not None or row.payoff is not None or row.retracted is not None:
            raise self.wrong(row.number, "an asked trial has no payoff and no closing yet")
        return "stale" if row.lease_until < now else "asked"

    def _inside(self, values: NDArray[Any], numbers: Sequence[int]) -> NDArray[np.bool_]:
        """Which decisions are of the space, as it was when they were asked."""
        if isinstance(self.space, Finite):
            there = (values >= 0) & (values < len(self.arrivals))
            there[there] = self.arrivals[values[there]] <= np.asarray(numbers, np.int64)[there]
            return np.asarray(there)
        return self.space.contains(values) if len(values) else np.ones(0, bool)

    def _read(
        self, numbers: Sequence[int], texts: Sequence[Any], name: str, shape: tuple[int, ...], whole: bool
    ) -> NDArray[Any]:
        try:
            return _parse(texts, shape, whole)
        except _UNREADABLE:
            pass
        for number, text in zip(numbers, texts, strict=True):  # which one is it?
            try:
                _parse([text], shape, whole)
            except _UNREADABLE:
                kind = "a whole number" if whole else "a finite number" if shape == () else f"{shape[0]} finite numbers"
                raise self.wrong(number, f"the {name} must be {kind}, got {str(text)[:80]!r}") from None
        raise StudyDataError(f"the {name}s of study {self.study!r} cannot be read; restore a backup")


_ONE_NUMBER = re.compile(r"[^,\[\]]+").fullmatch
_ONE_LIST = re.compile(r"\s*\[[^\[\]]*\]\s*").fullmatch
_UNREADABLE = (TypeError, ValueError, OverflowError, RecursionError)


def _text(value: Any, shape: tuple[int, ...], whole: bool) -> str:
    array = np.asarray(value, np.int64 if whole else np.float64)
    if array.shape != shape:
        raise ShapeError(f"expected an array of shape {shape}, got {array.shape}")
    return json.dumps(array.tolist(), allow_nan=False, separators=(",", ":"))


def _parse(texts: Sequence[Any], shape: tuple[int, ...], whole: bool) -> NDArray[Any]:
    """All texts at once: one JSON list; raises one of `_UNREADABLE`."""
    if not all(map(_ONE_NUMBER if shape == () else _ONE_LIST, texts)):
        raise ValueError("not one value per text")
    values = json.loads("[" + ",".join(texts) + "]")
    flat: Iterable[Any] = values if shape == () else chain.from_iterable(values)
    if not set(map(type, flat)) <= ({int} if whole else {int, float}):
        raise TypeError("not numbers")
    array = np.array(values, np.int64 if whole else np.float64).reshape(len(values), *shape)
    if not np.isfinite(array).all() or (shape and len(values) and len(values[0]) != shape[0]):
        raise ValueError("not finite, or of another shape")
    return array


def asked_for(text: str | None) -> str | None:
    """What a trial was asked for, by what its ask left of the search; None where that cannot be read."""
    try:
        return purpose_of(None if text is None else json.loads(text))
    except (*_UNREADABLE, AttributeError, LookupError):
        return None  # a search that cannot be read is an error where it is resumed
