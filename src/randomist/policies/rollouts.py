"""Watch a policy: one episode of a task in its Gymnasium environment, as arrays and, on request, as a film."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.errors import ParameterError, ShapeError, TaskError
from randomist.policies import Policy, SavedPolicy
from randomist.tasks import ControlTask, Task
from randomist.tasks import task as find_task

_FRAME_RATE = 30.0  # where the environment names none
_GIF_RATE = 25.0  # about what viewers show


@dataclass(frozen=True, eq=False)
class Rollout:
    """One episode of T steps."""

    observations: Array  # (T + 1, observation_size), flattened, as the policy saw them
    actions: NDArray[Any]  # as the environment got them  (T, *shape)
    rewards: Array  # (T,)
    payoff: float  # the task's payoff for these rewards; NaN if something was not finite


def rollout(
    task: str | Task, policy: ArrayLike | SavedPolicy, *, seed: int = 0, render: str | Path | None = None
) -> Rollout:
    """Play one episode from the environment's reset with `seed`; `render="car.gif"` (or .mp4) films it.

    `policy` is a parameter vector of the task's policy, such as a mediator or a recommended decision, or what
    `load_policy` returned. The environment must offer "rgb_array" to be filmed; GIF needs the `run` extra, MP4 also the
    package imageio-ffmpeg.
    """
    chosen = find_task(task)
    if not isinstance(chosen, ControlTask):
        raise TaskError(f"task {chosen.id!r} has no policy to play; rollout takes control and gym:<id> tasks")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise ParameterError(f"seed must be a whole number >= 0, got {seed!r}")
    actor, parameters = _actor(chosen, policy)
    film = None if render is None else _Film(Path(render))
    if film is not None and not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame would look for a screen
    env = chosen.make_env() if film is None else _filmed_env(chosen)
    episode = _Episode()
    try:
        frames = episode.play(chosen, actor, parameters, env, int(seed))
        if film is None:
            for _ in frames:
                pass
        else:
            film.write(frames, float(env.metadata.get("render_fps") or _FRAME_RATE))
    except gymnasium.error.DependencyNotInstalled as error:
        raise TaskError(f"{chosen.id!r} cannot be drawn: {error}; install randomist[render]") from error
    finally:
        env.close()
    return episode.result(chosen)


@dataclass
class _Episode:
    observations: list[Array] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    failed: bool = False

    def play(
        self, task: ControlTask, policy: Policy, parameters: Array, env: gymnasium.Env[Any, Any], seed: int
    ) -> Iterator[Any]:
        """Step to the end, yielding the environment's picture (None if it draws none) of every state."""
        self._see(env.reset(seed=seed)[0], policy)
        self.failed |= not np.isfinite(parameters).all()
        yield env.render() if env.render_mode else None
        for _ in range(task.horizon):
            outputs = policy.outputs(parameters, self.observations[-1])
            self.failed |= bool(np.isnan(outputs).any())
            if self.failed:
                return
            action = task.to_action(outputs)
            try:
                observation, reward, terminated, truncated, _ = env.step(action)
            except OverflowError:  # Mountain Car squares the action with math.pow
                self.failed = True
                return
            self.actions.append(np.array(action))
            self.rewards.append(float(reward))
            self._see(observation, policy)
            self.failed |= not math.isfinite(self.rewards[-1])
            yield env.render() if env.render_mode else None
            if terminated or truncated or self.failed:
                return

    def _see(self, observation: Any, policy: Policy) -> None:
        row = np.array(observation, dtype=np.float64).reshape(-1)
        if row.size != policy.observation_size:
            raise ShapeError(f"an observation has {row.size} numbers, the policy takes {policy.observation_size}")
        self.observations.append(row)
        self.failed |= not np.isfinite(row).all()

    def result(self, task: ControlTask) -> Rollout:
        payoff = math.nan if self.failed else task.episode_payoff(self.rewards)
        rewards = np.array(self.rewards, dtype=np.float64)
        return Rollout(np.array(self.observations), np.array(self.actions), rewards, payoff)


def _actor(task: ControlTask, policy: ArrayLike | SavedPolicy) -> tuple[Policy, Array]:
    """Who acts, and with which parameters  (size,)"""
    saved = policy if isinstance(policy, SavedPolicy) else None
    ours = task.policy
    if saved is None:
        actor, parameters = ours, ours.check_parameters(policy)  # type: ignore[arg-type]
    else:
        actor = saved.policy if isinstance(saved.policy, Policy) else saved.policy.base
        parameters = saved.parameters
        sizes = (actor.observation_size, actor.action_size, actor.discrete)
        if sizes != (ours.observation_size, ours.action_size, ours.discrete):
            raise TaskError(f"the saved policy {actor} does not fit task {task.id!r}, whose policy is {ours}")
    if parameters.ndim != 1:
        raise ShapeError(f"rollout plays one parameter vector of shape ({actor.size},), got {parameters.shape}")
    return actor, parameters


# Films.


def _filmed_env(task: ControlTask) -> gymnasium.Env[Any, Any]:
    plain = task.make_env()
    modes = plain.metadata.get("render_modes", [])
    plain.close()
    if "rgb_array" not in modes:
        drawn = ", ".join(modes) or "nothing"
        raise TaskError(f"{task.id!r} cannot be filmed: it draws {drawn}, and a film needs rgb_array; leave out render")
    return task.make_env(render_mode="rgb_array")


@dataclass(frozen=True)
class _Film:
    """A GIF or an MP4, written while the episode runs, and under its name only once it is whole."""

    path: Path

    def __post_init__(self) -> None:
        kind = self.path.suffix.lower()
        if kind not in (".gif", ".mp4"):
            raise ParameterError(f"render must name a .gif or an .mp4 file, got {str(self.path)!r}")
        if not self.path.parent.is_dir():
            raise ParameterError(f"the folder of {str(self.path)!r} does not exist; make it first")
        needed = {".gif": [("PIL", "pillow")], ".mp4": [("imageio", "imageio"), ("imageio_ffmpeg", "imageio-ffmpeg")]}
        missing = [package for module, package in needed[kind] if find_spec(module) is None]
        if missing:
            raise ParameterError(
                f"a {kind} film needs {' and '.join(missing)}: pip install {' '.join(missing)}"
                + ("; a .gif comes with randomist[run]" if kind == ".mp4" else ", or randomist[run]")
            )

    def write(self, frames: Iterator[Any], frame_rate: float) -> None:
        unfinished = self.path.with_name(f"{self.path.stem}.part{self.path.suffix}")
        try:
            (_write_gif if self.path.suffix.lower() == ".gif" else _write_mp4)(unfinished, frames, frame_rate)
            os.replace(unfinished, self.path)
        finally:
            unfinished.unlink(missing_ok=True)


def _write_gif(path: Path, frames: Iterator[Any], frame_rate: float) -> None:
    """Pillow, which imageio brings, takes pictures as they come; imageio itself would hold them all."""
    from PIL import Image

    stride = max(1, round(frame_rate / _GIF_RATE))
    pictures = (Image.fromarray(frame) for i, frame in enumerate(frames) if i % stride == 0)
    duration = 1000 * stride / frame_rate  # ms
    next(pictures).save(path, "GIF", save_all=True, append_images=pictures, duration=duration, loop=0)


def _write_mp4(path: Path, frames: Iterator[Any], frame_rate: float) -> None:
    import imageio.v2 as imageio

    writer: Any = imageio.get_writer(path, fps=frame_rate, macro_block_size=2)  # H.264 wants even sides
    with writer as film:
        for frame in frames:
            film.append_data(frame)
