"""LQG and continuous Cartpole as Gymnasium environments, on the same compiled steps as the tasks.

Importing this module registers `randomist/LQG-v0` and `randomist/ContinuousCartPole-v0`, and so does
`gymnasium.make("randomist.tasks.environments:randomist/LQG-v0")`. As Gymnasium recommends,
actions lie in [-1, 1]: they are fractions of the largest action or force, and what lies beyond is clipped. Observations
are float64, so an episode here and one of the task differ only by the rounding of that fraction.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from randomist._types import Array
from randomist.errors import ParameterError, ShapeError
from randomist.tasks import cartpole, lqg


class LQGEnv(gymnasium.Env[Array, Array]):
    """`randomist/LQG-v0`: x' = x + u + noise in each coordinate, reward in [0, 1]; see `randomist.tasks.lqg.LQG`."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium declares it so)

    def __init__(
        self,
        dimension: int = 1,
        noise_std: float = 0.1,
        limit: float = 4.0,
        state_cost: float = 0.9,
        action_cost: float = 0.9,
        render_mode: None = None,
    ) -> None:
        self.noise_std, self.limit, self.state_cost, self.action_cost = noise_std, limit, state_cost, action_cost
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(-limit, limit, shape=(dimension,), dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, shape=(dimension,), dtype=np.float64)
        self.state: Array | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-self.limit, self.limit, size=self.observation_space.shape)
        return self.state.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        state, fraction = _started(self.state), _checked(action, self.action_space.shape)
        noise = self.noise_std * self.np_random.standard_normal(state.shape)
        costs = (self.state_cost, self.action_cost)
        self.state, reward = lqg.step(state, self.limit * fraction, noise, float(self.limit), *costs)
        return self.state.copy(), float(reward), False, False, {}


class ContinuousCartPoleEnv(gymnasium.Env[Array, Array]):
    """`randomist/ContinuousCartPole-v0`: 1 per step until the pole falls; see `randomist.tasks.cartpole.Cartpole`."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": round(1 / cartpole.TIME_STEP)}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ParameterError(f'render_mode must be None or "rgb_array", got {render_mode!r}')
        self.render_mode = render_mode
        widest = float(np.finfo(np.float32).max)  # as good as unbounded, and finite for those who scale by it
        high = np.array([2 * cartpole.MAX_POSITION, widest, 2 * cartpole.MAX_ANGLE, widest])
        self.observation_space = gymnasium.spaces.Box(-high, high, dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, shape=(1,), dtype=np.float64)
        self.state: Array | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-cartpole.START_LIMIT, cartpole.START_LIMIT, size=4)
        return self.state.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        state, fraction = _started(self.state), _checked(action, self.action_space.shape)
        x, v, angle, spin = state.tolist()
        self.state = np.array(cartpole.step(x, v, angle, spin, cartpole.MAX_FORCE * float(fraction[0])))
        fallen = not cartpole.upright(self.state[0], self.state[2])
        return self.state.copy(), 1.0, bool(fallen), False, {}

    def render(self) -> NDArray[np.uint8] | None:
        """The cart, its pole and the track from the side, drawn with NumPy alone.  (200, 300, 3)"""
        return None if self.render_mode is None else _cartpole_frame(_started(self.state))


def _started(state: Array | None) -> Array:
    if state is None:
        raise gymnasium.error.ResetNeeded("call reset() before step() and render()")
    return state


def _checked(action: Array, shape: tuple[int, ...] | None) -> Array:
    """The action as fractions in [-1, 1]; NaN would otherwise pass every comparison and look like success."""
    array = np.asarray(action, dtype=np.float64)
    if array.shape != shape:
        raise ShapeError(f"an action must have shape {shape}, got {array.shape}")
    if np.isnan(array).any():
        raise ParameterError(f"an action must be a number, got {array}; check the policy's parameters")
    return np.clip(array, -1.0, 1.0)


def _cartpole_frame(state: Array) -> NDArray[np.uint8]:
    height, width, scale, track = 200, 300, 300 / (2 * cartpole.MAX_POSITION), 50.0
    y, x = np.mgrid[height - 1 : -1 : -1, 0:width].astype(np.float64)  # pixels, y upwards  (height, width) each
    cart = width / 2 + scale * state[0]
    along = (x - cart) * np.sin(state[2]) + (y - track) * np.cos(state[2])  # coordinates of the pole
    across = (x - cart) * np.cos(state[2]) - (y - track) * np.sin(state[2])
    frame = np.full((height, width, 3), 255, dtype=np.uint8)
    frame[np.abs(y - track) < 1] = (160, 160, 160)
    frame[(np.abs(x - cart) <= 14) & (np.abs(y - track) <= 8)] = (40, 40, 40)
    frame[(along >= 0) & (along <= 2 * cartpole.HALF_LENGTH * scale) & (np.abs(across) <= 2.5)] = (202, 152, 101)
    return frame


for _id, _entry, _horizon in (
    ("randomist/LQG-v0", LQGEnv, 20),
    ("randomist/ContinuousCartPole-v0", ContinuousCartPoleEnv, 200),
):
    if _id not in gymnasium.registry:  # registering twice makes Gymnasium warn
        gymnasium.register(_id, entry_point=f"{__name__}:{_entry.__name__}", max_episode_steps=_horizon)
