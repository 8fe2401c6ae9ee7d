"""`python -m benchmarks.bbob`: learners on COCO's `bbob-noisy`; finished cells are kept in a file of JSON lines.

    python -m benchmarks.bbob --instances design --jobs 2 --save out/bbob.jsonl
    python -m benchmarks.bbob --functions 101-106,128 --dimensions 2,5 --learners auto,cma,random

Instances 1 to 5 are for design, 6 to 15 for the table. A cell is a function, dimension, instance and learner: one run
of 200 d evaluations, looked at after 50 d, too. What costs more does less: TPE, and TPE that commits, 50 d evaluations
in the first three instances; Optuna's GP these in up to 5 dimensions; TuRBO-1 these on ten functions in up to 10. Hence
several tables, each over the problems that all of its learners have run: the mean rank by the noise-free value averaged
over all evaluations, and by that of what is recommended. 1 is the best, ties share, and ranks are among the learners of
that table.

CPU seconds of a cell in 2, 5, 10 and 20 dimensions, measured on f101 and f110 in instance 1, f110 alone for TPE in 20:
Auto 0.9, 3.1, 7.6, 30; CMA-ES 0.04, 0.07, 0.11, 0.26; TPE 0.2, 1.2, 3.9, 21; TPE that commits 0.1, 0.1, 0.4, 1.2; GP
6.2, 31; TuRBO-1 6.2, 14, 34. So the design's instances take about 3.8 hours, and those of the table 5.5.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from benchmarks import cells
from benchmarks.bbob.problems import FUNCTIONS, HIGH, LOW, Problem
from benchmarks.peers.problems import SEARCH, START, Array, generator
from benchmarks.peers.search import follow
from benchmarks.peers.standard import standard

DIMENSIONS = (2, 5, 10, 20)
INSTANCES = {"design": range(1, 6), "table": range(6, 16)}
SHORT, LONG = 50, 200  # evaluations per dimension
FEW = 3  # instances of the costly
TEN = (101, 105, 109, 110, 114, 118, 119, 123, 127, 128)  # functions of the costliest: every twin, every noise
LEARNERS = ("auto", "cma", "random", "tpe", "tpe-commit", "gp", "turbo")
CHEAP = ("auto", "cma", "random", "etc-10", "ars")  # run 200 d evaluations on everything
WIDEST = {"gp": 5, "turbo": 10}  # dimensions, at most


def planned(function: int, dimension: int, place: int, learner: str) -> bool:
    """Whether a learner runs on a function, in the instance at that place of its set."""
    name = learner.partition(":")[0]
    if name in CHEAP:
        return True
    return place < FEW and dimension <= WIDEST.get(name, max(DIMENSIONS)) and (name != "turbo" or function in TEN)


def do(cell: cells.Cell) -> cells.Row:
    """Run a cell: the mean of noise-free payoffs up to each mark, and that of what is recommended there."""
    function, dimension, instance, learner = cell
    cheap = learner.partition(":")[0] in CHEAP
    marks = [SHORT * dimension, LONG * dimension] if cheap else [SHORT * dimension]
    problem = Problem(function, dimension, instance)

    def evaluate(point: Array, t: int) -> float:
        return problem.payoff(LOW + (HIGH - LOW) * point)

    start = generator(instance, START).uniform(size=dimension)
    run = follow(standard(learner).search(marks[-1]), evaluate, start, generator(instance, SEARCH), marks)
    truth = problem.mean(LOW + (HIGH - LOW) * run.played) - problem.best
    recommended = problem.mean(LOW + (HIGH - LOW) * run.recommended) - problem.best
    return {
        "average": [float(truth[:mark].mean()) for mark in marks],
        "recommended": recommended.tolist(),
        "seconds": run.seconds,
        "outside": float(((run.asked < -1e-9) | (run.asked > 1 + 1e-9)).any(axis=1).mean()),
    }


def ranks(
    rows: Mapping[cells.Cell, cells.Row], learners: Sequence[str], dimension: int, mark: int, measure: str
) -> tuple[Array, int]:
    """Mean ranks over the problems of a dimension that all have run, and their number.  -> (learners,)"""
    problems = sorted({cell[:3] for cell in rows if cell[1] == dimension})
    values = [
        [rows[(*problem, learner)][measure][mark] for learner in learners]
        for problem in problems
        if all((*problem, learner) in rows for learner in learners)
    ]
    if not values:
        return np.full(len(learners), np.nan), 0
    return np.asarray(rankdata(-np.array(values), axis=1).mean(axis=0)), len(values)


def report(rows: Mapping[cells.Cell, cells.Row], learners: Sequence[str], dimensions: Sequence[int]) -> str:
    """Three tables, then what a cell costs."""
    names = {learner: learner.partition(":")[0] for learner in learners}
    cheap = [learner for learner in learners if names[learner] in CHEAP]
    middle = [learner for learner in learners if names[learner] != "turbo"]
    lines = []
    for title, group, mark in (
        (f"all instances, {LONG} d evaluations", cheap, 1),
        (f"all instances, {SHORT} d evaluations", cheap, 0),
        (f"{FEW} instances, {SHORT} d evaluations", middle, 0),
        (f"ten functions, {FEW} instances, {SHORT} d evaluations", list(learners), 0),
    ):
        if len(group) < 2 or (group == cheap and title[0].isdigit()) or (group == middle and title.startswith("ten")):
            continue
        lines += [f"{title}: mean rank by the average | by the recommendation", ""]
        lines += [f"| d | problems | {' | '.join(group)} |", f"|{'---|' * (len(group) + 2)}"]
        for dimension in dimensions:
            able = [learner for learner in group if dimension <= WIDEST.get(names[learner], max(DIMENSIONS))]
            if title.startswith("ten") and not any(names[learner] == "turbo" for learner in able):
                continue
            average, problems = ranks(rows, able, dimension, mark, "average")
            recommended, _ = ranks(rows, able, dimension, mark, "recommended")
            found = {learner: f"{a:.2f} / {r:.2f}" for learner, a, r in zip(able, average, recommended, strict=True)}
            shown = [found.get(learner, "–") for learner in group]
            if problems:
                lines.append(f"| {dimension} | {problems} | {' | '.join(shown)} |")
        lines.append("")
    lines += [
        "seconds of CPU time per cell:",
        "",
        f"| learner | {' | '.join(f'd = {d}' for d in dimensions)} | hours |",
    ]
    lines.append(f"|{'---|' * (len(dimensions) + 2)}")
    for learner in learners:
        of = [[row["seconds"] for cell, row in rows.items() if cell[1] == d and cell[3] == learner] for d in dimensions]
        means = [f"{np.mean(seconds):.2f}" if seconds else "–" for seconds in of]
        lines.append(f"| {learner} | {' | '.join(means)} | {sum(map(sum, of)) / 3600:.2f} |")
    return "\n".join(lines)


def numbers(text: str) -> list[int]:
    """ "101-103,110" as numbers."""
    found = list[int]()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learners on COCO's bbob-noisy.")
    parser.add_argument("--instances", choices=list(INSTANCES), default="design")
    parser.add_argument("--few", type=int, help="only so many of these instances")
    parser.add_argument("--functions", type=numbers, default=list(FUNCTIONS), help="101-130, or some of them")
    parser.add_argument("--dimensions", type=numbers, default=list(DIMENSIONS))
    parser.add_argument("--learners", default=",".join(LEARNERS), help="names, with commas between")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--save", type=Path, default=Path("out/bbob.jsonl"))
    parser.add_argument("--again", default="", help="learners to run anew, with commas between")
    arguments = parser.parse_args(given)
    learners = arguments.learners.split(",")
    for learner in learners:
        standard(learner)
    todo: list[cells.Cell] = [
        (function, dimension, instance, learner)
        for dimension in arguments.dimensions
        for place, instance in enumerate(INSTANCES[arguments.instances][: arguments.few])
        for function in arguments.functions
        for learner in learners
        if planned(function, dimension, place, learner)
    ]
    again = [cell for cell in todo if cell[3] in arguments.again.split(",")]
    rows = cells.run(todo, do, arguments.save, arguments.jobs, again)
    print(report(rows, learners, arguments.dimensions))


if __name__ == "__main__":
    main()
