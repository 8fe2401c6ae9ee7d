"""A million rounds with a categorical mediator: time, memory, and the estimates beside those of every single sample.

Twenty policies choose among fifty actions with probabilities of their own, and the action decides how likely a payoff
of 1 is. Samples are counted by action, so a round costs the same however long the run.
"""

from __future__ import annotations

import math
import resource
import sys
import time

import numpy as np

import randomist as rd

POLICIES, ACTIONS, ROUNDS = 20, 50, 10**6


def main(rounds: int | None = None) -> None:
    rounds = rounds or (int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else ROUNDS)
    for name, length in (("optimist", rounds), ("randomist", rounds), ("realist", rounds // 10)):
        run(name, length)


def run(name: str, rounds: int) -> None:
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(ACTIONS, 0.3), size=POLICIES)
    chance = rng.random(ACTIONS).tolist()
    uniform = rng.random(rounds)
    learner = rd.LEARNERS[name](rd.Finite(rd.Categorical(probabilities)), seed=0, keep_record=False)
    decisions, actions = np.full((2, rounds), -1, np.int8)  # memory that is taken before it is measured
    payoffs = np.full(rounds, np.nan)
    early, memory = rounds // 100, 0
    clock, cpu = time.perf_counter(), time.process_time()
    for i in range(rounds):
        trial = learner.ask()
        payoff = 1.0 if uniform[i] < chance[trial.mediator] else 0.0
        learner.tell(trial, payoff)
        decisions[i], actions[i], payoffs[i] = trial.decision, trial.mediator, payoff
        if i == early:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    estimates = learner.estimates()
    value, coverage = np.zeros((2, POLICIES))  # of all samples, one by one
    plays = np.bincount(decisions, minlength=POLICIES)
    cut = rounds / np.sqrt(estimates.effective_samples * 2 * math.log(rounds + 1))
    for start in range(0, rounds, 10_000):
        density = probabilities[:, actions[start : start + 10_000]]
        omega = density / (plays @ density / rounds)
        weight = np.minimum(omega, cut[:, None]) / rounds
        value += weight @ payoffs[start : start + 10_000]
        coverage += weight.sum(axis=1)
    value = value / coverage if name == "realist" else value  # whose estimate is the weighted mean
    bar = 60 * rounds / ROUNDS
    difference = np.abs(value - estimates.value).max()
    print(
        f"{name:10s} {rounds:,} rounds at K={POLICIES}, C={ACTIONS}: {clock:.1f} s, {cpu:.1f} s of CPU (bar {bar:.0f})"
    )
    print(f"           {1e6 * cpu / rounds:.1f} µs a round; memory grew by {grown:.1f} MiB after round {early:,}")
    print(f"           difference from the estimates of single samples {difference:.1e} (bar 1e-10)", flush=True)


if __name__ == "__main__":
    main()
