"""The figure of an evaluation: estimates and intervals, one line per candidate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from randomist.logs.anytime import Sequence
from randomist.logs.report import Evaluation
from randomist.plots.style import STYLE


def draw_sequence(sequence: Sequence, candidates: tuple[str, ...], level: float, path: Path) -> None:
    """How intervals shrink while rows come."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.8, 3.6), layout="constrained")
        for k, name in enumerate(candidates):
            (line,) = axis.plot(sequence.rows, (sequence.low[:, k] + sequence.high[:, k]) / 2, linewidth=1, label=name)
            axis.fill_between(
                sequence.rows, sequence.low[:, k], sequence.high[:, k], color=line.get_color(), alpha=0.25, linewidth=0
            )
        axis.set_xscale("log")
        axis.set_xlabel("rows")
        axis.set_ylabel("expected payoff")
        axis.set_title(f"{level:.0%} intervals that hold at every row at once")
        figure.legend(loc="outside lower center", ncols=4)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)


def draw(evaluation: Evaluation, path: Path, truth: Mapping[str, float] | None = None) -> None:
    """Thick lines are the intervals that hold together, thin ones the naive, dots the estimates.

    A dashed line is the estimate of the baseline, a star the truth, if given.
    """
    count = len(evaluation.candidates)
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(6.8, 1.5 + 0.42 * count), layout="constrained")
        rows = np.arange(count)[::-1]
        contender = np.array([name in evaluation.contenders for name in evaluation.candidates])
        for is_open, colour, words in ((True, "#56B4E9", "may be the best"), (False, "#B8B8B8", "not the best")):
            chosen = contender == is_open
            if chosen.any():
                label = f"{evaluation.level:.0%} interval, {words}" if count > 1 else f"{evaluation.level:.0%} interval"
                axis.hlines(
                    rows[chosen], evaluation.low[chosen], evaluation.high[chosen], colour, linewidth=7, label=label
                )
        low, high = evaluation.payoff_range
        naive_low, naive_high = np.clip([evaluation.naive_low, evaluation.naive_high], low, high)
        axis.hlines(rows - 0.22, naive_low, naive_high, "#333333", linewidth=0.8, label="naive interval")
        estimates = np.clip(evaluation.self_normalised, low, high)
        axis.plot(estimates, rows, "o", color="#000000", markersize=4, linestyle="none", label="estimate")
        if evaluation.baseline is not None:
            now = estimates[evaluation.candidates.index(evaluation.baseline)]
            axis.axvline(now, color="#D55E00", linewidth=1, linestyle="--", label=f"{evaluation.baseline} (status quo)")
        if truth is not None:
            known = [(truth[name], row) for name, row in zip(evaluation.candidates, rows, strict=True) if name in truth]
            axis.plot(*zip(*known, strict=True), "*", color="#CC79A7", markersize=9, linestyle="none", label="truth")
        axis.set_yticks(rows, evaluation.candidates)
        axis.set_ylim(-0.6, count - 0.4)
        axis.set_xlabel("expected payoff")
        figure.legend(loc="outside lower center", ncols=4)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)
