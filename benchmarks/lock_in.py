"""Does Realist ever stay on the worse of two decisions? 300 runs of 300,000 rounds on two problems built for that.

    python -m benchmarks lock_in          # about 10 minutes of one core; what is done is kept in out/lock-in.json

`realist_run` is the learner as one compiled function, for two decisions that share nothing; a test shows that it makes
the learner's decisions.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numba
import numpy as np
from numpy.typing import NDArray

from randomist.importance.empirical_divergence import k_inf
from randomist.importance.passes import layout
from randomist.importance.passes import numba as passes
from randomist.importance.perturbation import choose

PROBLEMS = {"rare-loss": (0.5, 0.55, 0.0), "jackpot": (0.05, 0.05, 0.06)}  # sure; chance of 1, largest payoff otherwise
RUNS, ROUNDS, EARLY = 300, 300_000, 10_000
KEPT = Path("out/lock-in.json")


@numba.njit(cache=True)
def realist_run(
    sure: float, chance: float, most: float, rounds: int, deciding: np.random.Generator, paying: np.random.Generator
) -> NDArray[np.int64]:
    """The decisions of a run: 0 is the sure one.  (rounds,)"""
    ratios, mixture = np.eye(2), np.empty((2, 2))
    payoffs, counts, squares = np.zeros(2), np.zeros(2), np.zeros(2)
    rows, eta, table = np.arange(2), np.empty((2, 2)), np.empty((7, 2))
    decisions = np.empty(rounds, np.int64)
    for t in range(rounds):
        if t < 2:
            decision = t
        else:
            for k in range(2):
                mixture[0, k], mixture[1, k] = counts[k], 1.0 / counts[k]
                eta[0, k] = max(1.0 / (1.0 / counts[k]), counts[k])
                eta[1, k] = math.log(eta[0, k])
            passes.begin_estimate(eta, 2.0 * math.log(t + 1.0), t, table)
            passes.add_counted_sums(ratios, mixture[1], payoffs, counts, 2, table)
            value = table[layout.VALUE] / table[layout.COVERAGE]
            best = value.max()
            weight, sums = np.zeros((2, layout.BINS)), np.zeros((2, layout.BINS))
            cut = table[layout.CUT]
            passes.add_counted_histogram(ratios, mixture[1], payoffs, counts, squares, 2, rows, cut, weight, sums)
            index = -(eta[0] * k_inf(weight, sums, best) + eta[1])
            decision = choose(index, eta[1], deciding.random())
        win = paying.random()
        payoff = 1.0 if win < chance else 0.0
        if most > 0.0:
            otherwise = most * paying.random()
            payoff = 1.0 if win < chance else otherwise
        if decision == 0:
            payoff = sure
        counts[decision] += 1.0
        payoffs[decision] += payoff
        squares[decision] += payoff * payoff
        decisions[t] = decision
    return decisions


def streams(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """What the learner of this seed draws to decide, and what `rd.optimize` draws payoffs from."""
    deciding = np.random.SeedSequence(seed).spawn(2)[0]
    return np.random.default_rng(deciding), np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))


def gap_of(sure: float, chance: float, most: float) -> float:
    return chance + (1 - chance) * most / 2 - sure


def one(problem: str, seed: int) -> tuple[float, float, float]:
    """Regret after `EARLY` and all rounds, and the share of the worse decision."""
    worse = realist_run(*PROBLEMS[problem], ROUNDS, *streams(seed)) == 0
    gap = gap_of(*PROBLEMS[problem])
    return gap * int(worse[:EARLY].sum()), gap * int(worse.sum()), float(worse.mean())


def main() -> None:
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for problem in PROBLEMS:
        runs = kept.setdefault(problem, {})
        for seed in range(10_000, 10_000 + RUNS):
            if str(seed) not in runs:
                runs[str(seed)] = one(problem, seed)
                if seed % 10 == 9:
                    KEPT.parent.mkdir(exist_ok=True)
                    KEPT.write_text(json.dumps(kept))
        early, late, share = np.array(list(runs.values())).T
        print(
            f"{problem:10s} {len(runs)} runs: regret {early.mean():.1f} at {EARLY}, {late.mean():.1f} at {ROUNDS} "
            f"({late.mean() / early.mean():.2f} times, bar 2.5); worst {late.max():.1f}; "
            f"the worse decision has at most {share.max():.1%} of a run (bar 50%)"
        )


if __name__ == "__main__":
    main()
