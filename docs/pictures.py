"""Draw the pictures of docs/plots.md: `python docs/pictures.py`, or `python docs/pictures.py FOLDER THEME WIDTH`."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import randomist as rd

FOLDER = Path(__file__).parent / "_static" / "plots"
DPI = 110
SPACE = rd.Parameters(kp=rd.Real(1, 100, log=True), taps=rd.Integer(1, 8), mode=rd.Choice("fast", "smooth"))


def tuned() -> tuple[rd.Run, rd.Auto]:
    """A run of Auto with noise and failures, and its learner."""
    rng, learner = np.random.default_rng(1), rd.Auto(SPACE, seed=1)

    def simulate(kp: float, taps: int, mode: str) -> float:
        """Smooth, with noise, and with a part of the box where it fails."""
        if kp > 60:
            raise ValueError("the motor stalled")
        detuned = 0.7 * math.log10(kp / 8) ** 2 + 0.03 * (taps - 5) ** 2
        return 10 * math.exp(-detuned) - (1.0 if mode == "fast" else 0.0) + rng.standard_normal()

    return rd.optimize(simulate, lambda *_, **__: learner, parameters=SPACE, rounds=120, seed=1), learner


def chosen() -> rd.Randomist:
    """A learner that was told 300 payoffs of five policies."""
    names = ["cautious", "slow", "as it is", "fast", "eager"]
    space = rd.Finite(rd.Gaussian(mean=[0, 1, 2, 2.95, 3], std=2), names=names)
    learner = rd.Randomist(space, payoff_range=(0, 1), seed=0)
    for _ in range(300):
        trial = learner.ask()
        learner.tell(trial, float(np.clip(trial.mediator / 4, 0, 1)))
    return learner


def readme() -> rd.simulation.Run:
    """The run of the README's first block."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(text.split("```python\n")[1].split("```")[0], names)
    found: rd.simulation.Run = names["run"]
    return found


def main(folder: Path = FOLDER, theme: Any = "light", width: float = 6.8) -> None:
    run, auto = tuned()
    learner = chosen()
    task = rd.task("illustrative", sigma=2, lambda_=0.1)
    runs = {name: rd.optimize_many(task, name, rounds=500, seeds=8) for name in ("randomist", "ucb1", "ftl")}
    look = {"theme": theme, "width": width}
    figures = {
        "payoffs": rd.plot.payoffs(run, **look),
        "payoffs-of-several": rd.plot.payoffs(runs, **look),
        "best-so-far": rd.plot.best_so_far(run, **look),
        "regret": rd.plot.regret(runs, **look),
        "parallel": rd.plot.parallel(run, **look),
        "slices": rd.plot.slices(run, learner=auto, **look),
        "estimates": rd.plot.estimates(learner, baseline="as it is", **look),
        "effective-samples": rd.plot.effective_samples(learner, **look),
        "readme": rd.plot.slices(readme(), **look),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=DPI)
        print(folder / f"{name}.png")


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*([Path(given[0]), *given[1:2], *map(float, given[2:3])] if given else []))
