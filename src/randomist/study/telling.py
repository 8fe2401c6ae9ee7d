"""How a trial is told in a space whose mediators the environment produces: what was done comes with the payoff."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from randomist.errors import ClosedTrialError, MediatorError, ParameterError, ShapeError, UnknownTrialError
from randomist.learners.base import Trial
from randomist.learners.finite.changing import decision_number
from randomist.learners.payoffs import PayoffScale, number
from randomist.spaces import Finite
from randomist.study import observed
from randomist.study.checks import check_id
from randomist.study.reader import Known, Reader
from randomist.study.records import NewClosing
from randomist.study.storages.base import Raced, never_asked

if TYPE_CHECKING:
    from randomist.policies.episodes import Episode

Observe = Callable[[Known, int, int], NewClosing]  # of what is known of the policies, a trial's id and its decision
Close = Callable[[NewClosing, int], None]  # writes it, if there were so many changes; else `Raced`


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


def tell(reader: Reader, trial: Trial | int, observe: Observe, close: Close) -> None:
    """Check what was done against the policies that there are, and write it before others come."""
    id_ = check_id(trial.id if isinstance(trial, Trial) else trial)
    while True:
        decision = _decision(reader, trial, id_)
        known = reader.known
        try:
            new = observe(known, id_, decision)
        except (MediatorError, ShapeError):
            if not reader.look():
                raise
            continue  # there are other policies by now
        try:
            close(new, known.changes)
            return
        except Raced:
            reader.look()
        except ClosedTrialError:
            (row,) = reader.storage.rows(reader.record.id, first=id_, limit=1).rows
            if row.payoff == new.payoff and observed.same(row.extra, new.extra):
                return  # told the same, when there were fewer policies
            raise


def _decision(reader: Reader, trial: Trial | int, id_: int) -> int:
    """Which policy acted in a trial."""
    if isinstance(trial, Trial):
        for look in (False, True):
            if look:
                reader.look()
            try:
                return decision_number(trial.decision, _finite(reader.known).size)
            except ParameterError:
                continue
        raise UnknownTrialError(f"{trial} is not a trial of study {reader.record.name!r}; tell the one it gave")
    rows = reader.storage.rows(reader.record.id, first=id_, limit=1)
    if not rows.rows or rows.rows[0].number != id_:
        raise never_asked(id_)
    return int(reader.trials(rows)[0].decision)


def _finite(known: Known) -> Finite:
    assert isinstance(known.space, Finite)
    return known.space


def _checked(payoff: Any, scale: PayoffScale) -> float:
    value = number(payoff)
    if not scale.running:
        scale.unit(value)  # refuses
    return value
