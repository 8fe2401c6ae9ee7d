"""`randomist evaluate --watch`: files that keep coming."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from randomist.cli.app import out
from randomist.errors import ParameterError

if TYPE_CHECKING:
    from randomist.logs import Log, RunningEvaluation

SUFFIXES = (".parquet", ".pq", ".csv")


def watch_folder(
    folder: Path,
    read: Callable[[Path], Log],
    level: float,
    state: Path | None,
    every: float,
    figure: Path | None,
    engine: str = "threads",
    jobs: int | None = None,
) -> None:
    """Add every file once, in the order of names, and save the sums after each; look again until it is ended."""
    from randomist.logs import RunningEvaluation

    if not folder.is_dir():
        raise ParameterError(f"--watch needs a folder, got {folder}")
    kept = state or folder / "randomist.npz"
    running: RunningEvaluation | None = RunningEvaluation.load(kept) if kept.exists() else None
    if running is not None and running.level != level:
        raise ParameterError(f"{kept} has sums for --level {running.level:g}, got {level:g}; give another --state")
    while True:
        done = set(running.sources) if running is not None else set()
        for path in sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.name not in done):
            log = read(path)
            if running is None:
                running = RunningEvaluation(log.candidates, log.payoff_range, level)
            running.add(log, path.name, engine=engine, jobs=jobs)
            running.save(kept)
            _say(running, path.name)
        if figure is not None and running is not None and set(running.sources) != done:
            from randomist.logs.figure import draw_sequence

            draw_sequence(running.sequence(), running.candidates, level, figure)
        if every <= 0:
            return
        try:
            time.sleep(every)
        except KeyboardInterrupt:
            return


def _say(running: RunningEvaluation, name: str) -> None:
    low, high = running.interval()
    words = (f"{key} {a:.4g} to {b:.4g}" for key, a, b in zip(running.candidates, low, high, strict=True))
    out.print(f"{name}: {running.rows:,} rows; {', '.join(words)}", soft_wrap=True, markup=False)
