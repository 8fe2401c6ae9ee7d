"""A study: a learner in a database. Workers come and go; what was told stays."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import threading
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Any, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from randomist.errors import ParameterError, SpaceError, StudyExistsError, UnknownTrialError
from randomist.histories.finite import Estimates
from randomist.learners.base import Learner, Trial
from randomist.learners.box.auto import Auto
from randomist.learners.box.base import BoxLearner
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.payoffs import PayoffScale, number
from randomist.spaces import Space
from randomist.study import replay
from randomist.study.checks import check_id, check_lease, check_name, check_ticket, check_worker, clean
from randomist.study.database import PATIENCE, Database
from randomist.study.records import Counters, Draft, Order, State, StudyRow, StudyTrial
from randomist.study.rows import Shapes, plain
from randomist.study.storage import Raced, Storage

LEASE = 3600.0  # seconds
LARGEST_BATCH = 1000
CROWDED = 64  # asks from a private stream after a race was lost
CHECKPOINT = 2000  # closings between checkpoints, or a quarter of all if that is more
STATES: tuple[State, ...] = ("asked", "told", "failed", "stale")


def create_study(
    name: str,
    learner: Learner,
    *,
    storage: str | Storage,
    lease: float = LEASE,
    worker: str | None = None,
    exist_ok: bool = False,
    patience: float = PATIENCE,
) -> Study:
    """A new study of a fresh learner, in a database: `sqlite:///study.db`, or `postgresql://user@host/name`.

    `lease` is how many seconds a worker has until its trial counts as stale. With `exist_ok=True` a study of the same
    name and the same learner is loaded, so that every worker can run the same script. `patience` is how many seconds to
    wait for a database that is busy or away.
    """
    check_name(name)
    if not isinstance(learner, Learner):
        raise ParameterError(f"a study is made of a learner, got {type(learner).__name__}")
    if not learner.space.family.drawn or not learner.record.keep:
        raise ParameterError(
            "a study keeps what `ask` draws and `tell` is told: it takes no space of likelihoods or trajectories, and "
            "no learner with keep_record=False"
        )
    text = replay.describe(learner)
    if not replay.is_fresh(learner, replay.fresh(name, text)):
        raise ParameterError("a study begins with a fresh learner, this one was asked or told before; make a new one")
    rows = open_storage(storage, patience)
    try:
        row = rows.create(name, text, check_lease(lease))
    except StudyExistsError:
        if not exist_ok:
            raise
        row = rows.find(name)
        if not _same_learner(row.learner, text):
            raise StudyExistsError(
                f"study {name!r} exists with another learner or other settings; take another name, or load_study"
            ) from None
    return Study(rows, row, worker)


def load_study(name: str, *, storage: str | Storage, worker: str | None = None, patience: float = PATIENCE) -> Study:
    """A study that was created before, by whichever process."""
    rows = open_storage(storage, patience)
    return Study(rows, rows.find(check_name(name)), worker)


def study_names(storage: str | Storage) -> list[str]:
    """The studies of a database, the oldest first."""
    return open_storage(storage).names()


def open_storage(storage: str | Storage, patience: float = PATIENCE) -> Storage:
    return storage if isinstance(storage, Storage) else Storage(Database(storage, patience=patience))


class Study:
    """A learner that survives its process. Made by `create_study` and `load_study`.

    An ask is computed on a snapshot, the trials told so far, outside of any transaction; then it is written in one. The
    decisions depend on the seed, on what was told in which order, and on the trials asked before; never on the clock.
    """

    def __init__(self, storage: Storage, row: StudyRow, worker: str | None = None) -> None:
        self.name, self.lease, self.created_at = row.name, row.lease, row.created_at
        self.storage = storage
        self._row = row
        self._worker = None if worker is None else check_worker(worker)
        began = replay.fresh(row.name, row.learner)
        self.space: Space = began.space
        self.learner_name = type(began).__name__
        self._shapes = Shapes(row.name, began.space)
        self._range = PayoffScale(began.payoff_range, began.out_of_range)
        self._finite = isinstance(began, FiniteLearner)
        self._learner: Learner | None = None  # in step with the first `asked` asks and `closed` closings
        self._known = Counters(0, 0, 0, 0)
        self._crowded = 0
        self._salt: tuple[int, tuple[int, ...]] = (0, ())  # the process, and four words of its own
        self._private = itertools.count()
        self._lock = threading.RLock()

    @property
    def worker(self) -> str:
        """Under which name trials are asked: as given, or machine and process."""
        return self._worker or check_worker(None)

    # The learner's protocol.

    @overload
    def ask(self, *, lease: float | None = None, ticket: str | None = None, worker: str | None = None) -> Trial: ...
    @overload
    def ask(
        self, batch: int, *, lease: float | None = None, ticket: str | None = None, worker: str | None = None
    ) -> list[Trial]: ...
    def ask(
        self,
        batch: int | None = None,
        *,
        lease: float | None = None,
        ticket: str | None = None,
        worker: str | None = None,
    ) -> Trial | list[Trial]:
        """The next trial, or the next `batch` of them; on disk when this returns.

        Asking again with the same `ticket` (any text) gives the same trial again, so a lost answer can be repeated.
        """
        n = 1 if batch is None else batch
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= LARGEST_BATCH:
            raise ParameterError(f"batch must be a whole number in 1..{LARGEST_BATCH}, got {batch!r}")
        seconds = self.lease if lease is None else check_lease(lease)
        name = self.worker if worker is None else check_worker(worker)
        trials = None if ticket is None else self._asked_before(check_ticket(ticket), int(n))
        if trials is None:
            trials = self._ask(int(n), seconds, ticket, name)
        return trials[0] if batch is None else trials

    def tell(self, trial: Trial | int, payoff: float) -> None:
        """The payoff of a trial, in the user's units; on disk when this returns.

        In any order, from any worker, also after the lease is over. The same payoff again changes nothing.
        """
        value = number(payoff)
        if not self._range.running:
            self._range.unit(value)  # refuses
        self._close(trial, value, None)

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """A trial that will never be answered: it leaves no trace in the estimates. Again changes nothing."""
        self._close(trial, None, clean(reason))

    def estimates(self) -> Estimates:
        """What all told trials say about every decision of a Finite space."""
        with self._lock:
            learner = self._synced()
            if not isinstance(learner, FiniteLearner):
                raise SpaceError(f"{self.learner_name} searches a box; ask for estimate(decisions)")
            return learner.estimates()

    def estimate(self, decisions: ArrayLike) -> Estimates:
        """What all told trials say about any decisions of a Box."""
        with self._lock:
            learner = self._synced()
            if not isinstance(learner, BoxLearner | Auto):
                raise SpaceError(f"{self.learner_name} searches a finite set; ask for estimates()")
            return learner.estimate(decisions)

    def recommend(self) -> Any:
        """The decision with the best estimated value, as the learner says it."""
        with self._lock:
            return self._synced().recommend()

    @property
    def learner(self) -> Learner:
        """The learner with all that was told so far: to look at, not to ask or tell."""
        with self._lock:
            return self._synced()

    # What is in the database.

    def trials(
        self,
        states: Sequence[State] | State = STATES,
        *,
        first: int = 0,
        limit: int | None = None,
        worker: str | None = None,
    ) -> list[StudyTrial]:
        """Trials by id, from `first` on, `limit` at most: those in certain states, or of one worker."""
        wanted = (states,) if isinstance(states, str) else tuple(states)
        if not set(wanted) <= set(STATES):
            raise ParameterError(f"states are {', '.join(STATES)}; got {states!r}")
        for name, value in (("first", first), ("limit", limit)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62):
                raise ParameterError(f"{name} must be a whole number >= 0, got {value!r}")
        now, rows = self.storage.rows(self._row.id, first=first, limit=limit, states=wanted, worker=worker)
        numbers = [row.number for row in rows]
        decisions = self._shapes.decisions(numbers, [row.decision for row in rows])
        mediators = self._shapes.mediators(numbers, [row.mediator for row in rows])
        return [
            self._trial(row, decision, mediator, now)
            for row, decision, mediator in zip(rows, decisions, mediators, strict=True)
        ]

    def pending(self, worker: str | None = None) -> list[Trial]:
        """Asked and not answered, stale ones included: of all workers, or of one that goes on where it stopped."""
        return [Trial(t.id, t.decision, t.mediator) for t in self.trials(("asked", "stale"), worker=worker)]

    @property
    def counters(self) -> Counters:
        """How many trials were asked, closed (told or failed), told."""
        return self.storage.counters(self._row.id)

    @property
    def told(self) -> int:
        """How many payoffs have been told."""
        return self.counters.told

    def close(self) -> None:
        """Let go of the database's connections."""
        self.storage.database.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {self.name!r} of {self.learner_name} in {self.storage.database.name}>"

    # Inside.

    def _asked_before(self, ticket: str, n: int) -> list[Trial] | None:
        rows = self.storage.with_ticket(self._row.id, ticket, n)
        return self._tickets(rows) if rows else None

    def _ask(self, n: int, lease: float, ticket: str | None, worker: str) -> list[Trial]:
        order = Order(ticket or uuid.uuid4().hex, ticket is not None, worker, lease)
        with self._lock:
            while True:
                learner = self._synced()
                known, private = self._known, self._crowded > 0
                self._learner = None  # an ask leaves marks on it, which must not stay unless it is written
                trials, drafts = self._draw(learner, n, private)
                try:
                    expected = None if private else known.asked
                    first = self.storage.ask(self._row.id, drafts, order, known.closed, expected)
                except Raced:  # what was drawn is forgotten; the trials of the others come with the next news
                    self._forget(learner, trials, known.asked)
                    self._learner, self._crowded = learner, CROWDED
                    continue
                if not isinstance(first, int):
                    return self._tickets(first)
                self._crowded = max(0, self._crowded - n)
                if first == known.asked:
                    self._known = known._replace(asked=first + n)
                else:  # others asked, too: the next news has their trials and this one, in order
                    self._forget(learner, trials, known.asked)
                    trials = [trial._replace(id=first + i) for i, trial in enumerate(trials)]
                self._learner = learner
                self._checkpoint(learner)
                return trials

    def _draw(self, learner: Learner, n: int, private: bool) -> tuple[list[Trial], list[Draft]]:
        trials, drafts = [], []
        for _ in range(n):
            key: tuple[int, ...] = (2, learner._next_id)
            stream = None
            if private:
                key = (3, *self._own_salt(), next(self._private))
                stream = "".join(f"{word:08x}" for word in key[1:-1]) + f":{key[-1]}"
            replay.seed(learner, key)
            trial = learner.ask()
            trials.append(trial)
            decision, mediator = self._shapes.decision_text(trial.decision), self._shapes.mediator_text(trial.mediator)
            drafts.append(Draft(decision, mediator, replay.marks_of(learner), stream))
        return trials, drafts

    def _own_salt(self) -> tuple[int, ...]:
        if self._salt[0] != os.getpid():  # a forked worker must not repeat its parent
            self._salt = os.getpid(), tuple(secrets.randbits(32) for _ in range(4))
        return self._salt[1]

    @staticmethod
    def _forget(learner: Learner, trials: Sequence[Trial], first: int) -> None:
        for trial in trials:
            del learner._pending[trial.id]
        learner._next_id = first

    def _close(self, trial: Trial | int, payoff: float | None, reason: str | None) -> None:
        ticket: tuple[str, str] | None = None
        if isinstance(trial, Trial):
            try:
                ticket = self._shapes.decision_text(trial.decision), self._shapes.mediator_text(trial.mediator)
            except (TypeError, ValueError, OverflowError):
                raise UnknownTrialError(
                    f"{trial} is not a trial of study {self.name!r}; tell the one it gave"
                ) from None
        id_ = check_id(trial.id if isinstance(trial, Trial) else trial)
        place, fresh = self.storage.close(self._row.id, id_, payoff, reason, ticket)
        if fresh and self._lock.acquire(blocking=False):  # else the next ask reads it
            try:
                if self._learner is not None and place == self._known.closed + 1 and id_ in self._learner._pending:
                    replay.close(self._learner, self._shapes, replay.Closing(id_, payoff, reason or ""))
                    told = self._known.told + (payoff is not None)
                    self._known = self._known._replace(closed=place, told=told)
            finally:
                self._lock.release()

    def _synced(self) -> Learner:
        """The learner, with everything that is in the database now."""
        if self._learner is None:
            self._learner, self._known = replay.replay(self.storage, self._row.id, self._shapes, self._row.learner)
            return self._learner
        learner, known = self._learner, self._known
        now, asks, closings = self.storage.news(self._row.id, known.asked, known.closed)
        self._learner = None  # until all of it has arrived
        if (len(asks), len(closings)) != (now.asked - known.asked, now.closed - known.closed):
            return self._synced()  # rows are not where they should be: the whole study will show which
        for trial in self._tickets(asks):
            learner._adopt(trial)
        if asks:
            learner._adopt(trial, replay.marks(learner, self._shapes, asks[-1]))
        for place, row in enumerate(closings, start=known.closed + 1):
            replay.close(learner, self._shapes, replay.closing(self._shapes, row, place))
        self._learner, self._known = learner, now
        return learner

    def _tickets(self, rows: Sequence[Any]) -> list[Trial]:
        numbers = [row.number for row in rows]
        decisions = self._shapes.decisions(numbers, [row.decision for row in rows])
        mediators = self._shapes.mediators(numbers, [row.mediator for row in rows])
        return [Trial(i, plain(x), plain(z)) for i, x, z in zip(numbers, decisions, mediators, strict=True)]

    def _checkpoint(self, learner: Learner) -> None:
        closed, saved = self._known.closed, self._known.checkpointed
        if closed - saved >= max(CHECKPOINT, closed // 4):
            self.storage.save(self._row.id, replay.checkpoint_of(learner, closed))
            self._known = self._known._replace(checkpointed=closed)

    def _trial(self, row: Any, decision: Any, mediator: Any, now: float) -> StudyTrial:
        state = row.state
        times = [row.asked_at, row.lease_until, *([] if row.closed_at is None else [row.closed_at])]
        if not all(isinstance(moment, float | int) for moment in times):
            raise self._shapes.wrong(row.number, f"its times must be numbers, got {times}")
        if state == "asked":
            if row.closing is not None or row.payoff is not None:
                raise self._shapes.wrong(row.number, "an asked trial has no payoff and no closing yet")
            state = "stale" if row.lease_until < now else "asked"
        else:
            replay.closing(self._shapes, row, row.closing)
        return StudyTrial(
            row.number,
            cast(State, state),
            plain(decision),
            plain(mediator),
            row.payoff,
            str(row.worker),
            row.reason,
            row.asked_at,
            row.lease_until,
            row.closed_at,
            row.closing,
        )


def _same_learner(ours: Any, theirs: str) -> bool:
    try:
        return bool(json.loads(ours) == json.loads(theirs))
    except (TypeError, json.JSONDecodeError):
        return False
