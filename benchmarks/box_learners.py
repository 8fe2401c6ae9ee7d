"""What a round of MCMC-RANDOMIST costs: the tabulated full density against the direct one and the one-step density.

The direct form is timed as the paper writes it (every support point of a candidate against every played decision, one
evaluation of G at a time) and as `exact=True` has it (the same sum, reordered so that each decision is visited once).
"""

from __future__ import annotations

import math
import time

import numba
import numpy as np

import randomist as rd
from randomist.importance import chains, confidence_term, perturbed
from randomist.importance.coins import TABLE, Coins, log_cdf, log_mass
from randomist.importance.estimators import find_estimator
from randomist.importance.perturbed import Perturbed, Rivals


@numba.njit(cache=True)
def definition(coins: Coins, ours: Perturbed, rivals: Rivals) -> float:
    """log g†(x) = log Σ_i g(y_i) Π_j G_j(y_i), term by term (App. F.2)."""
    center, log_effective, flips_x = ours
    centers, log_effectives, flips, plays = rivals
    total = 0.0
    for i in range(flips_x + 1):
        product = log_mass(coins[0], flips_x, i)
        for j in range(centers.shape[0]):
            ratio = math.exp(log_effectives[j] - log_effective)
            k = np.floor(ratio * i + math.exp(log_effectives[j]) * (center - centers[j]))
            product += plays[j] * log_cdf(coins, flips[j], k)
        total += math.exp(product)
    return math.log(total) if total > 0 else -math.inf


def main(rounds: int = 2500) -> None:
    task = rd.task("mountain-car")
    times = {}
    for density in ("one-step", "full"):
        run(task, 30, density=density)  # compiled
        times[density] = run(task, rounds, density=density)
    print(
        f"Mountain Car, {rounds} rounds, rollouts included: one-step {times['one-step']:.2f} s, "
        f"full {times['full']:.2f} s; ratio {times['full'] / times['one-step']:.1f} (bar 12)"
    )
    sizes = [600, 1200, 2400]
    costs = np.array([density_costs(task, t) for t in sizes])  # (sizes, [definition, exact])
    for name, column in zip(("direct, as written", "direct, exact=True"), costs.T, strict=True):
        slope, intercept = np.polyfit(np.log(sizes), np.log(column), 1)
        total = sum(11 * math.exp(intercept + slope * math.log(t)) for t in range(1, rounds))
        print(
            f"{name}: {[round(1e6 * c) for c in column]} µs per density at t = {sizes} (slope {slope:.2f}); "
            f"a whole run: {total:.0f} s, {total / times['full']:.1f} times the tabulated one's (bar 10, as written)"
        )
    for density, bar in (("one-step", 1.1), ("full", 2.1)):
        sizes = [500, 1000, 2000]
        ask = [ask_cost(task, t, density) for t in sizes]
        slope = np.polyfit(np.log(sizes), np.log(ask), 1)[0]
        microseconds = [round(1e6 * c) for c in ask]
        print(f"{density}: slope of round cost in t {slope:.2f} (bar {bar}); {microseconds} µs at t = {sizes}")

    compare_rounds()


def compare_rounds(t: int = 2500, repeats: int = 200) -> None:
    """Prospector (16 candidates, 4 steps) and Auto beside the one-step density, each after t rounds of Cartpole."""
    task = rd.task("cartpole")
    times = {}
    for name, learner, settings in (
        ("one-step", rd.MCMCRandomist, {"density": "one-step", "perturbation_scale": 0.1}),
        ("Prospector", rd.Prospector, {}),
        ("Auto", rd.Auto, {}),
    ):
        chooser, rng = rd.make(learner, task, seed=1, **settings), np.random.default_rng(0)
        for _ in range(t):
            trial = chooser.ask()
            chooser.tell(trial, float(task.payoff(trial.mediator[None], rng)[0]))
        rounds = []
        for _ in range(repeats):
            start = time.perf_counter()
            trial = chooser.ask()
            chooser.tell(trial, 100.0)
            rounds.append(time.perf_counter() - start)
        times[name] = float(np.quantile(rounds, 0.1))  # what others do on the machine only ever adds
    ratios = ", ".join(f"{name} {times[name] / times['one-step']:.2f}" for name in ("Prospector", "Auto"))
    print(
        f"Cartpole (d = 4), t = {t}: a round of one-step MCMC-RANDOMIST takes {1e3 * times['one-step']:.2f} ms; "
        f"in units of it: {ratios} (bar 3, Prospector)"
    )


def run(task: rd.Task, rounds: int, **settings: object) -> float:
    start = time.perf_counter()
    rd.optimize(task, rd.MCMCRandomist, rounds, seed=1, **settings)
    return time.perf_counter() - start


def grown(task: rd.Task, t: int, **settings: object) -> rd.MCMCRandomist:
    learner = rd.make(rd.MCMCRandomist, task, seed=1, **settings)
    rng = np.random.default_rng(0)
    for _ in range(t):
        trial = learner.ask()
        learner.tell(trial, float(task.payoff(trial.mediator[None], rng)[0]))
    return learner


def density_costs(task: rd.Task, t: int) -> tuple[float, float]:
    """Seconds per density of the two direct forms, averaged over the candidates of some proposals."""
    learner = grown(task, t)
    history, coins, paper = learner.history, TABLE.upto(2 * t), find_estimator("paper")
    term = confidence_term(t, learner.confidence)
    value, log_effective, _ = history.sums(history.decisions.rows, term, paper)
    centers, flips = chains.all_perturbed(value, log_effective, 1.1, 0.0, term)
    others = (centers, log_effective, flips, history.plays.rows)
    rng, corners = np.random.default_rng(2), learner.space.corners
    points = np.clip(learner.search.current + history.spread * rng.standard_normal((20, 2)), *corners)
    value, log_eta, _ = history.sums(points / history.spread, term, paper)
    estimates = [chains.perturbed(*one, 1.1, 0.0, term) for one in zip(value, log_eta, strict=True)]
    times = []
    for density in (definition, perturbed.log_direct_density):
        density(coins, estimates[0], others)
        start = time.perf_counter()
        for estimate in estimates:
            density(coins, estimate, others)
        times.append((time.perf_counter() - start) / 20)
    return times[0], times[1]


def ask_cost(task: rd.Task, t: int, density: str) -> float:
    learner = grown(task, t, density=density)
    times = []
    for _ in range(15):
        start = time.perf_counter()
        learner.propose()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


if __name__ == "__main__":
    main()
