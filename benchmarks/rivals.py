"""Regret on decisions that share nothing: UCB1, KL-UCB, TS with both priors, PHE.

`python -m benchmarks.rivals [--rounds 5000] [--runs 200] [--seconds 60] [--folder DIR] [PROBLEM ...]` prints mean
regret and its standard error. Each pair of a problem and a learner has at least `--runs` runs, doubled until the
standard error is at most 4% of the mean or `--seconds` of CPU time are spent on the pair. What was run lies in DIR: a
second call goes on. The whole table takes 300 s of CPU time.

`python -m benchmarks.rivals --fractions` compares two ways to tell a Beta prior of payoffs between 0 and 1: as
fractions of a win, as `ThompsonSampling` does, or as the toss of a coin (Agrawal and Goyal 2012).

The loop is compiled. For the same seed it makes the decisions of the learners themselves (tests/learners/test_rivals).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from randomist.importance.bernoulli import upper_mean
from randomist.importance.perturbation import choose

BATCH = 10  # runs between two looks at the clock
ROUNDS, RUNS, SECONDS = 5000, 200, 60.0
ENOUGH = 0.04  # standard error, as a share of the mean


class Problem(NamedTuple):
    """Means of the decisions; drawn anew for every run where `size` says how many."""

    means: tuple[float, ...] = ()
    size: int = 0

    def of_run(self, seed: int) -> np.ndarray:
        if self.means:
            return np.array(self.means)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(9,))).random(self.size)


PROBLEMS = {
    "two: .5, .45": Problem((0.5, 0.45)),
    "two: .95, .9": Problem((0.95, 0.9)),
    "two: .02, .01": Problem((0.02, 0.01)),
    "ten: .5, .45": Problem((0.5, *[0.45] * 9)),
    "twenty: 1, .9": Problem((1.0, *[0.9] * 19)),
    "200 uniform": Problem(size=200),
    "1,000: .9, .1": Problem((*[0.1] * 499, 0.9, *[0.1] * 500)),
}

# Learners: a number for the compiled loop, the name in the table and the settings.
UCB1, KLUCB, KLUCB_PLUS, TS_GAUSSIAN, TS_BETA, PHE = range(6)
LEARNERS: dict[str, tuple[int, str, dict[str, str]]] = {
    "UCB1": (UCB1, "ucb1", {}),
    "KL-UCB": (KLUCB, "kl-ucb", {}),
    "kl-UCB++": (KLUCB_PLUS, "kl-ucb", {"variant": "kl-ucb++"}),
    "TS normal": (TS_GAUSSIAN, "thompson", {}),
    "TS Beta": (TS_BETA, "thompson", {"prior": "beta"}),
    "PHE": (PHE, "phe", {}),
}


@numba.njit(cache=True)
def _index(
    learner: int, t: int, plays: np.ndarray, sums: np.ndarray, rng: np.random.Generator, out: np.ndarray
) -> None:
    """The index of every decision in round t, with the draws that the learner would make."""
    K = plays.shape[0]
    for k in range(K):
        T, S = plays[k], sums[k]
        if learner == TS_BETA:
            out[k] = rng.beta(S + 1.0, T - S + 1.0)
        elif learner == TS_GAUSSIAN:
            out[k] = S / (T + 1.0) + rng.standard_normal() / math.sqrt(T + 1.0)
        elif learner == UCB1:
            out[k] = S / T + math.sqrt(2.0 * math.log(t) / T)
        elif learner == KLUCB:
            out[k] = upper_mean(S / T, math.log(t) / T)
        elif learner == KLUCB_PLUS:
            share = t / (K * T)
            log_share = math.log(max(share, 1.0))
            out[k] = upper_mean(S / T, math.log(max(share * (1.0 + log_share**2), 1.0)) / T)
        else:
            pseudo = math.ceil(2.1 * T)
            out[k] = (S + rng.binomial(int(pseudo), 0.5)) / (T + pseudo)


@numba.njit(cache=True)
def play(
    learner: int, means: np.ndarray, rounds: int, deciding: np.random.Generator, paying: np.random.Generator
) -> np.ndarray:
    """The decisions of one run.  (K,) -> (rounds,)"""
    K = means.shape[0]
    plays, sums, index, known = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K)
    decisions = np.empty(rounds, np.int64)
    for t in range(1, rounds + 1):
        if t <= K and learner != TS_BETA:
            chosen = t - 1
        else:
            _index(learner, t, plays, sums, deciding, index)
            chosen = choose(index, known, deciding.random())
        payoff = 1.0 if paying.random() < means[chosen] else 0.0
        plays[chosen] += 1.0
        sums[chosen] += payoff
        decisions[t - 1] = chosen
    return decisions


def decisions(learner: int, means: np.ndarray, rounds: int, seed: int) -> np.ndarray:
    """Those of `rd.optimize("bernoulli", learner, rounds, seed)`: the generators are spawned as there."""
    deciding, _ = np.random.SeedSequence(seed).spawn(2)
    paying = np.random.SeedSequence(seed, spawn_key=(2,))
    return play(learner, means, rounds, np.random.default_rng(deciding), np.random.default_rng(paying))


def regret(learner: int, problem: Problem, rounds: int, seed: int) -> float:
    means = problem.of_run(seed)
    return float(np.sum(means.max() - means[decisions(learner, means, rounds, seed)]))


def regrets(name: str, problem: str, rounds: int, runs: int, seconds: float, folder: Path | None) -> np.ndarray:
    """Those that were run before, and as many more as are needed or there is time for."""
    file = None if folder is None else folder / f"{rounds} {problem} {name}.json".replace(" ", "_")
    found: list[float] = json.loads(file.read_text()) if file is not None and file.exists() else []
    start, runs = time.process_time(), max(runs, len(found))
    while time.process_time() - start < seconds:
        if len(found) >= runs:
            if standard_error(np.array(found)) <= ENOUGH * np.mean(found):
                break
            runs *= 2  # looked at rarely, so that a lucky look does not end it
        found += [regret(LEARNERS[name][0], PROBLEMS[problem], rounds, len(found) + i) for i in range(BATCH)]
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
    return np.array(found)


@numba.njit(cache=True)
def _thompson(means: np.ndarray, rounds: int, coin: bool, rng: np.random.Generator) -> float:
    """The regret of Thompson sampling on payoffs from Beta(2m, 2(1 - m)), as they are or as coins."""
    K, lost = means.shape[0], 0.0
    wins, losses = np.ones(K), np.ones(K)
    for _ in range(rounds):
        best, chosen = -1.0, 0
        for k in range(K):
            draw = rng.beta(wins[k], losses[k])
            if draw > best:
                best, chosen = draw, k
        payoff = rng.beta(2.0 * means[chosen], 2.0 * (1.0 - means[chosen]))
        if coin:
            payoff = 1.0 if rng.random() < payoff else 0.0
        wins[chosen] += payoff
        losses[chosen] += 1.0 - payoff
        lost += means.max() - means[chosen]
    return lost


def fractions(rounds: int, runs: int) -> None:
    for problem in ("two: .5, .45", "two: .95, .9", "ten: .5, .45"):
        means, cells = np.array(PROBLEMS[problem].means), []
        for coin in (False, True):
            generators = [np.random.default_rng([seed, coin, 31]) for seed in range(runs)]
            found = np.array([_thompson(means, rounds, coin, rng) for rng in generators])
            cells.append(f"{found.mean():.1f} ± {standard_error(found):.1f}, at most {found.max():.0f}")
        print(f"{problem:14} fractions {cells[0]}; coins {cells[1]}", flush=True)


def standard_error(found: np.ndarray) -> float:
    return float(found.std(ddof=1) / math.sqrt(len(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=", ".join(PROBLEMS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--fractions", action="store_true")
    given = parser.parse_args()
    if given.fractions:
        fractions(given.rounds, given.runs)
        return
    chosen = given.problems or list(PROBLEMS)
    if unknown := set(chosen) - set(PROBLEMS):
        parser.error(f"unknown problem {', '.join(sorted(unknown))}; there are {', '.join(PROBLEMS)}")
    start = time.process_time()
    print(f"{given.rounds} rounds: mean regret, ± standard error (runs)")
    print(f"{'':14}" + "".join(f"{name:>22}" for name in LEARNERS))
    for problem in chosen:
        cells = []
        for name in LEARNERS:
            found = regrets(name, problem, given.rounds, given.runs, given.seconds, given.folder)
            cells.append(f"{found.mean():9.1f} ± {standard_error(found):<4.1f}({len(found)})")
        print(f"{problem:14}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
    print(f"{time.process_time() - start:.0f} s of CPU time")


if __name__ == "__main__":
    main()
