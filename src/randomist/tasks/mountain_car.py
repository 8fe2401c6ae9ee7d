"""Mountain Car with a continuous force: Gymnasium's `MountainCarContinuous-v0`, compiled, bit for bit.

A. Moore, Efficient Memory-Based Learning for Robot Control, PhD thesis, University of Cambridge, 1990; the equations,
the rewards and the rounding are those of `gymnasium.envs.classic_control.continuous_mountain_car` under NumPy 2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import whole_number
from randomist._compiled import compiled
from randomist._types import Array
from randomist.errors import ShapeError
from randomist.families import Gaussian
from randomist.policies import Linear
from randomist.spaces import Box
from randomist.tasks.base import ControlTask

if TYPE_CHECKING:
    import gymnasium

MIN_POSITION, MAX_POSITION = -1.2, 0.6
MAX_SPEED = 0.07
GOAL_POSITION, GOAL_VELOCITY = 0.45, 0.0
POWER, GRAVITY = 0.0015, 0.0025
START_LOW, START_HIGH = -0.6, -0.4


class MountainCar(ControlTask):
    """Drive an underpowered car up a hill; the payoff is the undiscounted return of one episode.

    The mediator is (θ_position, θ_velocity) and the action a = θ·(position, velocity). Only the force is clipped to
    [-1, 1]: the penalty 0.1 a² is on the raw action. Reaching the goal pays 100 and ends the episode. Returns leave
    `payoff_range` on both sides (the best policies return 97 on average), hence `out_of_range="clip"`.
    A parameter that is not finite gives a payoff of NaN.

    Parameters
    ----------
    std
        Of the hyperpolicy N(ξ, std²): a number, or one per parameter.
    low, high
        The corners of the box that is searched.
    horizon
        After how many steps an episode ends at the latest.
    """

    id = "mountain-car"
    payoff_range = (-5.0, 95.0)
    out_of_range = "clip"
    space: Box
    policy = Linear(2, 1)

    def __init__(
        self,
        std: ArrayLike = (0.15, 3.0),
        low: ArrayLike = (-1.0, 0.0),
        high: ArrayLike = (1.0, 20.0),
        horizon: int = 999,
    ) -> None:
        if np.shape(std) not in ((), (2,)):
            raise ShapeError(f"std must be a number or have shape (2,), got {np.shape(std)}")
        self.space = Box(Gaussian(std=np.broadcast_to(np.asarray(std, dtype=np.float64), (2,))), low, high)
        self.horizon = whole_number(horizon, "horizon")
        self.first = np.clip(0.0, self.space.low, self.space.high)  # the box's point nearest 0

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """One episode per mediator, each from its own start.  (n, 2) -> (n,)"""
        parameters = self.space.family.mediator_rows(mediators)
        starts = rng.uniform(START_LOW, START_HIGH, size=len(parameters))
        return _returns(parameters, starts, self.horizon, 2.0)

    def make_env(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        import gymnasium

        return gymnasium.make(
            "MountainCarContinuous-v0", max_episode_steps=-1, disable_env_checker=True, render_mode=render_mode
        )

    def trajectory(self, mediator: ArrayLike, start: float) -> tuple[Array, Array]:
        """States and rewards of one episode of T steps that begins at rest at `start`.  (T + 1, 2), (T,)"""
        parameters = np.asarray(mediator, dtype=np.float64)
        if parameters.shape != (2,):
            raise ShapeError(f"a mediator of mountain-car has shape (2,), got {parameters.shape}")
        states, rewards, steps = _trace(parameters, float(start), self.horizon, 2.0)
        return states[: steps + 1], rewards[:steps]


@compiled
def _rounded(x: float) -> float:
    """The nearest float32, as float64. Rounding a float64 sum or product of float32 numbers once more is harmless:
    53 bits are at least 2·24 + 2."""
    return np.float64(np.float32(x))


@compiled
def _act(parameters: Array, position: float, velocity: float) -> float:
    """a = θ·s in float64, of the observation, which Gymnasium rounds to float32."""
    return float(parameters[0] * _rounded(position) + parameters[1] * _rounded(velocity))


@compiled
def step(
    position: float, velocity: float, action: float, single: bool, square: float
) -> tuple[float, float, float, bool]:
    """One step: position and velocity (float32 values in float64), reward, whether the goal is reached.

    Gymnasium keeps its state in float64 until the first step and in float32 (`single`) afterwards; within a step
    NumPy 2 computes in float64 as soon as an unclipped float64 action enters, and in float32 where the other operand is
    a Python number, as a clipped force or a clipped speed is. `square` is 2, unknown to the compiler so that it calls
    pow, as Gymnasium does: pow(a, 2) and a * a differ in the last bit for about one action in a thousand.
    """
    weak = action < -1.0 or action > 1.0  # the force is a Python number
    force = min(max(action, -1.0), 1.0)
    angle = _rounded(3.0 * position) if single else 3.0 * position
    change = force * POWER - GRAVITY * math.cos(angle)

    if single and weak:
        velocity = _rounded(velocity + _rounded(change))
        speed_limit = _rounded(MAX_SPEED)
    else:
        velocity = velocity + change
        speed_limit = MAX_SPEED
    if velocity > speed_limit:
        velocity, weak = MAX_SPEED, True
    if velocity < -speed_limit:
        velocity, weak = -MAX_SPEED, True

    if single and weak:
        position = _rounded(position + _rounded(velocity))
        lowest, highest, goal = _rounded(MIN_POSITION), _rounded(MAX_POSITION), _rounded(GOAL_POSITION)
    else:
        position = position + velocity
        lowest, highest, goal = MIN_POSITION, MAX_POSITION, GOAL_POSITION
    position = min(max(position, lowest), highest)
    if position == lowest and velocity < 0.0:
        velocity = 0.0

    reached = position >= goal and velocity >= GOAL_VELOCITY
    reward = (100.0 if reached else 0.0) - math.pow(action, square) * 0.1
    return _rounded(position), _rounded(velocity), reward, reached


@compiled
def _returns(parameters: Array, starts: Array, horizon: int, square: float) -> Array:
    """(n, 2), (n,) -> (n,)"""
    n = parameters.shape[0]
    out = np.empty(n)
    for i in range(n):
        position, velocity, total = starts[i], 0.0, 0.0
        for t in range(horizon):
            action = _act(parameters[i], position, velocity)
            if math.isnan(action):
                total = np.nan
                break
            position, velocity, reward, reached = step(position, velocity, action, t > 0, square)
            total += reward
            if reached:
                break
        out[i] = total if np.isfinite(parameters[i]).all() else np.nan
    return out


@compiled
def _trace(parameters: Array, start: float, horizon: int, square: float) -> tuple[Array, Array, int]:
    """States (horizon + 1, 2) and rewards (horizon,) of one episode, and how many steps it took."""
    states, rewards = np.empty((horizon + 1, 2)), np.empty(horizon)
    position, velocity = start, 0.0
    states[0] = position, velocity
    for t in range(horizon):
        action = _act(parameters, position, velocity)
        position, velocity, rewards[t], reached = step(position, velocity, action, t > 0, square)
        states[t + 1] = position, velocity
        if reached:
            return states, rewards, t + 1
    return states, rewards, horizon
