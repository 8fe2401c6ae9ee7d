"""The figure: for each task, the average return over all episodes so far, with 95% intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.peers.results import Result
from randomist.experiments.comparison import mean_interval

# Okabe and Ito's colours, which the colour-blind can tell apart, and line styles for those who print in grey.
COLOURS = ("#7f7f7f", "#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLES = (":", "--", "-", "-", "-.", "--", "-.", ":")


def draw(results: Mapping[str, Mapping[str, Sequence[Result]]], path: Path) -> None:
    """`results` by title of task, then of method."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    wide = min(3, len(results))
    tall = -(-len(results) // wide)
    figure = Figure(figsize=(4.2 * wide, 3.2 * tall + 0.8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(tall, wide, squeeze=False).ravel()
    methods = list(dict.fromkeys(method for runs in results.values() for method in runs))
    for axes, (title, by_method) in zip(grid, results.items(), strict=False):
        for method, runs in by_method.items():
            mean, half = mean_interval(np.stack([run.average for run in runs]))
            look = methods.index(method)
            episodes = np.arange(1, len(mean) + 1)
            axes.plot(episodes, mean, STYLES[look % 8], color=COLOURS[look % 8], label=method, linewidth=1.5)
            axes.fill_between(episodes, mean - half, mean + half, color=COLOURS[look % 8], alpha=0.12, linewidth=0)
        finals = np.concatenate([runs[0].average[-1:] for runs in by_method.values()])
        best = max(np.mean([run.average for run in runs], axis=0).max() for runs in by_method.values())
        axes.set_ylim(finals.min() - 0.5 * (best - finals.min()), best + 0.1 * (best - finals.min()))
        axes.set(title=title, xlabel="episodes", xscale="log")
    for axes in grid[len(results) :]:
        axes.set_axis_off()
    grid[0].set_ylabel("average return so far")
    handles = {label: line for axes in grid for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
