"""Rows become a learner: its history in the order of the closings, its pending trials, its search."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from randomist import _json
from randomist._types import Array, Indices
from randomist.errors import RandomistError, StateError, StudyDataError
from randomist.histories.record import Record
from randomist.learners import states as saved_states
from randomist.learners.base import FORMAT, Learner
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.trial import Trial
from randomist.spaces import Finite
from randomist.study import changes
from randomist.study.records import ChangeRow, Checkpoint, ClosedRow, Columns, Counters, Everything
from randomist.study.rows import CLOSED, Shapes, asked_for

KEPT = ("format", "learner", "space", "settings")  # of a learner's state: what a study's row holds
CHECKPOINT = f"1.{FORMAT}"  # the format of checkpoints: 1 changes when a learner's caches do
CHANGED = "decisions"  # and this, where decisions were added or retired before
BEGUN = "begun"  # and this, where it began with known results
EXCLUDED, LOST = "infeasible", "lost"  # of a learner's state: trials that broke a constraint, or failed


def describe(learner: Learner) -> str:
    """A fresh learner as text, with the seed that it uses."""
    state = learner.state()
    state["settings"] = state["settings"] | {"seed": learner.entropy}
    changed = isinstance(learner, FiniteLearner) and (learner.space.added or not learner.active.all())
    begun = BEGUN in state and len(state[BEGUN]["payoffs"])
    kept = (*KEPT, *([CHANGED] if changed else []), *([BEGUN] if begun else []))
    return _json.dumps({name: state[name] for name in kept})


def fresh(study: str, text: Any) -> Learner:
    """The learner that a study began with."""
    try:
        described = _json.loads(text)
        if not isinstance(described, dict) or set(described) - {CHANGED, BEGUN} != set(KEPT):
            raise StateError(f"a learner is described by {', '.join(KEPT)}")
        learner = saved_states.fresh(described)
        if isinstance(learner, FiniteLearner):
            learner.restore_decisions(described.get(CHANGED, {}))
        if BEGUN in described:
            begun: Any = learner
            begun.begin(**described[BEGUN])
        return learner
    except changes.UNREADABLE as error:
        raise StudyDataError(
            f"study {study!r} (a row of randomist_studies) does not describe a learner of this version: {error}"
        ) from error


def is_fresh(learner: Learner, other: Learner) -> bool:
    """Whether the learner knows as little as another one that was made just now."""
    states = [one.state() for one in (learner, other)]
    parts = states[0].keys() - {"settings", "generators"}  # a seed that was not given, and one that was
    return all(_json.dumps(states[0][part]) == _json.dumps(states[1][part]) for part in parts)


class Past(NamedTuple):
    """What happened in a study, read and checked. Trials are in the order of their numbers."""

    decisions: np.typing.NDArray[Any]  # (asked,) or (asked, d)
    mediators: np.typing.NDArray[Any]
    closings: Indices  # (closed,) the numbers of closed trials in their order
    payoffs: Array  # (closed,) NaN where a trial failed
    reasons: list[str]  # (closed,) why it failed
    feasible: np.typing.NDArray[np.bool_]  # (closed,) False where a trial that failed broke a constraint
    observed: Sequence[Any]  # (closed,) what was done, where the environment produces it
    gone: np.typing.NDArray[np.bool_]  # (closed,) True where a trial was taken back
    open: Mapping[int, str | None]  # what asks left of the search, of trials that are not closed
    changes: Sequence[ChangeRow]  # decisions that came and went

    def trials(self, numbers: Indices) -> list[Trial]:
        columns = (self.decisions[numbers], self.mediators[numbers])
        trials = [Trial(*trial) for trial in zip(numbers.tolist(), *map(_entries, columns), strict=True)]
        return [trial._replace(purpose=asked_for(self.open.get(trial.id))) for trial in trials]


def read(shapes: Shapes, found: Everything, began: Learner) -> Past:
    """All rows of a study that began with a learner, checked: an error names the row."""
    counters, columns = found.counters, found.trials
    changes.check(shapes, found.changes, Counters(0, 0, 0, 0, 0), counters)
    if isinstance(began, FiniteLearner):
        shapes.follow(began.arrivals, found.changes)
    if list(columns.number) != list(range(len(columns.number))) or len(columns.number) != counters.asked:
        missing = next((n for n, number in enumerate(columns.number) if number != n), len(columns.number))
        raise shapes.wrong(missing, f"it is missing; {counters.asked} trials were asked")
    decisions = shapes.decisions(columns.number, columns.decision)
    mediators = shapes.mediators(columns.number, columns.mediator)
    closings = _closings(shapes, columns)
    if len(closings) != counters.closed:
        raise StudyDataError(
            f"study {shapes.study!r} counts {counters.closed} closed trials, and has {len(closings)}; restore a backup"
        )
    payoffs = _payoffs(shapes, columns, closings)
    feasible, observed = _extras(shapes, columns, closings)
    reasons = [str(columns.reason[n] or "") for n in closings]
    gone = np.zeros(len(closings), bool)
    if counters.retracted or any(why is not None for why in columns.retracted):
        gone = _retracted(shapes, columns, closings, counters)
        payoffs[gone], feasible[gone] = np.nan, True  # it counts as one that was never answered
        for place in np.flatnonzero(gone).tolist():
            reasons[place] = f"retracted: {columns.retracted[closings[place]]}"
    if np.count_nonzero(~np.isnan(payoffs)) != counters.told:
        raise StudyDataError(f"study {shapes.study!r} counts {counters.told} told trials, its rows say otherwise")
    for row in found.changes:
        if (closings[: row.closed] >= row.asked).any():
            number = int(closings[: row.closed].max())
            raise shapes.wrong_change(
                row.place, f"after {row.asked} asks, trial {number} cannot be among {row.closed} closings"
            )
    rows = decisions, mediators, closings, payoffs, reasons, feasible, observed
    return Past(*rows, gone, found.open, found.changes)


def _closings(shapes: Shapes, columns: Columns) -> Indices:
    """The numbers of the closed trials, in the order in which they were closed."""
    closed = np.array([n for n, state in enumerate(columns.state) if state != "asked"], np.int64)
    places = [columns.closing[n] for n in closed]
    if set(map(type, places)) <= {int}:
        order = np.argsort(places)
        if np.array_equal(np.array(places, np.int64)[order], np.arange(1, len(closed) + 1)):
            return closed[order]
    seen: set[Any] = set()
    for number, place in zip(closed.tolist(), places, strict=True):  # which one is it?
        if not isinstance(place, int) or not 1 <= place <= len(closed) or place in seen:
            raise shapes.wrong(number, f"closing must be in 1..{len(closed)}, each once, got {place!r}")
        seen.add(place)
    raise AssertionError("unreachable: places in 1..n, each once, are a permutation")


def _retracted(shapes: Shapes, columns: Columns, closings: Indices, counters: Counters) -> np.typing.NDArray[np.bool_]:
    """Which of the closed trials were taken back, in their order."""
    marked = [n for n, why in enumerate(columns.retracted) if why is not None]
    for number in marked:
        shapes.check_retracted(number, columns.state[number], columns.retracted[number])
    if len(marked) != counters.retracted:
        raise StudyDataError(
            f"study {shapes.study!r} counts {counters.retracted} retracted trials, and has {len(marked)}; restore a "
            "backup"
        )
    return np.isin(closings, np.array(marked, np.int64))


def _payoffs(shapes: Shapes, columns: Columns, closings: Indices) -> Array:
    """What the closed trials were told, in their order; NaN where one failed."""
    states, values = [columns.state[n] for n in closings], [columns.payoff[n] for n in closings]
    if set(zip(states, map(type, values), strict=True)) <= CLOSED:
        payoffs = np.array(values, np.float64)  # None becomes NaN
        if np.count_nonzero(np.isfinite(payoffs)) == states.count("told"):
            return payoffs
    for place, number in enumerate(closings.tolist(), start=1):  # which one is it?
        state, payoff, reason = columns.state[number], columns.payoff[number], columns.reason[number]
        shapes.check_closed(ClosedRow(number, place, state, payoff, reason, None), place)
    raise AssertionError("unreachable: every row is as it should be")


def _extras(
    shapes: Shapes, columns: Columns, closings: Indices
) -> tuple[np.typing.NDArray[np.bool_], Sequence[Array | None]]:
    """Which of the closed trials broke no constraint, as far as is known, and what was done in each, in their order."""
    if not shapes.drawn:
        found = [shapes.extra(n, columns.state[n], columns.extra[n]).observed for n in closings.tolist()]
        return np.ones(len(closings), bool), found
    said = [n for n, text in enumerate(columns.extra) if text is not None]
    outside = [n for n in said if shapes.extra(n, columns.state[n], columns.extra[n]).feasible is False]
    return ~np.isin(closings, np.array(outside, np.int64)), [None] * len(closings)


def rebuild(shapes: Shapes, description: str, found: Everything) -> Learner:
    """The learner of a study.

    It lives through what happened from one change of its decisions to the next, because what a change does depends on
    what was asked and told by then. A checkpoint, where there is one, saves the work of telling again what it covers;
    the result is the same, bit for bit. One that does not fit (another format, rows that were edited) is left aside.
    """
    learner = fresh(shapes.study, description)
    past = read(shapes, found, learner)
    asked = closed = made = 0
    if found.checkpoint is not None and shapes.drawn:
        restored = _restored(description, found.checkpoint, past, shapes)
        if restored is not None:
            (learner, made), closed = restored, found.checkpoint.closed
    waiting = np.ones(len(past.decisions), bool)
    waiting[past.closings[:closed]] = False
    for row in past.changes[made:]:
        _live(learner, shapes, past, asked + np.flatnonzero(waiting[asked : row.asked]), slice(closed, row.closed))
        with changes.naming(shapes, row):
            changes.make(learner, row.kind, row.data)
        asked, closed = row.asked, row.closed
    _live(learner, shapes, past, asked + np.flatnonzero(waiting[asked:]), slice(closed, None))
    if len(waiting):  # the last one asked leaves its search, told or not
        resume_search(learner, shapes, len(waiting) - 1, found.search)
    return learner


def _live(learner: Learner, shapes: Shapes, past: Past, asks: Indices, closings: slice) -> None:
    """Some trials are asked, and some are closed."""
    for trial in past.trials(asks):
        learner.enter(trial)
    numbers, payoffs, reasons = past.closings[closings], past.payoffs[closings], past.reasons[closings]
    told, feasible, gone = ~np.isnan(payoffs), past.feasible[closings], past.gone[closings]
    if shapes.drawn:
        _tell_all(learner, shapes, numbers[told].tolist(), payoffs[told].tolist())
    else:
        done = past.observed[closings]
        for i in np.flatnonzero(told).tolist():
            tell(learner, shapes, int(numbers[i]), float(payoffs[i]), done[i])
    for i in np.flatnonzero(~told).tolist():
        if feasible[i]:
            learner.fail(int(numbers[i]), reasons[i])
            if gone[i]:  # nothing is known of it, not that it failed
                getattr(learner, LOST, {}).pop(int(numbers[i]), None)
        else:
            exclude(learner, shapes, int(numbers[i]))


def _tell_all(learner: Learner, shapes: Shapes, numbers: list[int], payoffs: list[float]) -> None:
    try:
        learner.tell_all(numbers, payoffs)
    except RandomistError:
        for number, payoff in zip(numbers, payoffs, strict=True):  # which one is it?
            if learner.is_pending(number):
                tell(learner, shapes, number, payoff)
        raise


def tell(learner: Any, shapes: Shapes, number: int, payoff: float, observed: Array | None = None) -> None:
    """A payoff that is in the storage reaches the learner, and what was done; an error names the row."""
    try:
        if observed is None:
            learner.tell(number, payoff)
        elif learner.space.family.steps_known:
            from randomist.policies.trajectories import Observed

            learner.tell_episode(number, Observed(payoff, observed))
        else:
            learner.tell(number, payoff, log_likelihoods=observed)
    except RandomistError as error:
        raise shapes.wrong(number, str(error)) from error


def exclude(learner: Learner, shapes: Shapes, number: int) -> None:
    """The learner hears that a trial broke a constraint; an error names the row."""
    try:
        learner.check_excludes(number)
        learner.tell(number, feasible=False)
    except RandomistError as error:
        raise shapes.wrong(number, str(error)) from error


@contextmanager
def going_on(study: str) -> Iterator[None]:
    """What a learner raises in here, it raises because of settings or a history with which nobody can compute."""
    try:
        yield
    except RandomistError:
        raise
    except (*changes.UNREADABLE, MemoryError) as error:
        raise StudyDataError(
            f"the learner of study {study!r} cannot go on: {type(error).__name__}: {error}; look at its settings (the "
            "row of randomist_studies) and at its payoffs, or restore a backup"
        ) from error


def search_text(search: dict[str, Any] | None) -> str | None:
    """What an ask left of the learner's search, as it is stored."""
    return None if search is None else _json.dumps(search)


