"""Logs that are not what they should be: are they noticed, and does the remedy hold?

    python -m benchmarks.logs.troubled                  # 1,000 logs of each kind
    python -m benchmarks.logs.troubled --logs 50

"covered": all intervals held the truth, with the defaults; "warned": the warning that belongs to the kind was there;
"either": one or the other; "other": only another warning was there; "remedy": all intervals held the truth with what
the warning advises. Logs without trouble are in `python -m benchmarks.log_intervals`, column "warned". Finished kinds
are kept in a file (`--save`): the command goes on from there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import randomist as rd
from benchmarks import cells
from randomist._types import Array

ACTIONS = 5
POLICIES = np.array(
    [[0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.3, 0.3], [0.2, 0.2, 0.2, 0.2, 0.2], [0.05, 0.15, 0.2, 0.4, 0.2]]
)
CHANCE = np.array([0.3, 0.5, 0.4, 0.6, 0.45])


@dataclass(frozen=True)
class Troubled:
    """A kind of log: columns, the truth, and what to do about it."""

    name: str
    draw: Callable[[np.random.Generator], tuple[dict, Array]]
    remedy: dict  # settings of the log
    asked: dict  # settings of the evaluation
    expected: tuple[str, ...]
    kept: float = 1.0  # the share of the rows, from the first on, that the remedy keeps


def _acted(loggers: Array, rng: np.random.Generator) -> Array:
    return (POLICIES[loggers].cumsum(axis=1) < rng.random((len(loggers), 1))).sum(axis=1)


def _columns(loggers: Array, actions: Array, payoffs: Array) -> dict:
    columns = {f"log_likelihood:p{k}": np.log(policy[actions]) for k, policy in enumerate(POLICIES)}
    return columns | {"payoff": payoffs, "logger": np.array([f"p{k}" for k in range(len(POLICIES))])[loggers]}


def drifting(rng: np.random.Generator, rows: int = 10_000) -> tuple[dict, Array]:
    """Three loggers whose shares change while payoffs drift by ±0.2."""
    time = np.linspace(0, 1, rows)
    share = np.stack([1.2 - time, 0.2 + time, np.full(rows, 0.3)], axis=1)
    loggers = (share.cumsum(axis=1) / share.sum(axis=1, keepdims=True) < rng.random((rows, 1))).sum(axis=1)
    actions = _acted(loggers, rng)
    payoffs = (rng.random(rows) < CHANCE[actions] + 0.2 * (2 * time - 1)).astype(float)
    return _columns(loggers, actions, payoffs), POLICIES @ CHANCE


def repeated(rng: np.random.Generator, copies: int, rows: int = 3000) -> tuple[dict, Array]:
    """Every row several times."""
    loggers = rng.integers(0, 2, rows)
    actions = _acted(loggers, rng)
    payoffs = (rng.random(rows) < CHANCE[actions]).astype(float)
    columns = _columns(loggers, actions, payoffs)
    order = rng.permutation(np.repeat(np.arange(rows), copies))
    return {name: values[order] for name, values in columns.items()} | {"visit": order}, POLICIES @ CHANCE


def users(rng: np.random.Generator, interleaved: bool, count: int = 200, visits: int = 50) -> tuple[dict, Array]:
    """Users with 50 rows each, some of whom like everything."""
    who = np.repeat(np.arange(count), visits)
    if interleaved:
        who = rng.permutation(who)
    loggers = np.zeros(len(who), int)
    actions = _acted(loggers, rng)
    mood = rng.choice([-0.3, 0.3], size=count)
    payoffs = (rng.random(len(who)) < CHANCE[actions] + mood[who]).astype(float)
    return _columns(loggers, actions, payoffs) | {"user": who}, POLICIES @ CHANCE


def censored(rng: np.random.Generator, share: float, rows: int = 10_000) -> tuple[dict, Array]:
    """Payoffs that come late, and are counted as 0 where the log ends before."""
    loggers = np.zeros(rows, int)
    actions = _acted(loggers, rng)
    payoffs = (rng.random(rows) < CHANCE[actions]).astype(float)
    left = np.arange(rows)[::-1] / rows
    payoffs[rng.exponential(share, rows) > left] = 0.0
    return _columns(loggers, actions, payoffs), POLICIES @ CHANCE


def kinds() -> Iterator[Troubled]:
    yield Troubled("drift, loggers change", drifting, {"weights": "own"}, {}, ("loggers-drift", "drift"))
    yield Troubled("rows 3 times", lambda rng: repeated(rng, 3), {}, {"cluster": "visit"}, ("repeated",))
    yield Troubled("rows 10 times", lambda rng: repeated(rng, 10), {}, {"cluster": "visit"}, ("repeated",))
    yield Troubled("users in a row", lambda rng: users(rng, False), {}, {"cluster": "user"}, ("serial",))
    yield Troubled("users mixed up", lambda rng: users(rng, True), {}, {"cluster": "user"}, ("serial",))
    yield Troubled("censored, strong", lambda rng: censored(rng, 0.1), {}, {}, ("censored", "drift"), 0.5)
    yield Troubled("censored, mild", lambda rng: censored(rng, 0.01), {}, {}, ("censored", "drift"), 0.9)


def covers(found: rd.logs.Evaluation, truth: Array) -> bool:
    return bool(((found.low <= truth) & (truth <= found.high)).all())


COLUMNS = ("covered", "warned", "either", "other", "remedy")


def simulate(kind: Troubled, logs: int, seed: int) -> cells.Row:
    begin, counts = time.process_time(), dict.fromkeys(COLUMNS, 0)
    for child in np.random.SeedSequence(seed).spawn(logs):
        columns, truth = kind.draw(np.random.default_rng(child))
        found = rd.Log(columns).evaluate()
        names = {warning.name for warning in found.warnings}
        covered, warned = covers(found, truth), bool(names & set(kind.expected))
        counts["covered"] += covered
        counts["warned"] += warned
        counts["either"] += covered or warned
        counts["other"] += bool(names) and not warned
        kept = {name: values[: int(kind.kept * len(values))] for name, values in columns.items()}
        counts["remedy"] += covers(rd.Log(kept, **kind.remedy).evaluate(**kind.asked), truth)
    shares = {name: count / logs for name, count in counts.items()}
    return shares | {"seconds": time.process_time() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--save", type=Path, default=Path("out/troubled-logs.jsonl"), help="where finished kinds are")
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    print(f"{options.logs} logs of each kind")
    print(f"{'kind':23}", *(f"{name:>7}" for name in COLUMNS))
    seconds = 0.0
    for kind in kinds():
        cell = (kind.name, options.logs)
        done = cells.run([cell], lambda cell, kind=kind: simulate(kind, cell[1], seed=0), options.save)[cell]
        print(f"{kind.name:23}", *(f"{done[name]:7.3f}" for name in COLUMNS), flush=True)
        seconds += done["seconds"]
    print(f"{seconds / 60:.0f} CPU minutes")


if __name__ == "__main__":
    main()
