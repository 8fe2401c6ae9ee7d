"""What dashboards read, of any storage: from the rows, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from randomist.study.records import Bucket, Page, State, StudyLine, WorkerRow

if TYPE_CHECKING:
    from randomist.study.storages.base import Storage

PAGE = 5000


def lines(storage: Storage) -> list[StudyLine]:
    found = []
    for name, counters in storage.totals().items():
        record = storage.find(name)
        last = storage.rows(record.id, first=max(counters.asked - PAGE, 0)).rows
        closed = [row.closed_at for row in last if row.closed_at is not None]
        asked_at = last[-1].asked_at if last else None
        archived_at = storage.archived_at(record.id)
        line = StudyLine(record.id, name, record.created_at, archived_at, counters, asked_at, max(closed, default=None))
        found.append(line)
    return found


def buckets(storage: Storage, study: int, size: int, first: int) -> list[Bucket]:
    found: dict[int, Bucket] = {}
    start = 0
    while rows := storage.rows(study, first=start, limit=PAGE).rows:
        start = rows[-1].number + 1
        for row in rows:
            if row.closing is None or row.closing <= first * size:
                continue
            place, at = (row.closing - 1) // size, row.closed_at or 0.0
            payoffs = [] if row.payoff is None or row.retracted is not None else [row.payoff]
            one = found.get(place, Bucket(place, 0, 0, None, None, None, at))
            known = [x for x in (one.least, one.largest) if x is not None]
            found[place] = Bucket(
                place,
                one.closed + 1,
                one.told + len(payoffs),
                sum(payoffs, one.total or 0.0) if payoffs else one.total,
                min(known + payoffs, default=None),
                max(known + payoffs, default=None),
                max(one.at, at),
            )
    return [found[place] for place in sorted(found)]


def latest(
    storage: Storage, study: int, first: int, before: int, limit: int, states: Sequence[State], worker: str | None
) -> Page:
    page = storage.rows(study, first=first, limit=max(before - first, 0), states=states, worker=worker)
    rows = [row for row in page.rows if row.number < before]
    return Page(page.now, rows[::-1][:limit])


def workers_since(storage: Storage, study: int, first: int) -> list[WorkerRow]:
    found: dict[tuple[str, str], WorkerRow] = {}
    for row in storage.rows(study, first=first).rows:
        key = row.worker, row.state if row.retracted is None else "retracted"
        one = found.get(key, WorkerRow(*key, 0, row.asked_at, row.closed_at))
        closed = [x for x in (one.closed_at, row.closed_at) if x is not None]
        found[key] = WorkerRow(*key, one.trials + 1, max(one.asked_at, row.asked_at), max(closed, default=None))
    return [found[key] for key in sorted(found)]
