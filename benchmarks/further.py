"""Realist beside OPTIMIST and RANDOMIST on twelve problems where samples are shared and something is awkward.

    python -m benchmarks further      # about 5 minutes of one core

Mean regret of 40 runs of 3,000 rounds, payoffs of 0 and 1. The bar: nowhere is OPTIMIST or RANDOMIST more than five
times better than Realist and 5 less in regret. Problems and seeds had no part in the design of Realist.
"""

from __future__ import annotations

import math

import numpy as np

import randomist as rd
from benchmarks.certainty import Problem
from randomist._types import Array

ROUNDS, RUNS = 3000, 40
LEARNERS = (rd.Realist, rd.Optimist, rd.Randomist)


def gaussians(mean: object, std: object) -> rd.Finite:
    return rd.Finite(rd.Gaussian(mean, std))


def between(z: Array, low: float, high: float) -> Array:
    return ((z > low) & (z < high)).astype(float)


def dirichlet(seed: int) -> Problem:
    """Six policies over eight outcomes, each of which is rare under most of them."""
    rng = np.random.default_rng(seed)
    policies, chances = rng.dirichlet(np.full(8, 0.3), size=6), rng.random(8)
    return Problem(rd.Finite(rd.Categorical(0.98 * policies + 0.02 / 8)), lambda z: chances[z])


PROBLEMS: dict[str, Problem] = {
    # The best decision wins by mediators that it draws now and then, and the others hardly ever.
    "a rare win, wide": Problem(gaussians([0, 0, 0], [0.5, 1, 2.5]), lambda z: 0.02 + 0.95 * between(z, 4, 12)),
    "a rare win, narrow": Problem(gaussians([0, 0.5, 2.5], [1, 1, 0.3]), lambda z: 0.2 + 0.7 * between(z, 2.9, 3.3)),
    "a win in another's mediators": Problem(
        rd.Finite(rd.Categorical([[0.9, 0.1, 0, 0], [0, 0.9, 0.05, 0.05], [0.5, 0, 0, 0.5]])),
        lambda z: np.array([0.5, 0.45, 1.0, 0.9])[z],
    ),
    "a win that one play shows": Problem(
        rd.Finite(rd.Categorical([[0.98, 0.02, 0], [0.6, 0.4, 0], [0.1, 0, 0.9]])),
        lambda z: np.array([0.3, 1, 0.28])[z],
    ),
    "narrow against wide": Problem(gaussians([0, 0.2, 0], [0.1, 0.5, 3]), lambda z: 0.1 + 0.8 * between(z, -0.4, 0.4)),
    "two peaks": Problem(
        gaussians(np.linspace(-3, 3, 9), 0.6),
        lambda z: 0.8 * np.exp(-4 * (z + 2) ** 2) + 0.9 * np.exp(-4 * (z - 2) ** 2),
    ),
    "fifty alike": Problem(gaussians(np.linspace(-0.5, 0.5, 50), 0.5), lambda z: 1 / (1 + np.exp(-2 * z))),
    "tiny gaps": Problem(gaussians([-0.1, -0.05, 0, 0.05, 0.1], 1), lambda z: 1 / (1 + np.exp(-z))),
    "uniforms": Problem(
        rd.Finite(rd.Uniform([0.0, 0.5, 1.0, 1.8], [1.0, 2.0, 2.2, 3.0])), lambda z: 0.1 + 0.6 * between(z, 1.5, 2.1)
    ),
    "six random policies": dirichlet(101),
    "six others": dirichlet(102),
    "and six more": dirichlet(103),
}


def regrets(problem: Problem, learner: type[rd.Learner]) -> Array:
    """Of RUNS runs.  (RUNS,)"""
    played = Problem(problem.space, problem.chance, learner)
    gaps = problem.means.max() - problem.means
    return np.array([gaps[played.run(ROUNDS, 30_000 + seed).record.decisions].sum() for seed in range(RUNS)])


def main() -> None:
    print(f"mean regret of {RUNS} runs of {ROUNDS} rounds {'':6s}" + "".join(f"{m.__name__:>16s}" for m in LEARNERS))
    for name, problem in PROBLEMS.items():
        found = [regrets(problem, learner) for learner in LEARNERS]
        cells = (f"{np.mean(r):8.1f} ± {np.std(r, ddof=1) / math.sqrt(RUNS):5.1f}" for r in found)
        ours, *others = (float(np.mean(r)) for r in found)
        beaten = any(ours > 5 * other and ours > other + 5 for other in others)
        print(f"  {name:38s}" + " ".join(cells) + ("  beaten" if beaten else ""), flush=True)


if __name__ == "__main__":
    main()
