"""What is done to studies as a whole, and to tells that were wrong, in a database; and who did it."""

from __future__ import annotations

import json
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from randomist.errors import StorageError, StudyDataError
from randomist.study.records import AuditRow
from randomist.study.storages.base import name_taken, never_asked, nothing_told, study_archived, study_gone
from randomist.study.storages.sql.schema import audit, changes, checkpoints, studies, trials

if TYPE_CHECKING:
    from randomist.study.storages.sql.database import Database

SWEPT = 5000  # rows that are deleted in one transaction: others write in between
s, t = studies.c, trials.c


class Keeping:
    """The part of `SQLStorage` that keeps house. Every method is one short transaction, and may be repeated."""

    database: Database
    name: str

    def retract(self, study: int, number: int, reason: str, who: str) -> bool:
        row = sa.select(t.state, t.payoff, t.extra, t.retracted).where(t.study == study, t.number == number)

        def work(connection: sa.Connection, _: int) -> bool:
            check_open(connection, study)
            found = connection.execute(row).one_or_none()
            if found is None:
                raise never_asked(number)
            if found.retracted is not None:
                return False
            if found.state == "asked" or (found.state == "failed" and found.extra is None):
                raise nothing_told(number, found.state)
            fewer = {"told": s.told - int(found.payoff is not None), "retracted": s.retracted + 1, "checkpointed": 0}
            connection.execute(sa.update(studies).where(s.id == study).values(fewer))
            connection.execute(sa.delete(checkpoints).where(checkpoints.c.study == study))
            mine = sa.update(trials).where(t.study == study, t.number == number)
            connection.execute(mine.values(retracted=reason))
            self.audited(connection, study, who, "retract", {"trial": number, "reason": reason})
            return True

        return self.database.write(work)

    def archived_at(self, study: int) -> float | None:
        row = self.database.read(lambda c: c.execute(_ARCHIVED, {"its_study": study}).one_or_none())
        if row is None:
            raise study_gone()
        if not isinstance(row[0], float | None):
            raise StudyDataError(f"archived_at of a study (a row of randomist_studies) was changed: {row[0]!r:.80}")
        return row[0]

    def archive(self, study: int, archived: bool, who: str) -> bool:
        def work(connection: sa.Connection, _: int) -> bool:
            found = connection.execute(_ARCHIVED, {"its_study": study}).one_or_none()
            if found is None:
                raise study_gone()
            if (found[0] is not None) == archived:
                return False
            now = self.database.clock if archived else None
            mine = sa.update(studies).where(s.id == study).values(archived_at=now)
            connection.execute(mine, self.database.now() if archived else {})
            self.audited(connection, study, who, "archive" if archived else "unarchive", {})
            return True

        return self.database.write(work)

    def rename(self, study: int, name: str, who: str) -> None:
        def work(connection: sa.Connection, _: int) -> None:
            before = connection.execute(sa.select(s.name).where(s.id == study, s.deleted_at.is_(None))).scalar()
            if before is None:
                raise study_gone()
            if before != name:
                connection.execute(sa.update(studies).where(s.id == study).values(name=name))
                self.audited(connection, study, who, "rename", {"from": before, "to": name})

        try:
            self.database.write(work)
        except StorageError as error:
            if isinstance(error.__cause__, IntegrityError):
                raise name_taken(name, self.name) from None
            raise

    def delete(self, study: int, who: str) -> None:
        """Its number is never given to another study, so that whoever still has it cannot write into that."""

        def work(connection: sa.Connection, _: int) -> None:
            name = connection.execute(sa.select(s.name).where(s.id == study, s.deleted_at.is_(None))).scalar()
            if name is None:
                return  # an earlier try, or somebody else, did it
            gone = {"name": f"deleted {uuid.uuid4().hex}", "learner": "", "deleted_at": self.database.clock}
            mine = sa.update(studies).where(s.id == study).values(gone)
            connection.execute(mine, self.database.now())
            self.audited(connection, study, who, "delete", {"name": name})

        self.database.write(work)
        self.sweep()

    def sweep(self) -> None:
        """Delete the rows of deleted studies, some at a time; those, too, that a killed process left."""
        gone = sa.select(s.id).where(s.deleted_at.is_not(None))
        for table, place in ((trials, t.number), (changes, changes.c.place), (checkpoints, checkpoints.c.closed)):
            some = sa.select(table.c.study, place).where(table.c.study.in_(gone)).order_by(table.c.study, place)
            work = partial(_sweep, table=table, place=place, some=some.limit(SWEPT))
            while self.database.write(work):
                pass

    def audit(self, study: int) -> list[AuditRow]:
        columns = [audit.c[name] for name in AuditRow._fields]
        query = sa.select(*columns).where(audit.c.study == study).order_by(audit.c.id)
        rows = self.database.read(lambda connection: connection.execute(query).all())
        return [AuditRow._make(row) for row in rows]

    def note(self, study: int, who: str, what: str, detail: dict[str, Any]) -> None:
        self.database.write(lambda connection, _: self.audited(connection, study, who, what, detail))

    def audited(self, connection: sa.Connection, study: int, who: str, what: str, detail: dict[str, Any]) -> None:
        """One more line, in the transaction of what it is about."""
        values = {"study": study, "who": who, "what": what, "detail": json.dumps(detail), "at": self.database.clock}
        connection.execute(sa.insert(audit).values(values), self.database.now())


_ARCHIVED = sa.select(s.archived_at).where(s.id == sa.bindparam("its_study"), s.deleted_at.is_(None))


def _sweep(connection: sa.Connection, _: int, *, table: sa.Table, place: sa.Column[Any], some: sa.Select[Any]) -> int:
    """Delete some rows: how many were found."""
    rows = connection.execute(some).all()
    for study in {row[0] for row in rows}:
        places = [row[1] for row in rows if row[0] == study]
        mine = (table.c.study == study, place >= min(places), place <= max(places))
        connection.execute(sa.delete(table).where(*mine))
    return len(rows)


def check_open(connection: sa.Connection, study: int) -> None:
    """Refuse to write into a study that is archived or gone; this holds its row until the transaction ends."""
    row = connection.execute(_ARCHIVED.with_for_update(), {"its_study": study}).one_or_none()
    if row is None:
        raise study_gone()
    if row[0] is not None:
        raise study_archived()
