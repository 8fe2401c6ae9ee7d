"""Many runs, each of its own seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from randomist.learners.registry import LearnerLike
from randomist.simulation.loop import Problem, optimize
from randomist.simulation.run import Run


def optimize_many(
    task: Problem,
    learner: LearnerLike | None = None,
    rounds: int = 100,
    seeds: int | Sequence[int] = 10,
    *,
    jobs: int = 1,
    **settings: Any,
) -> list[Run]:
    """One run per seed (an integer n means 0..n-1), the same for any number of `jobs`; more than one needs joblib."""
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    return list(run_all([(task, learner, rounds, seed, settings) for seed in seeds], jobs=jobs))


def run_all(
    calls: Iterable[tuple[Problem, LearnerLike | None, int, int, dict[str, Any]]], *, jobs: int = 1
) -> Iterator[Run]:
    """Runs (task, learner, rounds, seed, settings), yielded in order as they finish."""
    if jobs == 1:
        return (run_one(*call) for call in calls)
    from joblib import Parallel, delayed

    runs: Iterator[Run] = Parallel(n_jobs=jobs, return_as="generator")(delayed(run_one)(*call) for call in calls)
    return runs


def run_one(task: Problem, learner: LearnerLike | None, rounds: int, seed: int, settings: dict[str, Any]) -> Run:
    """One run of many: Ctrl-C ends them all, with the run so far on the interrupt."""
    run = optimize(task, learner, rounds, seed, **settings)
    if run.interrupted:
        interrupt: Any = KeyboardInterrupt()
        interrupt.run = run
        raise interrupt
    return run
