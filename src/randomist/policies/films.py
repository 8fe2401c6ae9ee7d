"""Films of episodes: GIF or MP4, written while the episode runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from randomist.errors import ParameterError, TaskError

if TYPE_CHECKING:
    import gymnasium

    from randomist.tasks import ControlTask

FRAME_RATE = 30.0  # where the environment names none
GIF_RATE = 25.0  # about what viewers show


@dataclass(frozen=True)
class Film:
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

    def record(self, task: ControlTask, play: Callable[[gymnasium.Env[Any, Any]], Iterator[None]]) -> None:
        """Film what `play` does in an environment of the task that draws; it yields at every state."""
        import gymnasium

        if not {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys():
            os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame would look for a screen
        with contextlib.closing(_drawing_env(task)) as env:
            frames = (env.render() for _ in play(env))
            try:
                self._write(frames, float(env.metadata.get("render_fps") or FRAME_RATE))
            except gymnasium.error.DependencyNotInstalled as error:
                raise TaskError(f"{task.id!r} cannot be drawn: {error}; install randomist[render]") from error

    def _write(self, frames: Iterator[Any], frame_rate: float) -> None:
        unfinished = self.path.with_name(f"{self.path.stem}.part{self.path.suffix}")
        try:
            (_write_gif if self.path.suffix.lower() == ".gif" else _write_mp4)(unfinished, frames, frame_rate)
            os.replace(unfinished, self.path)
        finally:
            unfinished.unlink(missing_ok=True)


def _drawing_env(task: ControlTask) -> gymnasium.Env[Any, Any]:
    with contextlib.closing(task.make_env()) as plain:
        modes = plain.metadata.get("render_modes", [])
    if "rgb_array" not in modes:
        drawn = ", ".join(modes) or "nothing"
        raise TaskError(f"{task.id!r} cannot be filmed: it draws {drawn}, and a film needs rgb_array; leave out render")
    return task.make_env(render_mode="rgb_array")


def _write_gif(path: Path, frames: Iterator[Any], frame_rate: float) -> None:
    """Pillow, which imageio brings, takes pictures as they come; imageio itself would hold them all."""
    from PIL import Image

    stride = max(1, round(frame_rate / GIF_RATE))
    pictures = (Image.fromarray(frame) for i, frame in enumerate(frames) if i % stride == 0)
    duration = 1000 * stride / frame_rate  # ms
    next(pictures).save(path, "GIF", save_all=True, append_images=pictures, duration=duration, loop=0)


def _write_mp4(path: Path, frames: Iterator[Any], frame_rate: float) -> None:
    import imageio.v2 as imageio

    writer: Any = imageio.get_writer(path, fps=frame_rate, macro_block_size=2)  # H.264 wants even sides
    with writer as film:
        for frame in frames:
            film.append_data(frame)
