"""Many runs, each of its own seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from randomist._lookup import ours
from randomist.errors import ParameterError
from randomist.learners.registry import LearnerLike
from randomist.simulation.loop import Problem, optimize
from randomist.simulation.run import Run


@overload
def optimize_many(
    task: Problem,
    learner: LearnerLike | None = None,
    rounds: int = 100,
    seeds: int | Sequence[int] = 10,
    *,
    jobs: int = 1,
    device: None = None,
    **settings: Any,
) -> list[Run]: ...
@overload
def optimize_many(
    task: Problem,
    learner: LearnerLike | None = None,
    rounds: int = 100,
    seeds: int | Sequence[int] = 10,
    *,
    device: str,
    **settings: Any,
) -> Sequence[Run]: ...
def optimize_many(
    task: Problem,
    learner: LearnerLike | None = None,
    rounds: int = 100,
    seeds: int | Sequence[int] = 10,
    *,
    jobs: int = 1,
    device: str | None = None,
    **settings: Any,
) -> Sequence[Run]:
    """One run per seed (an integer n means 0..n-1), the same for any number of `jobs`; more than one needs joblib.

    `device="gpu"` makes all of them at once, with JAX: see `randomist.vectorised`. These are other runs of the same
    distribution, since a device draws from streams of its own.
    """
    if device is not None:
        if jobs != 1:
            raise ParameterError(f"a device makes all runs at once, got jobs={jobs!r:.80}: leave jobs, or device, out")
        runs: Sequence[Run] = ours("randomist.vectorised:optimize_many")(
            task, learner, rounds, seeds, device=device, **settings
        )
        return runs
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
