"""Checks at the border, one of each kind: what is refused, with the value, the bound and the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array
from randomist.errors import ParameterError, PayoffError


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


def shown(value: Any, most: int = 80) -> str:
    """A value in an error, also where it cannot show itself."""
    try:
        return "a masked value" if value is np.ma.masked else repr(value)[:most]
    except Exception:
        return f"a {type(value).__name__}"


def real(value: Any, what: str = "a payoff") -> float:
    """A number of Python, NumPy or another library as a float: nothing that is text, complex, a time or masked."""
    if type(value) is float:
        return value
    odd = isinstance(value, np.ndarray | np.generic) and (value.dtype.kind not in "biuf" or np.ma.is_masked(value))
    try:
        # float() reads texts, and whatever lies in memory like one; numbers say that they are some
        if odd or not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
            raise TypeError
        return float(value)
    except Exception as error:  # of another's `__float__`
        why = f" ({type(error).__name__}: {error})" if error.args else ""
        text = "the text " if isinstance(value, str | bytes) else ""
        raise PayoffError(f"{what} is a finite number, got {text}{shown(value)}{why}") from None


def reals(value: Any, what: str) -> Array:
    """A float64 copy of an array of such numbers."""
    array = np.array(value)
    if array.dtype.kind == "O":
        flat = [real(entry, what) for entry in array.ravel().tolist()]
        return np.array(flat, dtype=np.float64).reshape(array.shape)
    if array.dtype.kind not in "biuf" or np.ma.is_masked(value):
        raise PayoffError(f"{what} is a finite number, got {shown(value)}")
    return array.astype(np.float64, copy=False)


def finite_array(value: ArrayLike, name: str) -> Array:
    """A read-only float64 copy, refused unless every entry is finite."""
    try:
        array = reals(value, name)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or an array of numbers, got {shown(value, 200)}") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"{name} must be finite, got {array!s:.200}; drop or repair the entries that are not")
    array.setflags(write=False)
    return array
