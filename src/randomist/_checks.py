"""Checks at the border, one of each kind: what is refused, with the value, the bound and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array
from randomist.errors import ParameterError


def whole_number(value: Any, name: str, least: int = 1, why: str = "", most: float = math.inf) -> int:
    """An integer of Python or NumPy, not a boolean, within bounds; `why` says what the lower one is for."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        above = "" if most == math.inf else f" and <= {most:g}"
        raise ParameterError(f"{name} must be a whole number >= {least}{above}{why}, got {value!r:.80}")
    return int(value)


def number(
    value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf, most: float = math.inf, why: str = ""
) -> float:
    """A finite number, above a bound or not below one, and at most another; `why` says what the bounds are for."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (good and math.isfinite(value) and value > above and value >= least and value <= most):
        stated = ((" > ", above), (" >= ", least), (" <= ", most))
        bounds = " and".join(f"{sign}{bound:g}" for sign, bound in stated if math.isfinite(bound))
        raise ParameterError(f"{name} must be a finite number{bounds}{why}, got {value!r:.80}")
    return float(value)


def probability(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 < value < 1:
        raise ParameterError(f"{name} must lie in (0, 1), got {value!r:.80}")
    return float(value)


def payoff_range(value: Any, *, bounded: bool = False, why: str = "") -> tuple[float, float]:
    """What payoffs can be, (low, high); unless it must be `bounded`, also (-inf, inf) for anything."""
    try:
        low, high = map(float, value)
    except (TypeError, ValueError):
        raise ParameterError(f"payoff_range must be a pair (low, high){why}, got {value!r:.80}") from None
    if not (is_mappable(low, high) or (not bounded and (low, high) == (-math.inf, math.inf))):
        instead = "" if bounded else ", or (-inf, inf) for no mapping"
        raise ParameterError(f"payoff_range must be finite with low < high{instead}{why}, got ({low}, {high})")
    return low, high


def is_mappable(low: float, high: float) -> bool:
    """Whether a range has a finite width whose inverse is finite too."""
    width = high - low
    return 0 < width < math.inf and 1.0 / width < math.inf


def choice(value: Any, choices: Iterable[str], name: str) -> str:
    """One of a few words."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r:.80}")
    return value


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} must be True or False, got {value!r:.80}")
    return bool(value)


def finite_array(value: ArrayLike, name: str) -> Array:
    """A read-only float64 copy, refused unless every entry is finite."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, got {value!r:.200}") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite, got {array!s:.200}; drop or repair the entries that are not")
    array.setflags(write=False)
    return array
