"""A study: a learner in a storage. Workers come and go; what was told stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist import _html
from randomist._checks import flag, whole_number
from randomist.errors import ParameterError, RandomistError, ShapeError
from randomist.learners.base import Learner
from randomist.learners.payoffs import PayoffScale, number
from randomist.learners.trial import Trial
from randomist.spaces import Finite, Space
from randomist.study import changes, replay, telling
from randomist.study.answers import Answers
from randomist.study.asking import Asker, Wish
from randomist.study.checks import check_batch, check_id, check_lease, check_ticket, check_worker, clean
from randomist.study.forks import on_fork
from randomist.study.keeping import Kept
from randomist.study.looking import Looked
from randomist.study.reader import Reader
from randomist.study.records import (
    STATES,
    Counters,
    NewChange,
    NewClosing,
    State,
    StudyRecord,
    StudyTrial,
    WorkerRow,
)
from randomist.study.rows import infeasible
from randomist.study.storages.base import Raced, Storage
from randomist.study.telling import Tell, Teller

if TYPE_CHECKING:
    from randomist.families.base import Family
    from randomist.logs import Log
    from randomist.policies.episodes import Episode
    from randomist.simulation.rounds import Outcome
    from randomist.simulation.run import Run
    from randomist.tasks.base import Task

T = TypeVar("T")


class Study(Answers, Kept, Looked):
    """A learner that survives its process. Made by `create_study` and `load_study`.

    The learner proposes trials, given what was told so far, outside of any transaction; then they are written in one.
    Decisions depend on the seed, on what was told in which order, and on the trials asked before; never on the clock.
    """

    def __init__(self, storage: Storage, record: StudyRecord, worker: str | None = None) -> None:
        self.name, self.lease, self.created_at = record.name, record.lease, record.created_at
        self.storage, self.record = storage, record
        self._worker = None if worker is None else check_worker(worker)
        began = replay.fresh(record.name, record.learner)
        self._finite, self._drawn = isinstance(began.space, Finite), began.space.family.drawn
        self.learner_name = type(began).__name__
        self._reader = Reader(storage, record, began.space)
        self._range, self._kind = PayoffScale(began.payoff_range, began.out_of_range), type(began)
        self._asker = Asker(storage, record, self._reader)
        self._teller = Teller(storage, self._reader, self._asker)
        on_fork(self._asker)

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
        trials = self._asked(1 if batch is None else batch, "batch", lease, ticket, worker)
        return trials[0] if batch is None else trials

    def tell(
        self,
        trial: Trial | int,
        payoff: float | None = None,
        *,
        feasible: bool = True,
        log_likelihoods: Mapping[str, float] | ArrayLike | None = None,
        worker: str | None = None,
    ) -> None:
        """The payoff of a trial, in the user's units; on disk when this returns.

        In any order, from any worker, also after the lease is over. The same again changes nothing.

        In a space of likelihoods, `log_likelihoods` has the log-likelihood of what was done under every policy, by the
        policies' names (`study.names`), or in their order. A policy that was added from scratch after the trial was
        asked may be left out.

        `feasible=False` says that its mediator broke a constraint: it enters no estimate, with or without a payoff, and
        the search keeps away from there. Its state is "failed". `Auto` takes it, other learners refuse.
        """
        self._close(self.as_tell(trial, payoff, feasible=feasible, log_likelihoods=log_likelihoods, worker=worker))

    def tell_all(
        self,
        trials: Sequence[Trial | int],
        payoffs: ArrayLike,
        *,
        log_likelihoods: Sequence[Mapping[str, float] | ArrayLike] | None = None,
        worker: str | None = None,
    ) -> None:
        """The payoffs of several trials, written together; on disk when this returns.

        `log_likelihoods`, in a space of likelihoods, has what `tell` takes, for each trial. Nothing is written where a
        payoff cannot be one. Where a trial refuses its payoff (it was told another one before), the others are told,
        and the first such error is raised: telling all of them again, that one left out, changes nothing.
        """
        self._close(*self.as_tells(trials, payoffs, log_likelihoods, worker))

    def tell_episode(self, trial: Trial | int, episode: Episode, *, worker: str | None = None) -> None:
        """What the policy of a trial did, in a space of policies, `Finite.policies`; on disk when this returns.

        The row holds what the policies say of the episode, and not the episode itself.
        """
        self._close(self.as_episode(trial, episode, worker))

    def fail(self, trial: Trial | int, reason: str = "", *, worker: str | None = None) -> None:
        """A trial that will never be answered: it leaves no trace in the estimates. Again changes nothing."""
        self._close(self.as_failure(trial, reason, worker))

    def confirm(
        self, n: int, *, lease: float | None = None, ticket: str | None = None, worker: str | None = None
    ) -> list[Trial]:
        """`n` trials that play the recommended point itself; on disk when this returns. `Auto` has it.

        Tell them, and `confirmed` has an interval. `lease`, `ticket` and `worker` are as for `ask`.
        """
        return self._asked(n, "n", lease, ticket, worker, confirm=True)

    def optimize(
        self,
        task: Callable[..., Any] | Task | str,
        rounds: int = 100,
        *,
        jobs: int = 1,
        timeout: float | None = None,
        catch: tuple[type[Exception], ...] | None = None,
        fail_fast: bool = True,
        callbacks: Sequence[Callable[[Outcome], Any]] = (),
        progress: Callable[[int], None] | None = None,
        patience: int | None = None,
        until: Literal["sure"] | None = None,
        level: float | None = None,
        confirm: int | None = None,
    ) -> Run:
        """Ask, call a function, tell, `rounds` times: a worker in one line. Gives the run of these rounds.

        The function is called with `trial.parameters` by name, or with the mediator where these have no names. What it
        returns is maximized; return minus the cost to minimize. All other arguments are those of `rd.optimize`: other
        workers may be at work at the same time, and each call of a function that fails is a failed trial of the study.
        """
        from randomist.study.optimize import optimize

        return optimize(
            *(self, task, rounds),
            jobs=jobs,
            timeout=timeout,
            catch=catch,
            fail_fast=fail_fast,
            callbacks=callbacks,
            progress=progress,
            patience=patience,
            until=until,
            level=level,
            confirm=confirm,
        )

    # Many calls at once, as a service has them.

    def as_wish(
        self,
        n: int,
        named: str = "batch",
        *,
        lease: float | None = None,
        ticket: str | None = None,
        worker: str | None = None,
        confirm: bool = False,
    ) -> Wish:
        """What a call of `ask`, or of `confirm`, asks for, checked."""
        seconds = self.lease if lease is None else check_lease(lease)
        name = self.worker if worker is None else check_worker(worker)
        return Wish(check_batch(n, named), name, seconds, None if ticket is None else check_ticket(ticket), confirm)

    def ask_all(self, wishes: Sequence[Wish]) -> list[list[Trial] | Exception]:
        """What each of several calls gets, or its error: one proposal and one transaction serve them."""
        return self._asker.ask(wishes)

    def as_tell(
        self,
        trial: Trial | int,
        payoff: float | None = None,
        *,
        feasible: bool = True,
        log_likelihoods: Mapping[str, float] | ArrayLike | None = None,
        worker: str | None = None,
    ) -> Tell:
        """What a call of `tell` says, checked as far as that needs no look at the trial."""
        new: NewClosing | telling.Observe
        if not flag(feasible, "feasible"):
            self._kind.check_excludes(check_id(trial.id if isinstance(trial, Trial) else trial))
            new = NewClosing(extra=infeasible(None if payoff is None else number(payoff)))
        elif self._drawn:
            new = telling.by_payoff(payoff, log_likelihoods, self._range)
        else:
            new = telling.by_likelihoods(payoff, log_likelihoods, self._range)
        return self._tell(trial, new, worker)

    def as_tells(
        self,
        trials: Sequence[Trial | int],
        payoffs: ArrayLike,
        log_likelihoods: Sequence[Any] | None = None,
        worker: str | None = None,
    ) -> list[Tell]:
        """What a call of `tell_all` says, checked in the same way: an error names the trial."""
        values = np.asarray(payoffs, dtype=object).ravel().tolist()
        given = [None] * len(trials) if log_likelihoods is None else list(log_likelihoods)
        if not len(trials) == len(values) == len(given):
            raise ShapeError(
                f"tell_all takes one payoff per trial (and one entry of log_likelihoods); got {len(trials)} trials, "
                f"{len(values)} payoffs and {len(given)} entries"
            )
        found = []
        for trial, value, each in zip(trials, values, given, strict=True):
            try:
                found.append(self.as_tell(trial, value, log_likelihoods=each, worker=worker))
            except RandomistError as error:
                raise type(error)(f"trial {trial.id if isinstance(trial, Trial) else trial}: {error}") from error
        return found

    def as_episode(self, trial: Trial | int, episode: Episode, worker: str | None = None) -> Tell:
        """What a call of `tell_episode` says."""
        if self._drawn:
            raise ParameterError(
                "episodes are told in a space of policies, Finite.policies(...); here the mediator was drawn by ask: "
                "tell(trial, payoff)"
            )
        return self._tell(trial, telling.by_episode(episode, self._range), worker)

    def as_failure(self, trial: Trial | int, reason: str = "", worker: str | None = None) -> Tell:
        """What a call of `fail` says."""
        return self._tell(trial, NewClosing(reason=clean(reason)), worker)

    def close_all(self, tells: Sequence[Tell]) -> list[Exception | None]:
        """Of each of several tells None, or its error: one transaction serves them."""
        return self._teller.close(tells)

    # Decisions come and go.

    @property
    def space(self) -> Space:
        """Where the study searches: a finite set has all decisions that were added so far, by whichever worker."""
        return self._reader.space

    @property
    def names(self) -> tuple[str, ...]:
        """What each decision of a Finite space is called: its name, or its number."""
        self._check_finite("names")
        space = self.space
        assert isinstance(space, Finite)
        return space.names or tuple(map(str, range(space.size)))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which decisions of a Finite space have not been retired.  (K,)"""
        self._check_finite("decisions")
        found: NDArray[np.bool_] = self.look(lambda learner, _: learner.active)
        return found

    def add(
        self,
        member: Family | None = None,
        name: str | None = None,
        *,
        log_likelihoods: Mapping[int, float] | Sequence[float] | None = None,
        worker: str | None = None,
    ) -> int:
        """One more decision of a Finite space from now on, for all workers: its number. On disk when this returns.

        `member` is a family of one member. All that was told so far informs it like the others. In a space of
        likelihoods there is no member: `log_likelihoods` has those of all that was told so far under the new policy, by
        trial id, or in the order of the tells. Without them it begins from scratch: it learns from its own trials
        alone, and these say nothing about the others.
        """
        self._check_finite("new decisions")
        who = check_worker(worker or self._worker)
        if not self._drawn:
            write = partial(changes.joining, member=member, name=name, log_likelihoods=log_likelihoods, worker=who)
            return self._change(write, log_likelihoods is not None) - 1
        if log_likelihoods is not None:
            raise ParameterError("log_likelihoods are for a space of likelihoods; here the family knows them")
        change = changes.adding(member, name, who)
        return self._change(lambda _: change) - 1

    def retire(self, decision: int | str, *, worker: str | None = None) -> None:
        """A decision, by number or name, is neither played nor recommended any more; on disk when this returns.

        Its trials can be told all the same, and inform the others. Its number is not used again.
        """
        self._check_finite("decisions")
        name = check_worker(worker or self._worker)
        self._change(lambda learner: changes.retiring(learner, decision, name))

    @property
    def learner(self) -> Learner:
        """The learner with all that was told so far: to look at, not to ask or tell."""
        found: Learner = self.look(lambda learner, _: learner)
        return found

    def look(self, read: Callable[[Any, Counters], T]) -> T:
        """Read something off the learner with all that was told so far, while no other thread changes it.

        `read` gets the learner, and how many trials it knows of.
        """
        with self._asker.lock:
            return read(self._asker.replica.synced(), self._asker.replica.known)

    # What is in the storage.

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
            if value is not None and whole_number(value, name, 0) >= 2**62:
                raise ParameterError(f"{name} must be below 2**62, got {value!r}")
        page = self.storage.rows(self.record.id, first=first, limit=limit, states=wanted, worker=worker)
        return self._reader.trials(page)

    def pending(self, worker: str | None = None) -> list[Trial]:
        """Asked and not answered, stale ones included: of all workers, or of one that goes on where it stopped."""
        found = self.trials(("asked", "stale"), worker=worker)
        space = self._reader.known.space
        purposes = {t.id: t.purpose for t in self.learner.pending} if self.learner.Search is not None else {}
        trials = [Trial.of(space, t.id, t.decision, t.mediator) for t in found]
        return [trial._replace(purpose=purposes.get(trial.id)) for trial in trials]

    @property
    def learner_range(self) -> tuple[float, float] | None:
        """The range of payoffs that the learner was given, where that is bounded."""
        scale = self._range
        return None if scale.running or not np.isfinite([scale.low, scale.high]).all() else (scale.low, scale.high)

    def log(self, candidates: Sequence[str] | None = None, **settings: Any) -> Log:
        """All told trials of a Finite space as a log, to evaluate its policies: see `randomist.study.logs`.

        It is adaptive, with own weights. `candidates` are names of policies, by default all whose likelihoods are known
        in every row. `settings` are those of `rd.Log`; the range of payoffs is the study's where that is bounded.
        """
        from randomist.study.logs import log_of

        self._check_finite("logs")
        return log_of(self, candidates, settings)

    def workers(self) -> list[WorkerRow]:
        """How many trials of each state every worker has, and when it was seen last."""
        return self.storage.workers(self.record.id)

    @property
    def counters(self) -> Counters:
        """How many trials were asked, closed (told or failed), told."""
        return self.storage.counters(self.record.id)

    @property
    def told(self) -> int:
        """How many payoffs have been told."""
        return self.counters.told

    def close(self) -> None:
        """Let go of the storage's connections."""
        self.storage.disconnect()

    def __enter__(self) -> Study:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study {self.name!r} of {self.learner_name} in {self.storage.name}>"

    def _repr_html_(self) -> str:
        counters = self.counters
        pending, failed = counters.asked - counters.closed, counters.failed
        rows = [("learner", self.learner_name), ("told", f"{counters.told:,}"), ("failed", f"{failed:,}")]
        rows += [("pending", f"{pending:,}"), ("storage", self.storage.name)]
        return _html.table(f"Study {self.name}", rows)

    # Inside.

    def _asked(
        self, n: int, named: str, lease: float | None, ticket: str | None, worker: str | None, confirm: bool = False
    ) -> list[Trial]:
        wish = self.as_wish(n, named, lease=lease, ticket=ticket, worker=worker, confirm=confirm)
        (trials,) = self.ask_all([wish])
        if isinstance(trials, Exception):
            raise trials
        return trials

    def _change(self, write: Callable[[Any], NewChange], of_told: bool = False) -> int:
        """A decision comes or goes: how many there are then. Checked against all changes before it, then written.

        With `of_told` it must have been checked against all that was closed, too; so must the first one.
        """
        with self._asker.lock:
            replica = self._asker.replica
            while True:
                change = write(replica.synced())
                changed: Any = replica.changed(change)
                known = replica.known
                closed = known.closed if not self._drawn and (of_told or not known.told) else None
                try:
                    row = self.storage.change(self.record.id, change, known.changes, closed)
                except Raced:
                    continue
                replica.adopt(changed, row)
                return int(changed.space.size)

    def _close(self, *tells: Tell) -> None:
        errors = [error for error in self.close_all(tells) if error is not None]
        if errors:
            raise errors[0]

    def _tell(self, trial: Trial | int, new: NewClosing | telling.Observe, worker: str | None) -> Tell:
        tell = Tell(trial, new, self.worker if worker is None else check_worker(worker))
        check_id(tell.id)
        return tell
