"""The figure: every row's mean and 95% interval, a panel per task."""

from __future__ import annotations

from pathlib import Path

from benchmarks.ablation.table import Row
from randomist.experiments.comparison import mean_interval
from randomist.experiments.figures import STYLE, look
from randomist.experiments.specs import Experiment


def draw(experiment: Experiment, rows: list[Row], path: Path) -> None:
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            len(experiment.tasks),
            figsize=(2.6 + 1.5 * len(experiment.tasks), 0.9 + 0.2 * len(rows)),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for j, (axis, task) in enumerate(zip(axes[0], experiment.tasks, strict=True)):
            for i, row in enumerate(rows):
                mean, half = mean_interval(row.finals[j])
                kind = look(row.learner)
                lower = min(half, 0.9 * mean) if row.regret else half  # a logarithm has no place for 0
                axis.errorbar(
                    mean,
                    -i,
                    xerr=[[lower], [half]],
                    color=kind["color"],
                    marker=kind["marker"],
                    markersize=4,
                    capsize=2,
                )
            if rows[0].regret:
                axis.set_xscale("log")
            axis.set_title(task.name)
        axes[0, 0].set_yticks([-i for i in range(len(rows))], [row.label for row in rows])
        measure = "regret" if rows[0].regret else "average payoff"
        figure.supxlabel(f"{measure} after {experiment.rounds} rounds, {experiment.seeds} runs", fontsize=8)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
        plt.close(figure)
