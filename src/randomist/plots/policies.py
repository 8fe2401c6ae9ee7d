"""What is known about each policy of a finite set: its value with an interval, and how many samples that stands on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from randomist._checks import probability
from randomist._types import Array, Flags, Indices
from randomist.errors import NoDataError, ParameterError
from randomist.learners.finite.base import FiniteLearner
from randomist.plots.drawing import Look, draw
from randomist.plots.marks import Axis, Bars, Dots, Mark, Panel, Picture, Rule, Spans, ends, places

if TYPE_CHECKING:  # what an evaluation of logs has is read as it is: logs draw with this module
    from randomist.logs.report import Evaluation

MOST = 40  # policies that are drawn
ROW = 0.24  # inches for each


class Values(NamedTuple):
    """What is known about some policies.  Arrays are (K,)"""

    names: tuple[str, ...]
    value: Array  # NaN where nothing is known
    low: Array  # together with `high` at `level`
    high: Array
    level: float
    open: Flags  # which of them may be the best
    samples: Array  # effective ones
    plays: Indices | None = None
    naive: tuple[Array, Array] | None = None  # intervals without a guarantee
    baseline: int | None = None

    def at(self, rows: Indices) -> Values:
        """Of some of the policies."""
        return self._replace(
            names=tuple(self.names[i] for i in rows),
            value=self.value[rows],
            low=self.low[rows],
            high=self.high[rows],
            open=self.open[rows],
            samples=self.samples[rows],
            plays=None if self.plays is None else self.plays[rows],
            naive=None if self.naive is None else (self.naive[0][rows], self.naive[1][rows]),
            baseline=None if self.baseline is None else int(np.flatnonzero(rows == self.baseline)[0]),
        )


def estimates(
    source: FiniteLearner | Evaluation,
    level: float | None = None,
    baseline: int | str | None = None,
    *,
    truth: Mapping[str, float] | None = None,
    **look: Unpack[Look],
) -> Any:
    """The value of every policy with its interval, from a learner on a finite set or from an evaluation of logs.

    Thick lines are intervals that hold together with probability `level` (0.95; an evaluation has its own), bright
    where a policy may still be the best. Dots are estimates; of an evaluation, thin lines are naive intervals. On the
    right is how often each was played, and how many samples of it the history is worth. `baseline` is the status quo,
    by number or name: a dashed line at its estimate. `truth` has values that are known, by name: stars.
    """
    of = _of_learner if isinstance(source, FiniteLearner) else _of_evaluation
    known, note = _largest(of(source, level, baseline))
    rows = np.arange(len(known.names), dtype=np.float64)[::-1]
    marks: list[Mark] = []
    for is_open, colour, words in ((True, "span", ", may be the best"), (False, "off", ", not the best")):
        chosen = known.open == is_open
        if chosen.any():
            name = f"{known.level * 100:.4g}% interval" + (words if len(rows) > 1 else "")
            marks.append(
                Spans(rows[chosen], known.low[chosen], known.high[chosen], name, colour, thick=True, across=True)
            )
    if known.naive is not None:
        marks.append(Spans(rows - 0.26, *known.naive, "naive interval", "ink", across=True))
    marks.append(Dots(known.value, rows, "estimate", "ink"))
    if known.baseline is not None and np.isfinite(known.value[known.baseline]):
        marks.append(Rule(float(known.value[known.baseline]), f"{known.names[known.baseline]} (status quo)"))
    if truth is not None:
        there = [i for i, name in enumerate(known.names) if name in truth]
        stars = np.array([truth[known.names[i]] for i in there], np.float64)
        marks.append(Dots(stars, rows[there], "truth", 3, "star"))
    x = Axis("expected payoff", *ends(*(part for mark in marks for part in places(mark))))
    beside, title = _samples(known, rows)
    panel = Panel(x, _policies(known.names, rows), tuple(marks), beside, title)
    return draw(Picture((panel,), note=note, height=_height(rows, known.naive is not None)), **look)


def effective_samples(learner: FiniteLearner, **look: Unpack[Look]) -> Any:
    """How often each policy was played, beside how many samples of it the whole history is worth."""
    if not isinstance(learner, FiniteLearner):
        raise ParameterError(f"this draws a learner on a finite set, such as rd.Realist, got {learner!r:.80}")
    found = _told(learner).estimates()
    nothing = np.zeros(learner.space.size)
    known = Values(_names(learner), found.value, nothing, nothing, 0.0, nothing > 0, found.effective_samples)
    known, note = _largest(known._replace(plays=found.plays))
    rows = np.arange(len(known.names), dtype=np.float64)[::-1]
    assert known.plays is not None
    marks: tuple[Mark, ...] = (
        Bars(rows + 0.19, known.plays.astype(np.float64), "plays", "off", 0.36),
        Bars(rows - 0.19, known.samples, "effective samples", 0, 0.36),
    )
    x = Axis("samples", 0.0, ends(known.samples, known.plays, 0.0)[1])
    return draw(Picture((Panel(x, _policies(known.names, rows), marks),), note=note, height=_height(rows)), **look)


def _of_learner(learner: Any, level: float | None, baseline: Any) -> Values:
    sure = 0.95 if level is None else probability(level, "level")
    found, intervals = _told(learner).estimates(), learner.intervals(sure)
    value = np.clip(found.value, *learner.payoff_range)  # known, or there would be no intervals
    value[found.log_effective_samples == -np.inf] = np.nan
    may = np.zeros(learner.space.size, np.bool_)
    may[learner.surviving(sure)] = True
    names = _names(learner)
    return Values(
        *(names, value, intervals.low, intervals.high, sure, may, found.effective_samples, found.plays),
        baseline=_number(baseline, names),
    )


def _of_evaluation(source: Any, level: float | None, baseline: Any) -> Values:
    if not hasattr(source, "self_normalised"):
        raise ParameterError(
            f"estimates are those of a learner on a finite set, or of log.evaluate(...), got {source!r:.80}"
        )
    if level not in (None, source.level):
        raise ParameterError(f"this evaluation has intervals at level {source.level}, got {level}; evaluate it anew")
    low, high = source.payoff_range
    return Values(
        source.candidates,
        np.clip(source.self_normalised, low, high),
        source.low,
        source.high,
        source.level,
        np.array([name in source.contenders for name in source.candidates]),
        source.effective_samples,
        naive=(np.clip(source.naive_low, low, high), np.clip(source.naive_high, low, high)),
        baseline=_number(source.baseline if baseline is None else baseline, source.candidates),
    )


def _told(learner: FiniteLearner) -> FiniteLearner:
    if not learner.told:
        raise NoDataError("nothing has been told yet; there is nothing to draw before a first payoff")
    return learner


def _names(learner: FiniteLearner) -> tuple[str, ...]:
    return learner.space.names or tuple(f"policy {i}" for i in range(learner.space.size))


def _number(policy: Any, names: tuple[str, ...]) -> int | None:
    """Which policy is meant, by number or name."""
    if policy is None:
        return None
    if isinstance(policy, str) and policy in names:
        return names.index(policy)
    if isinstance(policy, int | np.integer) and not isinstance(policy, bool) and 0 <= policy < len(names):
        return int(policy)
    raise ParameterError(
        f"baseline must be the number or the name of a policy, 0..{len(names) - 1} or one of "
        f"{', '.join(names):.120}, got {policy!r:.80}"
    )


def _largest(known: Values) -> tuple[Values, str]:
    """All policies, or those of the largest values and the baseline, in their order; and a note where some are not."""
    count = len(known.names)
    if count <= MOST:
        return known, ""
    score = np.where(np.isfinite(known.value), known.value, -np.inf)
    if known.baseline is not None:
        score[known.baseline] = np.inf
    rows = np.sort(np.argsort(-score, kind="stable")[:MOST])
    return known.at(rows), f"{MOST} of {count:,} policies are drawn, those with the largest estimates"


def _samples(known: Values, rows: Array) -> tuple[tuple[tuple[float, str], ...], str]:
    """What is written beside each policy, and above it."""
    worth = [f"{number:.1f}" if number < 1000 else f"{number:,.0f}" for number in known.samples]
    if known.plays is None:
        return tuple(zip(rows.tolist(), worth, strict=True)), "effective samples"
    texts = (f"{plays:,} · {samples}" for plays, samples in zip(known.plays.tolist(), worth, strict=True))
    return tuple(zip(rows.tolist(), texts, strict=True)), "plays · effective samples"


def _policies(names: tuple[str, ...], rows: Array) -> Axis:
    return Axis("", -0.6, len(rows) - 0.4, ticks=tuple(zip(rows.tolist(), names, strict=True)))


def _height(rows: Array, wide: bool = False) -> float:
    return 0.75 + (1.4 if wide else 1.0) * ROW * len(rows)
