"""What a round costs: against NumPy's matrix-vector product, against one compiled function, in t, in K, and in memory.

Figures are ratios measured in one run, side by side and alternating, so that a busy machine slows both sides.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import randomist as rd
from benchmarks.compiled import randomist_run
from randomist.importance.divergences import find_divergence
from randomist.importance.estimators import find_estimator


def main() -> None:
    against_matrix_product()
    against_compiled_run()
    slopes()
    memory()


def against_matrix_product(K: int = 100, t: int = 5000) -> None:
    rng = np.random.default_rng(0)
    P, r = rng.random((K, t)), rng.random(t)
    for name in ("optimist", "randomist"):
        learner = grown(name, K, t)
        product, round_ = alternate(lambda: P @ r, lambda: one_round(learner), repeats=40, number=10)  # noqa: B023
        print(
            f"{name:10s} ask+tell at K={K}, t={t}: {1e6 * round_:7.1f} µs; P @ r: {1e6 * product:6.1f} µs; "
            f"ratio {round_ / product:.2f} (bar 3.6)"
        )


def against_compiled_run(rounds: int = 1000) -> None:
    for sigma, lambda_ in ((2, 2), (2, 0.1), (0.1, 2), (0.1, 0.1)):
        task = rd.tasks.Illustrative(sigma, lambda_)
        family = task.space.family
        mean, std = np.array(family.mean), np.array(np.broadcast_to(family.std, family.mean.shape))
        divergences = np.ascontiguousarray(family.log_renyi(None, None).T)
        uninformed = task.space.uninformed()
        opening = uninformed if len(uninformed) else np.array([0])

        def compiled() -> None:
            randomist_run(mean, std, divergences, opening, 1.1, 2.0, rounds, np.random.default_rng(0))  # noqa: B023

        def ask_tell() -> None:
            learner = rd.Randomist(task.space, seed=0)  # noqa: B023
            for _ in range(rounds):
                trial = learner.ask()
                learner.tell(trial, min(max(trial.mediator / 4, 0.0), 1.0))

        fast, slow = alternate(compiled, ask_tell, repeats=25, number=1)
        print(
            f"randomist, {rounds} rounds at K=5, (σ, λ) = ({sigma}, {lambda_}): ask/tell {1e3 * slow:5.1f} ms; "
            f"one compiled function {1e3 * fast:4.2f} ms; ratio {slow / fast:.1f} (bar 8)"
        )


def slopes() -> None:
    """Log-log slope of the cost of a round, by least squares over sizes where the pass dominates."""
    sizes = [4000, 8000, 16000, 32000]
    costs = [cost(grown("optimist", 64, t)) for t in sizes]
    print(f"slope in t at K=64, t = {sizes}: {slope(sizes, costs):.2f} (bar 1.1); µs: {rounded(costs)}")
    sizes = [32, 64, 128, 256]
    costs = [cost(grown("optimist", K, 8000)) for K in sizes]
    print(f"slope in K at t=8000, K = {sizes}: {slope(sizes, costs):.2f} (bar 1.1); µs: {rounded(costs)}")


def memory(K: int = 100, n: int = 100_000) -> None:
    space = grid(K)
    rng = np.random.default_rng(0)
    decisions = rng.integers(K, size=n)
    mediators, payoffs = space.family.sample(decisions, rng), rng.random(n)
    tracemalloc.start()
    history = space.history(find_divergence("harmonic"), find_estimator("paper"))
    history.extend(decisions, mediators, payoffs)
    history.append(0, 0.0, 0.5)
    history.estimate(2.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ratio = peak / (8 * K * n)
    print(f"peak memory of a history at K={K}, n={n}: {peak / 2**20:.1f} MiB = {ratio:.2f} of K·n float64 (bar 1.4)")


def grid(K: int) -> rd.Finite:
    return rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, K)


def grown(name: str, K: int, t: int) -> rd.Learner:
    """A learner with t told rounds."""
    space = grid(K)
    learner = rd.LEARNERS[name](space, seed=0, refresh=None)
    rng = np.random.default_rng(1)
    decisions = rng.integers(K, size=t)
    mediators = space.family.sample(decisions, rng)
    trials = [rd.Trial(i, *drawn) for i, drawn in enumerate(zip(decisions.tolist(), mediators.tolist(), strict=True))]
    for trial in trials:
        learner.adopt(trial)
    learner.tell_all(trials, rng.random(t).tolist())
    return learner


def one_round(learner: rd.Learner) -> None:
    learner.tell(learner.ask(), 0.5)


def alternate(one: Callable[[], object], two: Callable[[], object], repeats: int, number: int) -> tuple[float, float]:
    """The best time of each, measured in turns."""
    times = []
    for _ in range(repeats):
        for call in (one, two):
            start = time.perf_counter()
            for _ in range(number):
                call()
            times.append((time.perf_counter() - start) / number)
    return min(times[2::2]), min(times[3::2])  # the first turn warms up


def cost(learner: rd.Learner) -> float:
    return alternate(lambda: one_round(learner), lambda: None, repeats=15, number=8)[0]


def slope(sizes: list[int], costs: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def rounded(costs: list[float]) -> list[int]:
    return [round(1e6 * c) for c in costs]


if __name__ == "__main__":
    main()
