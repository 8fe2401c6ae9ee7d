"""What else an evaluation promises: at any time, for all pairs, for the worst part of the payoffs.

    python -m benchmarks.logs.promises                  # 1,000 logs of each kind
    python -m benchmarks.logs.promises --logs 50

"held": all that is said about a log is true, at 95%. "anytime": the intervals of three candidates at every row up to
20,000, by the definition of the bets; "anytime, reported": those that `evaluate(anytime=True)` reports. "all pairs":
the 45 differences of ten candidates, two-sided. "CVaR": the mean of the worst tenth and of the worst half of the
payoffs of three candidates, and the quantiles there. "similar": two candidates one of which has 1% better actions,
20,000 rows, with the bound on the distance of their weights. "decided": the share of differences whose sign was told.
Finished kinds are kept in a file (`--save`): the command goes on from there.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import randomist as rd
from benchmarks import cells
from randomist._types import Array
from randomist.importance.intervals import RunningBets

LOGGER = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
CHANCE = np.array([0.1, 0.5, 0.3, 0.7, 0.4])
NEW, POOR = np.array([0.1, 0.2, 0.2, 0.4, 0.1]), np.array([0.5, 0.1, 0.3, 0.05, 0.05])
POLICIES = {"old": LOGGER, "new": NEW, "poor": POOR}
LEVEL = 0.95


def draw(rows: int, policies: dict[str, Array], rng: np.random.Generator) -> tuple[dict, Array]:
    """A log of one logger, with payoffs of 0 and 1; and the actions."""
    action = rng.choice(5, size=rows, p=LOGGER)
    columns = {"payoff": (rng.random(rows) < CHANCE[action]) * 1.0, "log_propensity": np.log(LOGGER[action])}
    return columns | {f"log_likelihood:{name}": np.log(p)[action] for name, p in policies.items()}, action


def anytime(rng: np.random.Generator) -> tuple[bool, float]:
    """Whether no wealth at the truth ever reaches 1/error."""
    columns, action = draw(20_000, POLICIES, rng)
    bets = RunningBets(0, (1 - LEVEL) / (2 * len(POLICIES)))
    stakes, held = bets.stakes[0][:, None], True
    for policy in POLICIES.values():
        weight, truth = (policy / LOGGER)[action], float(policy @ CHANCE)
        for values, mean in ((weight * columns["payoff"], truth), (weight * (1 - columns["payoff"]), 1 - truth)):
            wealth = np.cumsum(np.log1p(stakes * values) - np.log1p(stakes * mean), axis=1)  # (S, rows)
            most = np.logaddexp.reduce(wealth + bets.log_prior[0][:, None], axis=0).max()
            held &= bool(most < math.log(1 / bets.error))
    return held, math.nan


def reported(rng: np.random.Generator) -> tuple[bool, float]:
    found = rd.Log(draw(20_000, POLICIES, rng)[0]).evaluate(level=LEVEL, anytime=True).anytime
    assert found is not None
    truth = np.array([policy @ CHANCE for policy in POLICIES.values()])
    return bool(((found.low <= truth) & (truth <= found.high)).all()), math.nan


def compared(rows: int, policies: dict[str, Array], rng: np.random.Generator, **known: float) -> tuple[bool, float]:
    truth = {name: float(policy @ CHANCE) for name, policy in policies.items()}
    found = rd.Log(draw(rows, policies, rng)[0]).evaluate(level=LEVEL, compare="pairs", **known).differences()
    held = all(d.low <= truth[d.a] - truth[d.b] <= d.high for d in found)
    return held, float(np.mean([d.decided for d in found]))


def pairs(rng: np.random.Generator) -> tuple[bool, float]:
    scores = np.random.default_rng(0).standard_normal((10, 5))
    weight = np.exp(scores)
    policies = {f"p{k}": 0.9 * row / row.sum() + 0.02 for k, row in enumerate(weight)}
    return compared(10_000, policies, rng, weight_bounds=1 / LOGGER.min())


def similar(rng: np.random.Generator) -> tuple[bool, float]:
    better = NEW + np.array([-0.01, 0.0, 0.0, 0.01, 0.0])
    distance = float((np.abs(better - NEW) / LOGGER).max())
    return compared(20_000, {"good": NEW, "better": better}, rng, distance_bounds=distance)


def worst(rng: np.random.Generator) -> tuple[bool, float]:
    """Payoffs of u^power, u uniform; power depends on the action."""
    powers = np.array([3.0, 1.0, 2.0, 0.5, 1.5])
    columns, action = draw(10_000, POLICIES, rng)
    found = rd.Log(columns | {"payoff": rng.random(10_000) ** powers[action]}).risk(level=LEVEL)
    grid, held = np.linspace(0, 1, 100_001), True
    for k, policy in enumerate(POLICIES.values()):
        distribution = (policy * grid[:, None] ** (1 / powers)).sum(axis=1)  # F at every payoff of the grid
        for share in (0.1, 0.5):
            quantile = grid[np.searchsorted(distribution, share)]
            below = np.minimum(distribution, share)
            cvar = float((np.diff(below) * (grid[1:] + grid[:-1]) / 2).sum() / share)
            for truth, (low, high) in ((cvar, found.cvar(share)), (quantile, found.quantile(share))):
                held &= bool(low[k] - 1e-5 <= truth <= high[k] + 1e-5)
    return held, math.nan


KINDS: dict[str, Callable[[np.random.Generator], tuple[bool, float]]] = {
    "anytime": anytime,
    "anytime, reported": reported,
    "all pairs": pairs,
    "CVaR": worst,
    "similar": similar,
}


def simulate(name: str, logs: int, seed: int) -> cells.Row:
    begin = time.process_time()
    found = [KINDS[name](np.random.default_rng(child)) for child in np.random.SeedSequence(seed).spawn(logs)]
    held, decided = np.mean(found, axis=0).tolist()
    return {"held": held, "decided": decided, "seconds": time.process_time() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--save", type=Path, default=Path("out/log-promises.jsonl"), help="where finished kinds are")
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    print(f"{options.logs} logs of each kind")
    print(f"{'kind':19} {'held':>6} {'decided':>8}")
    seconds = 0.0
    for name in KINDS:
        cell = (name, options.logs)
        done = cells.run([cell], lambda cell: simulate(*cell, seed=0), options.save)[cell]
        print(f"{name:19} {done['held']:6.3f} {done['decided']:8.3f}", flush=True)
        seconds += done["seconds"]
    print(f"{seconds / 60:.0f} CPU minutes")


if __name__ == "__main__":
    main()
