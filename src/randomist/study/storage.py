"""The rows of studies: each operation is one short transaction, and may be repeated without harm."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from randomist.errors import (
    ClosedTrialError,
    StorageError,
    StudyDataError,
    StudyExistsError,
    TicketError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study.database import Database
from randomist.study.records import Checkpoint, Counters, Draft, Order, Row, StudyRow
from randomist.study.schema import checkpoints, studies, trials

# Statements that every round executes, built once.
_s, _t = studies.c, trials.c
_COUNTERS = (_s.asked, _s.closed, _s.told, _s.checkpointed)
_MINE = (_t.study == sa.bindparam("its_study"), _t.number == sa.bindparam("its_number"))
READ_COUNTERS = sa.select(*_COUNTERS).where(_s.id == sa.bindparam("its_study"))
COUNT = (
    sa.update(studies)
    .where(_s.id == sa.bindparam("its_study"))
    .values({name: _s[name] + sa.bindparam(f"more_{name}") for name in ("asked", "closed", "told")})
    .returning(*_COUNTERS)
)
NEW_ASKS = (
    sa.select(_t.number, _t.decision, _t.mediator, _t.marks)
    .where(_MINE[0], _t.number >= sa.bindparam("first"), _t.number < sa.bindparam("end"))
    .order_by(_t.number)
)
NEW_CLOSINGS = (
    sa.select(_t.closing, _t.number, _t.state, _t.payoff, _t.reason)
    .where(_MINE[0], _t.closing > sa.bindparam("first"), _t.closing <= sa.bindparam("last"))
    .order_by(_t.closing)
)
LOOK = sa.select(_t.state, _t.decision, _t.mediator, _t.payoff, _t.closing).where(*_MINE)


class Raced(Exception):  # noqa: N818 (it never leaves this package)
    """Another worker asked in between."""


class _NotOpen(Exception):  # noqa: N818
    """The trial is not there, or closed."""


class _Found(Exception):  # noqa: N818
    """The ticket was used before."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows


