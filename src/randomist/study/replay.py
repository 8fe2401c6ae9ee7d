"""Rows become a learner: its history in the order of the closings, its pending trials, and a stream per ask.

Randomness: trial n of a study draws from `SeedSequence(seed, spawn_key=(2, n))`, so nothing but its number is kept. A
worker that lost a race for n to another one draws from streams of its own, `(3, *salt, i)`, for a while.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from randomist import __version__, _json
from randomist.errors import RandomistError, StateError, StudyDataError
from randomist.histories.finite import Record
from randomist.learners.base import FORMAT, Learner, Trial, load
from randomist.spaces import space_from_state
from randomist.study.records import Checkpoint, Counters, Row
from randomist.study.rows import Shapes, plain
from randomist.study.storage import Storage

KEPT = ("format", "learner", "space", "settings")  # of a learner's state: what a study's row holds


def describe(learner: Learner) -> str:
    """A fresh learner as text."""
    state = learner.state()
    return _json.dumps({name: state[name] for name in KEPT})


def fresh(study: str, text: Any) -> Learner:
    """The learner that a study began with."""
    try:
        described = _json.loads(text)
        if not isinstance(described, dict) or set(described) != set(KEPT) or described["format"] != FORMAT:
            raise StateError(f"a learner is described by {', '.join(KEPT)}, in format {FORMAT}")
        cls = Learner.registry.get(described["learner"])
        if cls is None:
            raise StateError(f"unknown learner {described['learner']!r}; import the module that defines it first")
        return cls(space_from_state(described["space"]), **described["settings"])
    except (RandomistError, TypeError, ValueError, AttributeError, IndexError, KeyError) as error:
        raise StudyDataError(
            f"study {study!r} (a row of randomist_studies) does not describe a learner of this version: {error}"
        ) from error


def is_fresh(learner: Learner, other: Learner) -> bool:
    """Whether the learner knows as little as another one that was made just now."""
    states = [one.state() for one in (learner, other)]
    parts = ("record", "caches", "next_id", "clipped")
    return _json.dumps([states[0][part] for part in parts]) == _json.dumps([states[1][part] for part in parts])


class Closing(NamedTuple):
    """A told or failed trial."""

    number: int
    payoff: float | None
    reason: str


def closing(shapes: Shapes, row: Row, place: int) -> Closing:
    """A closed row, checked: it is the `place`-th."""
    number, state, payoff = row.number, row.state, row.payoff
    if row.closing != place:
        raise shapes.wrong(number, f"closing must be {place}, got {row.closing!r}")
    if state == "failed" and payoff is None:
        return Closing(number, None, str(row.reason or ""))
    good = isinstance(payoff, float | int) and not isinstance(payoff, bool) and math.isfinite(payoff)
    if state != "told" or not good:
        raise shapes.wrong(number, f"a closed trial is told a finite payoff, or failed; got {state!r} and {payoff!r}")
    return Closing(number, float(payoff), "")


def marks_of(learner: Learner) -> str | None:
    """What the last ask left in the learner, as text."""
    names = learner.asks_change
    return _json.dumps({name: getattr(learner, name) for name in names}) if names else None


def marks(learner: Learner, shapes: Shapes, row: Row) -> dict[str, Any]:
    """Undo `marks_of`, checked."""
    if not learner.asks_change:
        return {}
    try:
        found = _json.loads(row.marks)
        if not isinstance(found, dict) or set(found) != set(learner.asks_change):
            raise StateError(f"they must name {', '.join(learner.asks_change)}")
        for name, value in found.items():
            known = getattr(learner, name)
            if isinstance(value, np.ndarray) and not np.isfinite(value).all():
                raise StateError(f"{name} must be finite")
            if known is not None and np.shape(known) != np.shape(value):
                raise StateError(f"{name} must have shape {np.shape(known)}")
    except StateError as error:
        raise shapes.wrong(row.number, f"its marks cannot be read: {error}") from error
    return found


def close(learner: Learner, shapes: Shapes, done: Closing) -> None:
    """A told or failed trial reaches the learner."""
    try:
        if done.payoff is None:
            learner.fail(done.number, done.reason)
        else:
            learner.tell(done.number, done.payoff)
    except RandomistError as error:
        raise shapes.wrong(done.number, str(error)) from error


def replay(storage: Storage, study: int, shapes: Shapes, description: Any) -> tuple[Learner, Counters]:
    """The learner of a study, as of now.

    A checkpoint, where there is one, saves the work of summing up again what it covers; the result is the same, bit for
    bit. One that does not fit (another version, trials that were edited) is left aside.
    """
    counters, checkpoint, rows = storage.everything(study)
    numbers = [row.number for row in rows]
    if numbers != list(range(counters.asked)):
        missing = next((n for n, number in enumerate(numbers) if number != n), len(numbers))
        raise shapes.wrong(missing, f"it is missing; {counters.asked} trials were asked")
    decisions = shapes.decisions(numbers, [row.decision for row in rows])
    mediators = shapes.mediators(numbers, [row.mediator for row in rows])
    trials = [Trial(*trial) for trial in zip(numbers, _entries(decisions), _entries(mediators), strict=True)]
    closed = [row for row in rows if row.state != "asked"]
    for row in closed:
        if not isinstance(row.closing, int) or not 1 <= row.closing <= len(closed):
            raise shapes.wrong(row.number, f"closing must be in 1..{len(closed)}, got {row.closing!r}")
    closed.sort(key=lambda row: row.closing)
    if len(closed) != counters.closed:
        raise StudyDataError(
            f"study {shapes.study!r} counts {counters.closed} closed trials, and has {len(closed)}; restore a backup"
        )
    closings = [closing(shapes, row, place) for place, row in enumerate(closed, start=1)]
    if sum(done.payoff is not None for done in closings) != counters.told:
        raise StudyDataError(f"study {shapes.study!r} counts {counters.told} told trials, its rows say otherwise")

    learner = fresh(shapes.study, description)
    covered = 0
    if checkpoint is not None:
        restored = _restored(learner, checkpoint, closings, trials, decisions, mediators)
        if restored is not None:
            learner, covered = restored, checkpoint.closed
    earlier = {done.number for done in closings[:covered]}
    for trial in trials:
        if trial.id not in earlier:
            learner._adopt(trial)
    if trials:  # the last one asked leaves its marks, told or not
        learner._adopt(trials[-1], marks(learner, shapes, rows[-1]))
        if trials[-1].id in earlier:
            del learner._pending[trials[-1].id]
    for done in closings[covered:]:
        close(learner, shapes, done)
    return learner, counters


def checkpoint_of(learner: Learner, closed: int) -> Checkpoint:
    """What the learner has summed up so far."""
    caches = _json.dumps({"caches": learner.state()["caches"], "clipped": learner.clipped})
    return Checkpoint(closed, _digest(learner.record), __version__, caches)


def _restored(
    learner: Learner,
    checkpoint: Checkpoint,
    closings: Sequence[Closing],
    trials: Sequence[Trial],
    decisions: np.typing.NDArray[Any],
    mediators: np.typing.NDArray[Any],
) -> Learner | None:
    """The learner as the checkpoint has it, or None where that is not of these trials."""
    if checkpoint.version != __version__ or not 0 < checkpoint.closed <= len(closings):
        return None
    told = [done for done in closings[: checkpoint.closed] if done.payoff is not None]
    failed = [done for done in closings[: checkpoint.closed] if done.payoff is None]
    at = np.array([done.number for done in told], np.int64)
    state = learner.state()
    state["record"] = {
        "decisions": decisions[at],
        "mediators": mediators[at],
        "payoffs": np.array([done.payoff for done in told], np.float64),
    }
    state["failures"] = {
        "ids": np.array([done.number for done in failed], np.int64),
        "reasons": [done.reason for done in failed],
    }
    state["next_id"] = len(trials)
    try:
        saved = _json.loads(checkpoint.caches)
        state["caches"], state["clipped"] = saved["caches"], saved["clipped"]
        restored = load(state)
    except (RandomistError, KeyError, TypeError):
        return None
    return restored if _digest(restored.record) == checkpoint.digest else None


def _digest(record: Record) -> str:
    """Of the told trials, in order."""
    parts = (record.decisions, record.mediators, record.payoffs)
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def _entries(column: np.typing.NDArray[Any]) -> list[Any]:
    return column.tolist() if column.ndim == 1 else [plain(row) for row in column]


def seed(learner: Learner, key: tuple[int, ...]) -> None:
    """Let the next ask draw from a stream of its own."""
    decision, mediator = np.random.SeedSequence(learner.seed, spawn_key=key).spawn(2)
    learner._rng.bit_generator.state = np.random.PCG64(decision).state
    learner._mediator_rng.bit_generator.state = np.random.PCG64(mediator).state
