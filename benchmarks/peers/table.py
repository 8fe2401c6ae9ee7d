"""The table: average return over all episodes so far, and the true return of what is recommended; 95% intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.results import Result
from randomist.experiments.comparison import mean_interval

MARKS = (100, 300, 500, 1000, 2500)  # episodes


@dataclass(frozen=True)
class Row:
    """Means over runs and half-widths of Student's t intervals (NaN for a single run), one entry per column."""

    task: str
    method: str
    mean: Array
    half: Array


def columns(episodes: int) -> list[int]:
    """The numbers of episodes that the table shows: the marks up to the budget, and the budget itself."""
    return sorted({mark for mark in MARKS if mark < episodes} | {episodes})


def summarise(task: str, method: str, runs: Sequence[Result]) -> Row:
    """All runs of a method on a task as one row."""
    marks = np.array(columns(len(runs[0].payoffs))) - 1
    samples = np.array([[*run.average[marks], run.true_return] for run in runs])  # (runs, marks + 1)
    mean, half = mean_interval(samples)
    return Row(task, method, mean, half if len(runs) > 1 else np.full_like(half, np.nan))


def markdown(rows: Sequence[Row], episodes: int, decimals: Mapping[str, int]) -> str:
    """One table of all tasks; the best mean of a task in each column is bold, and so are its ties as printed."""
    heads = ["task", "method", *(f"{mark:,}" for mark in columns(episodes)), "recommended"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        digits = decimals[row.task]
        best = np.max([other.mean for other in rows if other.task == row.task], axis=0)
        cells = []
        for mean, half, top in zip(row.mean, row.half, best, strict=True):
            text = f"{mean:.{digits}f}" + ("" if np.isnan(half) else f" ± {half:.{digits}f}")
            cells.append(f"**{text}**" if f"{mean:.{digits}f}" == f"{top:.{digits}f}" else text)
        lines.append(f"| {' | '.join([row.task, row.method, *cells])} |")
    return "\n".join(lines)
