"""Do models of payoffs narrow intervals where they are right, and do no harm where they are wrong?

    python -m benchmarks.logs.models                    # 200 logs of 10,000 rows of each problem; about 20 CPU minutes
    python -m benchmarks.logs.models --logs 20

Contexts of three numbers, four actions, payoffs around a linear function of the context for each action, which explains
80% of their variance. With "modest" weights the candidate does what pays, and the logger nearly so: what is left of the
payoffs' variance when their mean is subtracted is mostly noise. With "large" weights the candidate does what the logger
rarely does, whatever it pays. "constant" is the interval with constant stakes and the exact bound, as it was in version
0.1.0, but for its prior; the others let stakes follow the rows: without a model, with the true function, with ridge
regression fitted on earlier rows, with noise for a model, and with one that expects the opposite. "explained" is the
share of the payoffs' variance that the true function explains. "robust" is how often the asymptotic interval of the
doubly robust estimate covered.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import randomist as rd
from randomist._types import Array
from randomist.logs.tally import Ends
from randomist.logs.units import of_rows

CONTEXT = ["x0", "x1", "x2"]


@dataclass(frozen=True, eq=False)
class Problem:
    """What actions are worth and who takes them, by slopes (A, 3)."""

    slopes: Array
    noise: float
    logged: Array
    tried: Array
    floor: float  # of the logger's probabilities, times 4

    def value(self, x: Array) -> Array:
        """What every action is worth.  (n, A)"""
        return np.clip(0.5 + x @ self.slopes.T, 0.2, 0.8)

    def logger(self, x: Array) -> Array:
        return (1.0 - self.floor) * softmax(x @ self.logged.T) + self.floor / 4

    def candidate(self, x: Array) -> Array:
        return softmax(x @ self.tried.T)


_SLOPES = np.array([[0.3, -0.2, 0.1], [0.0, 0.4, -0.3], [-0.3, 0.1, 0.2], [0.2, 0.2, 0.2]])
_WAYS = np.array([[0.8, -0.3, 0.9], [-0.9, 0.7, 0.2], [0.1, 0.8, -1.0], [0.3, -1.0, -0.2]])
_STEEP = np.array([[0.1, 0.22, 0.0], [-0.2, 0.0, 0.1], [0.15, -0.15, 0.05], [0.0, 0.1, -0.2]])
MODEST = Problem(_SLOPES, 0.17, 0.5 * _SLOPES[::-1], 3.0 * _SLOPES, 0.3)
LARGE = Problem(_STEEP, 0.1126, _WAYS, -4.0 * _WAYS, 0.4)
PROBLEMS = {"modest": MODEST, "large": LARGE}


def softmax(scores: Array) -> Array:
    weight = np.exp(scores)
    return weight / weight.sum(axis=1, keepdims=True)


def draw(rows: int, rng: np.random.Generator, problem: Problem = MODEST) -> dict[str, Array]:
    x = rng.uniform(-1.0, 1.0, size=(rows, 3))
    action = (problem.logger(x).cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
    y = problem.value(x)[np.arange(rows), action] + problem.noise * rng.uniform(-1.0, 1.0, rows)
    return dict(zip(CONTEXT, x.T, strict=True)) | {"action": action, "payoff": y}


def truth(problem: Problem = MODEST, seed: int = 99) -> float:
    """By a million contexts: known to 0.0002."""
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, size=(1_000_000, 3))
    return float((problem.candidate(x) * problem.value(x)).sum(axis=1).mean())


def log_of(table: dict[str, Array], model: Any, problem: Problem = MODEST) -> rd.Log:
    x = np.column_stack([table[name] for name in CONTEXT])
    known = {"policies": {"new": problem.candidate(x)}, "logged_by": problem.logger(x)}
    return rd.Log.from_table(table, action="action", context=CONTEXT, model=model, **known)


def constant_width(log: rd.Log, level: float) -> float:
    """With constant stakes and the bound of the first rows."""
    ends = Ends(len(log), (1 - level) / 2, log.early_bounds["new"], same_mean=False)
    for batch in log.batches():
        units = of_rows(batch)
        ends.add(units.gain[0], units.loss[0], units.control(0))
    return ends.high() - ends.low()


def models(rng: np.random.Generator, problem: Problem = MODEST) -> dict[str, Any]:
    def known(function: Callable[[Array], Array]) -> Callable[[Any], Array]:
        return lambda frame: function(np.column_stack([np.asarray(frame[name]) for name in CONTEXT]))

    return {
        "no model": None,
        "true function": known(problem.value),
        "ridge": "default",
        "noise": known(lambda x: rng.random((len(x), 4))),
        "opposite": known(lambda x: 1.0 - problem.value(x)),
    }


def simulate(
    logs: int, rows: int, seed: int, level: float = 0.95, problem: Problem = MODEST
) -> dict[str, tuple[float, float, float]]:
    """Coverage, mean width, and coverage of the doubly robust interval, by model."""
    right, found = truth(problem), {}
    for child in np.random.SeedSequence(seed).spawn(logs):
        rng = np.random.default_rng(child)
        table = draw(rows, rng, problem)
        for name, model in models(rng, problem).items():
            log = log_of(table, model, problem)
            evaluation = log.evaluate(level=level)
            covered = float(evaluation.low[0] <= right <= evaluation.high[0])
            robust = np.nan
            if evaluation.doubly_robust is not None:
                robust = float(evaluation.doubly_robust_low[0] <= right <= evaluation.doubly_robust_high[0])
            found.setdefault(name, []).append((covered, float(evaluation.width[0]), robust))
            if model is None:
                found.setdefault("constant", []).append((np.nan, constant_width(log, level), np.nan))
    return {name: tuple(np.mean(values, axis=0)) for name, values in found.items()}


def explained(problem: Problem, rows: int = 100_000) -> float:
    table = draw(rows, np.random.default_rng(0), problem)
    x = np.column_stack([table[name] for name in CONTEXT])
    rest = table["payoff"] - problem.value(x)[np.arange(rows), table["action"]]
    return float(1.0 - rest.var() / table["payoff"].var())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    for name, problem in PROBLEMS.items():
        found = simulate(options.logs, options.rows, seed=0, problem=problem)
        print(f"{name} weights: {options.logs} logs of {options.rows:,} rows; the true function explains", end=" ")
        print(f"{explained(problem):.0%}")
        print(f"{'model':14} {'covered':>7} {'width':>7} {'of none':>7} {'of constant':>11} {'robust':>7}")
        for model, (covered, width, robust) in found.items():
            shares = f"{width / found['no model'][1]:7.2f} {width / found['constant'][1]:11.2f}"
            print(f"{model:14} {covered:7.3f} {width:7.4f} {shares} {robust:7.3f}", flush=True)


if __name__ == "__main__":
    main()
