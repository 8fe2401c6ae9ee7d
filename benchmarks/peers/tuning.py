"""Equal effort for every method: its six settings on each task, on seeds that are not reported; the best is kept.

`python -m benchmarks.peers.tuning` writes `settings.toml`, with the episodes and seeds that each task has for it. The
best has the largest average return over all episodes of all tuning seeds, which is also what the table reports.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from benchmarks.peers.choices import available, chosen, parser, write
from benchmarks.peers.methods import METHODS
from benchmarks.peers.problems import PROBLEMS, Problem
from benchmarks.peers.results import Job
from benchmarks.peers.search import Method

FIRST_SEED = 1000


def main(given: list[str] | None = None) -> None:
    arguments = parser("Tune every method on every task, with equal effort.", seeds=None).parse_args(given)
    problems, methods = available(arguments)
    tuned = chosen()
    for problem in problems:
        episodes, seeds = arguments.episodes or problem.tuning[0], arguments.seeds or problem.tuning[1]
        entry = tuned.setdefault(problem.id, {})
        for method in methods:
            if len(method.grid) == 1:
                continue
            scores = tune(problem, method, episodes, seeds, arguments.jobs)
            best = int(np.argmax(scores))
            average = round(scores[best], problem.decimals)
            entry[method.id] = {
                "settings": method.grid[best],
                "average": average,
                "episodes": episodes,
                "seeds": seeds,
            }
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
