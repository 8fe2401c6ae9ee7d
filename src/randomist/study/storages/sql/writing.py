"""What asks and tells write: numbers in the order of the commits, and what becomes of each of several calls.

Every transaction begins with the study's row, which it holds until it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from randomist.errors import StudyDataError, TicketError
from randomist.study.records import AskedRow, AskRequest, Closed, Counters, NewAsk, NewTell, NewTrial
from randomist.study.storages.base import (
    Raced,
    closed_before,
    never_asked,
    other_size,
    other_trial,
    study_archived,
    study_gone,
)
from randomist.study.storages.sql import statements


class NotOpen(Exception):  # noqa: N818 (it never leaves the storage)
    """A trial is not there, or closed, or another one; or decisions came or went."""


def count(
    connection: sa.Connection, study: int, *, asked: int = 0, closed: int = 0, told: int = 0, changes: int = 0
) -> Counters:
    """Add to a study's counters; this holds its row until the transaction ends."""
    more = {"more_asked": asked, "more_closed": closed, "more_told": told, "more_changes": changes}
    row = connection.execute(statements.COUNT, more | {"its_study": study}).one_or_none()
    if row is not None and row.archived_at is not None:
        raise study_archived()  # which undoes the counting
    return counted(None if row is None else row[:-1])


def counted(row: Sequence[Any] | None) -> Counters:
    if row is None:
        raise study_gone()
    if not all(isinstance(n, int) for n in row):
        raise StudyDataError(
            f"the counters of a study (a row of randomist_studies) were changed: {tuple(row)}; restore a backup"
        )
    return Counters(*row)


# Asks.


def numbered(
    connection: sa.Connection, study: int, asks: Sequence[NewAsk], tried: int
) -> tuple[list[dict[str, Any]], list[int | list[AskedRow] | Exception]]:
    """Count what is asked: the rows to write, and of each call what it gets."""
    total = sum(len(trials) for trials, _ in asks)
    first = number = count(connection, study, asked=total).asked - total
    before = _used(connection, study, [request.ticket for _, request in asks if tried or request.repeatable])
    rows: list[dict[str, Any]] = []
    answers: list[int | list[AskedRow] | Exception] = []
    new: dict[str, list[AskedRow]] = {}  # by ticket
    for trials, request in asks:
        if request.ticket in before:
            answers.append(_again(connection, study, request.ticket, len(trials)))
        elif request.ticket in new:  # twice in one transaction
            found = new[request.ticket]
            answers.append(found if len(found) == len(trials) else other_size(request.ticket))
        elif request.expected not in (None, number):
            answers.append(Raced())
        else:
            answers.append(number)
            rows += _rows(study, number, trials, request)
            new[request.ticket] = [AskedRow(number + i, *trial[:3]) for i, trial in enumerate(trials)]
            number += len(trials)
    if number - first < total:
        count(connection, study, asked=number - first - total)
    return rows, answers


def with_ticket(connection: sa.Connection, study: int, ticket: str, n: int) -> list[AskedRow]:
    tickets = [f"{ticket}/{i}" for i in range(n + 1)]  # one more than asked for shows a larger batch
    found = connection.execute(statements.WITH_TICKETS, {"its_study": study, "tickets": tickets}).all()
    if found and len(found) != n:
        raise other_size(ticket)
    return [AskedRow._make(row) for row in found]


def _used(connection: sa.Connection, study: int, tickets: Sequence[str]) -> set[str]:
    """Those of the tickets that were used before."""
    if not tickets:
        return set()
    its = {"its_study": study, "tickets": [f"{ticket}/0" for ticket in tickets]}
    return {str(found).removesuffix("/0") for found in connection.execute(statements.FIRST_TICKETS, its).scalars()}


def _again(connection: sa.Connection, study: int, ticket: str, n: int) -> list[AskedRow] | Exception:
    try:
        return with_ticket(connection, study, ticket, n)
    except TicketError as error:
        return error


def _rows(study: int, first: int, trials: Sequence[NewTrial], request: AskRequest) -> list[dict[str, Any]]:
    """The rows of asked trials, from a number on."""
    shared = {"study": study, "worker": request.worker, "basis": request.basis, "lease": request.lease}
    return [
        shared | new._asdict() | {"number": first + i, "ticket": f"{request.ticket}/{i}"}
        for i, new in enumerate(trials)
    ]


# Tells.


def places(connection: sa.Connection, study: int, tells: Sequence[NewTell]) -> range:
    """Count tells of trials all of which should be open: their places among the closings."""
    now = count(connection, study, closed=len(tells), told=_told(tells))
    if any(tell.changes not in (None, now.changes) for tell in tells):
        raise NotOpen  # which undoes the counting
    return range(now.closed - len(tells) + 1, now.closed + 1)


def sorted_out(
    connection: sa.Connection, study: int, tells: Sequence[NewTell]
) -> tuple[list[tuple[NewTell, int]], list[Closed | Exception]]:
    """Count the tells of open trials: these with their places, and of each tell what becomes of it."""
    now = count(connection, study)
    its = {"its_study": study, "numbers": [tell.number for tell in tells]}
    standing = {row.number: row for row in connection.execute(statements.STANDING, its)}
    closed = {n: (row.state, row.payoff, row.extra, row.closing) for n, row in standing.items() if row.state != "asked"}
    written: list[tuple[NewTell, int]] = []
    answers: list[Closed | Exception] = []
    for tell in tells:
        number, new, ticket, changes = tell
        row = standing.get(number)
        if row is None:
            answers.append(never_asked(number))
        elif ticket is not None and (row.decision, row.mediator) != ticket:
            answers.append(other_trial(number, (row.decision, row.mediator), ticket))
        elif number in closed:
            state, payoff, extra, place = closed[number]
            same = (state, payoff, extra) == (new.state, new.payoff, new.extra)
            another = closed_before(number, (payoff, extra), (new.payoff, new.extra))
            answers.append(Closed(place, False) if same else another)
        elif changes not in (None, now.changes):
            answers.append(Raced())
        else:
            place = now.closed + len(written) + 1
            closed[number] = new.state, new.payoff, new.extra, place
            written.append((tell, place))
            answers.append(Closed(place, True))
    if written:
        count(connection, study, closed=len(written), told=_told([tell for tell, _ in written]))
    return written, answers


def closing(study: int, tell: NewTell, place: int) -> dict[str, Any]:
    """Which row is closed, and what it has then."""
    number, new, ticket, _ = tell
    which: dict[str, Any] = {"its_study": study, "its_number": number}
    if ticket is not None:
        which |= {"its_decision": ticket[0], "its_mediator": ticket[1]}
    values = {f"new_{name}": value for name, value in new._asdict().items()}
    return which | values | {"new_state": new.state, "new_closing": place}


def _told(tells: Sequence[NewTell]) -> int:
    return sum(tell.new.payoff is not None for tell in tells)
