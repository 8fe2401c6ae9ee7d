"""`python -m benchmarks.mixed`: Auto beside Optuna's TPE on functions of reals, log scales, integers and choices.

    python -m benchmarks.mixed --set table --seeds 20 --rounds 200 --save out/mixed.jsonl

Payoffs have noise. What is compared is the mean payoff without it: averaged over all that was played, and at what is
recommended at the end (of TPE: its best trial). Differences are paired by seed; p-values are of t-tests, corrected for
the number of functions (Holm). The functions of `--set design` are those that the search was built with.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import randomist as rd
from benchmarks import cells
from benchmarks.significance import holm, paired


class Function(NamedTuple):
    space: rd.Parameters
    mean: Callable[..., float]
    noise: float


def controller(kp: float, ki: float, taps: int, mode: str) -> float:
    """Gains over decades, a filter's length, and how the controller guards against windup."""
    gain = -0.35 * (math.log10(kp) - 0.6) ** 2 - 0.2 * (math.log10(ki) + 1.2) ** 2
    return (
        gain
        - 0.02 * (taps - 5) ** 2 * (0.6 + 0.4 * (mode == "back"))
        + {"none": -0.6, "clamp": 0.0, "back": 0.15}[mode]
    )


def network(rate: float, width: int, depth: int, activation: str, dropout: float) -> float:
    """A learning rate whose best value depends on the size, and an activation that wants another depth."""
    best_rate = -2.5 - 0.35 * math.log2(width / 64)
    deep = {"relu": 4, "tanh": 2, "gelu": 5}[activation]
    value = -0.25 * (math.log10(rate) - best_rate) ** 2 - 0.06 * (depth - deep) ** 2 + 0.12 * math.log2(width / 16)
    return value - 0.03 * math.log2(width / 16) ** 2 - 2.0 * (dropout - 0.2) ** 2 + 0.1 * (activation == "gelu")


def schedule(batch: int, wait: float, policy: str, retries: int) -> float:
    """Throughput of a queue: larger batches wait longer, some policies want few retries."""
    load = math.log2(batch) - 5 + 1.5 * (math.log10(wait) + 1)
    return 1 - 0.12 * load**2 - 0.03 * abs(math.log2(batch) - 6) - 0.08 * retries * (policy != "backoff") - {
        "drop": 0.3, "retry": 0.1, "backoff": 0.0, "random": 0.5}[policy]  # fmt: skip


def wide(a: float, b: float, c: float, d: float, e: float, k: int, m: int, kind: str) -> float:
    """Eight parameters, of which three hardly matter."""
    value = -((a - 0.3) ** 2) - (b - 0.7) ** 2 - 2 * (c - 0.5) ** 2 - 0.02 * (d + e)
    return value - 0.01 * (k - 14) ** 2 + 0.3 * (kind == "y") * (1 - abs(m - 3) / 3)


def ridge(x: float, y: float, steps: int, flag: bool, form: str) -> float:
    """A valley across two reals, a whole number on a log scale, and two switches that depend on each other."""
    bent = (math.log10(x) + 1 - y) ** 2
    side = (0.4 if flag else 0.0) * (1 if form == "round" else -1)
    return side - bent - 0.1 * (math.log2(steps) - 4) ** 2 - 0.05 * (y - 1) ** 2


def filter_(cut: float, order: int, kind: str) -> float:
    return -0.5 * (math.log10(cut) - 1) ** 2 - 0.1 * abs(order - 4) + {"low": 0.2, "band": 0.0, "high": -0.5}[kind]


def stepped(n: int, m: int, p: float) -> float:
    return -0.03 * (n - 7) ** 2 - 0.002 * (m - 40) ** 2 - (p - 0.6) ** 2 + 0.1 * (n % 2)


def switches(u: bool, v: bool, w: str, x: float) -> float:
    return 0.5 * (u != v) + {"a": 0.0, "b": 0.2, "c": 0.4, "d": 0.1, "e": 0.0}[w] - (x - 0.25 - 0.5 * u) ** 2


R, Integer, C = rd.Real, rd.Integer, rd.Choice
SETS: dict[str, dict[str, Function]] = {
    "design": {
        "filter": Function(rd.Parameters(cut=R(0.1, 1000, log=True), order=Integer(1, 10),
                                         kind=C("low", "band", "high")), filter_, 0.2),
        "stepped": Function(rd.Parameters(n=Integer(1, 12), m=Integer(1, 100), p=R(0, 1)), stepped, 0.2),
        "switches": Function(rd.Parameters(u=C(True, False), v=C(True, False), w=C("a", "b", "c", "d", "e"), x=R(0, 1)),
                             switches, 0.2),
    },
    "table": {
        "controller": Function(rd.Parameters(kp=R(0.1, 100, log=True), ki=R(1e-3, 10, log=True), taps=Integer(1, 12),
                                             mode=C("none", "clamp", "back")), controller, 0.2),
        "network": Function(rd.Parameters(rate=R(1e-5, 1, log=True), width=Integer(16, 512, log=True),
                                          depth=Integer(1, 8), activation=C("relu", "tanh", "gelu"), dropout=R(0, 0.7)),
                            network, 0.2),
        "schedule": Function(rd.Parameters(batch=Integer(1, 256, log=True), wait=R(1e-3, 10, log=True),
                                           policy=C("drop", "retry", "backoff", "random"), retries=Integer(0, 5)),
                             schedule, 0.2),
        "wide": Function(rd.Parameters(a=R(0, 1), b=R(0, 1), c=R(0, 1), d=R(0, 1), e=R(0, 1), k=Integer(1, 20),
                                       m=Integer(1, 6), kind=C("x", "y")), wide, 0.1),
        "ridge": Function(rd.Parameters(x=R(1e-3, 10, log=True), y=R(-2, 2), steps=Integer(1, 128, log=True),
                                        flag=C(True, False), form=C("round", "square")), ridge, 0.1),
    },
}  # fmt: skip


