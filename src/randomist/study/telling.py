"""How trials are told: checked, then written, several calls at once.

Where the environment produces mediators, what was done comes with the payoff, and is checked against the policies that
there are at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from randomist.errors import (
    ClosedTrialError,
    MediatorError,
    ParameterError,
    RandomistError,
    ShapeError,
    StudyDataError,
    UnknownTrialError,
)
from randomist.learners.finite.changing import decision_number
from randomist.learners.payoffs import PayoffScale, number
from randomist.learners.trial import Trial
from randomist.spaces import Finite
from randomist.study import observed
from randomist.study.asking import Asker
from randomist.study.checks import LARGEST_BATCH, check_id
from randomist.study.reader import Known, Reader
from randomist.study.records import Closed, ClosedRow, NewClosing, NewTell
from randomist.study.storages.base import Raced, Storage, never_asked

if TYPE_CHECKING:
    from randomist.policies.episodes import Episode

Observe = Callable[[Known, int, int], NewClosing]  # of what is known of the policies, a trial's id and its decision


class Tell(NamedTuple):
    """What one call says of a trial."""

    trial: Trial | int
    new: NewClosing | Observe  # what its row gets, or how that follows from what was done
    worker: str

    @property
    def id(self) -> int:
        return check_id(self.trial.id if isinstance(self.trial, Trial) else self.trial)


def by_payoff(payoff: Any, log_likelihoods: Any, scale: PayoffScale) -> NewClosing:
    """What `tell(trial, payoff)` writes."""
    if log_likelihoods is not None:
        raise ParameterError(
            "log_likelihoods are told in a space of likelihoods, Finite.likelihoods(K); here the family knows them"
        )
    return NewClosing(_checked(payoff, scale))


def by_likelihoods(payoff: Any, log_likelihoods: Any, scale: PayoffScale) -> Observe:
    """What `tell(trial, payoff, log_likelihoods=...)` writes."""
    value = _checked(payoff, scale)

    def observe(known: Known, trial: int, decision: int) -> NewClosing:
        space = _finite(known)
        family: Any = space.family
        if family.steps_known:
            family.observe(decision, value, log_likelihoods)  # refuses
        arrivals = known.shapes.arrivals
        vector = observed.likelihoods_told(space, log_likelihoods, trial, decision, arrivals, known.alone)
        return NewClosing(value, extra=observed.text_of(vector))

    return observe


def by_episode(episode: Episode, scale: PayoffScale) -> Observe:
    """What `tell_episode(trial, episode)` writes."""

    def observe(known: Known, _: int, decision: int) -> NewClosing:
        family: Any = _finite(known).family
        payoff, mediator = family.observe_episode(decision, episode)
        return NewClosing(_checked(payoff, scale), extra=observed.text_of_mediator(mediator))

    return observe


class Teller:
    """Writes what is told to a study. The learner of this process hears of it where nobody else is using it."""

    def __init__(self, storage: Storage, reader: Reader, asker: Asker) -> None:
        self.storage, self.reader, self.asker = storage, reader, asker
        self.study = reader.record.id

    def close(self, tells: Sequence[Tell]) -> list[Exception | None]:
        """Of each call None, or the error that it raises; on disk when this returns."""
        answers: dict[int, Exception | None] = {}
        while len(answers) < len(tells):
            open_ = ((i, tell) for i, tell in enumerate(tells) if i not in answers)
            left = dict(islice(open_, LARGEST_BATCH))  # of one transaction
            try:
                answers |= self._close(left)
            except StudyDataError as error:  # of the row of one of them
                alone = len(left) == 1
                answers |= {i: error if alone else self.close([tell])[0] for i, tell in left.items()}
            except RandomistError as error:
                answers |= dict.fromkeys(left, error)
        return [answers[i] for i in range(len(tells))]

    def _close(self, tells: dict[int, Tell]) -> dict[int, Exception | None]:
        """What becomes of some of the calls; those for which there are other policies by now are not among them."""
        decisions = self._decisions([tell for tell in tells.values() if callable(tell.new)])
        known = self.reader.known
        ready: dict[int, NewTell] = {}
        answers: dict[int, Exception | None] = {}
        for i, tell in tells.items():
            try:
                ready[i] = self._new(tell, known, decisions)
            except (MediatorError, ShapeError) as error:
                if not callable(tell.new) or (known is self.reader.known and not self.reader.look()):
                    answers[i] = error  # else there are other policies by now
            except RandomistError as error:
                answers[i] = error
        written = self.storage.close_all(self.study, [*ready.values()]) if ready else []
        for (i, new), outcome in zip(ready.items(), written, strict=True):
            if isinstance(outcome, Raced):
                self.reader.look()
                continue
            again = isinstance(outcome, ClosedTrialError) and callable(tells[i].new) and self._said(new)
            answers[i] = outcome if isinstance(outcome, Exception) and not again else None
        self._tell_learner(ready.values(), written)
        return answers

    def _new(self, tell: Tell, known: Known, decisions: dict[int, int]) -> NewTell:
        ticket = None
        if isinstance(tell.trial, Trial):
            try:
                ticket = known.shapes.texts(tell.trial)
            except (TypeError, ValueError, OverflowError):
                raise self._strange(tell) from None
        if not callable(tell.new):
            return NewTell(tell.id, tell.new._replace(closed_by=tell.worker), ticket)
        if tell.id not in decisions:
            raise never_asked(tell.id) if ticket is None else self._strange(tell)
        new = tell.new(known, tell.id, decisions[tell.id])
        return NewTell(tell.id, new._replace(closed_by=tell.worker), ticket, known.changes)

    def _decisions(self, tells: Sequence[Tell]) -> dict[int, int]:
        """Which policy acted in each trial, by the trials' ids: as the trial says, or as its row does."""
        given = {tell.id: self._acted(tell.trial.decision) for tell in tells if isinstance(tell.trial, Trial)}
        found = {id_: decision for id_, decision in given.items() if decision is not None}
        wanted = sorted({tell.id for tell in tells if not isinstance(tell.trial, Trial)})
        return found | self.reader.decisions(self.storage.some(self.study, wanted)) if wanted else found

    def _acted(self, decision: Any) -> int | None:
        """The number of a policy that there is, maybe since the last look."""
        for look in (False, True):
            if look:
                self.reader.look()
            try:
                return decision_number(decision, _finite(self.reader.known).size)
            except ParameterError:
                continue
        return None

    def _said(self, new: NewTell) -> bool:
        """Whether a trial was told the same before, when there were fewer policies."""
        (row,) = self.storage.some(self.study, [new.number])
        return row.payoff == new.new.payoff and observed.same(row.extra, new.new.extra)

    def _strange(self, tell: Tell) -> UnknownTrialError:
        return UnknownTrialError(
            f"{tell.trial} is not a trial of study {self.reader.record.name!r}; tell the one it gave"
        )

    def _tell_learner(self, tells: Iterable[NewTell], written: Sequence[Closed | Exception]) -> None:
        if not self.asker.lock.acquire(blocking=False):
            return  # the next ask reads it
        try:
            for tell, outcome in zip(tells, written, strict=True):
                if isinstance(outcome, Closed) and outcome.new:
                    row = ClosedRow(tell.number, outcome.place, tell.new.state, *tell.new[:3])
                    self.asker.replica.close(row, tell.changes)
        finally:
            self.asker.lock.release()


def _finite(known: Known) -> Finite:
    assert isinstance(known.space, Finite)
    return known.space


def _checked(payoff: Any, scale: PayoffScale) -> float:
    value = number(payoff)
    if not scale.running:
        scale.unit(value)  # refuses
    return value
