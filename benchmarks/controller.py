"""A controller with three gains: a grid of a million on a device beside the learners of a box.

A mass with drag follows a target under an unknown load, pushed by clip(kp e + ki ∫e - kd v, ±5): the payoff is 1 minus
the mean of min(|e|, 1) over 5 seconds. What is lost is counted beside the best gains, without noise around them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import randomist as rd

LOW, HIGH = np.array([0.0, 0.0, 0.0]), np.array([20.0, 10.0, 8.0])
STD = 0.05 * (HIGH - LOW)
STEPS, STEP, FORCE, DRAG = 100, 0.05, 5.0, 0.5


class Servo(rd.Task):
    """The payoff of gains (kp, ki, kd)."""

    id = "servo"
    space = rd.Box(rd.Gaussian(std=STD), LOW, HIGH)

    def payoff(self, mediators: Any, rng: np.random.Generator) -> np.ndarray:
        gains = self.space.family.mediator_rows(mediators)
        start, load = rng.uniform(-0.2, 0.2, len(gains)), rng.uniform(-1, 1, len(gains))
        return _paid(np, gains.T, start, load, range(STEPS))

    def payoff_on_device(self, gains: Any, key: Any) -> Any:
        import jax
        import jax.numpy as jnp

        first, second = jax.random.split(key)
        start = jax.random.uniform(first, (), jnp.float64, -0.2, 0.2)
        load = jax.random.uniform(second, (), jnp.float64, -1.0, 1.0)
        begin = start, jnp.asarray(0.0), jnp.asarray(0.0), jnp.asarray(0.0)
        state = jax.lax.fori_loop(0, STEPS, lambda _, state: _step(jnp, gains, load, state), begin)
        return 1.0 - state[3] / STEPS


def _paid(xp: Any, gains: Any, start: Any, load: Any, steps: range) -> Any:
    state = start, xp.zeros_like(start), xp.zeros_like(start), xp.zeros_like(start)
    for _ in steps:
        state = _step(xp, gains, load, state)
    return 1.0 - state[3] / STEPS


def _step(xp: Any, gains: Any, load: Any, state: Any) -> Any:
    """Position, velocity, the integral of the error, and the sum of what is lost."""
    position, velocity, integral, lost = state
    error = 1.0 - position
    push = xp.clip(gains[0] * error + gains[1] * integral - gains[2] * velocity, -FORCE, FORCE)
    velocity = velocity + STEP * (push + load - DRAG * velocity)
    return position + STEP * velocity, velocity, integral + STEP * error, lost + xp.minimum(xp.abs(error), 1.0)


def best_gains(points: int = 25, episodes: int = 64) -> float:
    """The largest mean payoff on a grid, the same starts and loads for all; the best one once more with others."""
    axes = [np.linspace(low, high, points) for low, high in zip(LOW, HIGH, strict=True)]
    gains = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    total = np.zeros(len(gains))
    for start, load in np.random.default_rng(0).uniform([-0.2, -1], [0.2, 1], (episodes, 2)):
        total += _paid(np, gains.T, np.full(len(gains), start), np.full(len(gains), load), range(STEPS))
    best = np.tile(gains[np.argmax(total)], (20_000, 1))
    return float(Servo().payoff(best, np.random.default_rng(1)).mean())


def compared(device: str, decisions: int, rounds: int, seeds: int, jobs: int) -> dict[str, Any]:
    """What each learner lost, and how long a run took."""
    from randomist import vectorised

    task, points = Servo(), round(decisions ** (1 / 3))
    grid, best = rd.Finite.grid(rd.Gaussian(std=STD), LOW, HIGH, points), best_gains()
    found: dict[str, Any] = {"best": best, "decisions": points**3, "rounds": rounds, "rows": {}}
    print(f"the best gains earn {best:.4f} a round", flush=True)
    for name in ("realist", "optimist", "randomist", "mcmc-randomist", "auto"):
        begin = time.perf_counter()
        if name in ("mcmc-randomist", "auto"):
            runs: Any = rd.optimize_many(task, name, rounds, seeds, jobs=jobs)
        else:
            runs = vectorised.optimize_many(task, name, rounds, seeds, device=device, space=grid)
        seconds = (time.perf_counter() - begin) / seeds
        lost = np.array([rounds * best - run.payoffs.sum() for run in runs])
        late = np.array([best - run.payoffs[-rounds // 4 :].mean() for run in runs])
        row = {"lost": lost.tolist(), "lost a round at the end": late.tolist(), "seconds a run": seconds}
        found["rows"][name] = row
        print(
            f"{name}: lost {lost.mean():.2f}, {late.mean():.4f} a round at the end; {seconds:.1f} s a run", flush=True
        )
    return found
