"""A million rounds: time, memory, the slope of the total cost in rounds, and what keeping estimates costs in regret.

    python -m benchmarks.long_runs              (about 15 minutes of CPU time, 1.2 GB)
    python -m benchmarks.long_runs rounds       RANDOMIST and REALIST, a million rounds at K = 100 on LQG
    python -m benchmarks.long_runs slope        total cost at 125,000 to 1,000,000 rounds
    python -m benchmarks.long_runs regret       20,000 rounds, refreshes from 1,000 samples on, against exact estimates

Times are CPU seconds of one process on one core, without those of the task, whose payoffs are drawn beforehand.
Memory is the peak of the process above what it had before the learner was made.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time

import numpy as np

import randomist as rd

LEARNERS = {"RANDOMIST": (rd.Randomist, 60), "REALIST": (rd.Realist, 120)}  # and the bar for a million rounds, seconds


def main() -> None:
    chosen = sys.argv[1:] if __name__ == "__main__" else []
    for name in chosen or ("rounds", "slope", "regret"):
        {"rounds": rounds, "slope": slope, "regret": regret}[name]()


def rounds(n: int = 1_000_000) -> None:
    for name, (_, bar) in LEARNERS.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:  # a process of its own, so that its peak is its own
            seconds, peak, K = pool.apply(measured, (name, n))
        print(
            f"{name}: {n} rounds at K={K} in {seconds:.1f} s (bar {bar}), {1e6 * seconds / n:.1f} µs each; memory "
            f"{peak / 2**20:.0f} MiB = {peak / (8 * K * n):.2f} of K·n float64 (bar 1.2)",
            flush=True,
        )


def measured(name: str, n: int) -> tuple[float, int, int]:
    """CPU seconds of n rounds, bytes of memory, and K."""
    played(name, 300)  # compiled
    before = resident()
    seconds, learner = played(name, n)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before, learner.space.size


def slope() -> None:
    sizes = [125_000, 250_000, 500_000, 1_000_000]
    for name in LEARNERS:
        seconds = [played(name, n)[0] for n in sizes]
        steepness = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(
            f"{name}: slope of the total cost in rounds {steepness:.2f} (bar 1.15); seconds at {sizes}: "
            f"{[round(s, 1) for s in seconds]}",
            flush=True,
        )


def regret(n: int = 20_000, seeds: int = 10) -> None:
    task = rd.task("lqg")
    expected = np.asarray(task.expected_payoff(None))
    gap = expected.max() - expected
    for name, (learner, _) in LEARNERS.items():
        found: dict[float | None, list[float]] = {None: [], 1.05: []}
        for refresh, regrets in found.items():
            for seed in range(seeds):
                one = learner(task.space, seed=seed, refresh=refresh, refresh_from=1000, payoff_range=task.payoff_range)
                run(one, n, seed)
                regrets.append(float(gap[one.record.decisions].sum()))
        exact, kept = (np.mean(found[refresh]) for refresh in (None, 1.05))
        errors = [np.std(found[refresh], ddof=1) / np.sqrt(seeds) for refresh in (None, 1.05)]
        print(
            f"{name}: regret at {n} rounds of LQG, {seeds} seeds: exact {exact:.1f} ± {errors[0]:.1f}, refreshed from "
            f"1,000 on {kept:.1f} ± {errors[1]:.1f}; ratio {kept / exact:.2f} (bar 1.15)",
            flush=True,
        )


def played(name: str, n: int) -> tuple[float, rd.Learner]:
    """CPU seconds of n rounds, and the learner."""
    task = rd.task("lqg")
    learner = LEARNERS[name][0](task.space, seed=0, payoff_range=task.payoff_range)
    return run(learner, n, 0), learner


def run(learner: rd.Learner, n: int, seed: int, portion: int = 1000) -> float:
    """CPU seconds of rounds whose payoffs are a table of the mediator, so that the task costs next to nothing."""
    task = rd.task("lqg")
    rng, seconds = np.random.default_rng([seed, 1]), 0.0
    family = learner.space.family
    low, high = float(np.min(family.mean)) - 3, float(np.max(family.mean)) + 3
    points = np.linspace(low, high, 4001)
    draws = [task.payoff(points, np.random.default_rng([seed, 2, i])).tolist() for i in range(8)]  # noise included
    step = (high - low) / 4000
    for start in range(0, n, portion):
        which = rng.integers(8, size=portion).tolist()
        began = time.process_time()
        for i in which[: n - start]:
            trial = learner.ask()
            place = int((trial.mediator - low) / step + 0.5)
            learner.tell(trial, draws[i][min(max(place, 0), 4000)])
        seconds += time.process_time() - began
    return seconds


def resident() -> int:
    """Bytes that the process has in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
