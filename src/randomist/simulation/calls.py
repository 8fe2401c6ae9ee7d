"""What a trial is answered with, and calls in this process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from randomist._checks import real
from randomist.errors import ParameterError, PayoffError
from randomist.tasks.base import Task
from randomist.tasks.function import FunctionTask, payoff_of

if TYPE_CHECKING:
    from randomist.learners.trial import Trial

Catch: TypeAlias = tuple[type[Exception], ...]
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
TASK_STREAM = 2  # of the seed; 0 and 1 are the learner's


class Answer(NamedTuple):
    """A payoff, or the reason why there is none; an `error` that is not `caught` ends the run."""

    payoff: float | None
    reason: str = ""
    error: Exception | None = None
    caught: bool = True


class Calls(Protocol):
    """Where trials are answered: begun while some are `free`, and taken as they finish."""

    @property
    def free(self) -> int: ...
    def begin(self, trial: Trial) -> None: ...
    def finished(self) -> list[tuple[Trial, Answer]]: ...
    def close(self) -> None: ...


class NoPayoffError(PayoffError):
    """A task had no finite payoff."""


class Here:
    """One call after the other, in this process."""

    def __init__(self, function: Callable[..., Any], arguments: Callable[[Trial], Arguments], catch: Catch) -> None:
        self._function, self._arguments, self._catch = function, arguments, catch
        self._trial: Trial | None = None

    @property
    def free(self) -> int:
        return int(self._trial is None)

    def begin(self, trial: Trial) -> None:
        self._trial = trial

    def finished(self) -> list[tuple[Trial, Answer]]:
        trial, self._trial = self._trial, None
        assert trial is not None
        args, named = self._arguments(trial)
        return [(trial, answer(self._function, args, named, self._catch))]

    def close(self) -> None:
        """There is nothing to end."""


def answer(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], catch: Catch) -> Answer:
    """One call, and what came of it."""
    try:
        returned = function(*args, **named)
    except NoPayoffError as error:
        return Answer(None, str(error), error)
    except Exception as error:
        return Answer(None, reason_of(error), error, isinstance(error, catch))
    try:
        return Answer(payoff_of(returned))
    except PayoffError as error:
        return Answer(None, str(error), error)


def reason_of(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def callable_of(
    task: Task, seed: int, rng: np.random.Generator | None
) -> tuple[Callable[..., Any], Callable[[Trial], Arguments]]:
    """What is called for a trial, and with what.

    A task draws from `rng`, one trial after the other; without it, as in other processes, from a stream of the trial.
    """
    if isinstance(task, FunctionTask):
        return task.function, lambda trial: task.arguments(trial.mediator)

    def arguments(trial: Trial) -> Arguments:
        own = np.random.SeedSequence(seed, spawn_key=(TASK_STREAM, trial.id)) if rng is None else rng
        return (trial.mediator, own), {}

    return partial(_task_payoff, task), arguments


def checked_catch(catch: Any, task: Task) -> Catch:
    """Exceptions that fail a trial: all that a plain function raises, and none that a task does, unless it is said."""
    if catch is None:
        return (Exception,) if isinstance(task, FunctionTask) else ()
    classes = catch if isinstance(catch, tuple | list) else (catch,)
    for one in classes:
        if not (isinstance(one, type) and issubclass(one, Exception)):
            raise ParameterError(
                f"catch must be a tuple of classes of exceptions, such as (ValueError,), got {one!r:.80}"
            )
    return tuple(classes)


def _task_payoff(task: Task, mediator: Any, source: np.random.Generator | np.random.SeedSequence) -> float:
    try:
        payoff = real(task.payoff(np.asarray(mediator)[None], np.random.default_rng(source))[0])
    except PayoffError as error:
        raise NoPayoffError(f"the task returned no number: {error}") from error
    if not np.isfinite(payoff):
        raise NoPayoffError(f"the task returned {payoff} for mediator {mediator}")
    return payoff
