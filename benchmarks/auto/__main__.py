"""`python -m benchmarks.auto`: what Auto earns and recommends on its design set; what is finished is kept.

    python -m benchmarks.auto --quick --save out/new.jsonl                 # at most 8 minutes on 2 cores
    python -m benchmarks.auto --full --learners auto,tpe,cma               # at most an hour
    python -m benchmarks.auto --quick --save out/new.jsonl --against out/old.jsonl
    python -m benchmarks.auto --full --judge                               # other seeds, other functions

Figures are shares of the range: 0 is the mean payoff of a uniform random point, 1 the best, -1 a call that fails.
`average` is over all rounds, `rec` the truth at what is recommended after the last one, `fail` the share of calls that
failed in the last third, `below` the runs whose recommendation is truly below `first`, `miss` of those intervals of the
recommended point that are supported (`has`) the ones that miss its truth, `ms` CPU time a round. Differences to another
file, or to the first learner, are paired by seed: mean ± standard error, with a star beyond two of them.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import randomist as rd
from benchmarks import cells
from benchmarks.auto.problems import JUDGED, PROBLEMS, QUICK, Array, Problem

MEASURES = ("average", "rec")
SIZES = {"quick": (200, 5), "full": (300, 20)}  # rounds, seeds


class Ask(NamedTuple):
    """A point to play, and how to answer: NaN where the call fails."""

    point: Array
    tell: Callable[[float], None]


Searcher = tuple[Callable[[], Ask], Callable[[], Array], Callable[[], Any]]  # ask, recommended, interval


def auto(problem: Problem, rounds: int, seed: int, **settings: Any) -> Searcher:
    box = {"space": problem.parameters} if problem.parameters else {"low": problem.low, "high": problem.high}
    learner = rd.Auto(**box, first=problem.first, seed=seed, **settings)

    def ask() -> Ask:
        trial = learner.ask()

        def tell(payoff: float) -> None:
            if np.isnan(payoff):
                learner.fail(trial, "NaN")
            else:
                learner.tell(trial, payoff)

        return Ask(np.ravel(trial.mediator), tell)

    return ask, lambda: np.ravel(learner.recommend()), lambda: learner.interval() if learner.told else None


def best(problem: Problem, rounds: int, seed: int) -> Searcher:
    return auto(problem, rounds, seed, goal="best")


def tpe(problem: Problem, rounds: int, seed: int) -> Searcher:
    """Optuna's default sampler; it recommends its best trial."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    named = problem.parameters.parameters if problem.parameters else None

    def point(values: dict[str, Any]) -> Array:
        if problem.parameters:
            return np.asarray(problem.parameters.point(values))
        return np.array([values[f"x{i}"] for i in range(len(problem.low))])

    def suggest(trial: Any, name: str, one: Any) -> Any:
        if isinstance(one, rd.Choice):
            return trial.suggest_categorical(name, one.options)
        kind = trial.suggest_int if isinstance(one, rd.Integer) else trial.suggest_float
        return kind(name, one.low, one.high, log=one.log)

    if problem.first is not None:
        study.enqueue_trial({f"x{i}": value for i, value in enumerate(problem.first)})

    def ask() -> Ask:
        trial = study.ask()
        if named:
            values = {name: suggest(trial, name, one) for name, one in named.items()}
        else:
            ends = zip(problem.low.tolist(), problem.high.tolist(), strict=True)
            values = {f"x{i}": trial.suggest_float(f"x{i}", *end) for i, end in enumerate(ends)}

        def tell(payoff: float) -> None:
            if np.isnan(payoff):
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, payoff)

        return Ask(point(values), tell)

    return ask, lambda: point(study.best_params), lambda: None