class Storage:
    """All studies of one database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        clock = database.clock
        columns = ("study", "number", "ticket", "worker", "decision", "mediator", "marks", "basis", "stream")
        self._insert = sa.insert(trials).values(
            {name: sa.bindparam(name) for name in columns}
            | {"state": "asked", "asked_at": clock, "lease_until": clock + sa.bindparam("lease", type_=sa.Double)}
        )
        changed = ("state", "payoff", "reason", "closing")
        self._close = (
            sa.update(trials)
            .where(*_MINE, _t.state == "asked")
            .values({name: sa.bindparam(f"new_{name}") for name in changed} | {"closed_at": clock})
        )
        self._close_ticket = self._close.where(
            _t.decision == sa.bindparam("its_decision"), _t.mediator == sa.bindparam("its_mediator")
        )

    # Studies.

    def create(self, name: str, learner: str, lease: float) -> StudyRow:
        """A new study; refused where the name is taken."""
        self.database.open(create=True)
        token = uuid.uuid4().hex

        def work(connection: sa.Connection, _: int) -> None:
            found = connection.execute(sa.select(studies.c.token).where(studies.c.name == name)).scalar()
            if found is None:
                values = {"name": name, "token": token, "learner": learner, "lease": lease}
                connection.execute(
                    sa.insert(studies).values(**values, created_at=self.database.clock), self.database.now()
                )
            elif found != token:
                raise StudyExistsError(
                    f"a study {name!r} exists in {self.database.name}; take another name, or load_study"
                )

        try:
            self.database.write(work)
        except StorageError as error:
            if isinstance(error.__cause__, IntegrityError):  # another one came first
                raise StudyExistsError(f"a study {name!r} exists in {self.database.name}; take another name") from None
            raise
        return self.find(name)

    def find(self, name: str) -> StudyRow:
        self.database.open(create=False)
        c = studies.c
        query = sa.select(c.id, c.name, c.learner, c.lease, c.created_at).where(c.name == name)
        row = self.database.read(lambda connection: connection.execute(query).one_or_none())
        if row is None:
            known = ", ".join(self.names()[:10]) or "none"
            raise UnknownStudyError(f"no study {name!r} in {self.database.name}; it has: {known}")
        lease, created = row.lease, row.created_at
        if not all(isinstance(x, float) and math.isfinite(x) for x in (lease, created)) or not lease > 0:
            raise StudyDataError(
                f"study {name!r} (a row of randomist_studies) was changed: lease={lease!r}, created_at={created!r}; "
                "repair the row or restore a backup"
            )
        return StudyRow(*row)

    def names(self) -> list[str]:
        self.database.open(create=False)
        query = sa.select(studies.c.name).order_by(studies.c.id)
        return [str(name) for name in self.database.read(lambda connection: connection.execute(query).scalars().all())]

    def totals(self) -> dict[str, Counters]:
        """The counters of every study."""
        query = sa.select(_s.name, *_COUNTERS).order_by(_s.id)
        rows = self.database.read(lambda connection: connection.execute(query).all())
        return {str(row.name): _counted(row[1:]) for row in rows}

    # Trials.

    def ask(
        self, study: int, drafts: Sequence[Draft], order: Order, basis: int, expected: int | None
    ) -> int | list[Row]:
        """Write asked trials: the first one's number. With `expected`, only if that is this one.

        Where the ticket was used before, its trials instead. `basis` is how many closings the asker knew.
        """
        n = len(drafts)

        def work(connection: sa.Connection, tried: int) -> int:
            first = self._count(connection, study, asked=n).asked - n
            if (tried or order.repeated) and (found := self._tickets(connection, study, order.ticket, n)):
                raise _Found(found)
            if expected is not None and first != expected:
                raise Raced
            shared = {"study": study, "worker": order.worker, "basis": basis, "lease": order.lease}
            drawn = [shared | draft._asdict() for draft in drafts]
            for i, row in enumerate(drawn):
                row |= {"number": first + i, "ticket": f"{order.ticket}/{i}"} | self.database.now()
            connection.execute(self._insert, drawn)
            return first

        try:
            return self.database.write(work)
        except _Found as earlier:
            return earlier.rows

    def with_ticket(self, study: int, ticket: str, n: int) -> list[Row]:
        """The trials that were asked with this ticket before, in order."""
        return self.database.read(lambda connection: self._tickets(connection, study, ticket, n))

    def close(
        self, study: int, number: int, payoff: float | None, reason: str | None, ticket: tuple[str, str] | None = None
    ) -> tuple[int, bool]:
        """Tell (a payoff) or fail (a reason): its place among the closings, and whether it was not there before.

        `ticket` is the decision and the mediator that the trial should have.
        """
        state = "told" if payoff is not None else "failed"
        mine = {"its_study": study, "its_number": number}
        change = mine | {"new_state": state, "new_payoff": payoff, "new_reason": reason}
        statement = self._close
        if ticket is not None:
            statement, change = self._close_ticket, change | {"its_decision": ticket[0], "its_mediator": ticket[1]}

        def work(connection: sa.Connection, _: int) -> int:
            closing = self._count(connection, study, closed=1, told=int(payoff is not None)).closed
            values = change | {"new_closing": closing} | self.database.now()
            if connection.execute(statement, values).rowcount != 1:
                raise _NotOpen  # which undoes the counting
            return closing

        try:
            return self.database.write(work), True
        except _NotOpen:
            row = self.database.read(lambda connection: connection.execute(LOOK, mine).one_or_none())
        if row is None:
            raise UnknownTrialError(f"trial {number} was never asked of this study")
        if ticket is not None and (row.decision, row.mediator) != ticket:
            raise UnknownTrialError(
                f"trial {number} of this study has decision {row.decision} and mediator {row.mediator}, not "
                f"{ticket[0]} and {ticket[1]}; tell the trial that it gave"
            )
        if row.state == state and (state == "failed" or row.payoff == payoff):
            return row.closing, False
        was = f"told {row.payoff}" if row.state == "told" else row.state
        raise ClosedTrialError(
            f"trial {number} was {was} before, and cannot be {state if payoff is None else f'told {payoff}'} now; each "
            "trial is closed once: ask again"
        )

    def counters(self, study: int) -> Counters:
        return self.database.read(lambda connection: self._counters(connection, study))

    def news(self, study: int, asked: int, closed: int) -> tuple[Counters, list[Row], list[Row]]:
        """What happened since a worker looked: trials asked (number, decision, mediator), and closings in order."""

        def work(connection: sa.Connection) -> tuple[Counters, list[Row], list[Row]]:
            now = self._counters(connection, study)
            asks: Sequence[Row] = ()
            closings: Sequence[Row] = ()
            if now.asked > asked:
                bounds = {"its_study": study, "first": asked, "end": now.asked}
                asks = connection.execute(NEW_ASKS, bounds).all()
            if now.closed > closed:
                bounds = {"its_study": study, "first": closed, "last": now.closed}
                closings = connection.execute(NEW_CLOSINGS, bounds).all()
            return now, list(asks), list(closings)

        return self.database.read(work)

    def rows(
        self,
        study: int,
        *,
        first: int = 0,
        limit: int | None = None,
        states: Sequence[str] = ("asked", "told", "failed", "stale"),
        worker: str | None = None,
    ) -> tuple[float, list[Row]]:
        """Trials by number, and the clock that says which are stale."""
        c = trials.c
        now = self.database.clock
        stale = sa.and_(c.state == "asked", c.lease_until < now)
        wanted = [sa.and_(c.state == "asked", c.lease_until >= now) if s == "asked" else stale if s == "stale"
                  else c.state == s for s in states]  # fmt: skip
        query = sa.select(trials).where(c.study == study, c.number >= first)
        if set(states) != {"asked", "told", "failed", "stale"}:
            query = query.where(sa.or_(sa.false(), *wanted))
        if set(states) <= {"asked", "stale"}:
            query = query.where(c.closing.is_(None))  # which is indexed
        if worker is not None:
            query = query.where(c.worker == worker)
        query = query.order_by(c.number).limit(limit)

        def work(connection: sa.Connection) -> tuple[float, list[Row]]:
            moment = self.database.now()
            found = connection.execute(query, moment).all()
            return float(connection.execute(sa.select(now), moment).scalar_one()), list(found)

        return self.database.read(work)

    def workers(self, study: int) -> list[Row]:
        """How many trials of each state each worker has, and when it was seen last."""
        c = trials.c
        query = sa.select(
            c.worker, c.state, sa.func.count().label("n"), sa.func.max(c.asked_at).label("asked_at"),
            sa.func.max(c.closed_at).label("closed_at"),
        ).where(c.study == study).group_by(c.worker, c.state).order_by(c.worker)  # fmt: skip
        return list(self.database.read(lambda connection: connection.execute(query).all()))

    # Checkpoints.

    def everything(self, study: int) -> tuple[Counters, Checkpoint | None, list[Row]]:
        """All that a learner is rebuilt from."""
        c = trials.c
        query = sa.select(c.number, c.state, c.decision, c.mediator, c.marks, c.payoff, c.reason, c.closing)

        def work(connection: sa.Connection) -> tuple[Counters, Checkpoint | None, list[Row]]:
            now = self._counters(connection, study)
            k = checkpoints.c
            saved = connection.execute(
                sa.select(k.closed, k.digest, k.version, k.caches).where(k.study == study)
            ).one_or_none()
            mine = (c.study == study, c.number < now.asked)
            found = connection.execute(query.where(*mine).order_by(c.number)).all()
            return now, None if saved is None else Checkpoint(*saved), list(found)

        return self.database.read(work)

    def save(self, study: int, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint, unless there is a later one."""

        def work(connection: sa.Connection, _: int) -> None:
            later = sa.update(studies).where(studies.c.id == study, studies.c.checkpointed < checkpoint.closed)
            if connection.execute(later.values(checkpointed=checkpoint.closed)).rowcount == 1:
                connection.execute(sa.delete(checkpoints).where(checkpoints.c.study == study))
                connection.execute(sa.insert(checkpoints).values(study=study, **checkpoint._asdict()))

        self.database.write(work)

    # Inside.

    def _count(
        self, connection: sa.Connection, study: int, *, asked: int = 0, closed: int = 0, told: int = 0
    ) -> Counters:
        """Add to a study's counters; this holds its row until the transaction ends."""
        more = {"its_study": study, "more_asked": asked, "more_closed": closed, "more_told": told}
        return _counted(connection.execute(COUNT, more).one_or_none())

    def _counters(self, connection: sa.Connection, study: int) -> Counters:
        return _counted(connection.execute(READ_COUNTERS, {"its_study": study}).one_or_none())

    def _tickets(self, connection: sa.Connection, study: int, ticket: str, n: int) -> list[Row]:
        c = trials.c
        query = sa.select(c.number, c.decision, c.mediator).where(
            c.study == study, c.ticket.in_([f"{ticket}/{i}" for i in range(n + 1)])
        )
        found = list(connection.execute(query.order_by(c.number)).all())
        if found and len(found) != n:
            raise TicketError(f"the ticket {ticket!r} was used for a batch of another size; take a new one")
        return found


def _counted(row: Row | None) -> Counters:
    if row is None:
        raise UnknownStudyError("the study is gone from its database; create it again")
    if not all(isinstance(n, int) for n in row):
        raise StudyDataError(
            f"the counters of a study (a row of randomist_studies) were changed: {tuple(row)}; restore a backup"
        )
    return Counters(*row)
