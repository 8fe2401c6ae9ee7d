"""Tune a controller with ask and tell: two gains of Mountain Car, anywhere in a box, one episode a round.

The payoff of an episode is its return. Every fifty rounds a line shows the mean return of the rounds so far and the
recommended gains. In the end these are played in fresh episodes, saved, and filmed where Gymnasium can draw the car
(`pip install -e '.[run,render]'`).

    python examples/tune_a_controller.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import randomist as rd

ROUNDS, FOLDER = 200, Path("out")


def main() -> None:
    task = rd.task("mountain-car")
    learner = rd.make("mcmc-randomist", task, seed=0)  # with the box, the payoff range and the first gains of the task
    rng = np.random.default_rng(0)
    print("round  mean return  recommended gains")
    for done in range(1, ROUNDS + 1):
        trial = learner.ask()
        learner.tell(trial, task.payoff([trial.mediator], rng)[0])
        if done % 50 == 0:
            print(f"{done:5d}  {learner.record.payoffs.mean():11.1f}  {learner.recommend().round(2)}")

    gains = learner.recommend()
    print(f"\nmean return of 1,000 episodes with these gains: {task.payoff(np.tile(gains, (1000, 1)), rng).mean():.1f}")

    FOLDER.mkdir(exist_ok=True)
    saved, film = FOLDER / "controller.json", FOLDER / "controller.gif"
    rd.save_policy(saved, task.policy, gains, task="mountain-car")
    print(f"policy: {saved}")
    try:
        episode = rd.rollout(task, rd.load_policy(saved), seed=0, render=film)
        print(f"film: {film}, an episode that returns {episode.payoff:.1f}")
    except (rd.errors.TaskError, rd.errors.ParameterError) as error:  # pygame or pillow is missing
        print(f"no film: {error}")


if __name__ == "__main__":
    main()
