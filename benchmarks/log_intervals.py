"""Do the intervals of `rd.Log` cover, and how wide are they?

    python -m benchmarks.log_intervals                  # 1,000 logs of 10,000 rows of each kind
    python -m benchmarks.log_intervals --logs 100

Finished kinds are kept in a file (`--save`): the command goes on from there.

Every kind of log has a truth that is computed without sampling. "covered" is the share of logs in which all candidates'
95% intervals hold the truth; "naive" the same for mean ± normal quantile, "self-n." for the asymptotic interval of the
self-normalised estimate, both with the same correction for the number of candidates. "best kept" is how often the truly
best candidate is among the contenders, "one best" how often a single contender is left, with comparisons of the leader.
Widths are medians over logs and over the candidates with more than 1,000 effective samples, in units of the width that
the same construction has on as many rows of the candidate itself. "bound" is the mean width with the exact bound on the
weights, divided by that without any; "warned" how often there was a warning that the log is not what it should be.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import randomist as rd
from benchmarks import cells
from randomist._types import Array
from randomist.logs import Evaluation
from randomist.logs.tally import Ends
from randomist.logs.units import of_rows

GRID = np.linspace(-60.0, 60.0, 240_001)
LEVEL = 0.95


@dataclass(frozen=True)
class Kind:
    """A way to draw logs: arguments of `Log.from_arrays` and the payoff probabilities behind every candidate."""

    name: str
    draw: Callable[[int, np.random.Generator], dict]
    truth: dict[str, float]
    on_policy: Callable[[str, int, np.random.Generator], Array]
    settings: dict
    bounds: Callable[[rd.Log], Array]  # what the weights of each candidate cannot exceed


def _log_normal(z: Array, mean: float, std: float) -> Array:
    return -0.5 * ((z - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)


def gaussian(
    name: str,
    policies: dict[str, tuple[float, float]],
    loggers: dict[str, float],
    chance: Callable[[Array], Array],
    in_order: bool = False,
) -> Kind:
    """Policies draw z from a Gaussian; the payoff is 1 with probability chance(z). Loggers act with given shares."""
    density = {key: np.exp(_log_normal(GRID, *policy)) for key, policy in policies.items()}
    step = GRID[1] - GRID[0]
    truth = {key: float((density[key] * chance(GRID)).sum() * step) for key in policies}
    names = np.array(list(loggers))

    def draw(rows: int, rng: np.random.Generator) -> dict:
        acted = rng.choice(len(names), size=rows, p=list(loggers.values()))
        acted = (
            np.sort(acted) if in_order else acted
        )  # one logger after the other: rows are not identically distributed
        means, stds = (np.array([policies[key][i] for key in names])[acted] for i in (0, 1))
        z = means + stds * rng.standard_normal(rows)
        payoffs = (rng.random(rows) < chance(z)).astype(float)
        likelihoods = {key: _log_normal(z, *policy) for key, policy in policies.items()}
        return {"payoffs": payoffs, "log_likelihoods": likelihoods, "loggers": names[acted]}

    def on_policy(key: str, rows: int, rng: np.random.Generator) -> Array:
        mean, std = policies[key]
        return (rng.random(rows) < chance(mean + std * rng.standard_normal(rows))).astype(float)

    def bounds(log: rd.Log) -> Array:
        """The largest weight on the grid; inf if that is at its edge."""
        log_density = {key: _log_normal(GRID, *policy) for key, policy in policies.items()}
        mixture = np.logaddexp.reduce([log_density[key] + np.log(n / len(log)) for key, n in log.loggers.items()])
        ratios = np.array([log_density[key] - mixture for key in log.candidates])
        where = ratios.argmax(axis=1)
        edge = (where == 0) | (where == len(GRID) - 1)
        return np.where(edge, np.inf, np.exp(np.minimum(ratios.max(axis=1), 700)))

    return Kind(name, draw, truth, on_policy, {}, bounds)


def categorical(name: str, logger: Array, candidates: dict[str, Array], chance: Array, **settings: object) -> Kind:
    """One logging policy over actions, of which only the propensity is kept."""
    truth = {key: float(p @ chance) for key, p in candidates.items()}

    def draw(rows: int, rng: np.random.Generator) -> dict:
        action = rng.choice(len(logger), size=rows, p=logger)
        payoffs = (rng.random(rows) < chance[action]).astype(float)
        with np.errstate(divide="ignore"):
            likelihoods = {key: np.log(p)[action] for key, p in candidates.items()}
        return {"payoffs": payoffs, "log_likelihoods": likelihoods, "log_propensities": np.log(logger[action])}

    def on_policy(key: str, rows: int, rng: np.random.Generator) -> Array:
        return (rng.random(rows) < chance[rng.choice(len(logger), size=rows, p=candidates[key])]).astype(float)

    def bounds(log: rd.Log) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.array([np.nanmax(candidates[key] / logger) for key in log.candidates])

    return Kind(name, draw, truth, on_policy, settings, bounds)


def adaptive(name: str, candidates: Array, chance: Array) -> Kind:
    """The logger looks: every round it plays the candidate whose own mean payoff is highest, now and then any other."""
    keys = [f"p{k}" for k in range(len(candidates))]
    truth = {key: float(p @ chance) for key, p in zip(keys, candidates, strict=True)}

    def draw(rows: int, rng: np.random.Generator) -> dict:
        sums, plays, acted = np.full(len(keys), 1.0), np.ones(len(keys)), np.empty(rows, int)
        explore, other, uniform = rng.random(rows) < 0.2, rng.integers(0, len(keys), rows), rng.random((rows, 2))
        cumulated, payoffs, actions = candidates.cumsum(axis=1), np.empty(rows), np.empty(rows, int)
        for i in range(rows):
            k = other[i] if explore[i] else int(np.argmax(sums / plays))
            action = min(int(np.searchsorted(cumulated[k], uniform[i, 0])), len(chance) - 1)
            acted[i], actions[i], payoffs[i] = k, action, float(uniform[i, 1] < chance[action])
            sums[k] += payoffs[i]
            plays[k] += 1
        likelihoods = {key: np.log(p)[actions] for key, p in zip(keys, candidates, strict=True)}
        return {"payoffs": payoffs, "log_likelihoods": likelihoods, "loggers": np.array(keys)[acted], "adaptive": True}

    def on_policy(key: str, rows: int, rng: np.random.Generator) -> Array:
        p = candidates[keys.index(key)]
        return (rng.random(rows) < chance[rng.choice(len(p), size=rows, p=p)]).astype(float)

    def bounds(log: rd.Log) -> Array:
        return (candidates / candidates.min(axis=0)).max(axis=1)

    return Kind(name, draw, truth, on_policy, {}, bounds)


def _softmax(scores: Array) -> Array:
    weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


def kinds() -> Iterator[Kind]:
    """What logs look like: good and bad."""
    line = {"a": (-0.5, 1.0), "b": (0.0, 1.0), "c": (0.5, 1.2), "d": (1.0, 0.8), "e": (1.5, 1.0)}
    rising = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    yield gaussian("several loggers", line, {"a": 0.3, "b": 0.5, "d": 0.2}, rising)
    yield gaussian("one after the other", line, {"a": 0.3, "b": 0.5, "d": 0.2}, rising, in_order=True)
    yield gaussian("one logger", line, {"b": 1.0}, rising)
    wide = {"narrow": (0.0, 1.0), "d2 = inf": (0.0, 1.5), "d2 = inf, aside": (1.0, 1.6), "far": (3.0, 2.0)}
    yield gaussian("heavy tails", wide, {"narrow": 1.0}, lambda z: 0.1 + 0.8 * (np.abs(z) > 2.5))
    yield gaussian("heavy tails, loss there", wide, {"narrow": 1.0}, lambda z: 0.9 - 0.8 * (np.abs(z) > 2.5))
    rng = np.random.default_rng(7)
    scores = rng.standard_normal((5, 20))
    logger = 0.8 * _softmax(scores[0]) + 0.2 / 20
    candidates = dict(zip("abcde", _softmax(scores), strict=True))
    yield categorical("propensities", logger, candidates, 0.1 + 0.5 * rng.random(20))
    rare = 0.04 * rng.random(20)
    yield categorical("rare payoffs", logger, candidates, rare)
    bound = 1.0 / logger.min()
    yield categorical("rare payoffs, bound known", logger, candidates, rare, weight_bounds=bound)
    seldom = np.array([0.12, 0.44, 0.44])  # how often the logger does what the candidates do
    sure = {"a": np.array([0.98, 0.01, 0.01]), "b": np.array([0.96, 0.04, 0.0])}
    yield categorical("rare payoffs, unlike logger", seldom, sure, np.array([0.02, 0.01, 0.03]))
    yield categorical("the same, bound known", seldom, sure, np.array([0.02, 0.01, 0.03]), weight_bounds=1 / 0.12)
    holes = np.where(np.arange(20) < 4, 0.0, logger)
    yield categorical("missing support", holes / holes.sum(), candidates, 0.1 + 0.8 * (np.arange(20) < 4))
    yield adaptive("adaptive", _softmax(scores[:3]), 0.2 + 0.6 * rng.random(20))


def on_policy_width(payoffs: Array, candidates: int) -> float:
    """The width of the same interval on the candidate's own payoffs."""
    ends = Ends(len(payoffs), (1 - LEVEL) / (2 * candidates), 1.0, same_mean=True)
    ends.add(payoffs, 1.0 - payoffs, np.ones(len(payoffs)))
    return ends.high() - ends.low()


