"""Several learners on one task, many seeds: curves with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.experiments.contenders import Contender
from randomist.simulation import Run, run_all
from randomist.tasks import Task


def mean_interval(samples: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Mean and half-width of Student's t interval over runs; 0 for a single run.  (n, ...) -> (...), (...)"""
    n = len(samples)
    if n < 2:
        return samples.mean(axis=0), np.zeros(samples.shape[1:])
    factor = stats.t.ppf(0.5 + level / 2, n - 1) / np.sqrt(n)
    return samples.mean(axis=0), factor * samples.std(axis=0, ddof=1)


@dataclass(frozen=True)
class Comparison:
    """The runs of every contender on one task."""

    task: Task
    title: str
    runs: dict[Contender, list[Run]]

    @property
    def measure(self) -> str:
        """What is compared: regret where it is known, else the average payoff."""
        return "regret" if next(iter(self.runs.values()))[0].regret is not None else "average payoff"

    def curves(self, contender: Contender) -> Array:
        """The measure over rounds, one row per run.  (runs, rounds)"""
        runs = self.runs[contender]
        if any(len(run.payoffs) != len(runs[0].payoffs) for run in runs):
            raise ParameterError(
                f"runs of {contender.title} differ in length because trials failed; compare them one by one"
            )
        return np.stack([run.regret if run.regret is not None else run.average_payoff for run in runs])

    def final(self, contender: Contender) -> tuple[float, float]:
        """Mean and half-width of the 95% interval at the last round."""
        mean, half = mean_interval(self.curves(contender)[:, -1])
        return float(mean), float(half)

    def best(self) -> Contender:
        """The least regret, or the largest average payoff."""
        sign = 1 if self.measure == "regret" else -1
        return min(self.runs, key=lambda contender: sign * self.final(contender)[0])


def compare(
    tasks: Sequence[tuple[str, Task]],
    contenders: Sequence[Contender],
    *,
    rounds: int,
    seeds: int,
    jobs: int = 1,
    progress: Callable[[Run], None] | None = None,
) -> list[Comparison]:
    """All contenders on all (title, task) pairs, `seeds` runs each, in `jobs` processes; same result for any number."""
    calls = [
        (task, contender.name, rounds, seed, contender.settings)
        for _, task in tasks
        for contender in contenders
        for seed in range(seeds)
    ]
    runs = iter(run_all(calls, jobs=jobs))
    comparisons = []
    for title, task in tasks:
        table: dict[Contender, list[Run]] = {}
        for contender in contenders:
            table[contender] = []
            for _ in range(seeds):
                table[contender].append(run := next(runs))
                if progress is not None:
                    progress(run)
        comparisons.append(Comparison(task, title, table))
    return comparisons
