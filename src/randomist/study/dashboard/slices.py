"""What a learner says of a box: slices through the best point so far, along every parameter and over two of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.box.base import FixedStdLearner
from randomist.parameters import Choice, Integer, Real
from randomist.spaces import Box
from randomist.study.dashboard.numbers import LEVEL, number, numbers

WORK = 3e6  # samples times points that slices may cost
LINE, PLANE = 61, 31  # points of a line, and of a side of the plane, at most
SEEN = 0.5, 1.0  # coverage and, of weighted samples, effective ones with which a point counts as seen


class Axis(NamedTuple):
    """A parameter as users see it: which coordinates of the box it has, and which values stand on it."""

    name: str
    columns: slice
    parameter: Real | Integer | Choice | None  # None where a coordinate is its own unit
    low: float = 0.0
    high: float = 1.0

    def values(self, count: int) -> tuple[list[Any], Array]:
        """Some values in order, in the user's units, and the coordinates that stand for them.  n, (n, size)"""
        one = self.parameter
        if isinstance(one, Choice):
            return [str(option) for option in one.options], np.stack([one.point(option) for option in one.options])
        spots = np.linspace(self.low, self.high, max(count, 2))
        if one is None:
            return list(numbers(spots)), spots[:, None]
        if isinstance(one, Integer):
            few = one.high - one.low < LINE
            whole = sorted(range(one.low, one.high + 1) if few else {one.value(np.array([spot])) for spot in spots})
            return list(whole), np.stack([one.point(value) for value in whole])
        return list(numbers([one.value(np.array([spot])) for spot in spots])), spots[:, None]

    def shown(self, point: Array) -> Any:
        """What the coordinates of a point stand for."""
        part, one = point[self.columns], self.parameter
        if one is None:
            return number(float(part[0]))
        value = one.value(np.clip(part, 0.0, 1.0))
        return str(value) if isinstance(one, Choice) else value

    def played(self, decisions: Array) -> dict[str, Any]:
        """How often decisions lay where: in thirty bins, or by option or whole number.  (n, d)"""
        part, one = decisions[:, self.columns], self.parameter
        if isinstance(one, Choice):
            chosen = (part[:, 0] >= 0.5).astype(int) if one.size == 1 else np.argmax(part, axis=1)
            return {"edges": None, "plays": np.bincount(chosen, minlength=len(one.options)).tolist()}
        if isinstance(one, Integer) and one.high - one.low < LINE:  # by value
            k = np.arange(one.low, one.high + 2)
            cells = np.log(k - 0.5) if one.log else k.astype(float)
            ends = (cells - cells[0]) / (cells[-1] - cells[0])
            return {"edges": None, "plays": np.histogram(part[:, 0], bins=ends)[0].tolist()}
        counts, edges = np.histogram(part[:, 0], bins=30, range=(self.low, self.high))
        shown = edges if one is None else [one.value(np.array([edge])) for edge in edges]
        return {"edges": numbers(shown), "plays": counts.tolist()}


