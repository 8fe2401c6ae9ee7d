"""Equal effort for every method: its four settings on each task, on seeds that are not reported; the best is kept.

`python -m benchmarks.peers.tuning --tasks lqg` writes `settings.toml`. The best has the largest average return over all
episodes of all tuning seeds, which is also what the table reports.
"""

from __future__ import annotations

import sys

import numpy as np
from joblib import Parallel, delayed

from benchmarks.peers.choices import available, chosen, parser, write
from benchmarks.peers.methods import METHODS
from benchmarks.peers.problems import PROBLEMS, Problem
from benchmarks.peers.results import Job
from benchmarks.peers.search import Method

FIRST_SEED = 1000


def main(given: list[str] | None = None) -> None:
    given = sys.argv[1:] if given is None else given
    arguments = parser("Tune every method on every task, with equal effort.", episodes=300, seeds=3).parse_args(given)
    problems, methods = available(arguments)
    tuned = chosen()
    for problem in problems:
        entry = tuned.setdefault(problem.id, {})
        entry["command"] = " ".join(["python -m benchmarks.peers.tuning", *given])
        for method in methods:
            if len(method.grid) == 1:
                continue
            scores = tune(problem, method, arguments.episodes, arguments.seeds, arguments.jobs)
            best = int(np.argmax(scores))
            entry[method.id] = {"settings": method.grid[best], "average": round(scores[best], problem.decimals)}
            print(f"{problem.id} {method.id}: {method.grid[best]} of {np.round(scores, problem.decimals)}", flush=True)
            write(tuned)


def tune(problem: Problem, method: Method, episodes: int, seeds: int, jobs: int = 1) -> list[float]:
    """The average return of each setting in the grid, over all episodes of all tuning seeds."""
    todo = [
        Job(problem.id, method.id, settings, episodes, FIRST_SEED + seed)
        for settings in method.grid
        for seed in range(seeds)
    ]
    averages = Parallel(n_jobs=jobs)(delayed(_average)(job) for job in todo)
    return [float(score) for score in np.reshape(averages, (len(method.grid), seeds)).mean(axis=1)]


def _average(job: Job) -> float:
    return float(METHODS[job.method](PROBLEMS[job.task], job.episodes, job.seed, **job.settings).payoffs.mean())


if __name__ == "__main__":
    main()
