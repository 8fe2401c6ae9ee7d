"""Figures for papers: colour-blind safe, told apart in grey, the same look for the same learner everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from randomist import theory
from randomist._types import Array
from randomist.experiments.chains import Chains
from randomist.experiments.comparison import Comparison, mean_interval
from randomist.experiments.contenders import Contender
from randomist.learners import registry
from randomist.learners.box.grid_optimist import points_per_dimension
from randomist.plots.style import STYLE
from randomist.spaces import Finite
from randomist.tasks.base import Task


def look(contender: Contender) -> dict[str, Any]:
    """Colour, line and marker of a learner."""
    colour, line, marker = registry.look(contender.name, contender.settings)
    return {"color": colour, "linestyle": line, "marker": marker, "markersize": 3.2}


@dataclass(frozen=True)
class Panel:
    """One set of axes: a curve per run of every contender."""

    title: str
    curves: dict[Contender, Array]  # (runs, rounds)
    measure: str  # "regret" or "average payoff"
    task: Task | None = None  # for the theorem's bound

    @classmethod
    def of_comparison(cls, comparison: Comparison) -> Panel:
        curves = {contender: comparison.curves(contender) for contender in comparison.runs}
        return cls(comparison.title, curves, comparison.measure, comparison.task)


def curves_figure(panels: Sequence[Panel], paths: Sequence[Path], caption: str = "") -> None:
    """Mean and 95% band of every contender over rounds, panel by panel; written to every path."""
    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    with plt.rc_context(STYLE):
        size = (3.4 * columns, 2.35 * rows + 0.75) if len(panels) > 1 else (6.8, 2.9)
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharey=True)
        for axis, panel in zip(axes.flat, panels, strict=False):
            _panel(axis, panel)
        regret = panels[0].measure == "regret"
        if regret:
            axes.flat[0].set_ylim(0, None)
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis in axes[-1]:
            axis.set_xlabel("round")
        for axis in axes[:, 0]:
            axis.set_ylabel("cumulative regret" if regret else panels[0].measure)
        named = {
            label: line for axis in axes.flat for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        top = 0.97 if caption else 1.0
        if len(panels) > 1:  # the legend below the panels, else beside the only one
            legend = figure.legend(
                named.values(), named.keys(), loc="lower center", ncol=4, handlelength=3.2, columnspacing=1.4
            )
            figure.canvas.draw()
            height = legend.get_window_extent().height / figure.dpi / size[1]
            figure.tight_layout(rect=(0, height + 0.015, 1, top))
        else:
            legend = figure.legend(named.values(), named.keys(), loc="center right", handlelength=3.2)
            figure.canvas.draw()
            width = legend.get_window_extent().width / figure.dpi / size[0]
            figure.tight_layout(rect=(0, 0, 1 - width - 0.01, top))
        if caption:
            figure.suptitle(caption, fontsize=7, color="#555555", x=0.5, y=0.995, va="top")
        _save(figure, paths)


def chains_figure(chains: Chains, paths: Sequence[Path]) -> None:
    """Figure 4: early chains above, late ones below, each from its start (ring) to the played decision (dot)."""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, len(chains.early), figsize=(7.2, 3.0), sharex=True, sharey=True)
        for row, (rounds, drawn) in enumerate(((chains.early_rounds, chains.early), (chains.late_rounds, chains.late))):
            for axis, done, path in zip(axes[row], rounds, drawn, strict=True):
                (steps,) = axis.plot(path[:, 0], path[:, 1], color="#0072B2", marker=".", markersize=3, linewidth=0.9)
                (start,) = axis.plot(*path[0, :2], "o", color="#000000", fillstyle="none", markersize=5)
                (played,) = axis.plot(*path[-1, :2], "o", color="#D55E00", markersize=4)
                axis.set_title(f"round {done}")
                axis.set_xlim(chains.low[0], chains.high[0])
                axis.set_ylim(chains.low[1], chains.high[1])
        for axis in axes[-1]:
            axis.set_xlabel("ξ₁")
        for axis in axes[:, 0]:
            axis.set_ylabel("ξ₂")
        figure.legend([steps, start, played], ["the chain", "its start", "what is played"], loc="lower center", ncols=3)
        figure.tight_layout(rect=(0, 0.07, 1, 1))
        _save(figure, paths)


def grid_figure(paths: Sequence[Path], rounds: int = 5000, dimension: int = 4) -> None:
    """Figure 5, right: points on OPTIMIST2's grid against rounds."""
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(3.4, 2.6))
        t = np.unique(np.geomspace(1, rounds, 200).astype(int))
        for kappa, line, colour in ((2, "-", "#0072B2"), (3, "--", "#D55E00"), (4, ":", "#009E73")):
            points = [points_per_dimension(int(n), kappa) ** dimension for n in t]
            axis.plot(t, points, linestyle=line, color=colour, label=f"κ = {kappa}")
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("round")
        axis.set_ylabel(f"grid points, d = {dimension}")
        axis.legend()
        figure.tight_layout()
        _save(figure, paths)


def _save(figure: Any, paths: Sequence[Path]) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    plt.close(figure)


def _panel(axis: Any, panel: Panel) -> None:
    axis.set_title(panel.title)
    for i, (contender, curves) in enumerate(panel.curves.items()):
        mean, half = mean_interval(curves)
        rounds = np.arange(1, len(mean) + 1)
        shown = np.unique(np.linspace(0, len(mean) - 1, 400).astype(int))
        gap = max(1, len(shown) // 6)
        kind = look(contender)
        axis.plot(rounds[shown], mean[shown], label=contender.title, markevery=(i * gap // 8, gap), **kind)
        low, high = np.clip([mean - half, mean + half], *_possible(panel))
        axis.fill_between(rounds[shown], low[shown], high[shown], color=kind["color"], alpha=0.18, linewidth=0)
    axis.set_xlim(0, rounds[-1])
    if panel.measure == "regret":
        axis.set_yscale("symlog", linthresh=10, linscale=0.6)
        if panel.task is not None and isinstance(panel.task.space, Finite):
            _bound(axis, panel.task, panel.task.space, rounds)


def _possible(panel: Panel) -> tuple[float, float]:
    """What a mean over runs can be: no regret below zero, no payoff outside of its range, or of what was seen."""
    if panel.measure == "regret":
        return 0.0, math.inf
    seen = [float(end) for curves in panel.curves.values() for end in (curves.min(), curves.max())]
    low, high = (-math.inf, math.inf) if panel.task is None else panel.task.payoff_range
    return low if math.isfinite(low) else min(seen), high if math.isfinite(high) else max(seen)


def _bound(axis: Any, task: Task, space: Finite, rounds: np.ndarray) -> None:
    """Theorem 4's bound on OPTIMIST, where it is below what is certain anyway; elsewhere it would be off the chart."""
    gaps = theory.optimality_gaps(task.expected_payoff(), task.payoff_range)
    bound = theory.optimist_upper_bound(gaps, space.family.log_renyi(None, None), rounds)
    if bound.binds[-1]:
        axis.plot(rounds, bound.tightest, color="#D55E00", linewidth=0.8, linestyle=":", label="Theorem 4 (OPTIMIST)")
