"""How much faster the compiled Mountain Car and Cartpole are than stepping Gymnasium from Python, per step.

    python -m benchmarks.control_tasks

Both sides run the same policies in the same process: `gymnasium.make` and its usual loop (action, step, until the episode
ends) against `task.payoff` on many episodes at once. The second ratio is to the bare environment, without the wrappers.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gymnasium
import numpy as np

from randomist.families.base import Array
from randomist.tasks import Cartpole, MountainCar


def stepped(env: gymnasium.Env[Array, Array], policies: Array, scale: float, horizon: int) -> float:
    """Seconds per step of a Python loop over whole episodes, one per policy."""
    steps, begin = 0, time.perf_counter()
    for seed, parameters in enumerate(policies):
        observation, _ = env.reset(seed=seed)
        for _ in range(horizon):
            observation, _, terminated, truncated, _ = env.step(np.array([parameters @ observation / scale]))
            steps += 1
            if terminated or truncated:
                break
    return (time.perf_counter() - begin) / steps


def compiled(task: MountainCar | Cartpole, policies: Array, length: Callable[[Array], int]) -> float:
    """Seconds per step of `task.payoff`, the best of five calls, compilation not counted."""
    task.payoff(policies[:1], np.random.default_rng(0))
    seconds = []
    for _ in range(5):
        rng = np.random.default_rng(0)
        begin = time.perf_counter()
        task.payoff(policies, rng)
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / sum(length(parameters) for parameters in policies)


def main() -> None:
    rng = np.random.default_rng(0)
    car, pole = MountainCar(), Cartpole()
    for name, task, decision, env_id, scale in (
        ("mountain-car", car, [0.0, 10.0], "MountainCarContinuous-v0", 1.0),
        ("cartpole", pole, [1.0, 2.0, 9.0, 9.0], "randomist/ContinuousCartPole-v0", 10.0),
    ):
        policies = task.space.family.sample(np.tile(decision, (2000, 1)), rng)
        starts = iter(np.random.default_rng(0).uniform(-0.6, -0.4, size=2000))
        poles = iter(np.random.default_rng(0).uniform(-0.05, 0.05, size=(2000, 4)))

        def length(parameters: Array, task: MountainCar | Cartpole = task) -> int:
            if isinstance(task, MountainCar):
                return len(task.trajectory(parameters, next(starts))[1])
            return len(task.trajectory(parameters, next(poles))) - 1

        fast = compiled(task, policies, length)
        wrapped = stepped(gymnasium.make(env_id), policies[:40], scale, task.horizon)
        bare = stepped(gymnasium.make(env_id).unwrapped, policies[:40], scale, task.horizon)
        print(
            f"{name:13} compiled {fast * 1e9:6.1f} ns/step   {env_id} {wrapped * 1e6:6.2f} µs/step (bare {bare * 1e6:.2f})"
            f"   ratio {wrapped / fast:6.0f} (bare {bare / fast:.0f})"
        )
    cart = gymnasium.make("CartPole-v1")
    steps, begin = 0, time.perf_counter()
    for seed in range(200):
        observation, _ = cart.reset(seed=seed)
        ended = False
        while not ended:
            observation, _, terminated, truncated, _ = cart.step(int(observation[2] + observation[3] > 0))
            ended, steps = terminated or truncated, steps + 1
    discrete = (time.perf_counter() - begin) / steps
    print(f"{'cartpole':13} compiled {fast * 1e9:6.1f} ns/step   CartPole-v1 {discrete * 1e6:6.2f} µs/step   ratio {discrete / fast:6.0f}")


if __name__ == "__main__":
    main()
