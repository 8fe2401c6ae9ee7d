"""`python -m benchmarks.auto.cost`: CPU time of a round of Auto, memory, loading, and how the cost grows.

Ten thousand results are known before the measured rounds (`begin`), and up to 10⁵ where growth is measured. Less than a
minute of CPU time.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import randomist as rd

MEASURED = 60  # rounds
KNOWN = 10_000


def quadratic(dimension: int) -> Callable[[object], float]:
    peak, rng = np.linspace(0.2, 0.9, dimension), np.random.default_rng(0)
    return lambda z: -float(np.sum((np.ravel(z) - peak) ** 2)) + 0.2 * float(rng.standard_normal())


def informed(dimension: int, known: int) -> rd.Auto:
    """A learner that knows so many results around the best point."""
    learner, rng, payoff = rd.Auto(low=np.zeros(dimension), high=1.0), np.random.default_rng(1), quadratic(dimension)
    points = np.clip(np.linspace(0.2, 0.9, dimension) + 0.1 * rng.standard_normal((known, dimension)), 0, 1)
    learner.begin(points, [payoff(point) for point in points])
    return learner


def rounds(learner: rd.Auto, payoff: Callable[[object], float], n: int) -> float:
    """CPU milliseconds a round, of n rounds."""
    began = time.process_time()
    for _ in range(n):
        trial = learner.ask()
        learner.tell(trial, payoff(trial.mediator))
    return 1000 * (time.process_time() - began) / n


def main() -> None:
    print(f"ms a round with {KNOWN:,} samples, and what a round allocates at most, beside what the samples take")
    for dimension in (2, 10, 20, 50, 100):
        learner, payoff = informed(dimension, KNOWN), quadratic(dimension)
        rounds(learner, payoff, MEASURED)
        ms = rounds(learner, payoff, MEASURED)
        tracemalloc.start()
        rounds(learner, payoff, 3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(
            f"d = {dimension:3d}  {ms:5.1f} ms  {peak / 1e6:.1f} MB  {8 * KNOWN * dimension / 1e6:.1f} MB", flush=True
        )
    print("\nms a round in two dimensions, and a load of the state, by samples")
    sizes, totals = (1_000, 10_000, 100_000), []
    for size in sizes:
        learner, payoff = informed(2, size), quadratic(2)
        rounds(learner, payoff, MEASURED)
        ms = rounds(learner, payoff, MEASURED)
        told = rd.Auto(low=np.zeros(2), high=1.0)
        trials = told.ask(batch=size)
        told.tell_all(trials, [payoff(trial.mediator) for trial in trials])
        state, began = told.state(), time.process_time()
        rd.load(state).ask()
        totals.append(ms)
        print(f"{size:7,d}  {ms:5.1f} ms  load {time.process_time() - began:.2f} s", flush=True)
    slope = np.polyfit(np.log(sizes), np.log(np.multiply(totals, sizes)), 1)[0]
    print(f"slope of the cost of a run in its rounds: {slope:.2f}")


if __name__ == "__main__":
    main()
