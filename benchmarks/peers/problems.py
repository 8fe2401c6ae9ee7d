"""The six problems: a task, a linear policy, a box of parameters, and what a failed episode counts.

Every search goes on in coordinates where the box is [0, 1]^d, so that one step size suits all parameters of a policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import randomist as rd

Array = NDArray[np.float64]

START, SEARCH, EPISODES, FRESH = range(4)  # what the branches of a run's seed are for


def generator(seed: int, purpose: int) -> np.random.Generator:
    """The generator of one purpose of a run."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,)))


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the parameters in a box with the largest expected return; an episode is one deterministic policy."""

    id: str
    title: str
    make: Callable[[], rd.Task]
    low: Array  # (d,)
    high: Array  # (d,)
    worst: float  # what an episode counts whose parameters, states or rewards are not finite
    decimals: int = 1  # that a table prints
    needs: tuple[str, ...] = ()  # packages
    episodes: int = 2500  # of a reported run
    tuning: tuple[int, int] = (300, 4)  # episodes and seeds of a tuning run
    fresh: int = 100  # episodes behind a true return
    abreast: bool = False  # whether many episodes at once return what they would one by one, and sooner

    @cached_property
    def task(self) -> rd.Task:
        return self.make()

    @property
    def dimension(self) -> int:
        return len(self.low)

    def start(self, seed: int) -> Array:
        """Where every method starts: uniform in the unit box.  (d,)"""
        return generator(seed, START).uniform(size=self.dimension)

    def parameters(self, points: Array) -> Array:
        """Points of the unit box as parameters; what lies beyond is moved to its border, NaN stays.  (..., d)"""
        return self.low + np.clip(points, 0.0, 1.0) * (self.high - self.low)

    def returns(self, parameters: Array, rng: np.random.Generator) -> Array:
        """One episode per row; an episode that is not finite has failed, and counts as the worst.  (n, d) -> (n,)"""
        returns = self.task.payoff(parameters[:, 0] if self.dimension == 1 else parameters, rng)
        return np.where(np.isfinite(returns), returns, self.worst)

    def true_return(self, parameters: Array, seed: int) -> float:
        """The mean of fresh episodes, which are the same for every method of a seed."""
        return float(self.returns(np.tile(parameters, (self.fresh, 1)), generator(seed, FRESH)).mean())

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "task"}  # each process makes its own


def _box(low: float, high: float, dimension: int) -> tuple[Array, Array]:
    return np.full(dimension, low), np.full(dimension, high)


def _lqg() -> rd.Task:
    return rd.task("lqg", space="box")


def _mountain_car() -> rd.Task:
    return rd.task("mountain-car")


def _cartpole() -> rd.Task:
    return rd.task("cartpole")


def _pendulum() -> rd.Task:
    return rd.task("gym:Pendulum-v1", policy="linear-bias")


def _inverted_pendulum() -> rd.Task:
    return rd.task("gym:InvertedPendulum-v5", policy="linear")


def _swimmer() -> rd.Task:
    return rd.task("gym:Swimmer-v5", policy="linear")


_CARTPOLE = np.array([-2.0, 0.0, 0.0, 0.0]), np.array([2.0, 4.0, 10.0, 12.0])  # the paper's, as Mountain Car's
_MOUNTAIN_CAR = np.array([-1.0, 0.0]), np.array([1.0, 20.0])

# The worst of Mountain Car is 999 steps of the largest action in the box, |a| = 1.2 + 20 * 0.07, at 0.1 a² each; that
# of Pendulum is 200 steps hanging down at full speed and torque. Swimmer has none: this is far below its returns.
# MuJoCo's episodes are dear, a good one of InvertedPendulum or any of Swimmer being 1,000 steps: hence fewer of them.
PROBLEMS = {
    problem.id: problem
    for problem in (
        Problem("lqg", "LQG", _lqg, *_box(-1.0, 1.0, 1), worst=0.0, decimals=3),
        Problem("mountain-car", "Mountain Car", _mountain_car, *_MOUNTAIN_CAR, worst=-676.0),
        Problem("cartpole", "Cartpole", _cartpole, *_CARTPOLE, worst=0.0),
        Problem("pendulum", "Pendulum", _pendulum, *_box(-5.0, 5.0, 4), worst=-3255.0, abreast=True),
        Problem(
            "inverted-pendulum",
            "InvertedPendulum",
            _inverted_pendulum,
            *_box(-5.0, 5.0, 4),
            worst=0.0,
            needs=("mujoco",),
            episodes=1000,
            tuning=(200, 3),
            abreast=True,
        ),
        Problem(
            "swimmer",
            "Swimmer",
            _swimmer,
            *_box(-1.0, 1.0, 16),
            worst=-1000.0,
            needs=("mujoco",),
            episodes=300,
            tuning=(100, 2),
            fresh=20,
            abreast=True,
        ),
    )
}
