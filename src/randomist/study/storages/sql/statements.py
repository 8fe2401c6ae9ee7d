"""The statements of a study, built once: what each round executes is compiled by SQLAlchemy only the first time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from randomist.study.records import (
    STATES,
    AskedRow,
    ChangeRow,
    Checkpoint,
    ClosedRow,
    Columns,
    Counters,
    State,
    StudyRecord,
    TrialRow,
)
from randomist.study.storages.sql.schema import changes, checkpoints, studies, trials

s, t, k, g = studies.c, trials.c, checkpoints.c, changes.c


def _columns(record: Any, table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that a record's fields are named after."""
    return [table.c[name] for name in record._fields]


_COUNTERS = _columns(Counters, studies)
_OF_STUDY = t.study == sa.bindparam("its_study")
_TRIAL = (_OF_STUDY, t.number == sa.bindparam("its_number"))

_THERE = s.deleted_at.is_(None)

STUDY = sa.select(*_columns(StudyRecord, studies)).where(s.name == sa.bindparam("its_name"), _THERE)
TOKEN = sa.select(s.token).where(s.name == sa.bindparam("its_name"))
NAMES = sa.select(s.name).where(_THERE).order_by(s.id)
TOTALS = sa.select(s.name, *_COUNTERS).where(_THERE).order_by(s.id)
COUNTERS = sa.select(*_COUNTERS).where(s.id == sa.bindparam("its_study"), _THERE)
COUNT = (
    sa.update(studies)
    .where(s.id == sa.bindparam("its_study"), _THERE)
    .values({name: s[name] + sa.bindparam(f"more_{name}") for name in ("asked", "closed", "told", "changes")})
    .returning(*_COUNTERS, s.archived_at)
)
NEW_ASKS = (
    sa.select(*_columns(AskedRow, trials))
    .where(_OF_STUDY, t.number >= sa.bindparam("first"), t.number < sa.bindparam("end"))
    .order_by(t.number)
)
NEW_CLOSINGS = (
    sa.select(*_columns(ClosedRow, trials))
    .where(_OF_STUDY, t.closing > sa.bindparam("first"), t.closing <= sa.bindparam("last"))
    .order_by(t.closing)
)
NEW_CHANGES = (
    sa.select(*_columns(ChangeRow, changes))
    .where(g.study == sa.bindparam("its_study"), g.place > sa.bindparam("first"))
    .order_by(g.place)
)
WRITTEN = sa.select(*_columns(ChangeRow, changes)).where(
    g.study == sa.bindparam("its_study"), g.token == sa.bindparam("its_token")
)
WITH_TICKETS = (
    sa.select(*_columns(AskedRow, trials))
    .where(_OF_STUDY, t.ticket.in_(sa.bindparam("tickets", expanding=True)))
    .order_by(t.number)
)
FIRST_TICKETS = sa.select(t.ticket).where(_OF_STUDY, t.ticket.in_(sa.bindparam("tickets", expanding=True)))
_SOME = (_OF_STUDY, t.number.in_(sa.bindparam("numbers", expanding=True)))
SOME = sa.select(*_columns(TrialRow, trials)).where(*_SOME)
STANDING = sa.select(t.number, t.state, t.decision, t.mediator, t.payoff, t.closing, t.extra).where(*_SOME)
ALL_TRIALS = sa.select(*_columns(Columns, trials)).where(_OF_STUDY, t.number < sa.bindparam("end")).order_by(t.number)
OPEN = sa.select(t.number, t.search).where(_OF_STUDY, t.closing.is_(None), t.number < sa.bindparam("end"))
_SHOWN = sa.case((t.retracted.is_(None), t.state), else_=sa.literal_column("'retracted'"))
SEARCH = sa.select(t.search).where(*_TRIAL)
WORKERS = (
    sa.select(t.worker, _SHOWN, sa.func.count(), sa.func.max(t.asked_at), sa.func.max(t.closed_at))
    .where(_OF_STUDY)
    .group_by(t.worker, _SHOWN)
    .order_by(t.worker, _SHOWN)
)
CHECKPOINT = sa.select(*_columns(Checkpoint, checkpoints)).where(k.study == sa.bindparam("its_study"))
COVER = (
    sa.update(studies)
    .where(s.id == sa.bindparam("its_study"), s.checkpointed < sa.bindparam("covered"))
    .values(checkpointed=sa.bindparam("covered"))
)


def new_trial(clock: sa.ColumnElement[float]) -> sa.Insert:
    """Write an asked trial."""
    given = ("study", "number", "ticket", "worker", "decision", "mediator", "search", "basis", "stream")
    times = {"asked_at": clock, "lease_until": clock + sa.bindparam("lease", type_=sa.Double)}
    return sa.insert(trials).values({name: sa.bindparam(name) for name in given} | {"state": "asked"} | times)


def new_change(clock: sa.ColumnElement[float]) -> sa.Insert:
    """Write that a decision comes or goes."""
    given = ("study", "place", "asked", "closed", "kind", "data", "worker", "token")
    return sa.insert(changes).values({name: sa.bindparam(name) for name in given} | {"written_at": clock})


def close(clock: sa.ColumnElement[float], *, ticket: bool) -> sa.Update:
    """Tell or fail an asked trial; with `ticket`, only where decision and mediator are as given."""
    names = ("state", "payoff", "reason", "closing", "extra", "closed_by")
    changed: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in names}
    statement = sa.update(trials).where(*_TRIAL, t.state == "asked").values(changed | {"closed_at": clock})
    if not ticket:
        return statement
    return statement.where(t.decision == sa.bindparam("its_decision"), t.mediator == sa.bindparam("its_mediator"))


def page(
    clock: sa.ColumnElement[float], first: int, limit: int | None, states: Sequence[State], worker: str | None
) -> sa.Select[Any]:
    """Trials by number: those in some states, or of one worker."""
    query: sa.Select[Any] = sa.select(*_columns(TrialRow, trials)).where(_OF_STUDY, t.number >= first)
    if set(states) != set(STATES):
        is_in = {
            "told": sa.and_(t.state == "told", t.retracted.is_(None)),
            "failed": sa.and_(t.state == "failed", t.retracted.is_(None)),
            "retracted": t.retracted.is_not(None),
            "asked": sa.and_(t.state == "asked", t.lease_until >= clock),
            "stale": sa.and_(t.state == "asked", t.lease_until < clock),
        }
        query = query.where(sa.or_(sa.false(), *(is_in[state] for state in states)))
    if set(states) <= {"asked", "stale"}:
        query = query.where(t.closing.is_(None))  # which is indexed
    if worker is not None:
        query = query.where(t.worker == worker)
    return query.order_by(t.number).limit(limit)
