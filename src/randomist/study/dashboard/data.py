"""The numbers behind the dashboard's panels, small enough to send however long the study is."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from randomist._json import for_json
from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.base import Learner
from randomist.learners.box.base import FixedStdLearner
from randomist.learners.finite.base import FiniteLearner
from randomist.parameters import Choice, Integer, Real
from randomist.spaces import Box, Finite, Space
from randomist.study.records import Counters
from randomist.study.study import Study

POINTS = 500  # of a curve
DECISIONS = 400  # of a finite set that are shown
WORKERS = 200
PENDING = 100
LITTLE = -25.0  # log of effective samples; with fewer, a width is too large to be drawn
WORK = 2e7  # samples times points that a slice of a box may cost


class Seen(NamedTuple):
    """What is read off the learner in one moment."""

    counters: Counters
    payoffs: Array
    clipped: int
    best: Any
    panels: dict[str, Any]


def snapshot(study: Study, dimensions: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """All panels, as JSON: numbers have six digits, and what is not finite is null."""
    seen = study.look(lambda learner, known: _seen(learner, known, dimensions))
    known = seen.counters
    pending = study.trials(("asked", "stale"), limit=PENDING)
    n_pending = known.asked - known.closed
    stale = sum(t.state == "stale" for t in pending)
    return {
        "study": {
            "name": study.name,
            "learner": study.learner_name,
            "space": _space(study),
            "lease": study.lease,
            "created_at": study.created_at,
        },
        "counts": {
            "asked": known.asked,
            "told": known.told,
            "failed": known.failed,
            "retracted": known.retracted,
            "pending": n_pending,
            "stale": stale,
            "clipped": seen.clipped,
        },
        "best": _shown(study.space, seen.best),
        "payoffs": _payoffs(seen.payoffs),
        "pending": [
            {"id": t.id, "state": t.state, "worker": t.worker, "decision": for_json(t.decision), "asked_at": t.asked_at,
             "lease_until": t.lease_until}
            for t in pending
        ],
        "workers": _workers(study),
        "at": time.time(),
    } | seen.panels  # fmt: skip


def _seen(learner: Learner, known: Counters, dimensions: tuple[int, int]) -> Seen:
    best = _best(learner)
    panels = _box(learner, best, dimensions) if isinstance(learner.space, Box) else _finite(learner)
    return Seen(known, learner.record.payoffs.copy(), learner.clipped, best, panels)


def _payoffs(payoffs: Array) -> dict[str, Any]:
    """Payoffs in buckets of consecutive tells: mean, least and largest; and the average of all so far."""
    n = len(payoffs)
    if not n:
        return {"x": [], "mean": [], "least": [], "largest": [], "average": []}
    starts = np.unique(np.linspace(0, n, min(n, POINTS), endpoint=False).astype(np.intp))
    ends = np.append(starts[1:], n)
    average = np.cumsum(payoffs)[ends - 1] / ends
    return {
        "x": ends.tolist(),
        "mean": _numbers(np.add.reduceat(payoffs, starts) / (ends - starts)),
        "least": _numbers(np.minimum.reduceat(payoffs, starts)),
        "largest": _numbers(np.maximum.reduceat(payoffs, starts)),
        "average": _numbers(average),
    }


def _finite(learner: Learner) -> dict[str, Any]:
    """Estimates per decision: all of them, or the best and the most played."""
    assert isinstance(learner, FiniteLearner)
    assert isinstance(learner.space, Finite)
    estimates, size = learner.estimates(), learner.space.size
    order = np.arange(size)
    if size > DECISIONS:
        best, most = np.argsort(-estimates.value), np.argsort(-estimates.plays)
        order = np.unique(np.concatenate([best[: DECISIONS // 2], most[: DECISIONS // 2]]))
    points = learner.space.points
    where = None if points is None else [_numbers(point) for point in points[order]]
    names, active = None, learner.active
    if learner.space.names or not active.all():
        names = [learner.names[k] + ("" if active[k] else " (retired)") for k in order.tolist()]
    shown = {"decision": order.tolist(), "of": size, "point": where, "name": names}
    return {"finite": shown | _panel(estimates, order)}


def _best(learner: Learner) -> Any:
    """The recommendation; in a long study at a fixed std, the best of some decisions: all would take minutes."""
    if not learner.told:
        return None
    few = int(WORK / learner.told)
    if not isinstance(learner, FixedStdLearner) or learner.told <= few:
        return learner.recommend()
    tried = learner.record.decisions[np.linspace(0, learner.told - 1, max(few, 2)).astype(np.intp)]
    return tried[int(np.argmax(learner.estimate(tried).value))]


def _box(learner: Any, best: Any, dimensions: tuple[int, int]) -> dict[str, Any]:
    """Slices through the best point so far: along every dimension, and over two of them. Scales are left out."""
    box, d = learner.space, learner.space.dimension
    low, high = box.corners
    centre = (low + high) / 2 if best is None else np.ravel(best)
    budget = WORK / max(learner.told, 1)
    n = int(np.clip(budget / d, 9, 61))
    lines = []
    for k in range(d):
        points = np.tile(centre, (n, 1))
        points[:, k] = np.linspace(low[k], high[k], n)
        estimates = learner.estimate(points.reshape(n, *box.family.shape))
        lines.append({"x": _numbers(points[:, k])} | _panel(estimates, np.arange(n)))
    decisions = learner.record.decisions.reshape(learner.told, box.low.size)
    played = [_histogram(decisions[:, k], low[k], high[k]) for k in range(d)]
    slices: dict[str, Any] = {"dimension": d, "centre": _numbers(centre), "lines": lines, "played": played}
    axes = _axes(box)
    slices |= {"plane": None, "names": [axis.name for axis in axes], "log": [axis.log for axis in axes]}
    slices["centre"] = [axis.units([c])[0] for axis, c in zip(axes, slices["centre"], strict=True)]
    for axis, line in zip(axes, lines, strict=True):
        line["x"] = axis.units(line["x"])
    if d > 1:
        i, j = dimensions if max(dimensions) < d and len(set(dimensions)) == 2 else (0, 1)
        m = int(np.clip(math.sqrt(budget), 8, 31))
        points = np.tile(centre, (m * m, 1))
        x, y = np.linspace(low[i], high[i], m), np.linspace(low[j], high[j], m)
        points[:, i], points[:, j] = np.tile(x, m), np.repeat(y, m)
        panel = _panel(learner.estimate(points), np.arange(m * m))
        shown = {"x": axes[i].units(_numbers(x)), "y": axes[j].units(_numbers(y))}
        slices["plane"] = (
            {"dimensions": [i, j]}
            | shown
            | {name: _rows(panel[name], m) for name in ("value", "effective_samples", "missing")}
        )
    return {"box": slices}


class Axis(NamedTuple):
    """A coordinate of a box as users see it."""

    name: str
    log: bool
    parameter: Real | Integer | None  # None where the coordinate is its own unit

    def units(self, values: list[float | None]) -> list[float | None]:
        if self.parameter is None:
            return values
        return [None if value is None else float(self.parameter.value(np.array([value]))) for value in values]


def _axes(box: Box) -> list[Axis]:
    """A choice among more than two has a coordinate for each of them."""
    if box.meaning is None:
        return [Axis(f"dimension {k}" if box.dimension > 1 else "decision", False, None) for k in range(box.dimension)]
    axes = []
    for name, parameter in box.meaning.parameters.items():
        if isinstance(parameter, Choice):
            options = [""] if parameter.size == 1 else [f" = {option}" for option in parameter.options]
            axes += [Axis(name + option, False, None) for option in options]
        else:
            axes.append(Axis(name, parameter.log, parameter))
    return axes


def _shown(space: Space, best: Any) -> Any:
    """What is recommended: parameters by name, where they have some."""
    named = best is not None and isinstance(space, Box) and space.meaning is not None
    return space.named(best) if named and isinstance(space, Box) else for_json(best)


def _panel(estimates: Estimates, order: NDArray[np.intp]) -> dict[str, Any]:
    """What the panels show of some decisions, in the payoffs' units."""
    log_effective = np.asarray(estimates.log_effective_samples)[order]
    value, width = estimates.value[order], np.asarray(estimates.width)[order]
    return {
        "value": _numbers(np.where(log_effective > -np.inf, value, np.nan)),
        "width": _numbers(np.where(log_effective > LITTLE, width, np.inf)),
        "effective_samples": _numbers(estimates.effective_samples[order]),
        "plays": estimates.plays[order].tolist(),
        "missing": _numbers(np.clip(1 - estimates.coverage[order], 0.0, 1.0)),
    }


