"""Runs on disk: one Parquet file each, written at once and whole. A run that is there is not run again.

The name of a file holds all that its content depends on but the code: task, method, episodes, settings and seed.
Episodes are among them because what is recommended depends on when it is asked; the returns of a longer run begin with
those of a shorter one.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.methods import METHODS
from benchmarks.peers.problems import PROBLEMS, Array


@dataclass(frozen=True)
class Job:
    """One run to do."""

    task: str
    method: str
    settings: dict[str, Any]
    episodes: int
    seed: int

    def path(self, out: Path) -> Path:
        digest = hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:8]
        return out / self.task / f"{self.method}-{digest}-{self.episodes}-{self.seed}.parquet"


@dataclass(frozen=True, eq=False)
class Result:
    """One run that was done."""

    job: Job
    payoffs: Array  # (episodes,)
    parameters: Array  # of the recommended policy  (d,)
    true_return: float  # of the recommended policy
    seconds: float

    @property
    def average(self) -> Array:
        """The mean return of episodes 1..n for every n: exploration counts.  (episodes,)"""
        return np.cumsum(self.payoffs) / np.arange(1, len(self.payoffs) + 1)


def do(job: Job) -> Result:
    """Run a job, and play what it recommends."""
    problem, begin = PROBLEMS[job.task], time.perf_counter()
    trace = METHODS[job.method](problem, job.episodes, job.seed, **job.settings)
    seconds = time.perf_counter() - begin
    return Result(job, trace.payoffs, trace.parameters, problem.true_return(trace.parameters, job.seed), seconds)


def write(result: Result, path: Path) -> None:
    """A row per episode; what there is one of stands in the first row. Appears under its name only when complete."""
    import polars as pl

    rest = [None] * (len(result.payoffs) - 1)
    frame = pl.DataFrame(
        {
            "episode": np.arange(1, len(result.payoffs) + 1),
            "payoff": result.payoffs,
            "parameters": pl.Series([result.parameters.tolist(), *rest], dtype=pl.List(pl.Float64)),
            "true_return": pl.Series([result.true_return, *rest], dtype=pl.Float64),
            "seconds": pl.Series([result.seconds, *rest], dtype=pl.Float64),
        }
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        frame.write_parquet(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def read(job: Job, path: Path) -> Result:
    import polars as pl

    frame = pl.read_parquet(path)
    first = frame.row(0, named=True)
    payoffs = frame["payoff"].to_numpy()
    return Result(job, payoffs, np.array(first["parameters"]), first["true_return"], first["seconds"])


def run_all(jobs: Sequence[Job], out: Path, processes: int = 1) -> Iterator[Result]:
    """Results in the order of the jobs, read where `out` has them; those of a kill are done again, the rest is kept."""
    from joblib import Parallel, delayed

    return iter(Parallel(n_jobs=processes, return_as="generator")(delayed(_read_or_do)(job, out) for job in jobs))


def _read_or_do(job: Job, out: Path) -> Result:
    path = job.path(out)
    if path.exists():
        return read(job, path)
    result = do(job)
    write(result, path)
    return result
