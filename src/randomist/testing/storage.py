"""What every storage of studies must keep: numbers without gaps, nothing lost, nothing twice, one moment per read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from randomist.errors import (
    ArchivedStudyError,
    ClosedTrialError,
    RetractionError,
    StudyExistsError,
    TicketError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study.records import (
    AskRequest,
    Checkpoint,
    NewAsk,
    NewChange,
    NewClosing,
    NewTell,
    NewTrial,
    StudyRecord,
)
from randomist.study.storages.base import Raced, Storage

MakeStorage = Callable[[], Storage]
TRIAL = NewTrial("1", "0.25", '{"at":2.0}', None)
EXTRA = '{"feasible":false}'
CHANGE = NewChange("add", '{"member":1}', "worker")


def check_storage(make: MakeStorage, *, threads: int = 4, rounds: int = 20) -> None:
    """Assert the contract of a storage.

    `make()` opens a place that is empty at first, as another worker would: each call gives a new `Storage` of the same
    place. The check leaves studies named `check-...` there.
    """
    first = make()
    first.prepare()
    _check_studies(first, make())
    for number, check in enumerate(_CHECKS):
        study = first.create(f"check-{number}", f"learner {number}", 60.0)
        check(first, make(), study)
    for name, check in _HOUSEKEEPING.items():
        if getattr(type(first), name) is not getattr(Storage, name):
            check(first, make(), first.create(f"check-{name}", "learner", 60.0))
    _check_writers_at_once(make, first.create("check-writers", "learner", 60.0), threads, rounds)
    first.ping()
    before, after = first.upgrade()
    assert before == after, "a place that was just made needs no upgrade"
    first.disconnect()
    assert first.find("check-0").learner == "learner 0", "a storage works again after `disconnect`"


def _request(ticket: str, expected: int | None = None, **changes: Any) -> AskRequest:
    return AskRequest("worker", 60.0, ticket, False, 0, expected)._replace(**changes)


def _ask(storage: Storage, study: StudyRecord, n: int = 1, ticket: str = "", **changes: Any) -> int:
    """Ask `n` trials; the first one's number."""
    asked = storage.counters(study.id).asked
    trials = [TRIAL._replace(decision=str(asked + i), mediator=f"{asked + i}.5") for i in range(n)]
    first = storage.ask(study.id, trials, _request(ticket or f"ticket-{asked}", **changes))
    assert isinstance(first, int), f"a new ticket gives new trials, got {first!r}"
    return first


def _change(storage: Storage, study: StudyRecord) -> int:
    """A change, after as many as there happen to be; its place."""
    while True:
        try:
            return storage.change(study.id, CHANGE, storage.counters(study.id).changes).place
        except Raced:
            continue


