"""Run what an experiment misses, in processes of this machine or of a cluster, and keep every finished run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from randomist.errors import ParameterError
from randomist.experiments.specs import Cell
from randomist.experiments.store import Store
from randomist.simulation import Run, optimize

Engine = Literal["loky", "ray", "dask"]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


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
    if not cells:
        return
    if engine == "loky" and jobs == 1:
        yield from map(run_cell, cells)
        return
    from joblib import Parallel, delayed

    with _backend(engine):
        options: dict[str, Any] = (
            {"return_as": "generator_unordered"} if engine == "loky" else {"return_as": "generator"}
        )
        if engine == "ray":
            options = {}  # ray's backend hands back lists only; see `_in_chunks`
        if options:
            yield from Parallel(n_jobs=jobs, **options)(delayed(run_cell)(cell) for cell in cells)
        else:
            for chunk in _in_chunks(cells, 4 * max(jobs, 1)):
                yield from Parallel(n_jobs=jobs)(delayed(run_cell)(cell) for cell in chunk)


def _in_chunks(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    for start in range(0, len(cells), size):
        yield cells[start : start + size]


def run_cell(cell: Cell) -> tuple[Cell, Run | str, float]:
    """One run, anywhere: its outcome, or the reason why there is none."""
    for variable in THREADS:  # one core per run; libraries that are loaded already keep theirs
        os.environ.setdefault(variable, "1")
    start = time.perf_counter()
    try:
        run = optimize(cell.task.make(), cell.learner.name, cell.rounds, cell.seed, **cell.learner.settings)
    except Exception as error:  # the run failed, not the experiment: it is listed and makes the exit code non-zero
        return cell, f"{type(error).__name__}: {error}", time.perf_counter() - start
    return cell, run, time.perf_counter() - start


def _backend(engine: Engine) -> AbstractContextManager[Any]:
    if engine == "loky":
        return nullcontext()
    from joblib import parallel_config

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
