"""A new learner: epsilon-greedy on the shared estimate, checked and compared with Randomist and Realist.

`check_learner` is the contract that every learner of the package keeps: same seed, same run, in another process too;
resume equals uninterrupted; bad input loses nothing. It says nothing about regret, so that is measured below.
Epsilon-greedy looks good early, ahead of the paper's Randomist in a thousand rounds; but it plays any decision in one
round of twenty for ever, so its regret is linear in the end. Realist, the default, is the one to beat. The page
"Extend it", docs/extend.md, has a family, an estimator, a storage and more in the same way.

    python examples/your_own_learner.py
    python examples/your_own_learner.py --runs 2
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import randomist as rd
from randomist.testing import check_learner


@dataclass(eq=False, kw_only=True)
class EpsilonGreedy(rd.SharedHistoryLearner):
    """Play the largest estimate, but once in 1/epsilon rounds any decision."""

    epsilon: float = 0.05

    def index(self, estimates: rd.Estimates, rng: np.random.Generator) -> np.ndarray:
        if rng.random() < self.epsilon:
            return rng.random(self.space.size)
        return estimates.value


def main() -> None:
    parser = argparse.ArgumentParser(description="A learner of one's own, checked and compared.")
    parser.add_argument("--runs", type=int, default=10, help="runs of each learner on each problem")
    seeds = parser.parse_args().runs
    check_learner(EpsilonGreedy, rd.Finite(rd.Gaussian(mean=[0.0, 1.0, 3.0], std=[1.0, 1.5, 1.0])))
    print("EpsilonGreedy keeps the contract")

    print(f"\nmean regret of {seeds} runs of 1,000 rounds on the illustrative problems")
    print("(sigma, lambda)     ", *(f"{spread!s:>10s}" for spread in ((2, 2), (2, 0.1), (0.1, 2), (0.1, 0.1))))
    for learner in (EpsilonGreedy, rd.Randomist, rd.Realist):
        regrets = []
        for sigma, lambda_ in ((2, 2), (2, 0.1), (0.1, 2), (0.1, 0.1)):
            task = rd.task("illustrative", sigma=sigma, lambda_=lambda_)
            runs = rd.optimize_many(task, learner, rounds=1000, seeds=seeds)
            regrets.append(np.mean([run.regret[-1] for run in runs]))
        print(f"{learner.__name__:20s}", *(f"{regret:10.1f}" for regret in regrets))


if __name__ == "__main__":
    main()