def cma(problem: Problem, rounds: int, seed: int) -> Searcher:
    """CMA-ES in the unit cube; a failure is the worst payoff so far, and its mean is what it recommends."""
    from cmaes import CMA

    d, rng, width = len(problem.low), np.random.default_rng(seed), problem.high - problem.low
    start = rng.random(d) if problem.first is None else (problem.first - problem.low) / width
    bounds = np.stack([np.zeros(d), np.ones(d)], axis=1)
    made: dict[str, Any] = {"bounds": bounds, "seed": seed, "population_size": max(4, 4 + int(3 * np.log(d)))}
    search, told, worst = CMA(mean=start, sigma=0.2, **made), list[Any](), [0.0]

    def ask() -> Ask:
        point = search.ask()

        def tell(payoff: float) -> None:
            worst[0] = worst[0] if np.isnan(payoff) else min(worst[0], payoff)
            told.append((point, -(worst[0] if np.isnan(payoff) else payoff)))
            if len(told) == search.population_size:
                search.tell(told)
                told.clear()

        return Ask(problem.low + point * width, tell)

    return ask, lambda: problem.low + np.clip(search.mean, 0, 1) * width, lambda: None


def uniform(problem: Problem, rounds: int, seed: int) -> Searcher:
    """Random points; the one that paid most."""
    rng, kept = np.random.default_rng(seed), [(-np.inf, problem.low)]

    def ask() -> Ask:
        point = rng.uniform(problem.low, problem.high)

        def tell(payoff: float) -> None:
            if payoff > kept[0][0]:
                kept[0] = payoff, point

        return Ask(point, tell)

    return ask, lambda: kept[0][1], lambda: None


LEARNERS: dict[str, Callable[[Problem, int, int], Searcher]] = {
    "auto": auto, "best": best, "tpe": tpe, "cma": cma, "random": uniform,
}  # fmt: skip


def do(cell: cells.Cell) -> cells.Row:
    """One run."""
    name, learner, rounds, seed = cell
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm(learner)
        return play(PROBLEMS[name](seed), learner, rounds, seed)


@cache
def _warm(learner: str) -> None:
    """Compile before the clock runs."""
    play(PROBLEMS["smooth-2"](0), learner, 40, 0)


