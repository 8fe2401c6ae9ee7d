"""Figures for papers: colour-blind safe, told apart in grey, the same look for the same learner everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from randomist import theory
from randomist.experiments.comparison import Comparison, mean_interval
from randomist.experiments.contenders import Contender
from randomist.spaces import Finite

# Okabe and Ito's palette; line style and marker tell learners apart without colour.
LOOKS: dict[str, tuple[str, Any, str]] = {
    "randomist:a=8.1": ("#0072B2", "-", "o"),
    "randomist:a=1.1": ("#56B4E9", "-", "s"),
    "randomist": ("#0072B2", "-", "o"),
    "optimist": ("#D55E00", "-", "^"),
    "ftl": ("#000000", (0, (5, 1.5)), "x"),
    "ucb1": ("#009E73", (0, (3, 1, 1, 1)), "D"),
    "phe": ("#CC79A7", (0, (5, 1, 1, 1, 1, 1)), "v"),
    "thompson": ("#E69F00", (0, (1.5, 1)), "P"),
    "gp-ucb": ("#7F7F7F", (0, (4, 2)), "*"),
}
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}


def look(contender: Contender) -> dict[str, Any]:
    """Colour, line and marker of a learner."""
    scale = contender.settings.get("perturbation_scale")
    colour, line, marker = LOOKS.get(f"{contender.name}:a={scale}") or LOOKS.get(contender.name, ("#333333", "-", "."))
    return {"color": colour, "linestyle": line, "marker": marker, "markersize": 3.2}


def comparison_figure(comparisons: Sequence[Comparison], paths: Sequence[Path], caption: str = "") -> None:
    """One panel per task: mean and 95% band of every contender over rounds; written to every path."""
    columns = min(2, len(comparisons))
    rows = math.ceil(len(comparisons) / columns)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            rows, columns, figsize=(3.4 * columns, 2.35 * rows + 0.75), squeeze=False, sharey=True
        )
        for axis, comparison in zip(axes.flat, comparisons, strict=False):
            _panel(axis, comparison)
        if comparisons[0].measure == "regret":
            axes.flat[0].set_ylim(0, None)
        for axis in axes.flat[len(comparisons) :]:
            axis.set_visible(False)
        for axis in axes[-1]:
            axis.set_xlabel("round")
        for axis in axes[:, 0]:
            axis.set_ylabel("cumulative regret" if comparisons[0].measure == "regret" else comparisons[0].measure)
        named = {
            label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        legend = figure.legend(
            named.values(), named.keys(), loc="lower center", ncol=4, handlelength=3.2, columnspacing=1.4
        )
        figure.canvas.draw()
        height = legend.get_window_extent().height / figure.dpi / figure.get_size_inches()[1]
        figure.tight_layout(rect=(0, height + 0.015, 1, 0.97 if caption else 1))
        if caption:
            figure.suptitle(caption, fontsize=7, color="#555555", x=0.5, y=0.995, va="top")
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path)
        plt.close(figure)


def _panel(axis: Any, comparison: Comparison) -> None:
    axis.set_title(comparison.title)
    for i, contender in enumerate(comparison.runs):
        mean, half = mean_interval(comparison.curves(contender))
        rounds = np.arange(1, len(mean) + 1)
        shown = np.unique(np.linspace(0, len(mean) - 1, 400).astype(int))
        gap = max(1, len(shown) // 6)
        kind = look(contender)
        axis.plot(rounds[shown], mean[shown], label=contender.title, markevery=(i * gap // 8, gap), **kind)
        axis.fill_between(
            rounds[shown], (mean - half)[shown], (mean + half)[shown], color=kind["color"], alpha=0.18, linewidth=0
        )
    axis.set_xlim(0, rounds[-1])
    if comparison.measure == "regret":
        axis.set_yscale("symlog", linthresh=10, linscale=0.6)
        _bound(axis, comparison, rounds)


def _bound(axis: Any, comparison: Comparison, rounds: np.ndarray) -> None:
    """Theorem 4's bound on OPTIMIST: drawn where it says something, else put in words."""
    task = comparison.task
    if not isinstance(task.space, Finite):
        return
    gaps = theory.optimality_gaps(task.expected_payoff(), task.payoff_range)
    bound = theory.optimist_upper_bound(gaps, task.space.family.log_renyi(None, None), rounds)
    if bound.binds[-1]:
        axis.plot(rounds, bound.tightest, color="#D55E00", linewidth=0.8, linestyle=":", label="Theorem 4 (OPTIMIST)")
    else:
        note = f"off the chart: Theorem 4 allows OPTIMIST {bound.tightest[-1]:,.0f}"
        axis.text(0.02, 0.985, note, transform=axis.transAxes, va="top", fontsize=6, color="#555555")
