"""Payoffs that drift: dynamic regret on problems whose best policy changes, of learners that forget and others.

    python -m benchmarks drift       (about 4 minutes of CPU time)

Dynamic regret compares every round with the policy that is best then. Sliding-window UCB1 is the one of Garivier and
Moulines (2011), with the paper's α = 2 under the root, on payoffs of the decision's own plays within the window.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterable

import numpy as np

import randomist as rd
from randomist.errors import DriftWarning

MEANS = np.array([0.0, 0.7, 1.5, 2.2, 3.0])  # five Gaussian policies over one parameter, asymmetric
STDS = np.array([0.6, 0.9, 0.6, 0.7, 0.8])
TARGETS = (2.6, 0.3, 1.7, -0.2, 3.1)  # where payoffs are best, one period after the other


def main() -> None:
    print("dynamic regret after 10,000 rounds, the best policy changing every 2,000; mean over 10 seeds")
    for window in (300, 500, 1000):
        regrets = {
            name: mean_regret(name, rounds=10_000, period=2000, window=window, seeds=range(10)) for name in CONTENDERS
        }
        rivals = min(regrets["stationary"], regrets["sliding UCB1"])
        listed = ", ".join(f"{name} {regret:.0f}" for name, regret in regrets.items())
        print(f"window {window}: {listed}; window / best rival {regrets['window'] / rivals:.2f} (bar 0.5)", flush=True)


def space() -> rd.Finite:
    return rd.Finite(rd.Gaussian(MEANS, STDS))


def payoff(mediator: float, target: float) -> float:
    """Between 0 and 1, the more the closer."""
    return math.exp(-0.5 * ((mediator - target) / 0.5) ** 2)


def expected_payoffs(target: float) -> np.ndarray:
    """E exp(-(z - c)²/(2 s²)) for z ~ N(μ, σ²): s/√(s² + σ²) exp(-(μ - c)²/(2 (s² + σ²)))."""
    spread = 0.25 + STDS**2
    return np.asarray(0.5 / np.sqrt(spread) * np.exp(-0.5 * (MEANS - target) ** 2 / spread))


class SlidingUCB1:
    """The largest mean of a decision's own payoffs in the window, plus sqrt(α log min(t, n) / T)."""

    def __init__(self, window: int, seed: int) -> None:
        self.space, self.window, self.recent = space(), window, deque[tuple[int, float]]()
        self.plays, self.sums, self.told = np.zeros(5), np.zeros(5), 0
        self._rng = np.random.default_rng(seed)

    def ask(self) -> rd.Trial:
        if (self.plays == 0).any():
            decision = int(np.argmin(self.plays))
        else:
            term = 2 * math.log(min(self.told, self.window) + 1)
            decision = int(np.argmax(self.sums / self.plays + np.sqrt(term / self.plays)))
        return rd.Trial(self.told, decision, self.space.family.draw(decision, self._rng))

    def tell(self, trial: rd.Trial, value: float) -> None:
        self.recent.append((trial.decision, value))
        self.plays[trial.decision] += 1
        self.sums[trial.decision] += value
        self.told += 1
        if len(self.recent) > self.window:
            decision, old = self.recent.popleft()
            self.plays[decision] -= 1
            self.sums[decision] -= old


CONTENDERS = {
    "window": lambda window, seed: rd.Realist(space(), seed=seed, window=window),
    "discount": lambda window, seed: rd.Realist(space(), seed=seed, discount=1 - 1 / window),
    "RANDOMIST, window": lambda window, seed: rd.Randomist(space(), seed=seed, window=window),
    "stationary": lambda window, seed: rd.Realist(space(), seed=seed),
    "sliding UCB1": SlidingUCB1,
}


def mean_regret(name: str, rounds: int, period: int, window: int, seeds: Iterable[int]) -> float:
    return float(np.mean([regret(name, rounds, period, window, seed) for seed in seeds]))


def regret(name: str, rounds: int, period: int, window: int, seed: int) -> float:
    learner = CONTENDERS[name](window, seed)
    expected = [expected_payoffs(target) for target in TARGETS]
    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriftWarning)  # of those that do not forget
        for t in range(rounds):
            now = t // period % len(TARGETS)
            trial = learner.ask()
            learner.tell(trial, payoff(trial.mediator, TARGETS[now]))
            total += float(expected[now].max() - expected[now][trial.decision])
    return total
