"""The table: average return over all episodes so far, and the true return of what is recommended; 95% intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.results import Result
from benchmarks.significance import holm, paired
from randomist.experiments.comparison import mean_interval

MARKS = (100, 300, 500, 1000, 2500)  # episodes
JUDGED = (100, 500)  # episodes, or 100 and the last one: the cells in which a lead is tested

Runs = Mapping[str, Mapping[str, Sequence[Result]]]  # by title of task, then of method, one for each seed


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


@dataclass(frozen=True, eq=False)
class Lead:
    """By how much a method leads the best of the others on a task, up to some episode."""

    task: str
    mark: int
    rival: str
    over_seeds: Array  # (seeds,)

    @property
    def mean(self) -> float:
        return float(self.over_seeds.mean())


def leads(runs: Runs, method: str, marks: Sequence[int]) -> list[Lead]:
    """Of all cells in which there is somebody to lead."""
    found = []
    for task, by_method in runs.items():
        for mark in marks:
            averages = {
                title: np.array([run.average[mark - 1] for run in of_title])
                for title, of_title in by_method.items()
                if mark <= len(of_title[0].payoffs)
            }
            others = [title for title in averages if title != method]
            if method in averages and others:
                best = max(others, key=lambda title, means=averages: means[title].mean())
                found.append(Lead(task, mark, best, averages[method] - averages[best]))
    return found


def lead_markdown(found: Sequence[Lead], marks: Sequence[int], decimals: Mapping[str, int]) -> str:
    """A row for every task, a column for every mark: mean, interval, and who is led."""
    lines = [f"| task | {' | '.join(f'{mark:,}' for mark in marks)} |", f"|{'---|' * (len(marks) + 1)}"]
    for task in dict.fromkeys(lead.task for lead in found):
        cells, digits = dict.fromkeys(marks, "–"), decimals[task]
        for lead in (lead for lead in found if lead.task == task):
            mean, half = mean_interval(lead.over_seeds[:, None])
            spread = f" ± {half[0]:.{digits}f}" if len(lead.over_seeds) > 1 else ""
            cells[lead.mark] = f"{mean[0]:+.{digits}f}{spread} ({lead.rival})"
        lines.append(f"| {' | '.join([task, *cells.values()])} |")
    return "\n".join(lines)


def significance(found: Sequence[Lead], level: float = 0.05) -> str:
    """In how many cells the mean is ahead, and in which of them it is so by more than chance, or behind by that."""
    judged = [lead for lead in found if lead.mark in JUDGED or lead.mark == _last_judged(found, lead.task)]
    corrected = holm(np.array([paired(lead.over_seeds) for lead in judged]))
    lines = [f"ahead by the mean in {sum(lead.mean > 0 for lead in judged)} of {len(judged)} cells"]
    for word, sign in (("ahead", 1), ("behind", -1)):
        cells = [
            f"{lead.task} at {lead.mark:,} (p = {p:.2g})"
            for lead, p in zip(judged, corrected, strict=True)
            if sign * lead.mean > 0 and p < level
        ]
        lines.append(f"significantly {word} in {len(cells)}{': ' if cells else ''}{', '.join(cells)}")
    return "\n".join(lines)


def _last_judged(found: Sequence[Lead], task: str) -> int:
    """The last column of a task that ends before the last of `JUDGED`."""
    return max((lead.mark for lead in found if lead.task == task and lead.mark <= max(JUDGED)), default=0)


def settings_markdown(used: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """What methods were set to, by title of method, then of task; methods without settings have no row."""
    tasks = list(dict.fromkeys(task for by_task in used.values() for task in by_task))
    lines = [f"| method | {' | '.join(tasks)} |", f"|{'---|' * (len(tasks) + 1)}"]
    for method, by_task in used.items():
        cells = [", ".join(f"{key} {value}" for key, value in by_task[task].items()) for task in tasks]
        lines += [f"| {' | '.join([method, *cells])} |"] if any(cells) else []
    return "\n".join(lines)