def slices(learner: Any, best: Any, dimensions: tuple[int, int]) -> dict[str, Any]:
    """Scales are left out. `seen` is false where samples say next to nothing; there the plane has no value."""
    box: Box = learner.space
    axes, (low, high) = axes_of(box), box.corners
    centre = (low + high) / 2 if best is None else np.ravel(best)
    budget = math.inf if hasattr(learner, "bands") else WORK / max(learner.told, 1)  # a surface has few samples
    count = int(np.clip(budget / 2 / len(axes), 9, LINE))
    side = int(np.clip(math.sqrt(budget / 2), 7, PLANE))
    i, j = dimensions if max(dimensions) < len(axes) and len(set(dimensions)) == 2 else (0, 1)
    shown, rows, parts = [], [centre[None]], [1]
    for axis in axes:
        values, spots = axis.values(count)
        rows.append(np.tile(centre, (len(values), 1)))
        rows[-1][:, axis.columns] = spots
        shown.append(values)
        parts.append(len(values))
    if len(axes) > 1:
        (x, x_spots), (y, y_spots) = axes[i].values(side), axes[j].values(side)
        rows.append(np.tile(centre, (len(x) * len(y), 1)))
        rows[-1][:, axes[i].columns] = np.tile(x_spots, (len(y), 1))
        rows[-1][:, axes[j].columns] = np.repeat(y_spots, len(x), axis=0)
        parts.append(len(x) * len(y))
    looks = _looks(learner, np.concatenate(rows), parts)
    decisions = learner.record.decisions.reshape(learner.told, box.low.size)
    lines = [
        {"x": values, "kind": kind_of(axis), "centre": axis.shown(centre)} | look | axis.played(decisions)
        for axis, values, look in zip(axes, shown, looks[1:], strict=False)
    ]
    found: dict[str, Any] = {
        "dimension": len(axes),
        "names": [axis.name for axis in axes],
        "log": [bool(getattr(axis.parameter, "log", False)) for axis in axes],
        "lines": lines,
        "intervals": hasattr(learner, "bands"),
        "best": {key: value[0] for key, value in looks[0].items()},
        "plane": None,
    }
    if len(axes) > 1:
        look = looks[-1]
        values = [value if seen else None for value, seen in zip(look["value"], look["seen"], strict=True)]
        found["plane"] = {"dimensions": [i, j], "x": x, "y": y, "value": _rows(values, len(x))}
    return found


def recommended(learner: Any) -> Any:
    """The recommendation; in a long study at a fixed std, the best of some decisions: all would take minutes."""
    if not learner.told:
        return None
    few = int(WORK / learner.told)
    if not isinstance(learner, FixedStdLearner) or learner.told <= few:
        return learner.recommend()
    tried = learner.record.decisions[np.linspace(0, learner.told - 1, max(few, 2)).astype(np.intp)]
    return tried[int(np.argmax(learner.estimate(tried).value))]


def axes_of(box: Box) -> list[Axis]:
    """One for every parameter, or for every coordinate where these have no names."""
    if box.meaning is None:
        names = [f"dimension {k}" if box.dimension > 1 else "decision" for k in range(box.dimension)]
        ends = zip(names, *(corner.tolist() for corner in box.corners), strict=True)
        return [Axis(name, slice(k, k + 1), None, low, high) for k, (name, low, high) in enumerate(ends)]
    axes, at = [], 0
    for name, parameter in box.meaning.parameters.items():
        axes.append(Axis(name, slice(at, at + parameter.size), parameter))
        at += parameter.size
    return axes


def kind_of(axis: Axis) -> str:
    return "real" if axis.parameter is None else type(axis.parameter).__name__.lower()


def _looks(learner: Any, points: Array, parts: list[int]) -> list[dict[str, Any]]:
    """What is said of points, the best one first; in parts."""
    box: Box = learner.space
    shaped = points.reshape(len(points), *box.family.shape)
    if hasattr(learner, "bands"):  # a surface knows a point by its neighbours, where there is no noise
        estimates, low, high = learner.bands(shaped, LEVEL)
        seen = estimates.coverage >= SEEN[0]
    else:
        estimates, low, high = learner.estimate(shaped), *np.full((2, len(points)), np.nan)
        seen = (estimates.coverage >= SEEN[0]) & (estimates.effective_samples >= SEEN[1])
    columns = {"value": _values(estimates), "low": low, "high": high, "effective_samples": estimates.effective_samples}
    columns["missing"] = np.clip(1 - estimates.coverage, 0.0, 1.0)
    ends = np.cumsum(parts)
    return [
        {name: numbers(column[end - n : end]) for name, column in columns.items()}
        | {"seen": seen[end - n : end].tolist()}
        for n, end in zip(parts, ends.tolist(), strict=True)
    ]


def _values(estimates: Estimates) -> NDArray[np.float64]:
    return np.where(np.asarray(estimates.log_effective_samples) > -np.inf, estimates.value, np.nan)


def _rows(values: list[Any], n: int) -> list[list[Any]]:
    return [values[i : i + n] for i in range(0, len(values), n)]
