"""`python -m benchmarks.auto.trial`: learners on noisy functions, one by one or in batches; finished runs are kept.

    python -m benchmarks.auto.trial --set design --rounds 300 --seeds 5 --learners auto,cma,random,etc \
        --functions smooth-2,rough-5 --jobs 2 --save out/auto.json

The first learner is compared with each of the others, by t-tests paired over seeds and corrected for the number of
functions and rivals (Holm). `--learners auto:new,auto:old` keeps versions apart in one file: what follows the colon is
a label. `--again auto` runs a learner again that the file has. Columns of the table:

average, last 50, recomm.  the true mean payoff of what was played, and at what is recommended at the end
a, l, r                    the same where 0 is the mean of a uniform random point and 1 the best, with standard errors
a-, r-                     p-values of the first learner's lead (+) or lag (-) in average and recommendation
stands                     runs with a recommendation not below the mean of the last 50 payoffs by two standard errors
scouts, outside            of the last 100 rounds, those played to see; of all, those asked outside of the box
ms                         CPU time of the learner per round
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import cells
from benchmarks.auto.functions import SETS, Function
from benchmarks.peers.problems import EPISODES, SEARCH, START, Array, generator
from benchmarks.peers.search import Followed, follow
from benchmarks.peers.standard import standard
from benchmarks.significance import holm, paired

WARM_UP = 40  # rounds before the clock counts, so that compiling does not
LAST = 50  # rounds whose payoffs a recommendation is compared with
LATE = 100  # rounds at the end in which scouts are counted
OUTSIDE = 1e-9  # of the width of a box, beyond which a point is not in it

MEASURES = ("average", "last", "recommended")
TESTED = ("average", "recommended")


def play(function: Function, learner: str, rounds: int, batch: int, seed: int) -> Followed:
    """One run, in coordinates where the box is [0, 1]^d; the noise of a round depends on the seed only."""
    width, noise = function.high - function.low, generator(seed, EPISODES).spawn(rounds)

    def evaluate(point: Array, t: int) -> float:
        return function.payoff(function.low + point * width, noise[t], t)

    start = generator(seed, START).uniform(size=function.dimension)
    return follow(standard(learner).search(rounds, batch), evaluate, start, generator(seed, SEARCH), [rounds])


def do(cell: cells.Cell) -> cells.Row:
    """Play the run that a cell names, and measure it."""
    of, name, learner, rounds, batch, seed = cell
    function = SETS[of][name]
    _warm(learner, batch)
    run = play(function, learner, rounds, batch, seed)
    width = function.high - function.low
    means = function.mean(function.low + run.played * width)
    recommended = float(function.mean(function.low + run.recommended[-1] * width))
    last = run.payoffs[-LAST:]
    error = last.std(ddof=1) / np.sqrt(len(last))
    beyond = (run.asked < -OUTSIDE) | (run.asked > 1 + OUTSIDE)
    return {
        "average": float(means.mean()),
        "last": float(means[-LAST:].mean()),
        "recommended": recommended,
        "stands": bool(recommended >= last.mean() - 2 * error - 1e-12),
        "scouts": float(run.scouts[-LATE:].mean()),
        "outside": float(beyond.any(axis=1).mean()),
        "ms": 1000 * run.seconds / rounds,
    }


Rows = Mapping[tuple[str, str], list[cells.Row]]  # by function and learner, one for each seed


def report(functions: Sequence[Function], learners: Sequence[str], rows: Rows) -> str:
    """The table, and a summary of it."""
    tests = compare([function.name for function in functions], learners, rows)
    heads = f"{'average':>9} {'last 50':>9} {'recomm.':>9}  {'a':^11} {'l':^11} {'r':^11} {'a-':>6} {'r-':>6}"
    lines = [f"{'function':15} {'learner':12} {heads} {'stands':>6} {'scouts':>6} {'outside':>7} {'ms':>6}"]
    for function in functions:
        for learner in learners:
            own = rows[function.name, learner]
            raw = [column(own, measure) for measure in MEASURES]
            means = " ".join(f"{one.mean():9.3f}" for one in raw)
            shares = " ".join(_with_error(function.normalised(one)) for one in raw)
            signs = " ".join(f"{_signed(tests.get((function.name, learner, measure))):>6}" for measure in TESTED)
            stands, scouts, outside, ms = (column(own, name).mean() for name in ("stands", "scouts", "outside", "ms"))
            rest = f"{stands:6.0%} {scouts:6.0%} {outside:7.0%} {ms:6.2f}"
            lines.append(f"{function.name:15} {learner:12} {means}  {shares} {signs} {rest}")
    lines += ["", "over all functions that are not flat:"]
    return "\n".join(lines + [_summary(functions, learner, learners[0], rows, tests) for learner in learners])


def column(rows: Sequence[cells.Row], name: str) -> Array:
    """(seeds,)"""
    return np.array([row[name] for row in rows], dtype=float)


class Test(NamedTuple):
    lead: float  # of the first learner
    p: float  # corrected


def compare(functions: Sequence[str], learners: Sequence[str], rows: Rows) -> dict[tuple[str, str, str], Test]:
    """The first learner beside each of the others, by function, rival and measure."""
    tests = dict[tuple[str, str, str], Test]()
    for measure in TESTED:
        keys = [(function, rival) for function in functions for rival in learners[1:]]
        leads = [column(rows[f, learners[0]], measure) - column(rows[f, rival], measure) for f, rival in keys]
        corrected = holm(np.array([paired(lead) for lead in leads]))
        for key, lead, p in zip(keys, leads, corrected, strict=True):
            tests[(*key, measure)] = Test(float(lead.mean()), float(p))
    return tests


def _summary(
    functions: Sequence[Function], learner: str, first: str, rows: Rows, tests: Mapping[tuple[str, str, str], Test]
) -> str:
    shares = []
    for measure in MEASURES:
        by_function = [f.normalised(column(rows[f.name, learner], measure)).mean() for f in functions if not f.flat]
        shares.append(np.mean(by_function) if by_function else np.nan)
    line = f"{learner:12} a {shares[0]:.3f}, l {shares[1]:.3f}, r {shares[2]:.3f}"
    for measure in TESTED if learner != first else ():
        found = [tests[function.name, learner, measure] for function in functions]
        ahead, behind = (sum(sign * test.lead > 0 and test.p < 0.05 for test in found) for sign in (1, -1))
        better = sum(test.lead > 0 for test in found)
        line += f"; {measure}: {first} is better on {better}, significantly on {ahead}, significantly worse on {behind}"
    return line


def _with_error(samples: Array) -> str:
    if np.isnan(samples).any():
        return f"{'–':^11}"
    error = samples.std(ddof=1) / np.sqrt(len(samples)) if len(samples) > 1 else np.nan
    return f"{samples.mean():5.2f}±{error:<5.2f}"


def _signed(test: Test | None) -> str:
    if test is None:
        return ""
    return f"{'+' if test.lead > 0 else '-'}{test.p:.3f}" if test.p < 1 else "="


@cache
def _warm(learner: str, batch: int) -> None:
    play(SETS["design"]["smooth-2"], learner, WARM_UP, batch, seed=0)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Learners on noisy functions.")
    parser.add_argument("--set", choices=list(SETS), default="design")
    parser.add_argument("--functions", help="names, with commas between; all of the set by default")
    parser.add_argument("--learners", default="auto,cma,tpe-commit,random,etc", help="the first beside the others")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--save", type=Path, default=Path("out/auto.json"))
    parser.add_argument("--again", default="", help="learners to run anew, with commas between")
    arguments = parser.parse_args(given)
    functions = SETS[arguments.set]
    names, learners = (arguments.functions or ",".join(functions)).split(","), arguments.learners.split(",")
    if unknown := [name for name in names if name not in functions]:
        raise SystemExit(f"no function of this set is called {unknown[0]}; there are {', '.join(functions)}")
    for learner in learners:
        standard(learner)
    todo: list[cells.Cell] = [
        (arguments.set, name, learner, arguments.rounds, arguments.batch, seed)
        for name in names
        for learner in learners
        for seed in range(arguments.seeds)
    ]
    again = [cell for cell in todo if cell[2] in arguments.again.split(",")]
    done = cells.run(todo, do, arguments.save, arguments.jobs, again)
    rows = dict[tuple[str, str], list[cells.Row]]()
    for cell in todo:
        rows.setdefault((cell[1], cell[2]), []).append(done[cell])
    print(f"{arguments.set} set, {arguments.rounds} rounds, {arguments.seeds} seeds, batches of {arguments.batch}\n")
    print(report([functions[name] for name in names], learners, rows))


if __name__ == "__main__":
    from benchmarks.auto import trial  # by this name other processes find what it has

    trial.main()
