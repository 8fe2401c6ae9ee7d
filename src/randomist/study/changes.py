"""Decisions that come and go in a study: what their rows say, checked, and what they do to a learner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from randomist import _json
from randomist.errors import ParameterError, SpaceError, StateError
from randomist.families import Family, family_from_state
from randomist.learners.base import Learner
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.finite.changing import decision_number
from randomist.study.records import ChangeRow, Counters, NewChange
from randomist.study.rows import Shapes

KINDS = ("add", "retire")


def adding(member: Any, name: Any, worker: str) -> NewChange:
    """A new decision, as it is stored."""
    if not isinstance(member, Family):
        raise ParameterError(f"a new member is a family of one member, such as Gaussian([0.5], 1), got {member!r:.80}")
    if not isinstance(name, str | None):
        raise ParameterError(f"a decision's name is a text, got {name!r:.80}")
    return NewChange("add", _json.dumps({"member": member.state(), "name": name}), worker)


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
    entries = _json.loads(data)
    wanted = {"member", "name"} if kind == "add" else {"decision"}
    if not isinstance(entries, dict) or set(entries) != wanted:
        raise StateError(f"its data must have {' and '.join(sorted(wanted))}, got {data:.80}")
    if kind == "retire":
        learner.retire(entries["decision"])
        return
    member, family = family_from_state(entries["member"]), learner.space.family
    if family.joined(member).dtype is not family.dtype:
        raise ParameterError(
            f"mediators of this study are whole numbers, and those of a {type(member).__name__} need not be; add a "
            "member of the same kind, or create another study"
        )
    learner.add(member, entries["name"])


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
    if len(rows) != now.changes - known.changes:
        raise shapes.wrong_change(known.changes + len(rows) + 1, f"it is missing; {now.changes} changes were made")
