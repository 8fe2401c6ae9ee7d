"""What a picture is, as data: panels, and the marks on them. The renderers draw it, one for each library.

Every number of a picture is computed before it is drawn, so that both libraries show the same. A colour is a number of
the theme's cycle or the name of one of its colours; NaN leaves a gap. A mark with a name has an entry in the legend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array, Indices

MOST_DOTS, MOST_POINTS = 5000, 1000  # more would make large files, and say no more
NARROW = 1.65  # inches: the narrowest panel of several
PAD = 0.04  # of an axis, beyond what is drawn
Colour: TypeAlias = int | str


class Axis(NamedTuple):
    """A name, where the axis begins and ends, and ticks with their texts where round numbers would not do."""

    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False  # whether ticks are whole numbers
    ticks: tuple[tuple[float, str], ...] | None = None


@dataclass(frozen=True, eq=False)
class Line:
    """A line through points; with `steps`, flat until the next one."""

    x: Array
    y: Array
    name: str = ""
    colour: Colour = 0
    dash: int = 0
    steps: bool = False


@dataclass(frozen=True, eq=False)
class Band:
    """What lies between two lines."""

    x: Array
    low: Array
    high: Array
    name: str = ""
    colour: Colour = 0


@dataclass(frozen=True, eq=False)
class Dots:
    """Single points."""

    x: Array
    y: Array
    name: str = ""
    colour: Colour = 0
    symbol: Literal["circle", "star", "tick"] = "circle"
    faint: bool = False


@dataclass(frozen=True, eq=False)
class Spans:
    """Intervals: upright ones at places of the x axis, or, `across`, lying ones at places of the y axis."""

    at: Array
    low: Array
    high: Array
    name: str = ""
    colour: Colour = "span"
    thick: bool = False
    across: bool = False


@dataclass(frozen=True, eq=False)
class Bars:
    """Lying bars from 0, at places of the y axis."""

    at: Array
    length: Array
    name: str = ""
    colour: Colour = 0
    height: float = 0.8


@dataclass(frozen=True, eq=False)
class Rule:
    """A dashed upright line at a place of the x axis."""

    at: float
    name: str = ""
    colour: Colour = 1


@dataclass(frozen=True, eq=False)
class Threads:
    """Parallel coordinates: one thread per row through upright axes, coloured by a number from `low` to `high`."""

    axes: tuple[Axis, ...]  # where one is a log axis, values, ends and ticks are decimal logarithms
    values: Array  # (n, d)
    colours: Array  # (n,)
    name: str  # of what the colour says
    low: float
    high: float
    best: Literal["low", "high"]  # which of them stands out


Mark: TypeAlias = Line | Band | Dots | Spans | Bars | Rule | Threads


@dataclass(frozen=True, eq=False)
class Panel:
    """A set of axes. `beside` are texts to the right of it, at places of the y axis; `heading` is above them."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    beside: tuple[tuple[float, str], ...] = ()
    heading: str = ""


@dataclass(frozen=True, eq=False)
class Picture:
    """One panel, or small ones that share what is on the y axis."""

    panels: tuple[Panel, ...]
    title: str = ""
    note: str = ""  # what else must be known, in small type below
    height: float = 2.6  # of a row of panels, in inches

    def grid(self, width: float) -> tuple[int, int]:
        """Rows and columns of panels on so many inches."""
        columns = min(len(self.panels), max(1, int(width / NARROW)))
        return math.ceil(len(self.panels) / columns), columns


def ends(*numbers: ArrayLike, pad: float = PAD) -> tuple[float, float]:
    """Where an axis begins and ends that shows all these numbers; those that are not finite do not count."""
    every = np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in numbers])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    wide = (high - low) or abs(high) or 1.0
    return low - pad * wide, high + pad * wide


def places(mark: Mark) -> tuple[Array, ...]:
    """The numbers of a mark on the x axis."""
    match mark:
        case Line() | Band() | Dots():
            return (mark.x,)
        case Spans():
            return (mark.low, mark.high) if mark.across else (mark.at,)
    return ()


def heights(mark: Mark) -> tuple[Array, ...]:
    """The numbers of a mark on the y axis."""
    match mark:
        case Line() | Dots():
            return (mark.y,)
        case Band():
            return mark.low, mark.high
        case Spans():
            return (mark.at,) if mark.across else (mark.low, mark.high)
    return ()


def thinned(count: int, most: int) -> Indices:
    """At most so many of `count` rows, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.int64))


def ticks(low: float, high: float, log: bool = False, whole: bool = False, most: int = 6) -> list[tuple[float, str]]:
    """Round numbers between two ends, with their texts; of a log axis in decimal logarithms."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last - first < 1:
            return [(math.log10(value), text) for value, text in ticks(low, high, whole=whole) if value > 0]
        step = math.ceil((last - first + 1) / most)
        return [(float(k), f"{10.0**k:g}") for k in range(first, last + 1, step)]
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    step_ = next(m * unit for m in (1, 2, 5, 10, 20) if (high - low) / (m * unit) < most)
    step_ = max(1.0, round(step_)) if whole else step_
    digits = max(0, -math.floor(math.log10(step_)))
    first, last = math.ceil(low / step_ - 1e-9), math.floor(high / step_ + 1e-9)
    return [(k * step_, f"{round(k * step_, digits) + 0.0:.12g}") for k in range(first, last + 1)]
