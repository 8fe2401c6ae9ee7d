"""`python -m benchmarks.auto.picture`: the figure of docs/learners/auto.md, a run of Auto in one dimension."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import randomist as rd
from benchmarks.auto.functions import SETS

ROUNDS, SEED, NAME = 60, 5, "line-1"
OUT = Path("docs/_static/auto.png")


def main() -> None:
    function, rng = SETS["design"][NAME], np.random.default_rng(SEED)
    learner = rd.Auto(low=function.low, high=function.high, seed=SEED)
    looked = []
    for t in range(ROUNDS):
        trial = learner.ask()
        looked.append(trial.purpose != "cloud")
        learner.tell(trial, function.payoff(np.atleast_1d(trial.mediator), rng, t))
    low, high = float(function.low[0]), float(function.high[0])
    line = np.linspace(low, high, 400)
    found, best = learner.estimate(line[:, None]), float(np.ravel(learner.recommend())[0])
    plays, payoffs, looks = np.ravel(learner.record.mediators), learner.record.payoffs, np.array(looked)
    figure, (above, below) = plt.subplots(2, 1, figsize=(8, 5), sharex=True, height_ratios=(3, 1), layout="constrained")
    above.plot(line, function.mean(line[:, None]), color="0.5", linestyle=":", label="true mean payoff")
    above.plot(line, found.value, color="C0", label="surface through the payoffs, ± a deviation")
    above.fill_between(line, found.value - found.width, found.value + found.width, color="C0", alpha=0.2, linewidth=0)
    above.scatter(plays[looks], payoffs[looks], color="C1", marker="x", label="the opening, along a parameter")
    above.scatter(plays[~looks], payoffs[~looks], color="C2", s=14, label="played to earn")
    above.axvline(best, color="C3", linewidth=1, label="recommended")
    above.set_ylabel("payoff")
    above.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    std = learner.scale * (high - low)
    density = np.exp(-0.5 * ((line - best) / std) ** 2)
    below.fill_between(line, density, color="C2", alpha=0.5, linewidth=0)
    below.set_ylabel("next play")
    below.set_yticks([])
    below.set_xlabel("parameter")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(OUT, dpi=110)
    print(f"{OUT}: {ROUNDS} rounds, scale {learner.scale:.3f}, {int(looks.sum())} played to see, {learner.interval()}")


if __name__ == "__main__":
    main()