def play(problem: Problem, learner: str, rounds: int, seed: int) -> cells.Row:
    ask, recommended, interval = LEARNERS[learner.partition(":")[0]](problem, rounds, seed)
    noise, played, failed, seconds = np.random.default_rng([seed, 7]).spawn(rounds), [], [], 0.0
    for t in range(rounds):
        begun = time.process_time()
        asked = ask()
        seconds += time.process_time() - begun
        payoff = problem.payoff(asked.point, t, noise[t])
        begun = time.process_time()
        asked.tell(payoff)
        seconds += time.process_time() - begun
        played.append(asked.point)
        failed.append(bool(np.isnan(payoff)))
    end = recommended()
    row = {
        "average": float(problem.shares(np.array(played)).mean()),
        "rec": float(problem.shares(end[None])[0]),
        "fail": float(np.mean(failed[-(rounds // 3) :])),
        "ms": 1000 * seconds / rounds,
    }
    if problem.first is not None:
        row["below"] = bool(problem.means(end[None])[0] < problem.means(problem.first[None])[0])
    found = interval()
    if found is not None:
        row["has"] = bool(found.supported)
        if found.supported:
            row["width"] = (found.high - found.low) / (problem.best - problem.typical)
            row["miss"] = not found.low - 1e-9 <= float(problem.means(end[None])[0]) <= found.high + 1e-9
    return row


def lines(names: Sequence[str], learners: Sequence[str], rows: Rows) -> Iterator[str]:
    """The table."""
    heads = " ".join(f"{name:>5}" for name in ("fail", "below", "has", "miss", "width"))
    yield f"{'problem':15} {'learner':10} {'average':^13} {'rec':^13} {'worst':>6} {heads} {'ms':>6}"
    for name in names:
        for learner in learners:
            own = rows[name, learner]
            means = " ".join(_with_error(column(own, measure)) for measure in MEASURES)
            rest = " ".join(f"{_mean(own, key):5.2f}" for key in ("fail", "below", "has", "miss", "width"))
            yield f"{name:15} {learner:10} {means} {column(own, 'rec').min():6.2f} {rest} {_mean(own, 'ms'):6.2f}"
    for learner in learners:
        both = [np.mean([column(rows[name, learner], measure).mean() for name in names]) for measure in MEASURES]
        yield f"{'all':15} {learner:10} {both[0]:^13.3f} {both[1]:^13.3f}"


def differences(names: Sequence[str], rows: Rows, one: str, other: Rows, another: str) -> Iterator[str]:
    """What is more in the first, paired by seed."""
    yield f"\n{one} less {another}: average, rec"
    totals = []
    for name in names:
        if len(rows[name, one]) != len(other[name, another]):
            continue
        gaps = [column(rows[name, one], m) - column(other[name, another], m) for m in MEASURES]
        totals.append(gaps)
        yield f"{name:15} " + " ".join(_with_error(gap, signed=True) for gap in gaps)
    if totals:
        every = np.array(totals)  # (problems, 2, seeds)
        errors = np.sqrt((every.var(axis=2, ddof=1) / every.shape[2]).sum(axis=0)) / len(every)
        means = every.mean(axis=(0, 2))
        yield f"{'all':15} " + " ".join(_star(mean, error) for mean, error in zip(means, errors, strict=True))


Rows = dict[tuple[str, str], list[cells.Row]]  # by problem and learner, one for each seed


def column(rows: Sequence[cells.Row], name: str) -> Array:
    """(seeds,)"""
    return np.array([row[name] for row in rows], dtype=float)


def _mean(rows: Sequence[cells.Row], name: str) -> float:
    found = [row[name] for row in rows if name in row]
    return float(np.mean(found)) if found else float("nan")


def _with_error(samples: Array, *, signed: bool = False) -> str:
    error = samples.std(ddof=1) / np.sqrt(len(samples)) if len(samples) > 1 else np.nan
    return _star(samples.mean(), error) if signed else f"{samples.mean():6.3f}±{error:<5.3f} "


def _star(mean: float, error: float) -> str:
    return f"{mean:+.3f}±{error:<5.3f}{'*' if abs(mean) > 2 * error else ' '}"


def gathered(done: dict[cells.Cell, cells.Row], names: Sequence[str], rounds: int, seeds: Sequence[int]) -> Rows:
    rows: Rows = {}
    for (name, learner, its_rounds, seed), row in sorted(done.items()):
        if name in names and its_rounds == rounds and seed in seeds:
            rows.setdefault((name, learner), []).append(row)
    return rows


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Auto on its design set.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="200 rounds, 5 seeds: the default")
    size.add_argument("--full", action="store_true", help="300 rounds, 20 seeds")
    parser.add_argument("--judge", action="store_true", help=f"seeds from {JUDGED} on")
    parser.add_argument("--problems", help="names, with commas between")
    parser.add_argument("--learners", default="auto", help=f"of {', '.join(LEARNERS)}; a label may follow a colon")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seeds", type=int, help="how many")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--save", type=Path, default=Path("out/auto.jsonl"))
    parser.add_argument("--against", type=Path, help="another file, with which the first learner is compared")
    a = parser.parse_args(given)
    rounds, seeds = SIZES["full" if a.full else "quick"]
    rounds, begin = a.rounds or rounds, JUDGED if a.judge else 0
    numbers = range(begin, begin + (a.seeds or seeds))
    names = a.problems.split(",") if a.problems else list(PROBLEMS if a.full else QUICK)
    learners = a.learners.split(",")
    wanted: list[cells.Cell] = [(n, one, rounds, seed) for seed in numbers for n in names for one in learners]
    rows = gathered(cells.run(wanted, do, a.save, a.jobs), names, rounds, numbers)
    print(f"{rounds} rounds, seeds {numbers.start} to {numbers.stop - 1}\n")
    print("\n".join(lines(names, learners, rows)))
    for rival in learners[1:]:
        print("\n".join(differences(names, rows, learners[0], rows, rival)))
    if a.against:
        others = gathered(cells.finished(a.against), names, rounds, numbers)
        for rival in sorted({learner for _, learner in others}):
            shared = [name for name in names if (name, rival) in others]
            print("\n".join(differences(shared, rows, learners[0], others, rival)))


if __name__ == "__main__":
    from benchmarks.auto import __main__ as command  # by this name other processes find what it has

    command.main()
