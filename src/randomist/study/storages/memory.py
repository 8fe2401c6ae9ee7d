"""Studies in the memory of this process: for tests, and for trying studies out. They end with the process.

`memory://name` is the same place wherever it is opened in a process. One lock serves all studies of a place.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from randomist.errors import StorageError
from randomist.study.forks import on_fork
from randomist.study.records import (
    STATES,
    AskedRow,
    AskRequest,
    AuditRow,
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
    nothing_told,
    other_size,
    other_trial,
    study_archived,
    study_gone,
)

SCHEME = "memory://"
VERSION = 1  # nothing outlives the process, so there is nothing to upgrade


@dataclass
class _Study:
    """One study: its trials by number, the numbers of the closed ones in their order, and the numbers per ticket."""

    record: StudyRecord
    trials: list[TrialRow] = field(default_factory=list)
    searches: list[str | None] = field(default_factory=list)
    closings: list[int] = field(default_factory=list)
    tickets: dict[str, range] = field(default_factory=dict)
    told: int = 0
    retracted: int = 0
    archived_at: float | None = None
    deleted: bool = False
    audit: list[AuditRow] = field(default_factory=list)
    changes: list[ChangeRow] = field(default_factory=list)
    checkpoint: Checkpoint | None = None

    @property
    def counters(self) -> Counters:
        covered = 0 if self.checkpoint is None else self.checkpoint.closed
        return Counters(len(self.trials), len(self.closings), self.told, covered, len(self.changes), self.retracted)

    def noted(self, who: str, what: str, detail: dict[str, Any]) -> None:
        self.audit.append(AuditRow(time.time(), who, what, json.dumps(detail)))

    def check_open(self) -> None:
        if self.archived_at is not None:
            raise study_archived()

    def asked(self, numbers: range) -> list[AskedRow]:
        rows = [(self.trials[number], self.searches[number]) for number in numbers]
        return [AskedRow(row.number, row.decision, row.mediator, search) for row, search in rows]

    def with_ticket(self, ticket: str, n: int) -> list[AskedRow]:
        numbers = self.tickets.get(ticket, range(0))
        if numbers and len(numbers) != n:
            raise other_size(ticket)
        return self.asked(numbers)


class _Place:
    """The studies of one name, by id."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.studies: list[_Study] = []
        on_fork(self)

    def forked(self) -> None:
        self.lock = threading.Lock()


_places: dict[str, _Place] = {}
_opening = threading.Lock()