@dataclass
class Tally:
    """What happened over many logs of one kind."""

    logs: int = 0
    covered: int = 0
    naive: int = 0
    ratio: int = 0
    warned: int = 0
    kept: int = 0
    single: int = 0
    ratios: list[float] = field(default_factory=list)
    naive_ratios: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, kind: Kind, found: Evaluation, rng: np.random.Generator) -> None:
        truth = np.array([kind.truth[name] for name in found.candidates])
        self.logs += 1
        self.covered += bool(((found.low <= truth + 1e-12) & (truth - 1e-12 <= found.high)).all())
        self.naive += bool(((found.naive_low <= truth + 1e-12) & (truth - 1e-12 <= found.naive_high)).all())
        low, high = found.self_normalised_low, found.self_normalised_high
        self.ratio += bool(((low <= truth) & (truth <= high)).all())
        self.names += [warning.name for warning in found.warnings]
        self.warned += any(warning.name not in ("coverage", "skipped") for warning in found.warnings)
        self.kept += found.candidates[int(truth.argmax())] in found.contenders
        self.single += found.best is not None
        for k, name in enumerate(found.candidates):
            if found.effective_samples[k] > 1000:
                payoffs = kind.on_policy(name, int(found.effective_samples[k]), rng)
                width = on_policy_width(payoffs, len(found.candidates))
                self.ratios.append(found.width[k] / width)
                self.naive_ratios.append((found.naive_high[k] - found.naive_low[k]) / width)


