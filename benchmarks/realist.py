"""Regret of Realist: on decisions that share nothing, beside the bandit learners of `rivals`, and where they overlap.

    python -m benchmarks realist      # about 5 minutes of one core

Runs on decisions that share nothing are `realist_run`, the learner as one compiled function for Bernoulli payoffs,
which a test compares with the learner itself; all others are the learner's own. Seeds are not those of its design.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

import randomist as rd
from benchmarks.lock_in import streams
from randomist.importance.empirical_divergence import k_inf
from randomist.importance.passes import layout
from randomist.importance.passes import numba as passes
from randomist.importance.perturbation import choose

ROUNDS = 5000
DISJOINT: dict[str, Callable[[np.random.Generator], NDArray[np.float64]]] = {
    ".5/.45": lambda rng: np.array([0.5, 0.45]),
    ".95/.9": lambda rng: np.array([0.95, 0.9]),
    ".02/.01": lambda rng: np.array([0.02, 0.01]),
    "ten: .5, .45": lambda rng: np.append(0.5, np.full(9, 0.45)),
    "twenty: 1, .9": lambda rng: np.append(1.0, np.full(19, 0.9)),
    "200 uniform": lambda rng: rng.random(200),
    "1,000: .9, .1": lambda rng: np.append(0.9, np.full(999, 0.1)),
}
RUNS = {"200 uniform": 60, "1,000: .9, .1": 20}  # of 800
ILLUSTRATIVE = ((2, 2), (2, 0.1), (0.1, 2), (0.1, 0.1))


@numba.njit(cache=True)
def realist_run(
    means: NDArray[np.float64], rounds: int, deciding: np.random.Generator, paying: np.random.Generator
) -> NDArray[np.int64]:
    """The decisions of a run on Bernoulli decisions that share nothing; each is played once first.  (rounds,)"""
    K = len(means)
    won, plays = np.zeros(K), np.zeros(K)
    eta, log_eta, value, cut = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    against, decisions = np.zeros(K), np.empty(rounds, np.int64)
    weight, sums = np.zeros((1, layout.BINS)), np.zeros((1, layout.BINS))
    table, pair = np.empty((7, 1)), np.empty((2, 1))
    for t in range(rounds):
        if t < K:
            decision = t
        else:
            term = 2.0 * math.log(t + 1.0)
            for k in range(K):
                eta[k] = max(1.0 / (1.0 / plays[k]), plays[k])
                log_eta[k] = math.log(eta[k])
                pair[0, 0], pair[1, 0] = eta[k], log_eta[k]
                passes.begin_estimate(pair, term, t, table)
                cut[k] = table[layout.CUT, 0]
                w = min(cut[k], 1.0 / plays[k])
                value[k] = (w * won[k]) / (w * plays[k])
            best = value.max()
            leading = math.inf
            for k in range(K):
                if value[k] == best:
                    leading = min(leading, log_eta[k])
            for k in range(K):
                gap = max(best - value[k], 0.0)
                against[k] = eta[k] * 2 * (gap / 1.0) ** 2 + log_eta[k]
                if against[k] <= leading:
                    w = min(cut[k], 1.0 / plays[k])
                    weight[:], sums[:] = 0.0, 0.0
                    mean = won[k] / plays[k]
                    at_one = mean if 0.0 < mean < 1.0 else 0.0
                    low = 0.0 if 0.0 < mean < 1.0 else mean
                    place = passes.payoff_bin(low)
                    weight[0, place] += w * plays[k] * (1.0 - at_one)
                    sums[0, place] += w * plays[k] * (1.0 - at_one) * low
                    weight[0, layout.BINS - 1] += w * plays[k] * at_one
                    sums[0, layout.BINS - 1] += w * plays[k] * at_one
                    against[k] = eta[k] * k_inf(weight, sums, best)[0] + log_eta[k]
            decision = choose(-against, log_eta, deciding.random())
        plays[decision] += 1.0
        won[decision] += 1.0 if paying.random() < means[decision] else 0.0
        decisions[t] = decision
    return decisions


def regret(problem: str, seed: int) -> float:
    means = DISJOINT[problem](np.random.default_rng([seed, 1]))
    played = realist_run(means, ROUNDS, *streams(seed))
    return float(np.sum(means.max() - means[played]))


def mean_and_error(values: list[float]) -> str:
    return f"{np.mean(values):8.1f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.1f}"


def main() -> None:
    print(f"decisions that share nothing, {ROUNDS} rounds")
    for problem in DISJOINT:
        runs = RUNS.get(problem, 800)
        print(f"  {problem:14s} {mean_and_error([regret(problem, 20_000 + s) for s in range(runs)])}  ({runs} runs)")
    print("illustrative problems, 2,000 rounds, 40 runs (bars 1.5, 10, 14, 10)")
    for sigma, lambda_ in ILLUSTRATIVE:
        task = rd.tasks.Illustrative(sigma, lambda_)
        found = [run.regret[-1] for run in rd.optimize_many(task, "realist", 2000, range(20_000, 20_040))]
        print(f"  ({sigma}, {lambda_}){'':6s} {mean_and_error(found)}")
    found = [run.regret[-1] for run in rd.optimize_many("lqg", "realist", 5000, range(20_000, 20_010))]
    print(f"LQG with 100 decisions, 5,000 rounds, 10 runs (bar 12): {mean_and_error(found)}")


if __name__ == "__main__":
    main()
