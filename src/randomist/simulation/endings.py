"""When a run ends before its last round: one decision is left that may be best, or payoffs no longer improve."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from randomist._checks import choice, whole_number
from randomist._types import Array, Indices
from randomist.errors import ParameterError

if TYPE_CHECKING:
    from randomist.learners.base import Learner


def sure_level(learner: Learner, until: Any, level: float | None) -> float | None:
    """The level at which a run ends that is to go on until one decision is left that may be best."""
    if until is None:
        if level is not None and not hasattr(learner, "level"):
            raise ParameterError(f'level={level!r} says when a run is sure: give until="sure" too')
        return None
    choice(until, ("sure",), "until")
    surviving = getattr(learner, "surviving", None)
    if surviving is None:
        raise ParameterError(
            f'until="sure" is for finite sets, and {type(learner).__name__} searches a box, where there are endless '
            "decisions; give patience=, which ends a run when payoffs no longer improve, or rounds alone"
        )
    chosen = getattr(learner, "level", 0.95) if level is None else level
    try:
        surviving(chosen)  # raises where nothing can ever be sure
    except ParameterError as error:
        raise ParameterError(f'until="sure": {error}; or give patience= instead') from error
    return float(chosen)


def when_sure(sure: Callable[[], Indices]) -> Callable[[int], str | None]:
    """Looks always in the first 100 rounds, then once in a hundredth of them."""

    def ending(done: int) -> str | None:
        due = done % max(1, done // 100) == 0
        return "one decision is left that may be best" if due and len(sure()) == 1 else None

    return ending


def when_settled(payoffs: Callable[[], Array], patience: int) -> Callable[[int], str | None]:
    """The last `patience` payoffs are on average no better than as many before them, by a standard error."""
    n = whole_number(patience, "patience", 2)

    def ending(done: int) -> str | None:
        told = payoffs()
        if len(told) < 2 * n:
            return None
        before, last = told[-2 * n : -n], told[-n:]
        if _improved(before, last):
            return None
        return f"the last {n} payoffs were no better than the {n} before"

    return ending


def _improved(before: Array, last: Array) -> bool:
    error = math.sqrt((before.var(ddof=1) + last.var(ddof=1)) / len(last))
    return bool(np.mean(last) - np.mean(before) > error)
