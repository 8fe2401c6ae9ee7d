"""The figure: for each task, the average return over all episodes so far, with 95% intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.peers.results import Result
from randomist.experiments.comparison import mean_interval

# Okabe and Ito's colours, which the colour-blind can tell apart, and line styles for those who print in grey.
COLOURS = ("#7f7f7f", "#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255")
STYLES = (":", "--", "-", "-", "-.", "--", "-.", ":", "-")
SKIPPED = 9  # episodes before the curves begin: the average of so few says nothing, and its intervals hide the rest


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
        shown = slice(min(SKIPPED, min(len(runs[0].payoffs) for runs in by_method.values()) - 1), None)
        for method, runs in by_method.items():
            mean, half = mean_interval(np.stack([run.average for run in runs]))
            episodes, look = np.arange(1, len(mean) + 1), methods.index(method) % len(COLOURS)
            colour, low, high = COLOURS[look], mean - half, mean + half
            axes.plot(episodes[shown], mean[shown], STYLES[look], color=colour, label=method, linewidth=1.5)
            axes.fill_between(episodes[shown], low[shown], high[shown], color=colour, alpha=0.1, linewidth=0)
        last = [np.mean([run.average[-1] for run in runs]) for runs in by_method.values()]
        height = max(last) - min(last) or 1.0  # the floor and the best fill two thirds of it; what begins lower is cut
        axes.set_ylim(min(last) - 0.4 * height, max(last) + 0.1 * height)
        axes.set(title=title, xlabel="episodes", xscale="log")
    for axes in grid[len(results) :]:
        axes.set_axis_off()
    grid[0].set_ylabel("average return so far")
    handles = {label: line for axes in grid for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
