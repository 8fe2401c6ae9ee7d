"""Do anytime intervals hold at every round, is `Identify` right and soon, does `Safe` stay above its baseline?

    python -m benchmarks.certainty                          # all of it: about 2.5 hours of one core
    python -m benchmarks.certainty --only intervals --runs 100
    python -m benchmarks.certainty --save out/certainty.json    # goes on where it stopped

Intervals: 1,000 runs of 2,000 rounds of each problem. A run counts as held if, at every round, the bets against the
true mean payoff of every decision, on both sides, have made less than what would exclude it: that is the same event as
"every interval contains its mean at every round", and it is followed here by the definition of the bets, not by the
code that inverts them. "width" is that of the decision played most at the end, "fixed" what `rd.Log` gives for a fixed
design with the same numbers of plays, "ratio" the mean of one over the other.

Identify: 200 runs. "wrong" are answers that are not the best decision, "rounds" the mean until one survives, "uniform"
the same for playing all in turn where no sample informs another decision.

Safe: 1,000 runs of 1,000 rounds. "below" are runs in which, at any round, the expected total payoff of what was played
is less than 0.9 of the baseline's; "regret" is the mean at the end.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import randomist as rd
from randomist._types import Array
from randomist.importance.intervals.anytime import LEVELS, NONE, STAKES, log_prior
from randomist.learners.finite.certainty import RESERVE
from randomist.learners.finite.levels import Levels

LEVEL = 0.95
GRID = np.linspace(-40.0, 160.0, 1_000_001)
Chance = Callable[[Array], Array]


@dataclass(frozen=True)
class Problem:
    """Decisions, the chance of a payoff of 1 behind every mediator, and the learner that plays."""

    space: rd.Finite
    chance: Chance
    learner: Callable[..., Any] = rd.Realist
    batch: int | None = None

    @cached_property
    def means(self) -> Array:
        """J of every decision, without sampling."""
        family = self.space.family
        if family.discrete:
            values = np.arange(len(family.probabilities[0]))
            return np.exp(family.log_density(None, values)) @ self.chance(values)
        density = np.exp(family.log_density(None, GRID))
        return density @ self.chance(GRID) * (GRID[1] - GRID[0])

    def run(self, rounds: int, seed: int, **settings: Any) -> Any:
        learner = self.learner(self.space, seed=seed, **settings)
        rng = np.random.default_rng([seed, 1])
        while learner.told < rounds:
            for trial in [learner.ask()] if self.batch is None else learner.ask(batch=self.batch):
                learner.tell(trial, float(rng.random() < self.chance(np.asarray(trial.mediator))))
        return learner

    def design(self, plays: Array, rng: np.random.Generator) -> dict[str, Any]:
        """A log of so many plays of every decision, in any order."""
        sources = rng.permutation(np.repeat(np.arange(len(plays)), plays))
        mediators = self.space.family.sample(sources, rng)
        payoffs = (rng.random(len(sources)) < self.chance(mediators)).astype(float)
        density = self.space.family.log_density(None, mediators)
        return _log(payoffs, density, sources)


@dataclass(frozen=True)
class Contexts:
    """Policies over three actions in four contexts; told are the likelihoods of what was done."""

    policies: Array  # (K, contexts, actions)
    chances: Array  # (contexts, actions)
    shares: Array  # (contexts,)
    learner: Callable[..., Any] = rd.Randomist

    @property
    def space(self) -> rd.Finite:
        return rd.Finite.likelihoods(len(self.policies))

    @property
    def means(self) -> Array:
        return np.einsum("c,kca,ca->k", self.shares, self.policies, self.chances)

    def _draw(self, decision: int, rng: np.random.Generator) -> tuple[Array, float]:
        context = rng.choice(len(self.shares), p=self.shares)
        action = rng.choice(self.chances.shape[1], p=self.policies[decision, context])
        return np.log(self.policies[:, context, action]), float(rng.random() < self.chances[context, action])

    def run(self, rounds: int, seed: int, **settings: Any) -> Any:
        learner = self.learner(self.space, seed=seed, **settings)
        rng = np.random.default_rng([seed, 1])
        while learner.told < rounds:
            trial = learner.ask()
            likelihoods, payoff = self._draw(trial.decision, rng)
            learner.tell(trial, payoff, log_likelihoods=likelihoods)
        return learner

    def design(self, plays: Array, rng: np.random.Generator) -> dict[str, Any]:
        sources = rng.permutation(np.repeat(np.arange(len(plays)), plays))
        rows = [self._draw(source, rng) for source in sources.tolist()]
        return _log(np.array([y for _, y in rows]), np.array([x for x, _ in rows]).T, sources)


def _log(payoffs: Array, density: Array, sources: Array) -> dict[str, Any]:
    names = [f"p{k}" for k in range(len(density))]
    likelihoods = dict(zip(names, density, strict=True))
    return {"payoffs": payoffs, "log_likelihoods": likelihoods, "loggers": np.array(names)[sources]}


def rising(z: Array) -> Array:
    return 1 / (1 + np.exp(-np.asarray(z, float)))


def contexts() -> Contexts:
    rng = np.random.default_rng(17)
    scores = rng.standard_normal((5, 4, 3))
    weight = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return Contexts(weight / weight.sum(axis=-1, keepdims=True), 0.1 + 0.8 * rng.random((4, 3)), np.full(4, 0.25))


def categories() -> rd.Finite:
    return rd.Finite(rd.Categorical(np.random.default_rng(11).dirichlet(np.full(6, 0.7), size=5)))


def greedy(space: rd.Finite, **settings: Any) -> Any:
    return rd.FollowTheLeader(space, estimator="self-normalised", **settings)


def far(*means: float) -> tuple[rd.Finite, Chance]:
    """Decisions that share nothing, with these mean payoffs."""
    space = rd.Finite(rd.Gaussian(mean=[30.0 * k for k in range(len(means))], std=0.5))
    return space, lambda z: np.asarray(means)[np.clip(np.round(np.asarray(z) / 30.0), 0, len(means) - 1).astype(int)]


INTERVALS: dict[str, Any] = {
    "overlapping": Problem(rd.Finite(rd.Gaussian([-0.6, 0.1, 0.5, 1.3, 1.6], [1.0, 1.2, 0.9, 1.0, 1.1])), rising),
    "disjoint": Problem(*far(0.35, 0.6, 0.55, 0.1), rd.UCB1),
    "categorical": Problem(categories(), lambda z: np.array([0.1, 0.7, 0.3, 0.9, 0.5, 0.2])[z], rd.Optimist),
    "contexts": contexts(),
    "rare wins": Problem(rd.Finite(rd.Gaussian([-1.0, 0.0, 0.4, 2.0], 1.1)), lambda z: 0.03 * rising(z), rd.KLUCB),
    "narrow, wide": Problem(
        rd.Finite(rd.Gaussian([0.0, 0.3, 0.0, -0.5], [0.2, 0.6, 1.5, 4.0])),
        lambda z: 0.15 + 0.7 * (np.abs(z) < 0.4),
        rd.Randomist,
    ),
    "greedy": Problem(rd.Finite(rd.Gaussian([-0.5, 0.0, 0.7, 1.1], 1.0)), lambda z: 0.2 + 0.5 * (z > 0.9), greedy),
    "batches of 8": Problem(rd.Finite(rd.Gaussian([-0.4, 0.3, 0.8, 1.7], [1.3, 0.8, 1.0, 1.0])), rising, batch=8),
}

IDENTIFY: dict[str, Problem] = {
    "overlapping": Problem(rd.Finite(rd.Gaussian([-0.5, 0.0, 0.4, 0.9], [1.0, 1.1, 0.9, 1.0])), rising),
    "close": Problem(rd.Finite(rd.Gaussian([0.0, 0.1, 0.2, 0.35], 0.7)), rising),
    "narrow, wide": Problem(
        rd.Finite(rd.Gaussian([0.0, 0.0, 0.1, 0.0], [0.25, 0.5, 1.1, 2.2])), lambda z: 0.2 + 0.6 * (np.abs(z) < 0.5)
    ),
    "categorical": Problem(
        rd.Finite(rd.Categorical([[0.6, 0.3, 0.1, 0], [0.3, 0.3, 0.2, 0.2], [0.1, 0.1, 0.3, 0.5]])),
        lambda z: np.array([0.15, 0.4, 0.65, 0.5])[z],
    ),
    "grid": Problem(rd.Finite.grid(rd.Gaussian(std=0.5), -1.5, 1.5, 10), lambda z: 0.9 * np.exp(-((z - 1.2) ** 2))),
    "disjoint": Problem(*far(0.3, 0.55, 0.4, 0.2)),
}

SAFE: dict[str, tuple[Problem, int]] = {
    "bad rivals": (Problem(*far(0.6, 0.1, 0.15, 0.7, 0.05, 0.2), rd.UCB1), 0),
    "overlapping": (
        Problem(
            rd.Finite(rd.Gaussian([0.8, -2.5, -1.5, 1.6, 3.0], 0.8)), lambda z: 0.05 + 0.7 * ((z > 0.4) & (z < 2.4))
        ),
        0,
    ),
}


# Intervals.


def held(problem: Any, learner: Any) -> bool:
    """Whether no bet against a true mean ever wins what excludes it: the definition, row by row."""
    record, space, means = learner.record, learner.space, problem.means
    levels, sources, y = Levels(), record.decisions, record.payoffs
    density = space.family.log_density(None, record.mediators)
    weights = np.exp(density - density[sources, np.arange(len(y))])  # (K, t)
    table = np.stack([levels.to(space, j, space.size) for j in range(space.size)])  # (J, C, K)
    level = table[sources].transpose(2, 1, 0).astype(np.int64)  # (K, C, t)
    scale = np.where(level < NONE, 2.0 ** -np.minimum(level, LEVELS), 0.0)
    prior = log_prior(table.shape[1])
    needed = np.log(2 * space.size / (1 - LEVEL) / (1 - RESERVE))
    for x, m in ((weights * y, means), (weights * (1 - y), 1 - means)):
        for k in range(space.size):
            stakes = STAKES[:, None] * scale[k][:, None, :]  # (C, S, t)
            log_wealth = np.cumsum(np.log1p(stakes * x[k]) - np.log1p(stakes * m[k]), axis=-1)
            top = (log_wealth + prior[:, :, None]).max(axis=(0, 1))
            total = top + np.log(np.exp(log_wealth + prior[:, :, None] - top).sum(axis=(0, 1)))
            if (total >= needed).any():
                return False
    return True


def interval_run(problem: Any, seed: int, rounds: int) -> dict[str, float]:
    learner = problem.run(rounds, seed)
    plays = np.bincount(learner.record.decisions, minlength=learner.space.size)
    most = int(np.argmax(plays))
    found = learner.intervals(LEVEL)
    log = rd.Log.from_arrays(**problem.design(plays, np.random.default_rng([seed, 2])))
    fixed = log.evaluate(level=LEVEL)
    truth = problem.means
    inside = bool(((found.low <= truth) & (truth <= found.high)).all())
    ok = held(problem, learner)
    assert inside or not ok, "an interval that misses at the end was excluded by its bets"
    return {
        "held": ok,
        "width": float(found.high[most] - found.low[most]),
        "fixed": float(fixed.high[most] - fixed.low[most]),
    }


# Identify.


def uniform_rounds(means: Array, seed: int, most: int = 10**6) -> int:
    """How long playing all in turn takes where no sample informs another decision."""
    K, rng = len(means), np.random.default_rng([seed, 3])
    learner = rd.UCB1(rd.Finite(rd.Categorical(np.eye(K))), seed=seed)
    while learner.told < most:
        start, more = learner.told, max(K, learner.told // 100)
        trials = [rd.Trial(start + i, (start + i) % K, (start + i) % K) for i in range(more)]
        for trial in trials:
            learner.adopt(trial)
        payoffs = (rng.random(more) < means[[trial.decision for trial in trials]]).astype(float)
        learner.tell_all(trials, payoffs.tolist())
        if len(learner.surviving(LEVEL)) == 1:
            break
    return learner.told


def identify_run(problem: Problem, seed: int, most: int = 10**5) -> dict[str, float]:
    learner = rd.Identify(problem.space, level=LEVEL, seed=seed)
    rng = np.random.default_rng([seed, 1])
    while learner.told < most:
        trial = learner.ask()
        learner.tell(trial, float(rng.random() < problem.chance(np.asarray(trial.mediator))))
        if learner.told % max(1, learner.told // 100) == 0 and learner.finished:
            break
    means = problem.means
    wrong = learner.recommend() != int(np.argmax(means))
    return {"wrong": wrong, "rounds": learner.told, "uniform": uniform_rounds(means, seed)}


# Safe.


def safe_run(case: tuple[Problem, int], seed: int, rounds: int, fraction: float = 0.1) -> dict[str, float]:
    problem, baseline = case
    means = problem.means
    found: dict[str, float] = {}
    plain = problem.learner

    def guarded(space: rd.Finite, **settings: Any) -> Any:
        return rd.Safe(plain(space, **settings), baseline=baseline, fraction=fraction, level=LEVEL)

    for name, learner in (("plain", plain), ("safe", guarded)):
        played = Problem(problem.space, problem.chance, learner).run(rounds, seed).record.decisions
        total = np.cumsum(means[played])
        owed = (1 - fraction) * means[baseline] * np.arange(1, rounds + 1)
        found[f"{name} below"] = bool((total < owed - 1e-9).any())
        found[f"{name} regret"] = float(means.max() * rounds - total[-1])
    return found


PARTS: dict[str, tuple[dict[str, Any], int, Callable[..., dict[str, float]]]] = {
    "intervals": (INTERVALS, 1000, lambda problem, seed: interval_run(problem, seed, 2000)),
    "identify": (IDENTIFY, 200, identify_run),
    "safe": (SAFE, 1000, lambda case, seed: safe_run(case, seed, 1000)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--problem")
    parser.add_argument("--runs", type=int, help="instead of 1,000, or 200")
    parser.add_argument("--save", type=Path, help="a file of results, which a later call goes on with")
    options = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else ["--runs", "20"])
    results: dict[str, Any] = json.loads(options.save.read_text()) if options.save and options.save.exists() else {}
    began = time.process_time()
    for part, (problems, usual, one) in PARTS.items():
        if options.only not in (None, part):
            continue
        for name, problem in problems.items():
            if options.problem not in (None, name):
                continue
            runs = results.setdefault(f"{part}: {name}", [])
            for seed in range(len(runs), options.runs or usual):
                runs.append(one(problem, 1000 + seed))
                if options.save and seed % 20 == 19:
                    _write(options.save, results)
            print(f"{part:9} {name:14} {len(runs):5} runs  {summary(runs)}", flush=True)
    if options.save:
        _write(options.save, results)
    print(f"{time.process_time() - began:.0f} s of CPU")


def summary(runs: list[dict[str, float]]) -> str:
    parts = []
    for key in runs[0]:
        values = np.array([run[key] for run in runs], float)
        share = isinstance(runs[0][key], bool)
        parts.append(f"{key} {values.mean():.3f}" if share or values.mean() < 1 else f"{key} {values.mean():.1f}")
    if "width" in runs[0]:
        parts.append(f"ratio {np.mean([run['width'] / run['fixed'] for run in runs]):.2f}")
    if "uniform" in runs[0]:
        parts.append(
            f"ratio {np.mean([run['rounds'] for run in runs]) / np.mean([run['uniform'] for run in runs]):.3f}"
        )
    return "  ".join(parts)


def _write(path: Path, results: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_text(json.dumps(results))
    path.with_suffix(".part").replace(path)


if __name__ == "__main__":
    main()
