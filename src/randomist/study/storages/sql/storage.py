"""Studies in a database: each operation is one short transaction, and may be repeated without harm."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from randomist.errors import StorageError, StudyDataError
from randomist.study.records import (
    STATES,
    AskedRow,
    AskRequest,
    ChangeRow,
    Checkpoint,
    Closed,
    ClosedRow,
    Columns,
    Counters,
    Everything,
    NewChange,
    NewClosing,
    News,
    NewTrial,
    Page,
    State,
    StudyRecord,
    TrialRow,
    WorkerRow,
)
from randomist.study.storages.base import (
    PATIENCE,
    Raced,
    Storage,
    closed_before,
    name_taken,
    never_asked,
    no_study,
    other_size,
    other_trial,
    study_archived,
    study_gone,
)
from randomist.study.storages.sql import statements
from randomist.study.storages.sql.database import Database
from randomist.study.storages.sql.keeping import Keeping
from randomist.study.storages.sql.looking import Looking
from randomist.study.storages.sql.schema import checkpoints, studies


class _NotOpen(Exception):  # noqa: N818
    """The trial is not there, or closed."""


class _Found(Exception):  # noqa: N818
    """The ticket was used before, or an earlier try wrote the change."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows


class SQLStorage(Keeping, Looking, Storage):
    """All studies of one SQLite file or PostgreSQL database."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        self.database = Database(url, patience=patience)
        self.name = self.database.name
        clock = self.database.clock
        self._insert, self._change = statements.new_trial(clock), statements.new_change(clock)
        self._close, self._close_ticket = (statements.close(clock, ticket=ticket) for ticket in (False, True))

    # The place itself.

    def prepare(self) -> None:
        self.database.open(create=True)

    def ping(self, patience: float = 1.0) -> None:
        self.database.read(lambda connection: connection.execute(sa.select(1)).one(), patience=patience)

    def upgrade(self) -> tuple[int, int]:
        return self.database.upgrade()

    def disconnect(self) -> None:
        self.database.close()

    # Studies.

    def create(self, name: str, learner: str, lease: float) -> StudyRecord:
        self.prepare()
        values = {"name": name, "token": uuid.uuid4().hex, "learner": learner, "lease": lease}
        insert = sa.insert(studies).values(**values, created_at=self.database.clock)

        def work(connection: sa.Connection, _: int) -> None:
            found = connection.execute(statements.TOKEN, {"its_name": name}).scalar()
            if found is None:
                connection.execute(insert, self.database.now())
            elif found != values["token"]:  # else an earlier try did it
                raise name_taken(name, self.name)

        try:
            self.database.write(work)
        except StorageError as error:
            if isinstance(error.__cause__, IntegrityError):  # another one came first
                raise name_taken(name, self.name) from None
            raise
        return self.find(name)

    def find(self, name: str) -> StudyRecord:
        self.database.open(create=False)
        row = self.database.read(lambda c: c.execute(statements.STUDY, {"its_name": name}).one_or_none())
        if row is None:
            raise no_study(name, self.name, self.names())
        record = StudyRecord._make(row)
        moments = (record.lease, record.created_at)
        if not all(isinstance(x, float) and math.isfinite(x) for x in moments) or not record.lease > 0:
            raise StudyDataError(
                f"study {name!r} (a row of randomist_studies) was changed: lease={record.lease!r}, "
                f"created_at={record.created_at!r}; repair the row or restore a backup"
            )
        return record

    def names(self) -> list[str]:
        self.database.open(create=False)
        return [str(name) for name in self.database.read(lambda c: c.execute(statements.NAMES).scalars().all())]

    def totals(self) -> dict[str, Counters]:
        rows = self.database.read(lambda connection: connection.execute(statements.TOTALS).all())
        return {str(row[0]): _counted(row[1:]) for row in rows}

    def counters(self, study: int) -> Counters:
        return self.database.read(lambda connection: _counters(connection, study))

    # Trials.

    def ask(self, study: int, trials: Sequence[NewTrial], request: AskRequest) -> int | list[AskedRow]:
        n = len(trials)
        shared = {"study": study, "worker": request.worker, "basis": request.basis, "lease": request.lease}

        def work(connection: sa.Connection, tried: int) -> int:
            first = _count(connection, study, asked=n).asked - n
            if (tried or request.repeatable) and (found := _with_ticket(connection, study, request.ticket, n)):
                raise _Found(found)  # which undoes the counting
            if request.expected not in (None, first):
                raise Raced
            moment = self.database.now()
            rows = [
                shared | new._asdict() | {"number": first + i, "ticket": f"{request.ticket}/{i}"} | moment
                for i, new in enumerate(trials)
            ]
            connection.execute(self._insert, rows)
            return first

        try:
            return self.database.write(work)
        except _Found as earlier:
            return list(earlier.rows)

    def with_ticket(self, study: int, ticket: str, n: int) -> list[AskedRow]:
        return self.database.read(lambda connection: _with_ticket(connection, study, ticket, n))

    def close(
        self,
        study: int,
        number: int,
        new: NewClosing,
        ticket: tuple[str, str] | None = None,
        changes: int | None = None,
    ) -> Closed:
        mine = {"its_study": study, "its_number": number}
        change = mine | {"new_state": new.state} | {f"new_{name}": value for name, value in new._asdict().items()}
        statement = self._close
        if ticket is not None:
            statement, change = self._close_ticket, change | {"its_decision": ticket[0], "its_mediator": ticket[1]}

        def work(connection: sa.Connection, _: int) -> int:
            now = _count(connection, study, closed=1, told=int(new.payoff is not None))
            written = change | {"new_closing": now.closed} | self.database.now()
            if connection.execute(statement, written).rowcount != 1:
                raise _NotOpen  # which undoes the counting
            if changes not in (None, now.changes):
                raise Raced  # and so does this
            return now.closed

        try:
            return Closed(self.database.write(work), True)
        except _NotOpen:
            row = self.database.read(lambda connection: connection.execute(statements.TRIAL, mine).one_or_none())
        if row is None:
            raise never_asked(number)
        if ticket is not None and (row.decision, row.mediator) != ticket:
            raise other_trial(number, (row.decision, row.mediator), ticket)
        if (row.state, row.payoff, row.extra) != (new.state, new.payoff, new.extra):
            raise closed_before(number, (row.payoff, row.extra), (new.payoff, new.extra))
        return Closed(row.closing, False)

    def change(self, study: int, change: NewChange, expected: int, closed: int | None = None) -> ChangeRow:
        mine = change._asdict() | {"study": study, "place": expected + 1, "token": uuid.uuid4().hex}

        def work(connection: sa.Connection, tried: int) -> ChangeRow:
            now = _count(connection, study, changes=1)
            if tried:
                its = {"its_study": study, "its_token": mine["token"]}
                if written := connection.execute(statements.WRITTEN, its).all():
                    raise _Found(written)  # which undoes the counting
            if now.changes != expected + 1 or closed not in (None, now.closed):
                raise Raced
            moment = {"asked": now.asked, "closed": now.closed} | self.database.now()
            connection.execute(self._change, mine | moment)
            self.audited(connection, study, change.worker, change.kind, {"change": now.changes})
            return ChangeRow(now.changes, change.kind, change.data, now.asked, now.closed)

        try:
            return self.database.write(work)
        except _Found as earlier:
            return ChangeRow._make(earlier.rows[0])

    def news(self, study: int, asked: int, closed: int, changes: int) -> News:
        def work(connection: sa.Connection) -> News:
            now = _counters(connection, study)
            asks: Sequence[Any] = ()
            closings: Sequence[Any] = ()
            if now.asked > asked:
                bounds = {"its_study": study, "first": asked, "end": now.asked}
                asks = connection.execute(statements.NEW_ASKS, bounds).all()
            if now.closed > closed:
                bounds = {"its_study": study, "first": closed, "last": now.closed}
                closings = connection.execute(statements.NEW_CLOSINGS, bounds).all()
            return News(
                now,
                [AskedRow._make(row) for row in asks],
                [ClosedRow._make(row) for row in closings],
                _changes(connection, study, changes) if now.changes > changes else (),
            )

        return self.database.read(work)

    def rows(
        self,
        study: int,
        *,
        first: int = 0,
        limit: int | None = None,
        states: Sequence[State] = STATES,
        worker: str | None = None,
    ) -> Page:
        clock = self.database.clock
        query = statements.page(clock, first, limit, states, worker)

        def work(connection: sa.Connection) -> Page:
            moment = self.database.now()
            found = connection.execute(query, moment | {"its_study": study}).all()
            now = float(connection.execute(sa.select(clock), moment).scalar_one())
            return Page(now, [TrialRow._make(row) for row in found])

        return self.database.read(work)

    def workers(self, study: int) -> list[WorkerRow]:
        rows = self.database.read(lambda c: c.execute(statements.WORKERS, {"its_study": study}).all())
        return [WorkerRow._make(row) for row in rows]

    # Loading.

    def everything(self, study: int) -> Everything:
        mine = {"its_study": study}

        def work(connection: sa.Connection) -> Everything:
            now = _counters(connection, study)
            saved = connection.execute(statements.CHECKPOINT, mine).one_or_none()
            rows = connection.execute(statements.ALL_TRIALS, mine | {"end": now.asked}).all()
            search = connection.execute(statements.SEARCH, mine | {"its_number": now.asked - 1}).scalar()
            columns = Columns(*zip(*rows, strict=True)) if rows else Columns(*([] for _ in Columns._fields))
            checkpoint = None if saved is None else Checkpoint._make(saved)
            return Everything(now, checkpoint, columns, search, _changes(connection, study, 0))

        return self.database.read(work)

    def save(self, study: int, checkpoint: Checkpoint) -> None:
        insert = sa.insert(checkpoints).values(study=study, **checkpoint._asdict())

        def work(connection: sa.Connection, _: int) -> None:
            covered = connection.execute(statements.COVER, {"its_study": study, "covered": checkpoint.closed})
            if covered.rowcount == 1:
                connection.execute(sa.delete(checkpoints).where(checkpoints.c.study == study))
                connection.execute(insert)

        self.database.write(work)


def _count(
    connection: sa.Connection, study: int, *, asked: int = 0, closed: int = 0, told: int = 0, changes: int = 0
) -> Counters:
    """Add to a study's counters; this holds its row until the transaction ends."""
    more = {"more_asked": asked, "more_closed": closed, "more_told": told, "more_changes": changes}
    row = connection.execute(statements.COUNT, more | {"its_study": study}).one_or_none()
    if row is not None and row.archived_at is not None:
        raise study_archived()  # which undoes the counting
    return _counted(None if row is None else row[:-1])


def _counters(connection: sa.Connection, study: int) -> Counters:
    return _counted(connection.execute(statements.COUNTERS, {"its_study": study}).one_or_none())


def _changes(connection: sa.Connection, study: int, known: int) -> list[ChangeRow]:
    rows = connection.execute(statements.NEW_CHANGES, {"its_study": study, "first": known})
    return [ChangeRow._make(row) for row in rows]


def _with_ticket(connection: sa.Connection, study: int, ticket: str, n: int) -> list[AskedRow]:
    tickets = [f"{ticket}/{i}" for i in range(n + 1)]  # one more than asked for shows a larger batch
    found = connection.execute(statements.WITH_TICKETS, {"its_study": study, "tickets": tickets}).all()
    if found and len(found) != n:
        raise other_size(ticket)
    return [AskedRow._make(row) for row in found]


def _counted(row: Sequence[Any] | None) -> Counters:
    if row is None:
        raise study_gone()
    if not all(isinstance(n, int) for n in row):
        raise StudyDataError(
            f"the counters of a study (a row of randomist_studies) were changed: {tuple(row)}; restore a backup"
        )
    return Counters(*row)
