"""Decisions that come and go in a study: what their rows say, checked, and what they do to a learner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from randomist import _json
from randomist.errors import ParameterError, RandomistError, SpaceError, StateError
from randomist.families import family_from_state
from randomist.families.base import Family
from randomist.learners.base import Learner
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.finite.changing import decision_number
from randomist.spaces import Finite
from randomist.study import observed
from randomist.study.records import ChangeRow, Counters, NewChange
from randomist.study.rows import Shapes

KINDS = ("add", "retire")
JOINING = ("member", "name", "alone", "log_likelihoods")  # what is stored of a policy that is known by likelihoods
UNREADABLE = (RandomistError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError)


def adding(member: Any, name: Any, worker: str) -> NewChange:
    """A new decision, as it is stored."""
    if not isinstance(member, Family):
        raise ParameterError(f"a new member is a family of one member, such as Gaussian([0.5], 1), got {member!r:.80}")
    if not isinstance(name, str | None):
        raise ParameterError(f"a decision's name is a text, got {name!r:.80}")
    return NewChange("add", _json.dumps({"member": member.state(), "name": name}), worker)


def joining(learner: FiniteLearner, member: Any, name: Any, log_likelihoods: Any, worker: str) -> NewChange:
    """A new policy of a space of likelihoods, as it is stored."""
    if not isinstance(name, str | None):
        raise ParameterError(f"a decision's name is a text, got {name!r:.80}")
    if member is not None:
        learner.space.family.joined(member)  # refuses
    told = learner.record.ids
    column = None if log_likelihoods is None else observed.column_told(log_likelihoods, told)
    entries = {"member": None, "name": name, "alone": column is None and len(told) > 0, "log_likelihoods": column}
    return NewChange("add", _json.dumps(entries), worker)


def retiring(learner: FiniteLearner, decision: Any, worker: str) -> NewChange:
    """A decision that goes, by its number or its name, as it is stored."""
    if isinstance(decision, str):
        if decision not in learner.names:
            raise ParameterError(f"no decision is called {decision!r:.80}; there are {', '.join(learner.names)[:200]}")
        decision = learner.names.index(decision)
    return NewChange("retire", _json.dumps({"decision": decision_number(decision, learner.space.size)}), worker)


def make(learner: Learner, kind: str, data: str) -> None:
    """What a row says, done to a learner; it raises before anything has changed."""
    if not isinstance(learner, FiniteLearner):
        raise SpaceError(f"decisions are added to finite sets and retired from them; {type(learner).__name__} has none")
    if kind == "retire":
        learner.retire(_entries(data, "decision")[0])
        return
    if not learner.space.family.drawn:
        _join(learner, data)
        return
    (state, name), family = _entries(data, "member", "name"), learner.space.family
    member = family_from_state(state)
    if family.joined(member).dtype is not family.dtype:
        raise ParameterError(
            f"mediators of this study are whole numbers, and those of a {type(member).__name__} need not be; add a "
            "member of the same kind, or create another study"
        )
    learner.add(member, name)


def _join(learner: FiniteLearner, data: str) -> None:
    """A policy comes to a space of likelihoods; those of trials that were taken back meanwhile are left out."""
    _, name, alone, column = _entries(data, *JOINING)
    told = learner.record.ids.tolist()
    if column is None:
        number = learner.add(None, name)
        if alone and not told:
            found = learner.state()["decisions"]
            learner.restore_decisions(found | {"alone": [*found["alone"].tolist(), number]})
        return
    known = _by_trial(column)
    learner.add(None, name, [known[number] for number in told])


def joined(data: str) -> tuple[bool, dict[int, float] | None]:
    """Of a policy that came to a space of likelihoods: whether from scratch, and else how likely it was to do what."""
    _, _, alone, column = _entries(data, *JOINING)
    return bool(alone), None if column is None else _by_trial(column)


def _by_trial(column: Any) -> dict[int, float]:
    return dict(zip(column["ids"].tolist(), column["values"].tolist(), strict=True))


def alone_after(shapes: Shapes, rows: Sequence[ChangeRow], size: int) -> frozenset[int]:
    """The policies that were added from scratch: they share nothing with others."""
    added, found = size, set[int]()
    for row in rows:
        if row.kind == "add":
            if not shapes.drawn:
                with naming(shapes, row):
                    found |= {added} if _entries(row.data, *JOINING)[2] else set()
            added += 1
    return frozenset(found)


def space_after(shapes: Shapes, space: Finite, rows: Sequence[ChangeRow]) -> Finite:
    """A space with the decisions that were added to it; an error names the row."""
    for row in rows:
        if row.kind == "add":
            with naming(shapes, row):
                if shapes.drawn:
                    state, name = _entries(row.data, "member", "name")
                    space = space.with_member(family_from_state(state), name)
                else:
                    space = space.with_member(None, _entries(row.data, *JOINING)[1])
    return space


@contextmanager
def naming(shapes: Shapes, row: ChangeRow) -> Iterator[None]:
    """What goes wrong in here is the fault of a row that was edited."""
    try:
        yield
    except UNREADABLE as error:
        raise shapes.wrong_change(row.place, f"it cannot be made: {error}") from error


def _entries(data: str, *names: str) -> list[Any]:
    entries = _json.loads(data)
    if not isinstance(entries, dict) or set(entries) != set(names):
        raise StateError(f"its data must have {' and '.join(names)}, got {data:.80}")
    return [entries[name] for name in names]


def check(shapes: Shapes, rows: Sequence[ChangeRow], known: Counters, now: Counters) -> None:
    """Refuse rows that are not the changes after the known ones, each at a moment that does not precede the last."""
    asked = closed = 0
    for place, row in enumerate(rows, start=known.changes + 1):
        if row.place != place:
            raise shapes.wrong_change(place, f"it is missing; {now.changes} changes were made")
        if row.kind not in KINDS:
            raise shapes.wrong_change(place, f"its kind must be {' or '.join(KINDS)}, got {row.kind!r:.80}")
        for name, moment, least, most in (
            ("asked", row.asked, asked, now.asked),
            ("closed", row.closed, closed, now.closed),
        ):
            if not isinstance(moment, int) or not least <= moment <= most:
                raise shapes.wrong_change(place, f"{name} must be in {least}..{most}, got {moment!r:.80}")
        asked, closed = row.asked, row.closed
    if len(rows) > now.changes - known.changes:
        raise shapes.wrong_change(now.changes + 1, f"the study counts {now.changes} changes")
    if len(rows) < now.changes - known.changes:
        raise shapes.wrong_change(known.changes + len(rows) + 1, f"it is missing; {now.changes} changes were made")
