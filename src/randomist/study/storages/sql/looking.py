"""What dashboards read of a database: sums that it makes itself, and pages from the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from randomist.errors import StudyDataError
from randomist.study.records import STATES, Bucket, Counters, Page, State, StudyLine, TrialRow, WorkerRow
from randomist.study.storages.sql import statements
from randomist.study.storages.sql.schema import studies, trials

if TYPE_CHECKING:
    from randomist.study.storages.sql.database import Database

s, t = studies.c, trials.c
_COUNTERS = [s[name] for name in Counters._fields]
_ASKED, _CLOSED = trials.alias(), trials.alias()
LINES = (
    sa.select(s.id, s.name, s.created_at, s.archived_at, _ASKED.c.asked_at, _CLOSED.c.closed_at, *_COUNTERS)
    .select_from(studies)
    .outerjoin(_ASKED, sa.and_(_ASKED.c.study == s.id, _ASKED.c.number == s.asked - 1))
    .outerjoin(_CLOSED, sa.and_(_CLOSED.c.study == s.id, _CLOSED.c.closing == s.closed))
    .where(s.deleted_at.is_(None))
    .order_by(s.id)
)


class Looking:
    """The part of `SQLStorage` that dashboards read."""

    database: Database

    def lines(self) -> list[StudyLine]:
        rows = self.database.read(lambda connection: connection.execute(LINES).all())
        for row in rows:
            _check(row.name, "its times and counters must be numbers", [x for x in row[2:] if x is not None])
        return [StudyLine._make([*row[:4], Counters(*row[6:]), *row[4:6]]) for row in rows]

    def buckets(self, study: int, size: int, first: int = 0) -> list[Bucket]:
        place = (t.closing - 1) // sa.literal_column(str(int(size)), sa.BigInteger)
        payoff = sa.case((t.retracted.is_(None), t.payoff))
        query = (
            sa.select(
                place,
                sa.func.count(),
                sa.func.count(payoff),
                sa.func.sum(payoff),
                sa.func.min(payoff),
                sa.func.max(payoff),
                sa.func.max(t.closed_at),
            )
            .where(t.study == study, t.closing > size * first)
            .group_by(place)
            .order_by(place)
        )
        rows = self.database.read(lambda connection: connection.execute(query).all())
        for row in rows:
            _check(study, "payoffs and times of closed trials must be numbers", [x for x in row if x is not None])
        return [Bucket._make([*row[:6], row[6] or 0.0]) for row in rows]

    def latest(
        self,
        study: int,
        *,
        first: int,
        before: int,
        limit: int,
        states: Sequence[State] = STATES,
        worker: str | None = None,
    ) -> Page:
        clock = self.database.clock
        query = statements.page(clock, first, limit, states, worker).where(t.number < before)
        query = query.order_by(None).order_by(t.number.desc())

        def work(connection: sa.Connection) -> Page:
            moment = self.database.now()
            found = connection.execute(query, moment | {"its_study": study}).all()
            now = float(connection.execute(sa.select(clock), moment).scalar_one())
            return Page(now, [TrialRow._make(row) for row in found])

        return self.database.read(work)

    def workers_since(self, study: int, first: int) -> list[WorkerRow]:
        query = statements.WORKERS.where(t.number >= first)
        rows = self.database.read(lambda c: c.execute(query, {"its_study": study}).all())
        return [WorkerRow._make(row) for row in rows]


def _check(study: Any, what: str, values: list[Any]) -> None:
    if not all(isinstance(value, float | int) for value in values):
        raise StudyDataError(f"rows of study {study!r} were changed: {what}; see `randomist study verify`")