def auto(function: Function, rounds: int, seed: int, noise: np.ndarray) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    learner, played = rd.Auto(function.space, seed=seed), []
    for t in range(rounds):
        trial = learner.ask()
        assert trial.parameters is not None
        played.append(trial.parameters)
        learner.tell(trial, function.mean(**trial.parameters) + function.noise * noise[t])
    return played, learner.space.named(learner.recommend())


def tpe(function: Function, rounds: int, seed: int, noise: np.ndarray, **settings: Any) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # multivariate is experimental in some versions
        sampler = optuna.samplers.TPESampler(seed=seed, **settings)
    study, played = optuna.create_study(direction="maximize", sampler=sampler), []
    for t in range(rounds):
        trial = study.ask()
        played.append({name: _suggested(trial, name, one) for name, one in function.space.parameters.items()})
        study.tell(trial, function.mean(**played[-1]) + function.noise * noise[t])
    return played, study.best_params


def _suggested(trial: Any, name: str, parameter: Any) -> Any:
    if isinstance(parameter, rd.Choice):
        return trial.suggest_categorical(name, parameter.options)
    suggest = trial.suggest_int if isinstance(parameter, rd.Integer) else trial.suggest_float
    return suggest(name, parameter.low, parameter.high, log=parameter.log)


LEARNERS: dict[str, Callable[..., Any]] = {
    "auto": auto,
    "tpe": lambda *given: tpe(*given, multivariate=False),
    "tpe-multivariate": lambda *given: tpe(*given, multivariate=True),
}


def do(cell: cells.Cell) -> cells.Row:
    of, name, learner, rounds, seed = cell
    function = SETS[of][name]
    noise = np.random.default_rng([seed, 7]).standard_normal(rounds)
    played, best = LEARNERS[learner.partition(":")[0]](function, rounds, seed, noise)
    means = [function.mean(**values) for values in played]
    return {"average": float(np.mean(means)), "recommended": float(function.mean(**best))}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Auto beside Optuna's TPE on mixed parameters.")
    parser.add_argument("--set", choices=list(SETS), default="design")
    parser.add_argument("--learners", default="auto,tpe,tpe-multivariate", help="the first beside the others")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--save", type=Path, default=Path("out/mixed.jsonl"))
    parser.add_argument("--again", default="", help="learners to run anew, with commas between")
    a = parser.parse_args(given)
    learners, functions = a.learners.split(","), SETS[a.set]
    wanted = [(a.set, f, one, a.rounds, seed) for f in functions for one in learners for seed in range(a.seeds)]
    again = [cell for cell in wanted if cell[2] in a.again.split(",")]
    rows = cells.run(wanted, do, a.save, a.jobs, again)
    print(f"{a.set} set, {a.rounds} rounds, {a.seeds} seeds\n")
    print("| function | " + " | ".join(f"{one}: average | recommended" for one in learners) + " |")
    print("|---" * (1 + 2 * len(learners)) + "|")
    found = {(f, one, m): np.array([rows[a.set, f, one, a.rounds, s][m] for s in range(a.seeds)])
             for f in functions for one in learners for m in ("average", "recommended")}  # fmt: skip
    for f in functions:
        words = [f"{found[f, one, m].mean():.3f}" for one in learners for m in ("average", "recommended")]
        print(f"| {f} | {' | '.join(words)} |")
    print()
    for rival in learners[1:]:
        for m in ("average", "recommended"):
            leads = [found[f, learners[0], m] - found[f, rival, m] for f in functions]
            p = holm(np.array([paired(lead) for lead in leads]))
            ahead = sum(bool(lead.mean() >= 0) for lead in leads)
            sure, worse = (sum(bool(s * lead.mean() > 0 and one < 0.05) for lead, one in zip(leads, p, strict=True))
                           for s in (1, -1))  # fmt: skip
            print(f"{m}: {learners[0]} at least as good as {rival} on {ahead} of {len(leads)}, significantly better on "
                  f"{sure}, significantly worse on {worse}")  # fmt: skip


if __name__ == "__main__":
    main()
