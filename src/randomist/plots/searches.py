"""Where a run has searched: its parameters in the user's names and units, coloured by payoff or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import numpy as np

from randomist._checks import probability
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.learners.box.auto import Auto
from randomist.learners.box.auto.interval import Interval
from randomist.plots.columns import Column, columns_of, labels, recommended
from randomist.plots.drawing import Look, draw
from randomist.plots.marks import (
    Axis,
    Band,
    Dots,
    Line,
    Mark,
    Panel,
    Picture,
    Rule,
    Spans,
    Threads,
    ends,
    heights,
    thinned,
    ticks,
)
from randomist.plots.runs import checked, heading, payoff_name
from randomist.simulation.run import Run

MOST_THREADS, MOST_PLAYS = 1000, 2000  # that are drawn
MOST_PANELS = 40
ALONG = 25  # points of an axis at which the learner is asked
POOR = 0.25  # of the payoffs, all in the colour of the worst
JITTER = 0.5  # of the distance between two options
GOLDEN = 0.6180339887498949  # its multiples fill an interval evenly


def parallel(run: Run, parameters: Sequence[str | int] | None = None, **look: Unpack[Look]) -> Any:
    """Parallel coordinates: a thread for every trial through the values of its parameters, coloured by its payoff.

    `parameters` are the ones to draw, by name or number, all by default; there must be two at least. The worst
    quarter of the payoffs has one colour, so that what tells the better ones apart is seen.
    """
    rows = _rows(checked(run), MOST_THREADS)
    columns = columns_of(run, rows, parameters)
    if len(columns) < 2:
        raise ParameterError(
            f"parallel coordinates need two parameters at least, and this has {columns[0].name!r} only; draw "
            "rd.plot.slices(run) instead"
        )
    axes, values = [], []
    for column in columns:
        marks = ticks(column.low, column.high, column.log, column.whole)
        low, high, scaled = column.low, column.high, column.values
        if column.log:
            low, high, scaled = float(np.log10(low)), float(np.log10(high)), np.log10(scaled)
        if column.options:
            marks = labels(column)
        axes.append(Axis(column.name, low, high, column.log, column.whole, tuple(marks)))
        values.append(scaled)
    paid, best = run.payoffs[rows], _better(run)
    worst = float(np.quantile(paid, POOR if best == "high" else 1 - POOR, method="nearest"))
    order = np.argsort(paid if best == "high" else -paid, kind="stable")  # the best are drawn last
    low, high = (worst, float(paid.max())) if best == "high" else (float(paid.min()), worst)
    if low == high:
        low, high = ends(low)
    name = payoff_name({"": [run]})
    threads = Threads(tuple(axes), np.stack(values, axis=1)[order], paid[order], name, low, high, best)
    across = Axis("", -0.1, len(axes) - 0.6, ticks=tuple((float(i), axis.name) for i, axis in enumerate(axes)))
    panel = Panel(across, Axis("", -0.03, 1.03, ticks=()), (threads,))
    return draw(Picture((panel,), heading(run), _note(run, rows), height=3.0), **look)


def slices(
    run: Run,
    parameters: Sequence[str | int] | None = None,
    *,
    learner: Auto | None = None,
    level: float = 0.95,
    **look: Unpack[Look],
) -> Any:
    """A small panel for each parameter: payoffs against its values, with the recommended one marked.

    `parameters` are the ones to draw, by name or number, all by default. With the `learner` of the run, an `Auto`, each
    panel also has its estimate of the mean payoff along the axis through the recommended point, with its interval at
    `level`; where too little is known there are gaps.
    """
    probability(level, "level")
    rows = _rows(checked(run), MOST_PLAYS)
    columns = columns_of(run, rows, parameters)
    if len(columns) > MOST_PANELS:
        raise ParameterError(
            f"{len(columns)} parameters are too many for one picture; choose at most {MOST_PANELS} with parameters="
        )
    if learner is not None and not isinstance(learner, Auto):
        raise ParameterError(f"learner must be the Auto of this run, got {learner!r:.80}")
    paid = run.payoffs[rows]
    drawn = [_slice(run, paid, column, learner, level) for column in columns]
    y = Axis(payoff_name({"": [run]}), *ends(*(part for _, marks in drawn for mark in marks for part in heights(mark))))
    panels = tuple(Panel(x, y, tuple(marks)) for x, marks in drawn)
    note = _note(run, rows)
    if learner is not None and not any(isinstance(mark, Spans | Band) for _, marks in drawn for mark in marks):
        note = "; ".join(filter(None, [note, "too little is known for an estimate along these axes"]))
    return draw(Picture(panels, heading(run), note, height=1.75), **look)


def _slice(run: Run, paid: Array, column: Column, learner: Auto | None, level: float) -> tuple[Axis, list[Mark]]:
    x, low, high = column.values, column.low, column.high
    if column.options:
        x = x + JITTER * (np.arange(len(x)) * GOLDEN % 1.0 - 0.5)
        axis = Axis(column.name, -0.6, len(column.options) - 0.4, ticks=tuple(labels(column)))
    elif column.log:
        start, end = ends(np.log10([low, high]))
        axis = Axis(column.name, 10.0**start, 10.0**end, log=True, whole=column.whole)
    else:
        axis = Axis(column.name, *ends(low, high), whole=column.whole)
    marks: list[Mark] = [Dots(x, paid, "payoff", faint=True)]
    best = recommended(run, column)
    if best is not None:
        marks.append(Rule(best, "recommended"))
    if learner is not None and best is not None:
        marks += _estimated(run, column, best, learner, level)
    elif best is not None and run.best_payoff is not None and run.best_payoff.supported:
        marks += _upright(np.array([best]), [run.best_payoff], f"its mean payoff, {run.best_payoff.level:.0%}", 1)
    return axis, marks


def _estimated(run: Run, column: Column, best: float, learner: Auto, level: float) -> list[Mark]:
    """What the learner says along one axis through the recommended point."""
    places, apart = _places(column, best)
    points = [_changed(run, column, place, best) for place in places.tolist()]
    found = [_interval(run, point, learner, level) for point in points]
    name = f"estimate and {level * 100:.4g}% interval"
    if apart or not any(one.supported for one in found):
        return _upright(places, found, name, 2)
    mean, low, high = np.array([(one.mean, one.low, one.high) for one in found]).T
    low, high = (np.where(np.isfinite(mean), end, np.nan) for end in (low, high))
    return [Band(places, low, high, colour=2), Line(places, mean, name, 2)]


def _places(column: Column, best: float) -> tuple[Array, bool]:
    """Where to ask the learner, evenly over the axis and where trials were; and whether there is nothing between."""
    if column.options or (column.whole and column.high - column.low < ALONG):
        return np.arange(column.low, column.high + 1), True
    even = (np.geomspace if column.log else np.linspace)(column.low, column.high, ALONG // 2 + 1)
    played = np.quantile(column.values, np.linspace(0, 1, ALONG - len(even)))
    places = np.union1d(np.append(even, best), played)
    return np.clip(np.unique(places.round()) if column.whole else places, column.low, column.high), False


def _changed(run: Run, column: Column, place: float, best: float) -> Array:
    """The recommended point with one parameter changed, as the learner sees it.  (d,)"""
    point = np.array(run.recommendation, np.float64).reshape(-1)
    if place == best:
        return point
    if run.space is None:
        point[int(column.key)] = place
        return point
    value: Any = column.options[int(place)] if column.options else int(place) if column.whole else place
    sizes = [parameter.size for parameter in run.space.parameters.values()]
    number = run.space.names.index(str(column.key))
    start = sum(sizes[:number])
    point[start : start + sizes[number]] = run.space.parameters[str(column.key)].point(value)
    return point


def _interval(run: Run, point: Array, learner: Auto, level: float) -> Interval:
    """Of the mean payoff at a point, in the user's units, within the range of payoffs."""
    if len(point) != learner.space.dimension:
        raise ParameterError(
            f"the learner searches {learner.space.dimension} coordinates, and the run has {len(point)}; give the Auto "
            "that made this run"
        )
    found = learner.interval(point if learner.space.family.shape else point[0], level)
    known = learner.payoff_range
    if not isinstance(known, str):
        mean, low, high = (float(np.clip(end, *known)) for end in found[:3])
        found = found._replace(mean=mean, low=low, high=high)
    return found if run.direction == "maximize" else found.turned()


def _upright(places: Array, found: Sequence[Interval], name: str, colour: int) -> list[Mark]:
    kept = [i for i, one in enumerate(found) if one.supported]
    if not kept:
        return []
    mean, low, high = (np.array([getattr(found[i], end) for i in kept]) for end in ("mean", "low", "high"))
    return [Spans(places[kept], low, high, colour=colour), Dots(places[kept], mean, name, colour)]


def _rows(run: Run, most: int) -> Indices:
    """The trials that are drawn, the best among them."""
    best = np.argmax(run.payoffs) if run.direction == "maximize" else np.argmin(run.payoffs)
    return np.union1d(thinned(len(run.payoffs), most), [best]).astype(np.int64)


def _note(run: Run, rows: Indices) -> str:
    return "" if len(rows) == len(run.payoffs) else f"{len(rows):,} of {len(run.payoffs):,} trials are drawn"


def _better(run: Run) -> Literal["low", "high"]:
    return "high" if run.direction == "maximize" else "low"