def _histogram(values: Array, low: float, high: float) -> dict[str, Any]:
    counts, edges = np.histogram(values, bins=30, range=(low, high))
    return {"x": _numbers((edges[1:] + edges[:-1]) / 2), "plays": counts.tolist()}


def _workers(study: Study) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in study.workers():
        nobody = {"worker": str(row.worker), "pending": 0, "told": 0, "failed": 0, "retracted": 0, "seen": 0.0}
        one = found.setdefault(str(row.worker), nobody)
        one["pending" if row.state == "asked" else str(row.state)] = row.trials
        moments = [m for m in (row.asked_at, row.closed_at) if isinstance(m, float)]
        one["seen"] = max([one["seen"], *moments])
    return sorted(found.values(), key=lambda one: -one["seen"])[:WORKERS]


def _space(study: Study) -> dict[str, Any]:
    space = study.space
    family = type(space.family).__name__
    if isinstance(space, Box):
        written = None if space.meaning is None else [f"{k}: {v}" for k, v in space.meaning.describe().items()]
        ends = {"low": for_json(space.low), "high": for_json(space.high)}
        return {"kind": "Box", "family": family, "parameters": written} | ends
    return {"kind": "Finite", "family": family, "size": space.size}


def _rows(values: list[Any], n: int) -> list[list[Any]]:
    return [values[i : i + n] for i in range(0, len(values), n)]


def _numbers(values: Any) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in np.asarray(values, float).tolist()]
