"""What runs paid, round by round: one run with all its payoffs, or several as their mean with a 95% band.

A round is a trial that was asked, so that trials that failed have their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np

from randomist._types import Array
from randomist.errors import NoDataError, ParameterError
from randomist.plots.drawing import Look, draw
from randomist.plots.marks import (
    MOST_DOTS,
    MOST_POINTS,
    Axis,
    Band,
    Dots,
    Line,
    Mark,
    Panel,
    Picture,
    Spans,
    ends,
    heights,
    places,
    thinned,
)
from randomist.simulation.run import Run

LEVEL = 0.95  # of bands over runs
Runs: TypeAlias = Run | Sequence[Run] | Mapping[str, Run | Sequence[Run]]


class Course(NamedTuple):
    """A run in the order in which its trials were asked."""

    rounds: Array  # 1 is the first trial  (n,)
    payoffs: Array  # (n,)
    average: Array  # so far  (n,)
    best: Array  # so far  (n,)
    regret: Array | None  # (n,)


def payoffs(runs: Runs, **look: Unpack[Look]) -> Any:
    """Payoffs over rounds: each a faint dot, their average so far a line, failed trials ticks on the axis.

    Several runs, as a list or by name, are drawn as the mean of their averages so far with a 95% band (Student's, no
    wider than the payoffs that were seen), as far as the shortest goes. A list is told apart by learner and task.
    """
    groups = grouped(runs)
    marks: list[Mark] = list(_curves(groups, lambda course: course.average, "average so far"))
    seen = np.concatenate([run.payoffs for group in groups.values() for run in group])
    alone = _alone(groups)
    if alone is None:
        return draw(_picture(groups, payoff_name(groups), marks), **look)
    low, high = ends(seen)
    course = _course(alone)
    at = thinned(len(course.rounds), MOST_DOTS)
    name = "payoff" if len(at) == len(seen) else f"payoff ({len(at):,} of {len(seen):,})"
    marks.insert(0, Dots(course.rounds[at], course.payoffs[at], name, faint=True))
    if alone.failures:
        failed = np.sort(np.array(list(alone.failures), dtype=np.float64)) + 1
        failed = failed[thinned(len(failed), MOST_DOTS)]
        name = f"failed ({len(alone.failures):,})"
        marks.append(Dots(failed, np.full(len(failed), low), name, colour=1, symbol="tick"))
    return draw(_picture(groups, payoff_name(groups), marks, (low, high)), **look)


def best_so_far(runs: Runs, **look: Unpack[Look]) -> Any:
    """The best payoff so far over rounds: the largest, or the smallest where payoffs are minimized.

    At the right edge, with its interval, is the mean payoff of what a run recommends, where the run knows it: a single
    payoff that was lucky says less. Several runs are drawn as in `payoffs`.
    """
    groups = grouped(runs)
    marks: list[Mark] = list(_curves(groups, lambda course: course.best, "best so far", steps=True))
    for i, group in enumerate(groups.values()):
        found = group[0].best_payoff if len(group) == 1 else None
        if found is not None and found.supported:
            last = _course(group[0]).rounds[-1]
            at = np.array([last + (0.02 + 0.01 * i) * max(last, 10.0)])
            name = f"mean payoff of the recommended point, {found.level:.0%}"
            low, mean, high = (np.array([end]) for end in (found.low, found.mean, found.high))
            colour = 1 if len(groups) == 1 else i
            marks += [Spans(at, low, high, colour=colour), Dots(at, mean, name, colour)]
    return draw(_picture(groups, payoff_name(groups), marks), **look)


def regret(runs: Runs, **look: Unpack[Look]) -> Any:
    """Cumulative regret over rounds, where a run knows it; several runs are drawn as in `payoffs`."""
    groups = grouped(runs)
    for run in (run for group in groups.values() for run in group):
        if run.regret is None:
            raise ParameterError(
                f"the regret of {run.learner} on {run.task} is not known: it needs a task that knows its expected "
                "payoffs and is maximized, such as rd.task('illustrative'); draw rd.plot.payoffs(run) instead"
            )
    marks = _curves(groups, lambda course: course.regret, "regret")
    return draw(_picture(groups, "cumulative regret", list(marks)), **look)


def grouped(runs: Any) -> dict[str, list[Run]]:
    """Runs by the name under which they are drawn; refused where nothing was told, or directions differ."""
    if isinstance(runs, Run):
        groups = {"": [runs]}
    elif isinstance(runs, Mapping):
        groups = {str(name): [part] if isinstance(part, Run) else _listed(part) for name, part in runs.items()}
    else:
        groups, every = {}, _listed(runs)
        where = len({run.task for run in every}) > 1
        for run in every:
            groups.setdefault(f"{run.learner} on {run.task}" if where else run.learner, []).append(run)
    if not groups or not all(groups.values()):
        raise ParameterError("there is no run to draw; give a Run, a list of runs, or a dict of them by name")
    for run in (run for group in groups.values() for run in group):
        checked(run)
    if len({run.direction for group in groups.values() for run in group}) > 1:
        raise ParameterError("some of these runs were maximized and some minimized; draw them apart")
    return groups


def checked(run: Any) -> Run:
    """A run that was told something."""
    if not isinstance(run, Run):
        raise ParameterError(f"this draws a Run, as rd.optimize returns it, got {run!r:.80}")
    if not len(run.payoffs):
        reason = next(iter(run.failures.values()), "")
        failed = f", and {len(run.failures)} trials failed, the first with {reason!r:.80}" if run.failures else ""
        raise NoDataError(f"nothing was told in this run{failed}; there is nothing to draw before a first payoff")
    return run


def payoff_name(groups: Mapping[str, Sequence[Run]]) -> str:
    """What the axis of payoffs is called."""
    minimized = next(iter(groups.values()))[0].direction == "minimize"
    return "payoff, less is better" if minimized else "payoff"


def heading(run: Run) -> str:
    return f"{run.learner} on {run.task}"


def _listed(runs: Any) -> list[Run]:
    if isinstance(runs, str) or not isinstance(runs, Sequence):
        raise ParameterError(f"give a Run, a list of runs, or a dict of them by name, got {runs!r:.80}")
    return [checked(run) for run in runs]


def _alone(groups: Mapping[str, Sequence[Run]]) -> Run | None:
    """The run, if there is one only."""
    every = [run for group in groups.values() for run in group]
    return every[0] if len(every) == 1 else None


def _course(run: Run) -> Course:
    ids = np.arange(len(run.payoffs)) if run.ids is None else run.ids
    order = np.argsort(ids, kind="stable")
    paid, lost = run.payoffs[order], run.regret
    if lost is not None and (np.diff(order) < 0).any():  # told in another order than asked
        lost = np.cumsum(np.diff(lost, prepend=0.0)[order])
    extreme = np.maximum if run.direction == "maximize" else np.minimum
    average = np.cumsum(paid) / np.arange(1, len(paid) + 1)
    return Course((ids[order] + 1).astype(np.float64), paid, average, extreme.accumulate(paid), lost)


def _curves(
    groups: Mapping[str, Sequence[Run]], measure: Callable[[Course], Any], name: str, steps: bool = False
) -> list[Mark]:
    """A line for each group; of several runs their mean, with a band."""
    bands: list[Mark] = []
    lines: list[Mark] = []
    for i, (group, runs) in enumerate(groups.items()):
        courses = [_course(run) for run in runs]
        label = group if len(groups) > 1 else name
        if len(courses) == 1:
            rounds, curve = courses[0].rounds, measure(courses[0])
            moved = np.flatnonzero(np.diff(curve, prepend=np.nan) != 0) if steps else thinned(len(curve), MOST_POINTS)
            at = np.union1d(moved, len(curve) - 1)  # of steps, those that go up or down
            at = at[thinned(len(at), MOST_POINTS)]
            lines.append(Line(rounds[at], curve[at], label, i, i, steps))
            continue
        rounds, mean, low, high = _mean_and_band(courses, measure)
        band = f"{LEVEL:.0%} band" if len(groups) == 1 else ""
        label = f"{label}, mean of {len(runs)} runs" if len(groups) == 1 else f"{label} ({len(runs)} runs)"
        bands.append(Band(rounds, low, high, band, i))
        lines.append(Line(rounds, mean, label, i, i))
    return bands + lines


def _mean_and_band(courses: Sequence[Course], measure: Callable[[Course], Any]) -> tuple[Array, Array, Array, Array]:
    """Rounds, the mean over runs, and Student's interval for it, no wider than what is possible.

    A failed trial leaves a run where it was. Averages and best payoffs lie between the payoffs that were seen, and
    regret is not below 0.
    """
    from scipy.stats import t  # slow to import

    first, last = max(course.rounds[0] for course in courses), min(course.rounds[-1] for course in courses)
    if last < first:
        raise ParameterError(f"these runs have no round in common: one begins at {first:.0f}, one ends at {last:.0f}")
    rounds = np.arange(first, last + 1)
    rounds = rounds[thinned(len(rounds), MOST_POINTS)]
    rows = np.stack([measure(one)[np.searchsorted(one.rounds, rounds, side="right") - 1] for one in courses])  # (r, n)
    n, mean = len(rows), rows.mean(axis=0)
    half = t.ppf(0.5 + LEVEL / 2, n - 1) / np.sqrt(n) * rows.std(axis=0, ddof=1)
    if measure(courses[0]) is courses[0].regret:
        least, most = min(0.0, float(rows.min())), np.inf
    else:
        least, most = (float(f([f(one.payoffs) for one in courses])) for f in (np.min, np.max))
    return rounds, mean, np.clip(mean - half, least, most), np.clip(mean + half, least, most)


def _picture(
    groups: Mapping[str, Sequence[Run]], name: str, marks: Sequence[Mark], limits: tuple[float, float] | None = None
) -> Picture:
    runs = next(iter(groups.values()))
    low, high = limits or ends(*(part for mark in marks for part in heights(mark)))
    start, end = ends(*(part for mark in marks for part in places(mark)), pad=0.01)
    title = heading(runs[0]) if len(groups) == 1 else ""
    return Picture((Panel(Axis("round", start, end, whole=True), Axis(name, low, high), tuple(marks)),), title)
