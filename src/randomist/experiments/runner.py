"""Run what an experiment misses, in processes of this machine or of a cluster, and keep every finished run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

from randomist.errors import ParameterError
from randomist.experiments.specs import Cell
from randomist.experiments.store import Store
from randomist.simulation import Run, run_one

Engine = Literal["loky", "ray", "dask"]
ATTEMPTS = 4  # at a list of runs on a cluster


def run_experiment(
    store: Store,
    *,
    jobs: int = 1,
    engine: Engine = "loky",
    retry: bool = True,
    progress: Callable[[Cell], None] | None = None,
) -> dict[Cell, str]:
    """Make every missing run, writing each as it finishes; returns the failed ones and why.

    Results do not depend on the engine, the number of jobs or the order in which runs finish: each is a function of its
    cell. Only this process writes, so that workers need no shared disk.
    """
    store.create()
    for cell, outcome, seconds in _outcomes(store.missing(retry), jobs, engine):
        if isinstance(outcome, Run):
            store.save(cell, outcome, seconds)
        else:
            store.save_failure(cell, outcome)
        if progress is not None:
            progress(cell)
    return store.failures()


def _outcomes(cells: Sequence[Cell], jobs: int, engine: Engine) -> Iterator[tuple[Cell, Run | str, float]]:
    if engine == "loky" and jobs == 1:
        yield from map(run_cell, cells)
        return
    from joblib import Parallel, delayed

    with _backend(engine):
        if engine == "ray":  # its backend hands back whole lists: a list at a time is what a crash can cost
            for start in range(0, len(cells), 4 * jobs):
                yield from _survive(cells[start : start + 4 * jobs], jobs)
        else:
            pool = Parallel(n_jobs=jobs, return_as="generator_unordered")
            yield from pool(delayed(run_cell)(cell) for cell in cells)


def _survive(cells: Sequence[Cell], jobs: int) -> list[tuple[Cell, Run | str, float]]:
    """These runs on a cluster whose nodes may die: what a lost node was doing is done again by the others."""
    import ray
    from joblib import Parallel, delayed

    for attempt in range(ATTEMPTS):
        time.sleep(5 * attempt)  # a cluster takes a while to notice that a node is gone
        cores = int(ray.cluster_resources().get("CPU", 1))
        try:
            return list(Parallel(n_jobs=min(jobs, cores))(delayed(run_cell)(cell) for cell in cells))
        except Exception:  # whatever the cluster raises when it loses a node; `run_cell` itself raises nothing
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def run_cell(cell: Cell) -> tuple[Cell, Run | str, float]:
    """One run, anywhere: its outcome, or the reason why there is none."""
    start = time.perf_counter()
    try:
        run = run_one(cell.task.make(), cell.learner.name, cell.rounds, cell.seed, cell.learner.settings)
    except Exception as error:  # the run failed, not the experiment: it is listed and makes the exit code non-zero
        return cell, f"{type(error).__name__}: {error}", time.perf_counter() - start
    if len(run.payoffs) < cell.rounds:  # a shorter curve is not comparable with the others
        first = next(iter(run.failures.values()))
        return cell, f"{len(run.failures)} of {cell.rounds} trials had no payoff: {first}", time.perf_counter() - start
    return cell, run, time.perf_counter() - start


def _backend(engine: Engine) -> AbstractContextManager[Any]:
    from joblib import parallel_config

    if engine == "loky":
        return parallel_config(backend="loky", inner_max_num_threads=1)  # type: ignore[no-any-return]
    if engine == "ray":
        _need("ray")
        import ray
        from ray.util.joblib import register_ray

        if not ray.is_initialized():
            ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
        register_ray()
        return parallel_config(backend="ray")  # type: ignore[no-any-return]
    if engine == "dask":
        _need("distributed", "dask")
        from distributed import Client

        Client(os.environ.get("DASK_SCHEDULER_ADDRESS"))
        return parallel_config(backend="dask")  # type: ignore[no-any-return]
    raise ParameterError(f'engine must be "loky", "ray" or "dask", got {engine!r}')


def _need(module: str, extra: str | None = None) -> None:
    import importlib.util

    if importlib.util.find_spec(module) is None:
        raise ParameterError(
            f"this engine needs the `{extra or module}` extra; pip install 'randomist[{extra or module}]'"
        )
