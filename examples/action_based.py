"""Choose among noisy controllers by what they did: action-based LQG and Pendulum.

Each policy is linear with Gaussian noise on its actions, so every trajectory has a likelihood under every policy, and
one episode informs the estimates of all. LQG: steer a state to 0 with one of nine gains; regret beside UCB1's, which
learns of each policy from its own episodes only. Pendulum (Gymnasium): seven policies that brake or push the swing; how
many of its own episodes the history is worth for each, with whole trajectories' weights and with one per reward.

    python examples/action_based.py          # writes out/action-based.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import randomist as rd

ROUNDS, SEEDS, TRUTH_EPISODES, FOLDER = 150, 3, 300, Path("out")


def lqg():
    """Nine gains; the action noise is 0.5, an eighth of the largest action."""
    task = rd.task("lqg")
    noisy = rd.GaussianPolicy(rd.Linear(1, 1, action_scale=1 / task.limit), 0.5 / task.limit)
    return task, [(noisy, [gain]) for gain in np.linspace(-1.0, 0.0, 9)]


def pendulum():
    """Seven gains on the angular velocity: the first three brake, the last three push. Episodes of 40 steps."""
    task = rd.task("gym:Pendulum-v1", horizon=40)
    noisy = rd.GaussianPolicy(rd.Linear(3, 1), 1.0)
    return task, [(noisy, [0.0, 0.0, gain]) for gain in np.linspace(-0.18, 0.18, 7)]


def settings(task, weights):
    """How the task makes a payoff of its rewards."""
    average = task.id == "lqg"
    discount = task.discount if average else 1.0
    return {"weights": weights, "discount": discount, "horizon": task.horizon, "average": average}


def run(task, policies, learner, seed):
    """ROUNDS episodes, each of the policy that the learner asks for."""
    for episode in range(ROUNDS):
        trial = learner.ask()
        learner.tell_episode(trial, rd.rollout(task, policies[trial.decision], seed=10_000 * seed + episode))
    return learner


def truths(task, policies):
    """Mean payoff of many episodes of each policy, from the same starts; nobody but this script knows it."""
    return np.array(
        [np.mean([rd.rollout(task, p, seed=10**6 + i).payoff for i in range(TRUTH_EPISODES)]) for p in policies]
    )


def lqg_regret():
    task, policies = lqg()
    gaps = truths(task, policies)
    gaps = gaps.max() - gaps
    curves = {}
    for name, learner, weights in (
        ("Realist, per-decision weights", rd.Realist, "per-decision"),
        ("Realist, whole trajectories", rd.Realist, "trajectory"),
        ("UCB1", rd.UCB1, "trajectory"),
    ):
        space = rd.Finite.policies(policies, **settings(task, weights))
        runs = [run(task, policies, learner(space, seed=seed), seed) for seed in range(SEEDS)]
        curves[name] = np.mean([np.cumsum(gaps[done.record.decisions]) for done in runs], axis=0)
        print(f"LQG       {name:30} regret after {ROUNDS} episodes: {curves[name][-1]:.2f}")
    return curves


def pendulum_effective_samples():
    task, policies = pendulum()
    worth = {}
    for weights in ("trajectory", "per-decision"):
        space = rd.Finite.policies(policies, **settings(task, weights))
        learner = run(task, policies, rd.Optimist(space, payoff_range="running", seed=0), 0)
        estimates = learner.estimates()
        worth[weights] = estimates.effective_samples
        print(f"Pendulum  {weights:13} episodes of each policy: {estimates.plays.tolist()}")
        print(
            f"          {'':13} what all are worth for it: {np.round(estimates.effective_samples).astype(int).tolist()}"
        )
    return worth


def draw(curves, worth):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, curve in curves.items():
        left.plot(np.arange(1, ROUNDS + 1), curve, label=name)
    left.set(xlabel="episodes", ylabel="cumulative regret", title="LQG: nine gains")
    left.legend(frameon=False, fontsize=8)
    for offset, (name, effective) in zip((-0.2, 0.2), worth.items(), strict=True):
        right.bar(np.arange(7) + offset, effective, width=0.4, label=f"weights: {name}")
    right.axhline(ROUNDS / 7, color="0.4", linewidth=0.8, linestyle=":", label="an equal share of the episodes")
    right.set(xlabel="policy", ylabel="effective samples", title=f"Pendulum: worth of {ROUNDS} episodes")
    right.set_ylim(0, 1.4 * max(effective.max() for effective in worth.values()))
    right.legend(frameon=False, fontsize=8)
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / "action-based.png", dpi=150)
    print(f"figure: {FOLDER / 'action-based.png'}")


if __name__ == "__main__":
    draw(lqg_regret(), pendulum_effective_samples())