def _refused(error: type[Exception], call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    try:
        answer = call(*arguments, **options)
    except error:
        return
    raise AssertionError(f"{call.__name__}{arguments} must raise {error.__name__}, gave {answer!r}")


def _check_studies(storage: Storage, other: Storage) -> None:
    assert storage.names() == [], f"an empty place has no studies, got {storage.names()}"
    assert storage.totals() == {}
    began = time.time()
    made = [storage.create(name, f"the learner of {name}", 12.5) for name in ("check-b", "check-a")]
    assert [study.name for study in made] == ["check-b", "check-a"]
    assert made[0].id != made[1].id
    assert made[0].lease == 12.5
    assert abs(made[0].created_at - began) < 60, "times are seconds since 1970"
    assert other.find("check-a") == made[1], "a study is there for everybody as soon as it was created"
    assert other.names() == ["check-b", "check-a"], "the oldest first"
    _refused(StudyExistsError, other.create, "check-a", "another learner", 1.0)
    assert other.find("check-a") == made[1], "a refused creation changes nothing"
    _refused(UnknownStudyError, storage.find, "check-c")
    _refused(UnknownStudyError, storage.counters, max(study.id for study in made) + 1000)
    assert storage.totals() == {study.name: (0, 0, 0, 0, 0, 0) for study in made}


def _check_asking(storage: Storage, other: Storage, study: StudyRecord) -> None:
    assert [_ask(storage, study), _ask(other, study, 3), _ask(storage, study, expected=4)] == [0, 1, 4]
    for expected in (3, 4, 6):
        request = _request(f"race-{expected}", expected)
        _refused(Raced, storage.ask, study.id, [TRIAL], request)
    assert storage.counters(study.id) == (5, 0, 0, 0, 0, 0), "a lost race changes nothing"
    assert _ask(other, study, expected=5) == 5
    rows = other.rows(study.id).rows
    assert [row.number for row in rows] == list(range(6)), "trials are numbered without gaps"
    assert [(row.decision, row.mediator, row.state) for row in rows] == [(str(i), f"{i}.5", "asked") for i in range(6)]
    assert {row.worker for row in rows} == {"worker"}
    assert all(abs(row.lease_until - row.asked_at - 60) < 1 for row in rows)


def _check_tickets(storage: Storage, other: Storage, study: StudyRecord) -> None:
    assert storage.with_ticket(study.id, "mine", 2) == [], "a new ticket has no trials"
    _ask(storage, study)
    assert _ask(storage, study, 2, ticket="mine") == 1
    found = other.with_ticket(study.id, "mine", 2)
    assert [tuple(row) for row in found] == [(i, str(i), f"{i}.5", TRIAL.search) for i in (1, 2)]
    again = other.ask(study.id, [TRIAL, TRIAL], _request("mine", repeatable=True, expected=77))
    assert again == found, f"the same ticket gives the same trials, got {again!r}"
    for n in (1, 3):
        _refused(TicketError, storage.with_ticket, study.id, "mine", n)
        _refused(TicketError, storage.ask, study.id, [TRIAL] * n, _request("mine", repeatable=True))
    assert storage.counters(study.id).asked == 3, "a repeated ask changes nothing"


def _check_together(storage: Storage, other: Storage, study: StudyRecord) -> None:
    _ask(storage, study, ticket="mine")
    asks = [
        NewAsk([TRIAL, TRIAL], _request("one", repeatable=True, expected=1)),
        NewAsk([TRIAL], _request("mine", repeatable=True, expected=3)),
        NewAsk([TRIAL], _request("late", expected=7)),
        NewAsk([TRIAL], _request("two", expected=3)),
        NewAsk([TRIAL] * 2, _request("two", repeatable=True)),
    ]
    answers = storage.ask_all(study.id, asks)
    assert answers[0] == 1, f"the first of several asks gets the next numbers, got {answers[0]!r}"
    assert answers[1] == other.with_ticket(study.id, "mine", 1), "a ticket that was used before gives its trials"
    assert isinstance(answers[2], Raced), f"another number than expected is a lost race, got {answers[2]!r}"
    assert answers[3] == 3, f"what others in the group do not write leaves no gap, got {answers[3]!r}"
    assert isinstance(answers[4], TicketError), f"a ticket of another size is refused, got {answers[4]!r}"
    assert other.counters(study.id) == (4, 0, 0, 0, 0, 0)
    assert [row.number for row in other.rows(study.id).rows] == list(range(4))
    assert sorted(row.number for row in other.some(study.id, [3, 0, 9])) == [0, 3], "some of the trials, if there"
    tells = [
        NewTell(2, NewClosing(0.5)),
        NewTell(9, NewClosing(0.5)),
        NewTell(0, NewClosing(None, "lost")),
        NewTell(2, NewClosing(0.5)),
        NewTell(2, NewClosing(0.75)),
        NewTell(3, NewClosing(0.25), ("another", "7.5")),
        NewTell(3, NewClosing(0.25), None, 5),
        NewTell(1, NewClosing(0.125), (TRIAL.decision, TRIAL.mediator), 0),
    ]
    closed = storage.close_all(study.id, tells)
    assert [closed[i] for i in (0, 2, 3, 7)] == [(1, True), (2, True), (1, False), (3, True)], f"got {closed!r}"
    kinds = [type(closed[i]) for i in (1, 4, 5, 6)]
    assert kinds == [UnknownTrialError, ClosedTrialError, UnknownTrialError, Raced], f"got {closed!r}"
    assert other.counters(study.id) == (4, 3, 2, 0, 0, 0), "what is refused is not counted"
    assert other.close_all(study.id, [NewTell(3, NewClosing(0.25))]) == [(4, True)]


def _check_closing(storage: Storage, other: Storage, study: StudyRecord) -> None:
    _ask(storage, study, 5)
    assert storage.close(study.id, 2, NewClosing(0.5)) == (1, True)
    assert other.close(study.id, 0, NewClosing(None, "lost"), ("0", "0.5")) == (2, True)
    assert other.close(study.id, 2, NewClosing(0.5)) == (1, False), "the same payoff again changes nothing"
    assert storage.close(study.id, 0, NewClosing(None, "lost again")) == (2, False)
    assert storage.close(study.id, 4, NewClosing(None, None, EXTRA), ("4", "4.5")) == (3, True)
    assert other.close(study.id, 4, NewClosing(None, None, EXTRA)) == (3, False), "the same extra again changes nothing"
    before = storage.rows(study.id).rows
    for number, payoff, reason in ((2, 0.75, None), (2, None, "no"), (0, 0.5, None), (4, 0.5, None), (4, None, "no")):
        _refused(ClosedTrialError, other.close, study.id, number, NewClosing(payoff, reason))
    for number, extra in ((0, EXTRA), (2, EXTRA), (4, "{}")):
        _refused(ClosedTrialError, other.close, study.id, number, NewClosing(extra=extra))
    _refused(UnknownTrialError, other.close, study.id, 5, NewClosing(0.5))
    for ticket in (("1", "9.5"), ("9", "1.5")):
        _refused(UnknownTrialError, other.close, study.id, 1, NewClosing(0.5), ticket)
    assert storage.rows(study.id).rows == before, "what is refused changes nothing"
    assert storage.counters(study.id) == (5, 3, 1, 0, 0, 0)
    told, failed, more = before[2], before[0], before[4]
    assert (told.state, told.payoff, told.reason, told.closing, told.extra) == ("told", 0.5, None, 1, None)
    assert (failed.state, failed.payoff, failed.reason, failed.closing) == ("failed", None, "lost", 2)
    assert (more.state, more.payoff, more.closing, more.extra) == ("failed", None, 3, EXTRA)
    assert told.closed_at is not None
    assert told.asked_at <= told.closed_at


def _check_news(storage: Storage, other: Storage, study: StudyRecord) -> None:
    nothing = storage.news(study.id, 0, 0, 0)
    assert nothing.counters == (0, 0, 0, 0, 0, 0)
    assert not any(nothing[1:]), "nothing happened yet"
    _ask(storage, study, 3)
    storage.close(study.id, 1, NewClosing(0.5))
    storage.close(study.id, 0, NewClosing(None, "lost", EXTRA))
    counters, asks, closings, _ = other.news(study.id, 0, 0, 0)
    assert counters == (3, 2, 1, 0, 0, 0)
    assert [tuple(row) for row in asks] == [(i, str(i), f"{i}.5", TRIAL.search) for i in range(3)]
    assert [tuple(row) for row in closings] == [(1, 1, "told", 0.5, None, None), (0, 2, "failed", None, "lost", EXTRA)]
    _, asks, closings, _ = other.news(study.id, 2, 1, 0)
    assert [row.number for row in asks] == [2]
    assert [row.number for row in closings] == [0]
    assert not any(other.news(study.id, 3, 2, 0)[1:]), "nothing is new to those who know all"


def _check_changes(storage: Storage, other: Storage, study: StudyRecord) -> None:
    _ask(storage, study, 3)
    storage.close(study.id, 1, NewClosing(0.5))
    first = storage.change(study.id, CHANGE, 0)
    assert first == (1, "add", CHANGE.data, 3, 1), f"a change has the counters of its moment, got {first}"
    for expected in (0, 2):
        _refused(Raced, other.change, study.id, CHANGE._replace(kind="retire"), expected)
    assert other.counters(study.id) == (3, 1, 1, 0, 1, 0), "a lost race changes nothing"
    _ask(other, study)
    second = other.change(study.id, CHANGE._replace(kind="retire", data="{}"), 1)
    assert second == (2, "retire", "{}", 4, 1)
    assert list(storage.news(study.id, 4, 1, 0).changes) == [first, second]
    assert list(storage.news(study.id, 0, 0, 1).changes) == [second]
    assert not any(storage.news(study.id, 4, 1, 2)[1:])
    assert list(storage.everything(study.id).changes) == [first, second]


def _check_expectations(storage: Storage, other: Storage, study: StudyRecord) -> None:
    """What was checked against others' writes is not written after they wrote more."""
    _ask(storage, study, 3)
    storage.change(study.id, CHANGE, 0, 0)
    _refused(Raced, other.close, study.id, 0, NewClosing(0.5), None, 0)
    assert other.counters(study.id) == (3, 0, 0, 0, 1, 0), "a lost race changes nothing"
    assert other.close(study.id, 0, NewClosing(0.5), None, 1) == (1, True)
    _refused(Raced, storage.change, study.id, CHANGE, 1, 0)
    assert storage.change(study.id, CHANGE, 1, 1).place == 2
    assert other.close(study.id, 0, NewClosing(0.5), None, 2) == (1, False)


def _check_retracting(storage: Storage, other: Storage, study: StudyRecord) -> None:
    """Of a storage that takes tells back."""
    _ask(storage, study, 4)
    for number, new in enumerate((NewClosing(0.5, closed_by="me"), NewClosing(None, "lost"), NewClosing(extra=EXTRA))):
        storage.close(study.id, number, new)
    storage.save(study.id, Checkpoint(3, "digest", "version", "x"))
    assert other.retract(study.id, 0, "wrong", "ann")
    assert not storage.retract(study.id, 0, "again", "bob"), "the same again changes nothing"
    assert storage.counters(study.id) == (4, 3, 0, 0, 0, 1), "a retracted trial is not counted, and the checkpoint goes"
    assert other.retract(study.id, 2, "wrong, too", "ann")
    for number in (1, 3):
        _refused(RetractionError, other.retract, study.id, number, "no", "ann")
    _refused(UnknownTrialError, other.retract, study.id, 4, "no", "ann")
    rows = storage.rows(study.id, states=("retracted",)).rows
    assert [(row.number, row.retracted, row.payoff, row.closed_by) for row in rows] == [
        *((0, "wrong", 0.5, "me"), (2, "wrong, too", None, None))
    ]
    assert [row.number for row in storage.rows(study.id, states=("told", "failed")).rows] == [1]
    assert list(storage.everything(study.id).trials.retracted) == ["wrong", None, "wrong, too", None]
    assert [(row.who, row.what) for row in other.audit(study.id)] == [("ann", "retract")] * 2


def _check_keeping(storage: Storage, other: Storage, study: StudyRecord) -> None:
    """Of a storage that archives, renames and deletes."""
    _ask(storage, study, 2)
    storage.close(study.id, 0, NewClosing(0.5))
    assert other.archive(study.id, True, "ann")
    assert not storage.archive(study.id, True, "ann")
    assert storage.archived_at(study.id) is not None
    for refused in (
        lambda: storage.ask(study.id, [TRIAL], _request("archived")),
        lambda: storage.close(study.id, 1, NewClosing(0.5)),
        lambda: storage.change(study.id, CHANGE, 0),
        lambda: storage.retract(study.id, 0, "no", "ann"),
    ):
        _refused(ArchivedStudyError, refused)
    assert storage.counters(study.id) == (2, 1, 1, 0, 0, 0), "what is archived does not change"
    assert storage.archive(study.id, False, "ann")
    assert other.archived_at(study.id) is None
    _refused(StudyExistsError, other.rename, study.id, "check-0", "ann")
    other.rename(study.id, "check-renamed", "ann")
    assert storage.find("check-renamed") == study._replace(name="check-renamed")
    _refused(UnknownStudyError, storage.find, study.name)
    assert [row.what for row in storage.audit(study.id)] == ["archive", "unarchive", "rename"]
    doomed = storage.create("check-doomed", "learner", 60.0)
    _ask(storage, doomed, 3)
    other.delete(doomed.id, "ann")
    assert "check-doomed" not in storage.names()
    _refused(UnknownStudyError, storage.counters, doomed.id)
    _refused(UnknownStudyError, storage.ask, doomed.id, [TRIAL], _request("gone"))
    again = storage.create("check-doomed", "learner", 60.0)
    assert again.id != doomed.id, "the id of a deleted study is not used again"
    assert storage.counters(again.id) == (0, 0, 0, 0, 0, 0)


def _check_rows(storage: Storage, other: Storage, study: StudyRecord) -> None:
    _ask(storage, study, 2, worker="one")
    _ask(storage, study, 2, worker="two", lease=0.01)
    _ask(storage, study, 2, worker="two")
    storage.close(study.id, 1, NewClosing(0.5))
    storage.close(study.id, 5, NewClosing(None, ""))
    time.sleep(0.05)

    def numbers(**wanted: Any) -> list[int]:
        return [row.number for row in other.rows(study.id, **wanted).rows]

    by_state = {"asked": [0, 4], "stale": [2, 3], "told": [1], "failed": [5]}
    for state, expected in by_state.items():
        assert numbers(states=(state,)) == expected, f"{state}: {numbers(states=(state,))}"
    assert numbers(states=("asked", "stale")) == [0, 2, 3, 4]
    assert numbers(states=()) == []
    assert numbers(first=2, limit=3) == [2, 3, 4]
    assert numbers(limit=0) == []
    assert numbers(worker="one") == [0, 1]
    assert numbers(worker="nobody") == []
    page = other.rows(study.id)
    assert page.rows[0].lease_until > page.now > page.rows[2].lease_until, "`now` is the clock that leases follow"
    done = [tuple(row[:3]) for row in other.workers(study.id)]
    assert done == [("one", "asked", 1), ("one", "told", 1), ("two", "asked", 3), ("two", "failed", 1)]
    assert all((row.closed_at is None) == (row.state == "asked") for row in other.workers(study.id))


def _check_loading(storage: Storage, other: Storage, study: StudyRecord) -> None:
    nothing = storage.everything(study.id)
    assert (nothing.counters, nothing.checkpoint, nothing.search) == ((0, 0, 0, 0, 0, 0), None, None)
    assert all(list(column) == [] for column in nothing.trials)
    assert list(nothing.changes) == []
    _ask(storage, study, 3)
    storage.ask(study.id, [TRIAL._replace(search="the last one")], _request("last"))
    storage.close(study.id, 2, NewClosing(0.5))
    storage.close(study.id, 0, NewClosing(None, "lost", EXTRA))
    storage.change(study.id, CHANGE, 0)
    for closed, kept in ((2, 2), (1, 2), (2, 2), (5, 5)):
        storage.save(study.id, Checkpoint(closed, f"digest {closed}", "version", "x" * 100_000))
        saved = other.everything(study.id).checkpoint
        assert saved is not None
        assert saved.closed == kept, "the checkpoint that covers most is kept"
        assert other.counters(study.id).checkpointed == kept
    found = other.everything(study.id)
    assert found.checkpoint == (5, "digest 5", "version", "x" * 100_000)
    assert found.counters == (4, 2, 1, 5, 1, 0)
    assert found.search == "the last one"
    assert [row.place for row in found.changes] == [1]
    columns = {name: list(column) for name, column in found.trials._asdict().items()}
    assert columns == {
        "number": [0, 1, 2, 3],
        "state": ["failed", "asked", "told", "asked"],
        "decision": ["0", "1", "2", TRIAL.decision],
        "mediator": ["0.5", "1.5", "2.5", TRIAL.mediator],
        "payoff": [None, None, 0.5, None],
        "reason": ["lost", None, None, None],
        "closing": [2, None, 1, None],
        "extra": [EXTRA, None, None, None],
        "retracted": [None] * 4,
    }


_CHECKS = (
    *(_check_asking, _check_tickets, _check_together, _check_closing, _check_news, _check_changes),
    *(_check_expectations, _check_rows, _check_loading),
)
_HOUSEKEEPING = {"retract": _check_retracting, "archive": _check_keeping}  # where a storage has it


def _check_writers_at_once(make: MakeStorage, study: StudyRecord, threads: int, rounds: int) -> None:
    """Several handles, each with two threads: nothing is lost, nothing happens twice, and reads see one moment."""
    asked: list[int] = []
    places: list[int] = []
    made: list[int] = []
    problems: list[BaseException] = []

    def work(storage: Storage, name: str) -> None:
        try:
            for i in range(rounds):
                number = storage.ask(study.id, [TRIAL], _request(f"{name}-{i}", worker=name))
                assert isinstance(number, int)
                asked.append(number)
                places.append(storage.close(study.id, number, NewClosing(float(i))).place)
                made.append(_change(storage, study))
                counters, asks, closings, changes = storage.news(study.id, 0, 0, 0)
                assert (len(asks), len(closings)) == counters[:2], "counters and rows are of one moment"
                assert len(changes) == counters.changes
        except BaseException as error:  # for the thread that waits
            problems.append(error)

    handles: Sequence[Storage] = [make() for _ in range(max(1, threads // 2))]
    workers = [threading.Thread(target=work, args=(handles[i % len(handles)], f"w{i}")) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if problems:
        raise problems[0]
    n = threads * rounds
    assert sorted(asked) == list(range(n)), "each ask has a number of its own"
    assert sorted(places) == list(range(1, n + 1)), "each closing has a place of its own"
    assert sorted(made) == list(range(1, n + 1)), "each change has a place of its own"
    assert make().counters(study.id) == (n, n, n, 0, n, 0)
