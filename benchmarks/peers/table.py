"""The table: average return over all episodes so far, and the true return of what is recommended; 95% intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.results import Result
from randomist.experiments.comparison import mean_interval

MARKS = (100, 300, 500, 1000, 2500)  # episodes


@dataclass(frozen=True)
class Row:
    """Means over runs and half-widths of Student's t intervals (NaN for a single run), one entry per column.

    A mean of NaN is of more episodes than the task has.
    """

    task: str
    method: str
    mean: Array
    half: Array


def columns(budgets: Iterable[int]) -> list[int]:
    """The numbers of episodes that the table shows: every budget, and the marks below the largest."""
    budgets = set(budgets)
    return sorted({mark for mark in MARKS if mark < max(budgets)} | budgets)


def summarise(task: str, method: str, runs: Sequence[Result], marks: Sequence[int]) -> Row:
    """All runs of a method on a task as one row."""
    reached = [mark <= len(runs[0].payoffs) for mark in marks]
    last = np.where(reached, marks, 1) - 1
    samples = np.array([[*np.where(reached, run.average[last], np.nan), run.true_return] for run in runs])
    mean, half = mean_interval(samples)  # (runs, marks + 1) -> (marks + 1,)
    return Row(task, method, mean, half if len(runs) > 1 else np.full_like(half, np.nan))


def markdown(rows: Sequence[Row], marks: Sequence[int], decimals: Mapping[str, int]) -> str:
    """One table of all tasks; the best mean of a task in each column is bold, and so are its ties as printed."""
    heads = ["task", "method", *(f"{mark:,}" for mark in marks), "recommended"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        digits = decimals[row.task]
        best = np.max([other.mean for other in rows if other.task == row.task], axis=0)
        cells = []
        for mean, half, top in zip(row.mean, row.half, best, strict=True):
            text = f"{mean:.{digits}f}" + ("" if np.isnan(half) else f" ± {half:.{digits}f}")
            bold = f"{mean:.{digits}f}" == f"{top:.{digits}f}"
            cells.append("–" if np.isnan(mean) else f"**{text}**" if bold else text)
        lines.append(f"| {' | '.join([row.task, row.method, *cells])} |")
    return "\n".join(lines)


def lead_markdown(
    runs: Mapping[str, Mapping[str, Sequence[Result]]],
    method: str,
    marks: Sequence[int],
    decimals: Mapping[str, int],
) -> str:
    """By how much a method leads the best of the others, paired by seed, in every column: mean, interval, name."""
    lines = [f"| task | {' | '.join(f'{mark:,}' for mark in marks)} |", f"|{'---|' * (len(marks) + 1)}"]
    for task, by_method in runs.items():
        cells, digits = [], decimals[task]
        for mark in marks:
            averages = {
                title: np.array([run.average[mark - 1] for run in of_title])
                for title, of_title in by_method.items()
                if mark <= len(of_title[0].payoffs)
            }
            if method not in averages or len(averages) < 2:
                cells.append("–")
                continue
            best = max((title for title in averages if title != method), key=lambda title: averages[title].mean())
            mean, half = mean_interval((averages[method] - averages[best])[:, None])
            spread = f" ± {half[0]:.{digits}f}" if len(averages[best]) > 1 else ""
            cells.append(f"{mean[0]:+.{digits}f}{spread} ({best})")
        lines.append(f"| {' | '.join([task, *cells])} |")
    return "\n".join(lines)


def settings_markdown(used: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """What methods were set to, by title of method, then of task; methods without settings have no row."""
    tasks = list(dict.fromkeys(task for by_task in used.values() for task in by_task))
    lines = [f"| method | {' | '.join(tasks)} |", f"|{'---|' * (len(tasks) + 1)}"]
    for method, by_task in used.items():
        cells = [", ".join(f"{key} {value}" for key, value in by_task[task].items()) for task in tasks]
        lines += [f"| {' | '.join([method, *cells])} |"] if any(cells) else []
    return "\n".join(lines)
