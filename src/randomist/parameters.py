"""Parameters with names and units of their own, and the unit cube that learners search for them.

A learner sees numbers between 0 and 1; a function sees what they stand for. `named` and `point` go from one to the
other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import choice, flag, number, whole_number
from randomist._types import Array
from randomist.errors import EmptySpaceError, ParameterError, ShapeError

MOST_WHOLE = 2**53  # as far as float64 tells whole numbers apart


@dataclass(frozen=True)
class Real:
    """A number from `low` to `high`; with `log=True` each factor is as likely as any other.

    >>> Real(0.1, 100, log=True).value(np.array([0.5])).__round__(3)
    3.162
    """

    low: float
    high: float
    log: bool = False

    size = 1  # coordinates of the cube

    def __post_init__(self) -> None:
        _check_bounds(number(self.low, "low"), number(self.high, "high"), self)
        if flag(self.log, "log") and self.low <= 0:
            raise ParameterError(
                f"a log scale lies above 0, got low={self.low}; give a positive low, or leave log=True out"
            )

    def value(self, point: Array) -> float:
        """(1,) -> number"""
        u = float(point[0])
        if u in (0.0, 1.0):
            return float(self.high if u else self.low)  # exactly, on a log scale too
        if self.log:
            value = math.exp((1 - u) * math.log(self.low) + u * math.log(self.high))
        else:
            value = (1 - u) * self.low + u * self.high
        return min(max(value, float(self.low)), float(self.high))

    def point(self, value: Any) -> Array:
        """number -> (1,)"""
        x = number(value, "a value", least=self.low, most=self.high)
        low, high = float(self.low), float(self.high)
        if self.log:
            low, high, x = math.log(low), math.log(high), math.log(x)
        return np.array([(x / 2 - low / 2) / (high / 2 - low / 2)])  # halves: high - low may be infinite


@dataclass(frozen=True)
class Integer:
    """A whole number from `low` to `high`, both included. Each has a cell of the same width, or, with `log=True`, of
    the width that k - 1/2 to k + 1/2 has on a log scale.
    """

    low: int
    high: int
    log: bool = False

    size = 1

    def __post_init__(self) -> None:
        low = whole_number(self.low, "low", -MOST_WHOLE)
        high = whole_number(self.high, "high", -MOST_WHOLE)
        if high > MOST_WHOLE:
            raise ParameterError(f"high must be at most 2**53, got {high}; take Real and round it")
        _check_bounds(low, high, self)
        if flag(self.log, "log") and low < 1:
            raise ParameterError(f"a log scale of whole numbers begins at 1, got low={low}; leave log=True out")

    def value(self, point: Array) -> int:
        """(1,) -> whole number"""
        start, width, u = self._ends[0], self._ends[1] - self._ends[0], float(point[0])
        edge = math.exp(start + u * width) + 0.5 if self.log else start + u * width
        return min(max(math.floor(edge), int(self.low)), int(self.high))

    def point(self, value: Any) -> Array:
        """whole number -> (1,), the middle of its cell"""
        k = whole_number(value, "a value", self.low)
        if k > self.high:
            raise ParameterError(f"a value must be at most {self.high}, got {k}")
        cell = (math.log(k - 0.5), math.log(k + 0.5)) if self.log else (k, k + 1)
        return np.array([(sum(cell) / 2 - self._ends[0]) / (self._ends[1] - self._ends[0])])

    @property
    def _ends(self) -> tuple[float, float]:
        """Where the first cell begins and the last one ends."""
        return (math.log(self.low - 0.5), math.log(self.high + 0.5)) if self.log else (self.low, self.high + 1)


@dataclass(frozen=True, init=False)
class Choice:
    """One of a few values without an order: `Choice("a", "b")`. Of two, each has half of a coordinate; of more, each
    has a coordinate of its own, and the largest one wins.

    Values are texts, numbers, True, False or None, so that they can be written down and read again.
    """

    options: tuple[Any, ...] = field()

    def __init__(self, *options: Any) -> None:
        object.__setattr__(self, "options", options)
        for option in options:
            if not (option is None or isinstance(option, str | bool | int | float)) or option != option:
                raise ParameterError(
                    f"a choice is among texts, numbers, True, False and None, got {option!r:.80}; give names, and look "
                    "up in your function what they stand for"
                )
        if len({(type(option), option) for option in options}) < len(options):
            raise ParameterError(f"the options of a choice must differ, got {options!r:.80}")
        if len(options) < 2:
            raise ParameterError(
                f"a choice needs at least two options, got {options!r:.80}; leave a parameter out that has one value"
            )

    @property
    def size(self) -> int:
        return 1 if len(self.options) == 2 else len(self.options)

    def value(self, point: Array) -> Any:
        """(size,) -> option"""
        return self.options[int(point[0] >= 0.5) if self.size == 1 else int(np.argmax(point))]

    def point(self, value: Any) -> Array:
        """option -> (size,), the middle of its part"""
        for i, option in enumerate(self.options):
            if type(option) is type(value) and option == value:
                return np.array([0.25 + 0.5 * i]) if self.size == 1 else np.where(np.arange(self.size) == i, 0.75, 0.25)
        raise ParameterError(f"a value must be one of {', '.join(map(repr, self.options))}, got {value!r:.80}")


Parameter: TypeAlias = Real | Integer | Choice


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Meaning:
    """What the coordinates of the unit cube stand for: parameters by name, in their own units."""

    parameters: dict[str, Parameter]

    def __init__(self, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if parameters is not None and not isinstance(parameters, Mapping):
            raise ParameterError(
                f"parameters are given by name, Parameters(kp=Real(0, 1)) or {{'kp': (0, 1)}}, got {parameters!r:.80}"
            )
        given = dict(parameters or {}) | named
        if not given:
            raise EmptySpaceError("there are no parameters; name at least one: Parameters(kp=Real(0.1, 100, log=True))")
        object.__setattr__(self, "parameters", {name: _parameter(name, value) for name, value in given.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.parameters)

    @property
    def dimension(self) -> int:
        """How many coordinates of the cube the parameters need."""
        return sum(parameter.size for parameter in self.parameters.values())

    def named(self, point: ArrayLike) -> dict[str, Any]:
        """What a point of the cube stands for; from outside of it, the nearest one inside.  (d,) -> values by name"""
        u = np.asarray(point, dtype=np.float64)
        if u.shape != (self.dimension,):
            raise ShapeError(f"a point of {', '.join(self.names)} has shape ({self.dimension},), got {u.shape}")
        if not np.isfinite(u).all():
            raise ParameterError(f"a point must be finite, got {u}")
        cuts = np.cumsum([parameter.size for parameter in self.parameters.values()])[:-1]
        parts = np.split(np.clip(u, 0.0, 1.0), cuts)
        return {name: self.parameters[name].value(part) for name, part in zip(self.names, parts, strict=True)}

    def point(self, values: Mapping[str, Any]) -> Array:
        """Undo `named`: a point that stands for these values, in the middle of its cell.  (d,)"""
        if set(values) != set(self.names):
            raise ParameterError(f"give a value to each of {', '.join(self.names)}, got {', '.join(map(str, values))}")
        parts = []
        for name, parameter in self.parameters.items():
            try:
                parts.append(parameter.point(values[name]))
            except ParameterError as error:
                raise ParameterError(f"{name}: {error}") from None
        return np.clip(np.concatenate(parts), 0.0, 1.0)

    def looked_at(self, played: Sequence[Mapping[str, Any]], best: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Lines of a summary: which options were played most, and where the best lies on a bound."""
        found = []
        for name, parameter in self.parameters.items():
            values = [values[name] for values in played]
            if isinstance(parameter, Choice):
                most = max(parameter.options, key=values.count)
                found.append(f"{name}={most} in {values.count(most)} of {len(values)} rounds")
        lines = [("looked at", ", ".join(found))] if found else []
        bounds = [
            f"{name}={best[name]:.4g} ({'highest' if end else 'lowest'} allowed)"
            for name, parameter in self.parameters.items()
            if not isinstance(parameter, Choice)
            for end, bound in enumerate((parameter.low, parameter.high))
            if best[name] == bound
        ]
        return lines + ([("on a bound", ", ".join(bounds))] if bounds else [])

    def __repr__(self) -> str:
        return f"Meaning({', '.join(f'{name}={text}' for name, text in self.describe().items())})"

    def describe(self) -> dict[str, str]:
        """How each parameter is written, by name."""
        return {name: repr(parameter) for name, parameter in self.parameters.items()}

    def state(self) -> list[dict[str, Any]]:
        """As plain data, in order."""
        return [
            {"name": name, "kind": type(one).__name__} | {f.name: getattr(one, f.name) for f in fields(one)}
            for name, one in self.parameters.items()
        ]

    @classmethod
    def from_state(cls, state: Sequence[Mapping[str, Any]]) -> Meaning:
        """Undo `state`; a kind that is not known is refused."""
        parameters = dict[str, Any]()
        for entry in state:
            given = {key: value for key, value in entry.items() if key not in ("name", "kind")}
            kind = choice(entry["kind"], tuple(KINDS), "the kind of a parameter")
            if entry["name"] in parameters:
                raise ParameterError(f"names of parameters must differ, and {entry['name']!r} is there twice")
            made = Choice(*given.pop("options"), **given) if kind == "Choice" else KINDS[kind](**given)
            parameters[entry["name"]] = made
        return cls(parameters)


KINDS: dict[str, Any] = {"Real": Real, "Integer": Integer, "Choice": Choice}


def _parameter(name: Any, value: Any) -> Parameter:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"a parameter's name is a text, got {name!r:.80}")
    if isinstance(value, Real | Integer | Choice):
        return value
    if isinstance(value, tuple | list) and len(value) == 2:
        try:
            return Real(*value)
        except ParameterError as error:
            raise ParameterError(f"{name}: {error}") from None
    raise ParameterError(
        f"{name} must be a pair (low, high), Real(low, high), Integer(low, high) or Choice(...), got {value!r:.80}"
    )


def _check_bounds(low: float, high: float, given: Any) -> None:
    if not low < high:
        raise ParameterError(f"low must be below high, got {given!r}; leave a parameter out that has one value")
