"""A study that is killed and goes on: a worker tunes two gains, dies in the middle of an episode, and is started again.

The worker is a process that ends without a word after some episodes. The next one loads the study, tells what the first
one left open, and goes on. In the end the whole history is there, and the dashboard is written as one file.
Needs the `study` extra (`pip install -e '.[study]'`).

    python examples/keep_a_study.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import randomist as rd
from randomist.study.dashboard import snapshot, static_page

STORAGE, FOLDER = "sqlite:///out/car.db", Path("out")


def open_study(task: rd.Task) -> rd.Study:
    learner = rd.MCMCRandomist(
        task.space, payoff_range=task.payoff_range, out_of_range=task.out_of_range, first=task.first, seed=0
    )
    return rd.create_study("car", learner, storage=STORAGE, worker="rig", exist_ok=True)


def work(episodes: int, dies_after: int | None = None) -> None:
    task = rd.task("mountain-car")
    study = open_study(task)
    unanswered = study.pending(worker="rig")
    if unanswered:
        print(f"found {len(unanswered)} trial without an answer: {unanswered[0].id}", flush=True)
    for done in range(episodes):
        trial = unanswered.pop(0) if unanswered else study.ask()
        if done == dies_after:
            print(f"dies during trial {trial.id}", flush=True)
            os._exit(9)
        study.tell(trial, task.payoff([trial.mediator], np.random.default_rng(trial.id))[0])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "car.db").unlink(missing_ok=True)
    for dies_after in ("40", "25", ""):
        subprocess.run([sys.executable, __file__, "50", dies_after], check=not dies_after)
    study = rd.load_study("car", storage=STORAGE)
    payoffs = np.array([t.payoff for t in study.trials("told")])
    print(f"{study.told} episodes told, {len(study.pending())} open; recommended gains {study.recommend().round(2)}")
    print(f"mean return of the first 30: {payoffs[:30].mean():.1f}, of the last 30: {payoffs[-30:].mean():.1f}")
    page = FOLDER / "car.html"
    page.write_text(static_page(snapshot(study)), encoding="utf-8")
    print(f"dashboard: {page}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2] else None)
    else:
        main()