class MemoryStorage(Storage):
    """All studies of `memory://name`."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        if not url.startswith(SCHEME) or len(url) == len(SCHEME):
            raise StorageError(f"a place in memory has a name, as in memory://trial; got {url!r:.80}")
        self.name = url
        with _opening:
            self._place = _places.setdefault(url, _Place())

    def prepare(self) -> None: ...
    def ping(self, patience: float = 1.0) -> None: ...
    def disconnect(self) -> None: ...

    def upgrade(self) -> tuple[int, int]:
        return VERSION, VERSION

    # Studies.

    def create(self, name: str, learner: str, lease: float) -> StudyRecord:
        with self._place.lock:
            studies = self._place.studies
            if any(study.record.name == name and not study.deleted for study in studies):
                raise name_taken(name, self.name)
            studies.append(_Study(StudyRecord(len(studies), name, learner, lease, time.time())))
            return studies[-1].record

    def find(self, name: str) -> StudyRecord:
        with self._place.lock:
            there = (study.record for study in self._place.studies if not study.deleted)
            found = next((record for record in there if record.name == name), None)
        if found is None:
            raise no_study(name, self.name, self.names())
        return found

    def names(self) -> list[str]:
        return list(self.totals())

    def totals(self) -> dict[str, Counters]:
        with self._place.lock:
            return {study.record.name: study.counters for study in self._place.studies if not study.deleted}

    def counters(self, study: int) -> Counters:
        with self._place.lock:
            return self._study(study).counters

    # Trials.

    def ask(self, study: int, trials: Sequence[NewTrial], request: AskRequest) -> int | list[AskedRow]:
        with self._place.lock:
            mine, now = self._study(study), time.time()
            if request.repeatable and (found := mine.with_ticket(request.ticket, len(trials))):
                return found
            mine.check_open()
            first = len(mine.trials)
            if request.expected not in (None, first):
                raise Raced
            mine.trials += [
                TrialRow(first + i, "asked", new.decision, new.mediator, None, request.worker, None, now,
                         now + request.lease, None, None, None)
                for i, new in enumerate(trials)
            ]  # fmt: skip
            mine.searches += [new.search for new in trials]
            mine.tickets[request.ticket] = range(first, len(mine.trials))
            return first

    def with_ticket(self, study: int, ticket: str, n: int) -> list[AskedRow]:
        with self._place.lock:
            return self._study(study).with_ticket(ticket, n)

    def close(
        self,
        study: int,
        number: int,
        new: NewClosing,
        ticket: tuple[str, str] | None = None,
        changes: int | None = None,
    ) -> Closed:
        with self._place.lock:
            mine = self._study(study)
            if not 0 <= number < len(mine.trials):
                raise never_asked(number)
            row = mine.trials[number]
            if ticket is not None and (row.decision, row.mediator) != ticket:
                raise other_trial(number, (row.decision, row.mediator), ticket)
            if row.closing is not None:
                if (row.payoff, row.extra) != (new.payoff, new.extra):
                    raise closed_before(number, (row.payoff, row.extra), (new.payoff, new.extra))
                return Closed(row.closing, False)
            mine.check_open()
            if changes not in (None, len(mine.changes)):
                raise Raced
            mine.closings.append(number)
            mine.told += new.payoff is not None
            place = len(mine.closings)
            mine.trials[number] = row._replace(state=new.state, closing=place, closed_at=time.time(), **new._asdict())
            return Closed(place, True)

    def change(self, study: int, change: NewChange, expected: int, closed: int | None = None) -> ChangeRow:
        with self._place.lock:
            mine = self._study(study)
            mine.check_open()
            now = mine.counters
            if now.changes != expected or closed not in (None, now.closed):
                raise Raced
            mine.changes.append(ChangeRow(expected + 1, change.kind, change.data, now.asked, now.closed))
            mine.noted(change.worker, change.kind, {"change": expected + 1})
            return mine.changes[-1]

    def news(self, study: int, asked: int, closed: int, changes: int) -> News:
        with self._place.lock:
            mine = self._study(study)
            done = [mine.trials[number] for number in mine.closings[closed:]]
            closings = [
                ClosedRow(row.number, closed + i, row.state, row.payoff, row.reason, row.extra)
                for i, row in enumerate(done, 1)
            ]
            asks = mine.asked(range(asked, len(mine.trials)))
            return News(mine.counters, asks, closings, mine.changes[changes:])

    def rows(
        self,
        study: int,
        *,
        first: int = 0,
        limit: int | None = None,
        states: Sequence[State] = STATES,
        worker: str | None = None,
    ) -> Page:
        with self._place.lock:
            now, trials = time.time(), self._study(study).trials[first:]
        found = [row for row in trials if worker in (None, row.worker) and _state_at(row, now) in states]
        return Page(now, found if limit is None else found[:limit])

    def workers(self, study: int) -> list[WorkerRow]:
        with self._place.lock:
            trials = list(self._study(study).trials)
        found: dict[tuple[str, str], list[TrialRow]] = {}
        for row in trials:
            found.setdefault((row.worker, row.state if row.retracted is None else "retracted"), []).append(row)
        return [
            WorkerRow(*key, len(rows), rows[-1].asked_at, max(row.closed_at or 0.0 for row in rows) or None)
            for key, rows in sorted(found.items())
        ]

    # Housekeeping.

    def retract(self, study: int, number: int, reason: str, who: str) -> bool:
        with self._place.lock:
            mine = self._study(study)
            mine.check_open()
            if not 0 <= number < len(mine.trials):
                raise never_asked(number)
            row = mine.trials[number]
            if row.retracted is not None:
                return False
            if row.state == "asked" or (row.state == "failed" and row.extra is None):
                raise nothing_told(number, row.state)
            mine.told -= row.payoff is not None
            mine.retracted, mine.checkpoint = mine.retracted + 1, None
            mine.trials[number] = row._replace(retracted=reason)
            mine.noted(who, "retract", {"trial": number, "reason": reason})
            return True

    def archived_at(self, study: int) -> float | None:
        with self._place.lock:
            return self._study(study).archived_at

    def archive(self, study: int, archived: bool, who: str) -> bool:
        with self._place.lock:
            mine = self._study(study)
            if (mine.archived_at is not None) == archived:
                return False
            mine.archived_at = time.time() if archived else None
            mine.noted(who, "archive" if archived else "unarchive", {})
            return True

    def rename(self, study: int, name: str, who: str) -> None:
        with self._place.lock:
            mine, before = self._study(study), self._study(study).record.name
            if any(one.record.name == name and not one.deleted for one in self._place.studies if one is not mine):
                raise name_taken(name, self.name)
            if name != before:
                mine.record = mine.record._replace(name=name)
                mine.noted(who, "rename", {"from": before, "to": name})

    def delete(self, study: int, who: str) -> None:
        with self._place.lock:
            mine = self._study(study)
            mine.noted(who, "delete", {"name": mine.record.name})
            mine.deleted, mine.trials, mine.searches, mine.closings = True, [], [], []

    def audit(self, study: int) -> list[AuditRow]:
        with self._place.lock:
            return list(self._study(study).audit)

    def note(self, study: int, who: str, what: str, detail: dict[str, Any]) -> None:
        with self._place.lock:
            self._study(study).noted(who, what, detail)

    # Loading.

    def everything(self, study: int) -> Everything:
        with self._place.lock:
            mine = self._study(study)
            counters, checkpoint, trials = mine.counters, mine.checkpoint, list(mine.trials)
            search, changes = mine.searches[-1] if mine.searches else None, list(mine.changes)
            waiting = {row.number: mine.searches[row.number] for row in trials if row.closing is None}
        columns = Columns(*([getattr(row, name) for row in trials] for name in Columns._fields))
        return Everything(counters, checkpoint, columns, search, changes, waiting)

    def save(self, study: int, checkpoint: Checkpoint) -> None:
        with self._place.lock:
            mine = self._study(study)
            if mine.counters.checkpointed < checkpoint.closed:
                mine.checkpoint = checkpoint

    def _study(self, study: int) -> _Study:
        if not 0 <= study < len(self._place.studies) or self._place.studies[study].deleted:
            raise study_gone()
        return self._place.studies[study]


def _state_at(row: TrialRow, now: float) -> str:
    if row.retracted is not None:
        return "retracted"
    return "stale" if row.state == "asked" and row.lease_until < now else row.state
