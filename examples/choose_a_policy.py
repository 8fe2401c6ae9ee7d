"""Choose among five policies with ask and tell, on the paper's illustrative problem.

Each policy draws one number from a Gaussian that is known; what a number pays is not. `Realist` is the default learner.
After every hundred rounds the table shows how often each policy was run, how many runs of it the history is worth, and
an interval for what it pays: all of them hold together, at every round, with 95% probability.

    python examples/choose_a_policy.py
"""

from __future__ import annotations

import numpy as np

import randomist as rd


def simulate(number: float) -> float:
    """The experiment, unknown to the learner: a quarter of the number, between 0 and 1."""
    return min(max(number / 4, 0.0), 1.0)


def show(learner: rd.Realist) -> None:
    estimates, intervals, left = learner.estimates(), learner.intervals(), learner.surviving()
    print(f"\nafter {learner.told} rounds, best so far: policy {learner.recommend()}")
    print("policy  plays  effective samples  expected payoff")
    for k in range(learner.space.size):
        plays, effective = estimates.plays[k], estimates.effective_samples[k]
        note = "" if k in left else "  not the best"
        print(f"{k:6d}  {plays:5d}  {effective:17.1f}  {intervals.low[k]:.3f} to {intervals.high[k]:.3f}{note}")


def main() -> None:
    means, std = np.array([0, 1, 2, 2.95, 3]), 2.0
    learner = rd.Realist(rd.Finite(rd.Gaussian(means, std)), payoff_range=(0, 1), seed=0)
    for _ in range(3):
        for _ in range(100):
            trial = learner.ask()
            learner.tell(trial, simulate(trial.mediator))
        show(learner)
    exact = rd.task("illustrative", sigma=std, lambda_=std).expected_payoff()
    print("\nexpected payoffs:", exact.round(3))


if __name__ == "__main__":
    main()
