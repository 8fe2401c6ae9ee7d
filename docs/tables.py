"""Print the tables of docs/reproducing.md from what `randomist reproduce` wrote: `python docs/tables.py out/paper`."""

from __future__ import annotations

import sys
from pathlib import Path

from randomist.experiments.comparison import mean_interval
from randomist.experiments.reproduce import find_stores


def main(folder: Path) -> None:
    stores = {store.experiment.name: store for store in find_stores(folder)}
    for name in ("illustrative", "lqg"):
        store, spec = stores[name], stores[name].experiment
        print("| learner | " + " | ".join(task.name for task in spec.tasks) + " |\n|---|" + "---|" * len(spec.tasks))
        for learner in spec.learners:
            finals = [mean_interval(store.curves(task, learner, "regret")[:, -1]) for task in spec.tasks]
            print(f"| {learner.title} | " + " | ".join(f"{mean:,.1f} ± {half:,.1f}" for mean, half in finals) + " |")
        print()
    for name in ("mountain-car", "cartpole"):
        store, spec = stores[name], stores[name].experiment
        print("| learner | all rounds | first fifth | last tenth |\n|---|---|---|---|")
        for learner in spec.learners:
            payoffs = store.curves(spec.tasks[0], learner, "payoff")
            n = payoffs.shape[1]
            parts = (payoffs, payoffs[:, : n // 5], payoffs[:, -(n // 10) :])
            cells = [mean_interval(part.mean(axis=1)) for part in parts]
            print(f"| {learner.title} | " + " | ".join(f"{mean:.1f} ± {half:.1f}" for mean, half in cells) + " |")
        print()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
