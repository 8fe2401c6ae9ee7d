"""How much faster the compiled Mountain Car and Cartpole are than stepping Gymnasium from Python, per step.

    python -m benchmarks.control_tasks

Both sides run the same policies in the same process: `gymnasium.make` and its usual loop (act, step, until the episode
ends) against `task.payoff` on many episodes at once, compilation not counted. The ratio in brackets is to the bare
environment, without Gymnasium's wrappers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from randomist._types import Array
from randomist.tasks import Cartpole, MountainCar, environments  # noqa: F401 (for Gymnasium's table)

EPISODES, STEPPED = 2000, 40
Policy = Callable[[Array, Array], Any]  # parameters and observation to action


def compiled(task: MountainCar | Cartpole, policies: Array, starts: Array) -> float:
    """Seconds per step of `task.payoff`, the best of five calls; the generator that drew `starts` had seed 0."""
    steps = sum(len(task.trajectory(policy, start)[1]) for policy, start in zip(policies, starts, strict=True))
    seconds = []
    for _ in range(5):
        begin = time.perf_counter()
        task.payoff(policies, np.random.default_rng(0))
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / steps


def stepped(env: gymnasium.Env[Any, Any], policies: Array, act: Policy, horizon: int) -> float:
    """Seconds per step of a Python loop over whole episodes, one per policy."""
    steps, begin = 0, time.perf_counter()
    for seed, parameters in enumerate(policies):
        observation, _ = env.reset(seed=seed)
        for _ in range(horizon):
            observation, _, terminated, truncated, _ = env.step(act(parameters, observation))
            steps += 1
            if terminated or truncated:
                break
    return (time.perf_counter() - begin) / steps


def main() -> None:
    car, pole, rng = MountainCar(), Cartpole(), np.random.default_rng(1)
    cars = car.space.family.sample(np.tile([0.0, 10.0], (EPISODES, 1)), rng)
    poles = pole.space.family.sample(np.tile([1.0, 2.0, 9.0, 9.0], (EPISODES, 1)), rng)
    car_speed = compiled(car, cars, np.random.default_rng(0).uniform(-0.6, -0.4, size=EPISODES))
    pole_speed = compiled(pole, poles, np.random.default_rng(0).uniform(-0.05, 0.05, size=(EPISODES, 4)))
    print(f"compiled: mountain-car {car_speed * 1e9:.1f} ns/step, cartpole {pole_speed * 1e9:.1f} ns/step")

    comparisons: list[tuple[str, float, Array, Policy, int]] = [
        ("MountainCarContinuous-v0", car_speed, cars, lambda p, s: np.array([p @ s]), car.horizon),
        ("randomist/ContinuousCartPole-v0", pole_speed, poles, lambda p, s: np.array([p @ s / 10]), pole.horizon),
        ("CartPole-v1", pole_speed, poles, lambda p, s: int(p @ s > 0), pole.horizon),
    ]
    for id, fast, policies, act, horizon in comparisons:
        wrapped = stepped(gymnasium.make(id), policies[:STEPPED], act, horizon)
        bare = stepped(gymnasium.make(id).unwrapped, policies[:STEPPED], act, horizon)
        print(
            f"{id:32} {wrapped * 1e6:5.2f} µs/step (bare {bare * 1e6:5.2f})   "
            f"compiled is {wrapped / fast:.0f} times faster (bare {bare / fast:.0f})"
        )


if __name__ == "__main__":
    main()
