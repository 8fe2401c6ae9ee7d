"""Look at every row of a study, and say what is wrong with each, not only with the first one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from randomist import _json
from randomist.errors import RandomistError, StudyDataError
from randomist.learners.base import Learner
from randomist.learners.finite.base import FiniteLearner
from randomist.study import changes, replay
from randomist.study.audits import read_audit
from randomist.study.records import ClosedRow, Columns, Counters, Everything, Page, StudyRecord
from randomist.study.rows import Shapes
from randomist.study.storages.base import Storage

PAGE = 5000
MOST = 1000  # problems that are named


class Verdict(NamedTuple):
    """What was found in a study."""

    study: str
    trials: int
    told: int
    problems: list[str]


def verify(storage: Storage, name: str) -> Verdict:
    """All rows of a study: read, checked one by one, and lived through by its learner."""
    problems = _Problems()
    record: StudyRecord | None = problems.without(lambda: storage.find(name))
    began: Learner | None = None if record is None else problems.without(lambda: replay.fresh(name, record.learner))
    if record is None or began is None:
        return Verdict(name, 0, 0, problems.said)
    found: Everything | None = problems.without(lambda: storage.everything(record.id))
    if found is None:
        return Verdict(name, 0, 0, problems.said)
    shapes = Shapes(name, began.space)
    before = len(problems.said)
    problems.without(lambda: replay.read(shapes, found, began))
    if len(problems.said) > before:  # one is named: which are they all?
        _rows(Shapes(name, began.space), found, began, problems)
    else:
        _live(shapes, record, found, problems)
    _pages(storage, record, shapes, problems)
    for row in problems.without(lambda: storage.audit(record.id)) or []:
        problems.without(partial(read_audit, name, row))
    return Verdict(name, len(found.trials.number), found.counters.told, problems.said)


class _Problems:
    """What was found so far, each once."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def without(self, work: Callable[[], Any]) -> Any:
        """What `work` gives, or None where it raises something, which is then one more problem."""
        try:
            return work()
        except RandomistError as error:
            self.add(str(error))
        except (*changes.UNREADABLE, MemoryError) as error:
            self.add(f"{type(error).__name__}: {error}")
        return None

    def add(self, what: str) -> None:
        if what not in self.said and len(self.said) < MOST:
            self.said.append(what)


def _live(shapes: Shapes, record: StudyRecord, found: Everything, problems: _Problems) -> None:
    """The learner is told everything; a checkpoint must agree with that."""
    told = problems.without(lambda: replay.rebuild(shapes, record.learner, found._replace(checkpoint=None)))
    if told is None or found.checkpoint is None:
        return
    restored = problems.without(lambda: replay.rebuild(shapes, record.learner, found))
    if restored is not None and _caches(restored) != _caches(told):
        problems.add(
            f"the checkpoint of study {shapes.study!r} (a row of randomist_checkpoints) says something else than its "
            "trials; delete it: it is made again"
        )


def _caches(learner: Learner) -> str:
    state = learner.state()
    return _json.dumps([state["record"], state["caches"]])


def _rows(shapes: Shapes, found: Everything, began: Learner, problems: _Problems) -> None:
    """Every row by itself."""
    columns, counters = found.trials, found.counters
    problems.without(lambda: changes.check(shapes, found.changes, Counters(0, 0, 0, 0, 0), counters))
    if isinstance(began, FiniteLearner):
        problems.without(lambda: shapes.follow(began.arrivals, found.changes))
    for i, number in enumerate(columns.number):
        problems.without(partial(_row, shapes, columns, i, number))
    expected = set(range(counters.asked)) if counters.asked <= 10 * len(columns.number) + 1000 else set()
    for number in sorted(expected - set(columns.number))[:MOST]:
        problems.add(str(shapes.wrong(number, f"it is missing; {counters.asked} trials were asked")))


def _row(shapes: Shapes, columns: Columns, i: int, number: Any) -> None:
    shapes.decisions([number], [columns.decision[i]])
    shapes.mediators([number], [columns.mediator[i]])
    state, closing = columns.state[i], columns.closing[i]
    if columns.retracted:
        shapes.check_retracted(number, state, columns.retracted[i])
    if state == "asked":
        if closing is not None or columns.payoff[i] is not None:
            raise shapes.wrong(number, "an asked trial has no payoff and no closing yet")
        return
    if not isinstance(closing, int) or closing < 1:
        raise shapes.wrong(number, f"closing must be a whole number >= 1, got {closing!r:.80}")
    shapes.check_closed(
        ClosedRow(number, closing, state, columns.payoff[i], columns.reason[i], columns.extra[i]), closing
    )


def _pages(storage: Storage, record: StudyRecord, shapes: Shapes, problems: _Problems) -> None:
    """What users read of trials besides: times and workers."""
    first = 0
    while True:
        page: Page | None = problems.without(partial(storage.rows, record.id, first=first, limit=PAGE))
        if page is None or not page.rows:
            return
        try:
            shapes.study_trials(page)
        except StudyDataError:
            for row in page.rows:
                problems.without(partial(shapes.study_trials, Page(page.now, [row])))
        except changes.UNREADABLE as error:
            problems.add(str(error))
        last = page.rows[-1].number
        if not isinstance(last, int) or last < first:
            return
        first = last + 1
