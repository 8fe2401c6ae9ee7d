"""`python -m benchmarks.auto.coverage`: how often Auto's intervals hold the true mean payoff at the recommended point.

    python -m benchmarks.auto.coverage --set table --rounds 300 --seeds 50 --jobs 2 --save out/auto-coverage.json

A run is a search, `interval()` after it, and `confirm(50)`. Columns: runs in which the interval was unsupported; how
many of the others held the truth, and their mean width; the same for the mean of the confirmation, and the widths'
ratio. A run takes about 3 ms of CPU time a round.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import randomist as rd
from benchmarks import cells
from benchmarks.auto.functions import SETS
from benchmarks.peers.problems import EPISODES, generator

PLAYS = 50  # of a confirmation
ROUNDING = 1e-9  # where there is no noise, an interval is one number


def do(cell: cells.Cell) -> cells.Row:
    """One search and what it says in the end."""
    of, name, rounds, seed = cell
    function, noise = SETS[of][name], generator(seed, EPISODES)
    learner = rd.Auto(low=function.low, high=function.high, seed=seed)

    def answer(trial: rd.Trial, t: int) -> None:
        learner.tell(trial, function.payoff(np.atleast_1d(trial.mediator), noise, t))

    for t in range(rounds):
        answer(learner.ask(), t)
    truth, found = float(function.mean(np.atleast_1d(learner.recommend()))), learner.interval()
    for trial in learner.confirm(PLAYS):
        answer(trial, rounds)
    mean = learner.confirmed().mean
    return {
        "supported": found.supported,
        "holds": bool(found.low - ROUNDING <= truth <= found.high + ROUNDING),
        "width": found.high - found.low if found.supported else 0.0,
        "confirmed": bool(mean.low - ROUNDING <= truth <= mean.high + ROUNDING),
        "confirmed_width": mean.high - mean.low,
    }


def report(names: list[str], rows: dict[str, list[cells.Row]]) -> str:
    lines = [
        "| function | unsupported | holds | width | confirmed holds | width | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        own = rows[name]
        kept = [row for row in own if row["supported"]]
        holds = np.mean([row["holds"] for row in kept]) if kept else np.nan
        width = np.mean([row["width"] for row in kept]) if kept else np.nan
        confirmed = np.mean([row["confirmed"] for row in own])
        confirmed_width = np.mean([row["confirmed_width"] for row in own])
        lines.append(
            f"| {name} | {len(own) - len(kept)} of {len(own)} | {holds:.2f} | {width:.3g} | {confirmed:.2f} | "
            f"{confirmed_width:.3g} | {width / max(confirmed_width, ROUNDING):.3g} |"
        )
    return "\n".join(lines)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Coverage of Auto's intervals.")
    parser.add_argument("--set", choices=list(SETS), default="design")
    parser.add_argument("--functions", help="names, with commas between; all of the set by default")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--save", type=Path, default=Path("out/auto-coverage.json"))
    arguments = parser.parse_args(given)
    names = (arguments.functions or ",".join(SETS[arguments.set])).split(",")
    todo: list[cells.Cell] = [
        (arguments.set, name, arguments.rounds, seed) for name in names for seed in range(arguments.seeds)
    ]
    done = cells.run(todo, do, arguments.save, arguments.jobs)
    rows = {name: [done[cell] for cell in todo if cell[1] == name] for name in names}
    print(f"{arguments.set} set, {arguments.rounds} rounds, {arguments.seeds} seeds\n")
    print(report(names, rows))


if __name__ == "__main__":
    main()
