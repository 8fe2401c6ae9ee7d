"""A plain function as a task: of named parameters, of a point of a box, or of a mediator."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array, real, shown
from randomist._types import Array
from randomist.errors import ParameterError, PayoffError, TaskError
from randomist.tasks.base import Task

if TYPE_CHECKING:
    from randomist.parameters import Meaning
    from randomist.spaces import Box, Finite, Parameters, Space


class FunctionTask(Task):
    """The payoff is what `function` returns, in units of its own.

    With `Parameters` it is called with keyword arguments, `function(kp=3.2, taps=4)`. In another `Box` it is called
    with a point: a number, or an array. Both are always within their bounds. In a `Finite` space it is called with the
    mediator.
    """

    payoff_range = (-math.inf, math.inf)

    def __init__(self, function: Callable[..., Any], space: Space) -> None:
        from randomist.spaces import Box

        self.function, self.space = function, space
        self.id = name_of(function)
        self.box: Box | None = space if isinstance(space, Box) else None
        self.named: Meaning | None = None if self.box is None else self.box.meaning
        if self.named is not None:
            _check_arguments(function, self.named.names)

    def arguments(self, mediator: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the function is called with, by position and by name."""
        if self.named is not None:
            return (), self.named.named(mediator)
        value = np.array(mediator)
        if self.box is not None:
            value = np.clip(value.reshape(-1), *self.box.corners).reshape(value.shape)
        return (value.item() if value.ndim == 0 else value,), {}

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """(n, *shape) -> (n,); whatever is random in it, the function draws itself"""
        calls = (self.arguments(mediator) for mediator in np.asarray(mediators))
        return np.array([payoff_of(self.function(*args, **named)) for args, named in calls])


def payoff_of(value: Any) -> float:
    """What a function returned, as a finite number; an array of one number is one too."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind != "O" and value is not np.ma.masked:
        value = value.reshape(-1)[0]
    try:
        if not isinstance(value, np.ndarray | np.generic) and getattr(value, "shape", None) in ((), (1,)):
            value = value.item()  # a number of another library, such as a tensor
        number = real(value)
    except Exception:
        if type(value) is int:
            raise PayoffError("returned a whole number that is too large") from None
        raise PayoffError(f"returned {_short(value)}, which is not a number") from None
    if not math.isfinite(number):
        raise PayoffError(f"returned {number}, which is not a finite number")
    return number


def function_space(
    function: Callable[..., Any],
    *,
    parameters: Parameters | Mapping[str, Any] | None,
    low: Any,
    high: Any,
    space: Space | None,
) -> Box | Finite:
    """Where a function is searched: given by name, by two corners, or as a space; in one of these ways."""
    from randomist.families import Gaussian
    from randomist.spaces import SPREAD, Box, Parameters

    ways = (parameters is not None, low is not None or high is not None, space is not None)
    if sum(ways) != 1:
        given = "got none of them" if not any(ways) else "got more than one"
        raise TaskError(
            f"where to search {name_of(function)}? Give parameters={{{_example(function)}}}, or low= and high= for a "
            f"function of an array, or space=; {given}"
        )
    if space is not None:
        return space
    if parameters is not None:
        return parameters if isinstance(parameters, Parameters) else Parameters(parameters)
    if low is None or high is None:
        raise ParameterError(f"a box needs low and high, {'low' if low is None else 'high'} is missing")
    lows, highs = np.broadcast_arrays(finite_array(low, "low"), finite_array(high, "high"))
    if not (lows < highs).all():
        raise ParameterError(f"low must be below high in every dimension, got low={lows} and high={highs}")
    return Box(Gaussian(std=SPREAD * (highs - lows)), lows, highs)


def is_function(thing: Any) -> bool:
    """Whether this is to be called for payoffs; a task, or a class that makes one, is not."""
    return callable(thing) and not isinstance(thing, str | Task | type)


def name_of(function: Any) -> str:
    """How a function is called; a `functools.partial` as the function that it is of."""
    return str(getattr(getattr(function, "func", function), "__name__", type(function).__name__))


def _check_arguments(function: Any, names: tuple[str, ...]) -> None:
    """The parameters must be what the function takes by name, all that it needs."""
    taken = _arguments(function)
    if taken is None:
        return
    by_name = [a for a in taken if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    anything = any(a.kind is a.VAR_KEYWORD for a in taken)
    needed = [a.name for a in taken if a.default is a.empty and a.kind not in (a.VAR_POSITIONAL, a.VAR_KEYWORD)]
    unknown = [] if anything else [name for name in names if name not in {a.name for a in by_name}]
    missing = [name for name in needed if name not in names]
    if unknown or missing:
        problems = [f"no argument is called {', '.join(unknown)}"] if unknown else []
        problems += [f"no parameter is called {', '.join(missing)}"] if missing else []
        raise ParameterError(
            f"the parameters are ({', '.join(names)}), and {name_of(function)} takes {inspect.signature(function)}: "
            f"{'; '.join(problems)}; name them alike"
        )


def _arguments(function: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have none
        return None


def _example(function: Any) -> str:
    """How its parameters could be written, for a message."""
    taken = [a.name for a in _arguments(function) or [] if a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)]
    return ", ".join(f'"{name}": (low, high)' for name in taken or ["name"])


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray) and value is not np.ma.masked:
        return f"an array of shape {value.shape}"
    text = shown(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