def resume_search(learner: Learner, shapes: Shapes, number: int, text: str | None) -> None:
    """The learner's search goes on where a trial's ask left it."""
    if learner.Search is None:
        return
    try:
        learner.resume_search(None if text is None else _json.loads(text))
    except StateError as error:
        raise shapes.wrong(number, f"its search cannot be read: {error}") from error


# Checkpoints.


def checkpoint_of(description: str, learner: Learner, closed: int, made: Sequence[ChangeRow] = ()) -> Checkpoint:
    """What the learner, which a study describes so, has computed so far, after these changes of its decisions."""
    state = learner.state()
    caches = _json.dumps({"caches": state["caches"], "clipped": learner.clipped, "changes": len(made)})
    unsigned = Checkpoint(closed, "", CHECKPOINT, caches)
    return unsigned._replace(digest=_digest(description, unsigned, learner.record, state, made))


def _restored(description: str, checkpoint: Checkpoint, past: Past, shapes: Shapes) -> tuple[Learner, int] | None:
    """The learner as the checkpoint has it, and how many changes that knows; None where it is not of these rows."""
    closed, learner, arrivals = checkpoint.closed, fresh(shapes.study, description), shapes.arrivals
    if checkpoint.version != CHECKPOINT or not isinstance(closed, int) or not 0 < closed <= len(past.closings):
        return None
    numbers, payoffs = past.closings[:closed], past.payoffs[:closed]
    told = ~np.isnan(payoffs)
    at = numbers[told]
    try:
        saved = _json.loads(checkpoint.caches)
        made, rest = past.changes[: saved["changes"]], past.changes[saved["changes"] :]
        for row in made:
            changes.make(learner, row.kind, row.data)
    except changes.UNREADABLE:
        return None
    if any(row.closed > closed for row in made) or any(row.closed < closed for row in rest):
        return None
    state = learner.state()
    if isinstance(learner.space, Finite):  # it has not been asked anything yet: when they came, the rows know
        state["decisions"]["arrived"] = arrivals[learner.space.size - learner.space.added : learner.space.size]
    state["record"] = {
        "decisions": past.decisions[at],
        "mediators": past.mediators[at],
        "payoffs": payoffs[told],
        "ids": at,
    }
    excluded, failed = numbers[~past.feasible[:closed]], ~told & past.feasible[:closed]
    state["failures"] = {
        "ids": numbers[failed],
        "reasons": [past.reasons[i] for i in np.flatnonzero(failed)],
        "decided": numbers[failed],
        "decisions": past.decisions[numbers[failed]],
    }
    if len(excluded) and EXCLUDED not in state:
        return None
    lost = numbers[failed & ~past.gone[:closed]]
    for name, which in ((EXCLUDED, excluded), (LOST, lost)):
        if name in state:
            size = len(which), math.prod(past.mediators.shape[1:])
            state[name] = {"ids": which, "mediators": past.mediators[which].reshape(size)}
    state["next_id"] = rest[0].asked if rest else len(past.decisions)
    try:
        state["caches"], state["clipped"] = saved["caches"], saved["clipped"]
        restored = saved_states.load(state)
    except changes.UNREADABLE:
        return None
    digest = _digest(description, checkpoint, restored.record, state, made)
    return (restored, len(made)) if digest == checkpoint.digest else None


def _digest(
    description: str, checkpoint: Checkpoint, record: Record, state: dict[str, Any], made: Sequence[ChangeRow]
) -> str:
    """Of all that a checkpoint holds, and of what it was computed from: the learner, told trials, changes.

    Where no trial broke a constraint and a learner does not search by failures, the digest is that of earlier versions.
    """
    texts = [description, *map(str, checkpoint._replace(digest="")), *(_json.dumps(tuple(row)) for row in made)]
    columns = [np.ascontiguousarray(column) for column in (record.decisions, record.mediators, record.payoffs)]
    failed = [column for name in (EXCLUDED, LOST) for column in state.get(name, {}).values() if len(column)]
    columns += [np.ascontiguousarray(column) for column in failed]
    parts = [*(text.encode("utf-8", "replace") for text in texts), *(column.tobytes() for column in columns)]
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()


def _entries(column: np.typing.NDArray[Any]) -> list[Any]:
    return column.tolist() if column.ndim == 1 else [_json.frozen(row) for row in column]