def simulate(kind: Kind, logs: int, rows: int, seed: int) -> Tally:
    tally = Tally()
    for child in np.random.SeedSequence(seed).spawn(logs):
        rng = np.random.default_rng(child)
        log = rd.Log.from_arrays(**kind.draw(rows, rng))
        tally.add(kind, log.evaluate(level=LEVEL, compare="leader", **kind.settings), rng)
    return tally


def widths(log: rd.Log, bounds: Array) -> Array:
    """Widths of the intervals on the [0, 1] scale, where weights are known not to exceed `bounds`.  (K,)"""
    same_mean, side = log.weights == "own" or len(log.loggers) == 1, (1 - LEVEL) / (2 * len(bounds))
    ends = [Ends(len(log), side, bound, same_mean) for bound in bounds.tolist()]
    for batch in log.batches():
        units = of_rows(batch)
        for k, end in enumerate(ends):
            end.add(units.gain[k], units.loss[k], units.weight[k])
    return np.array([end.high() - end.low() for end in ends])


def bound_ratio(kind: Kind, logs: int, rows: int, seed: int) -> float:
    """Mean width with the exact bounds, divided by that without any."""
    sums = np.zeros(2)
    for child in np.random.SeedSequence(seed).spawn(logs):
        log = rd.Log.from_arrays(**kind.draw(rows, np.random.default_rng(child)))
        bounds = kind.bounds(log)
        sums += widths(log, bounds).mean(), widths(log, np.full(len(bounds), np.inf)).mean()
    return sums[0] / sums[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--only", metavar="KIND", help="one kind of log")
    parser.add_argument("--save", type=Path, default=Path("out/log-intervals.jsonl"), help="where finished kinds are")
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    print(f"{options.logs} logs of {options.rows:,} rows of each kind")
    print(f"{'kind':27}", *(f"{title:>{max(len(title), 6)}}" for title in TITLES))
    found = {kind.name: kind for kind in kinds() if options.only in (None, kind.name)}
    seconds = 0.0
    for name, kind in found.items():
        cell = (name, options.logs, options.rows)
        done = cells.run([cell], lambda cell, kind=kind: row(kind, *cell[1:]), options.save)[cell]
        print(f"{name:27}", *(f"{done[title]:{max(len(title), 6)}.3f}" for title in TITLES), flush=True)
        seconds += done["seconds"]
    print(f"{seconds / 60:.0f} CPU minutes")


TITLES = ("covered", "naive", "self-n.", "best kept", "one best", "warned", "width", "naive width", "bound")


def row(kind: Kind, logs: int, rows: int) -> cells.Row:
    """One row of the table."""
    begin = time.process_time()
    tally = simulate(kind, logs, rows, seed=0)
    counts = (tally.covered, tally.naive, tally.ratio, tally.kept, tally.single, tally.warned)
    values = [count / tally.logs for count in counts]
    values += [float(np.median(part)) if part else np.nan for part in (tally.ratios, tally.naive_ratios)]
    values.append(bound_ratio(kind, max(logs // 20, 5), rows, seed=1))
    return dict(zip(TITLES, map(float, values), strict=True)) | {"seconds": time.process_time() - begin}


if __name__ == "__main__":
    main()
