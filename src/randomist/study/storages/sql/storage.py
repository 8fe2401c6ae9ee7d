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
    NewAsk,
    NewChange,
    NewClosing,
    News,
    NewTell,
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
    name_taken,
    no_study,
)
from randomist.study.storages.sql import statements, writing
from randomist.study.storages.sql.database import Database
from randomist.study.storages.sql.keeping import Keeping
from randomist.study.storages.sql.looking import Looking
from randomist.study.storages.sql.schema import checkpoints, studies


class _Found(Exception):  # noqa: N818
    """An earlier try wrote the change."""

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

    def read_only(self) -> bool:
        return self.database.read_only()

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
        return {str(row[0]): writing.counted(row[1:]) for row in rows}

    def counters(self, study: int) -> Counters:
        return self.database.read(lambda connection: _counters(connection, study))

    # Trials.

    def ask(self, study: int, trials: Sequence[NewTrial], request: AskRequest) -> int | list[AskedRow]:
        (answer,) = self.ask_all(study, [NewAsk(trials, request)])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask_all(self, study: int, asks: Sequence[NewAsk]) -> list[int | list[AskedRow] | Exception]:
        def work(connection: sa.Connection, tried: int) -> list[int | list[AskedRow] | Exception]:
            rows, answers = writing.numbered(connection, study, asks, tried)
            if rows:
                connection.execute(self._insert, [row | self.database.now() for row in rows])
            return answers

        return self.database.write(work)

    def with_ticket(self, study: int, ticket: str, n: int) -> list[AskedRow]:
        return self.database.read(lambda connection: writing.with_ticket(connection, study, ticket, n))

    def close(
        self,
        study: int,
        number: int,
        new: NewClosing,
        ticket: tuple[str, str] | None = None,
        changes: int | None = None,
    ) -> Closed:
        (answer,) = self.close_all(study, [NewTell(number, new, ticket, changes)])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close_all(self, study: int, tells: Sequence[NewTell]) -> list[Closed | Exception]:
        def all_open(connection: sa.Connection, _: int) -> list[Closed | Exception]:
            places = writing.places(connection, study, tells)
            self._write(connection, study, [*zip(tells, places, strict=True)])
            return [Closed(place, True) for place in places]

        def some_open(connection: sa.Connection, _: int) -> list[Closed | Exception]:
            written, answers = writing.sorted_out(connection, study, tells)
            self._write(connection, study, written)
            return answers

        try:
            return self.database.write(all_open)
        except writing.NotOpen:  # which undid it
            return self.database.write(some_open)

    def _write(self, connection: sa.Connection, study: int, tells: Sequence[tuple[NewTell, int]]) -> None:
        """Close trials, each at its place among the closings; `NotOpen` where one is not open, or another trial."""
        for statement, with_ticket in ((self._close, False), (self._close_ticket, True)):
            some = [(tell, place) for tell, place in tells if (tell.ticket is not None) == with_ticket]
            rows = [writing.closing(study, tell, place) | self.database.now() for tell, place in some]
            if rows and connection.execute(statement, rows).rowcount != len(rows):
                raise writing.NotOpen

    def some(self, study: int, numbers: Sequence[int]) -> list[TrialRow]:
        its = {"its_study": study, "numbers": list(numbers)}
        found = self.database.read(lambda connection: connection.execute(statements.SOME, its).all())
        return [TrialRow._make(row) for row in found]

    def change(self, study: int, change: NewChange, expected: int, closed: int | None = None) -> ChangeRow:
        mine = change._asdict() | {"study": study, "place": expected + 1, "token": uuid.uuid4().hex}

        def work(connection: sa.Connection, tried: int) -> ChangeRow:
            now = writing.count(connection, study, changes=1)
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
            waiting = dict(map(tuple, connection.execute(statements.OPEN, mine | {"end": now.asked})))
            return Everything(now, checkpoint, columns, search, _changes(connection, study, 0), waiting)

        return self.database.read(work)

    def save(self, study: int, checkpoint: Checkpoint) -> None:
        insert = sa.insert(checkpoints).values(study=study, **checkpoint._asdict())

        def work(connection: sa.Connection, _: int) -> None:
            covered = connection.execute(statements.COVER, {"its_study": study, "covered": checkpoint.closed})
            if covered.rowcount == 1:
                connection.execute(sa.delete(checkpoints).where(checkpoints.c.study == study))
                connection.execute(insert)

        self.database.write(work)


def _counters(connection: sa.Connection, study: int) -> Counters:
    return writing.counted(connection.execute(statements.COUNTERS, {"its_study": study}).one_or_none())


def _changes(connection: sa.Connection, study: int, known: int) -> list[ChangeRow]:
    rows = connection.execute(statements.NEW_CHANGES, {"its_study": study, "first": known})
    return [ChangeRow._make(row) for row in rows]
