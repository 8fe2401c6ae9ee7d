"""Decisions that come while a learner runs: it is rebuilt with one more of them, from all that it was told."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from randomist._checks import reals, shown
from randomist._types import Array
from randomist.errors import MediatorError, ParameterError, ShapeError

if TYPE_CHECKING:
    from randomist.learners.finite.base import FiniteLearner


def added(learner: FiniteLearner, member: Any, name: str | None, log_likelihoods: Any) -> int:
    """The learner as if it had had one more decision all the time; the number of that. Raises before it changes it."""
    record, told = learner.record, learner.told
    if not record.keep:
        raise ParameterError(
            "a learner with keep_record=False has forgotten what a new decision would be estimated from; leave it at "
            "True to add decisions"
        )
    if told != len(record):
        raise ParameterError(
            f"{told - len(record)} rows were absorbed from a log, which does not say what a new decision would have "
            "done there; make a new learner of all decisions, and absorb a log with its likelihoods"
        )
    space = learner.space.with_member(member, name)
    number, state = learner.space.size, learner.state()
    mediators = state["record"]["mediators"]
    if space.family.drawn:
        if log_likelihoods is not None:
            raise ParameterError("log_likelihoods are for a space of likelihoods; here the family knows them")
        mediators = mediators.astype(space.family.dtype)
    else:
        column = _column(log_likelihoods, record.decisions)
        mediators = np.concatenate([mediators, column[:, None]], axis=1)
        if log_likelihoods is None and len(record):
            state["decisions"]["alone"] = np.append(state["decisions"]["alone"], number)
    state["record"] = state["record"] | {"mediators": mediators}
    state["decisions"]["arrived"] = np.append(state["decisions"]["arrived"], state["next_id"])
    settings = {f.name: getattr(learner, f.name) for f in fields(learner) if f.name != "space"}
    grown = type(learner)(space, **settings)
    if grown.opens(number):
        state["decisions"]["opening"] = np.append(state["decisions"]["opening"], number)
    grown.restore(state | {"caches": None})
    if space.family.drawn:
        _check_pending(grown)
    grown.guard = learner.guard
    vars(learner).update(vars(grown))
    return number


def _check_pending(grown: FiniteLearner) -> None:
    """Refuse a point mass where a pending trial was drawn from a density: beside it, that could not be weighed."""
    for trial in grown.pending:
        if grown.space.family.log_densities(trial.mediator)[trial.decision] == -np.inf:
            raise MediatorError(
                f"the new member is a point mass at {trial.mediator!r:.80}, where trial {trial.id} of decision "
                f"{trial.decision} was drawn from a density; it is still to be told, and could not be weighed: tell it "
                "or fail it first, or move the new member a little"
            )


def apart(mediator: Array, decision: int, alone: AbstractSet[int]) -> Array:
    """Log-likelihoods where policies that came from scratch share nothing with others.

    What was done before they came has no likelihood under them, so that a mixture of all policies cannot be formed:
    their trials and those of the others stay apart, and all estimates unbiased.
    """
    own, mediator = mediator[decision], mediator.copy()
    mediator[slice(None) if decision in alone else list(alone)] = -np.inf
    mediator[decision] = own
    mediator.flags.writeable = False
    return mediator


def decision_number(value: Any, size: int) -> int:
    """A decision of a finite set."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < size:
        raise ParameterError(f"a decision is a whole number in 0..{size - 1}, got {value!r:.80}")
    return int(value)


def _column(log_likelihoods: Any, told: NDArray[Any]) -> Array:
    """What the new policy's likelihoods were of all that was told; -inf of everything where they are not known."""
    if log_likelihoods is None:
        return np.full(len(told), -np.inf)
    try:
        column = reals(log_likelihoods, "a log-likelihood")
    except (TypeError, ValueError):
        raise MediatorError(f"log_likelihoods must be numbers, got {shown(log_likelihoods)}") from None
    if column.shape != told.shape:
        raise ShapeError(
            f"log_likelihoods must have shape {told.shape}, one per payoff told so far in the order of `record`, got "
            f"{column.shape}; leave them out to begin from scratch"
        )
    if not (column < np.inf).all():
        wrong = int(np.argmin(column < np.inf))
        raise MediatorError(f"log_likelihoods must be numbers or -inf, got {column[wrong]} for the told sample {wrong}")
    return column
