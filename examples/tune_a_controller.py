"""Tune a controller in one call: two gains of Mountain Car, anywhere in a box, one episode a round.

The payoff of an episode is its return. `Auto` is the default learner; twenty episodes after the search say what to
expect of the gains that it recommends. These are saved, and filmed where Gymnasium can draw the car
(`pip install -e '.[run,render]'`).

    python examples/tune_a_controller.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import randomist as rd

ROUNDS, FOLDER = 200, Path("out")


def show(outcome: rd.simulation.Outcome) -> None:
    if outcome.round % 50 == 0:
        print(f"round {outcome.round:3d}: gains {np.round(outcome.trial.mediator, 2)} returned {outcome.payoff:.1f}")


def main() -> None:
    task = rd.task("mountain-car")
    run = rd.optimize(task, rounds=ROUNDS, confirm=20, seed=0, callbacks=[show])
    print(run.summary())
    fresh = task.payoff(np.tile(run.best, (1000, 1)), np.random.default_rng(1))
    print(f"\nmean return of 1,000 more episodes with these gains: {fresh.mean():.1f}")

    FOLDER.mkdir(exist_ok=True)
    saved, film = FOLDER / "controller.json", FOLDER / "controller.gif"
    rd.save_policy(saved, task.policy, run.best, task="mountain-car")
    print(f"policy: {saved}")
    try:
        episode = rd.rollout(task, rd.load_policy(saved), seed=0, render=film)
        print(f"film: {film}, an episode that returns {episode.payoff:.1f}")
    except (rd.errors.TaskError, rd.errors.ParameterError) as error:  # pygame or pillow is missing
        print(f"no film: {error}")


if __name__ == "__main__":
    main()
