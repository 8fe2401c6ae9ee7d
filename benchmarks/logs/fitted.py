"""Propensities that were not logged, or are wrong: do intervals hold if the stated factor does?

    python -m benchmarks.logs.fitted                    # 200 logs of 10,000 rows of each kind; about 5 CPU minutes
    python -m benchmarks.logs.fitted --logs 100

Contexts of two numbers, three actions, payoffs of 0 and 1. "fitted": logistic regression, for a logger that it can
describe; "fitted, wrong model": for one that it cannot. "off by 1.2": each row's propensity is wrong by just this
factor, too small where the payoff was 1 and too large where it was 0, the worst for the lower end. Columns are coverage
at each `propensity_factor`, the mean width of the interval in units of that with the true propensities, at the same
factor, and "off by": how much the classifier is seen to be off by its calibration, on average.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import randomist as rd
from randomist._types import Array

FACTORS = (1.0, 1.1, 1.2, 1.5)
WAYS = np.array([[1.0, -0.5], [-0.8, 0.6], [0.1, 0.4]])
WORTH = np.array([[0.2, 0.1], [0.15, -0.2], [-0.1, 0.15]])
KINDS = ("true", "fitted", "fitted, wrong model", "off by 1.1", "off by 1.2", "off by 1.5")


def softmax(scores: Array) -> Array:
    weight = np.exp(scores)
    return weight / weight.sum(axis=1, keepdims=True)


def logger(x: Array, wrong: bool) -> Array:
    return softmax((np.abs(x) if wrong else x) @ WAYS.T)


def candidate(x: Array) -> Array:
    return softmax(3.0 * x @ WORTH.T)


def value(x: Array) -> Array:
    return 0.5 + x @ WORTH.T


def truth() -> float:
    x = np.random.default_rng(99).uniform(-1.0, 1.0, size=(1_000_000, 2))
    return float((candidate(x) * value(x)).sum(axis=1).mean())


def log_of(kind: str, rows: int, rng: np.random.Generator) -> rd.Log:
    x = rng.uniform(-1.0, 1.0, size=(rows, 2))
    drawn = logger(x, wrong="wrong" in kind)
    action = (drawn.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    taken = drawn[np.arange(rows), action]
    payoff = (rng.random(rows) < value(x)[np.arange(rows), action]).astype(float)
    table = {"x0": x[:, 0], "x1": x[:, 1], "action": action, "payoff": payoff}
    shared = {"action": "action", "context": ["x0", "x1"], "policies": {"new": candidate(x)}}
    if kind.startswith("fitted"):
        return rd.Log.from_table(table, propensity_model="default", **shared)
    factor = float(kind.split()[-1]) if kind.startswith("off") else 1.0
    wrong = np.where(payoff > 0.5, taken / factor, np.minimum(taken * factor, 1.0))
    return rd.Log.from_table(table | {"pscore": wrong}, propensity="pscore", **shared)


def simulate(kind: str, logs: int, rows: int, seed: int) -> tuple[Array, Array, float]:
    """Coverage and mean width at each factor, and how much calibration is off."""
    right, found, off = truth(), [], []
    for child in np.random.SeedSequence(seed).spawn(logs):
        log = log_of(kind, rows, np.random.default_rng(child))
        parts = log.sensitivity(FACTORS).values()
        found.append([(part.low[0] <= right <= part.high[0], part.width[0]) for part in parts])
        off.append(np.nan if log.fitted is None else log.fitted.off_by)
    table = np.array(found).mean(axis=0)
    return table[:, 0], table[:, 1], float(np.mean(off))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    print(
        f"{options.logs:,} logs of {options.rows:,} rows of each kind: coverage, and width in units of the first line's"
    )
    heads = " ".join(f"{f'by {factor:g}':>7}" for factor in FACTORS)
    print(f"{'propensities':20} {heads}  {heads}  off by")
    first = None
    for kind in KINDS:
        covered, width, off = simulate(kind, options.logs, options.rows, seed=0)
        first = width if first is None else first
        shares = " ".join(f"{share:7.2f}" for share in width / first)
        print(f"{kind:20} {' '.join(f'{c:7.3f}' for c in covered)}  {shares} {off:7.2f}", flush=True)


if __name__ == "__main__":
    main()
