"""Cartpole with a continuous force: Gymnasium's equations of `CartPole-v1`, compiled.

A. Barto, R. Sutton and C. Anderson, Neuronlike adaptive elements that can solve difficult learning control problems,
IEEE Transactions on Systems, Man, and Cybernetics, 1983; constants and the order of operations as in
`gymnasium.envs.classic_control.cartpole`, with any force in [-10, 10] in place of two.
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

GRAVITY = 9.8
CART_MASS, POLE_MASS = 1.0, 0.1
TOTAL_MASS = POLE_MASS + CART_MASS
HALF_LENGTH = 0.5
POLE_MOMENT = POLE_MASS * HALF_LENGTH
MAX_FORCE = 10.0
TIME_STEP = 0.02
MAX_POSITION = 2.4
MAX_ANGLE = 12 * 2 * math.pi / 360
START_LIMIT = 0.05


class Cartpole(ControlTask):
    """Balance a pole on a cart; the payoff is the number of steps until it falls, at most `horizon`.

    The mediator θ has 4 entries and the force is clip(θ·s, -10, 10) with s = (position, velocity, angle, angular
    velocity). Every step pays 1, the one that fails included, as in Gymnasium: a payoff lies between 1 and `horizon`.
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

    id = "cartpole"
    space: Box
    policy = Linear(4, 1, action_scale=1 / MAX_FORCE)  # the environment takes fractions of the largest force

    def __init__(
        self,
        std: ArrayLike = 1.0,
        low: ArrayLike = (-2.0, 0.0, 0.0, 0.0),
        high: ArrayLike = (2.0, 4.0, 10.0, 12.0),
        horizon: int = 200,
    ) -> None:
        if np.shape(std) not in ((), (4,)):
            raise ShapeError(f"std must be a number or have shape (4,), got {np.shape(std)}")
        self.space = Box(Gaussian(std=np.broadcast_to(np.asarray(std, dtype=np.float64), (4,))), low, high)
        self.horizon = whole_number(horizon, "horizon")
        self.payoff_range = (0.0, float(self.horizon))

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """One episode per mediator, each from its own start.  (n, 4) -> (n,)"""
        parameters = self.space.family.mediator_rows(mediators)
        starts = rng.uniform(-START_LIMIT, START_LIMIT, size=(len(parameters), 4))
        return _returns(parameters, starts, self.horizon)

    def make_env(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        import gymnasium

        return gymnasium.make(
            "randomist.tasks.environments:randomist/ContinuousCartPole-v0",
            max_episode_steps=-1,
            render_mode=render_mode,
        )

    def trajectory(self, mediator: ArrayLike, start: ArrayLike) -> tuple[Array, Array]:
        """States and rewards of one episode of T steps that begins at `start`.  (T + 1, 4), (T,)"""
        parameters, state = np.asarray(mediator, dtype=np.float64), np.asarray(start, dtype=np.float64)
        if parameters.shape != (4,) or state.shape != (4,):
            raise ShapeError(f"mediator and start must have shape (4,), got {parameters.shape} and {state.shape}")
        states, steps = _trace(parameters, state, self.horizon)
        return states[: steps + 1], np.ones(steps)


State = tuple[float, float, float, float]


@compiled
def step(position: float, velocity: float, angle: float, spin: float, force: float) -> State:
    """Where Newton's equations and one Euler step of 0.02 s lead from a state under a force, clipped to [-10, 10]."""
    push = min(max(force, -MAX_FORCE), MAX_FORCE)
    cosine, sine = math.cos(angle), math.sin(angle)
    drive = (push + POLE_MOMENT * (spin * spin) * sine) / TOTAL_MASS
    spin_rate = (GRAVITY * sine - cosine * drive) / (
        HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * (cosine * cosine) / TOTAL_MASS)
    )
    acceleration = drive - POLE_MOMENT * spin_rate * cosine / TOTAL_MASS
    return (
        position + TIME_STEP * velocity,
        velocity + TIME_STEP * acceleration,
        angle + TIME_STEP * spin,
        spin + TIME_STEP * spin_rate,
    )


@compiled
def upright(position: float, angle: float) -> bool:
    """Whether the episode goes on; a state that is not a number has failed."""
    return abs(position) <= MAX_POSITION and abs(angle) <= MAX_ANGLE


@compiled
def _act(parameters: Array, x: float, v: float, angle: float, spin: float) -> float:
    """a = θ·s"""
    return float(parameters[0] * x + parameters[1] * v + parameters[2] * angle + parameters[3] * spin)


@compiled
def _returns(parameters: Array, starts: Array, horizon: int) -> Array:
    """(n, 4), (n, 4) -> (n,)"""
    n = parameters.shape[0]
    out = np.empty(n)
    for i in range(n):
        x, v, angle, spin = starts[i, 0], starts[i, 1], starts[i, 2], starts[i, 3]
        total = 0.0
        for _ in range(horizon):
            action = _act(parameters[i], x, v, angle, spin)
            if math.isnan(action):
                total = np.nan
                break
            x, v, angle, spin = step(x, v, angle, spin, action)
            total += 1.0
            if not upright(x, angle):
                break
        out[i] = total if np.isfinite(parameters[i]).all() else np.nan
    return out


@compiled
def _trace(parameters: Array, start: Array, horizon: int) -> tuple[Array, int]:
    """States (horizon + 1, 4) of one episode, and how many steps it took."""
    states = np.empty((horizon + 1, 4))
    x, v, angle, spin = start[0], start[1], start[2], start[3]
    states[0] = x, v, angle, spin
    for t in range(horizon):
        x, v, angle, spin = step(x, v, angle, spin, _act(parameters, x, v, angle, spin))
        states[t + 1] = x, v, angle, spin
        if not upright(x, angle):
            return states, t + 1
    return states, horizon
