"""What a study of Optuna earns and costs with `RandomistSampler`, beside Optuna's own samplers.

Noisy objectives, 100 trials, 20 seeds. Printed are the true mean value of all trials and that of the trial that looked
best, where 0 is the best there is and 1 a random trial; then milliseconds a trial as a study grows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna

from randomist.integrations.optuna import RandomistSampler

TRIALS, SEEDS = 100, 20
GROWN = 1000, 10_000

SAMPLERS: dict[str, Callable[[int], Any]] = {
    "RandomistSampler": lambda seed: RandomistSampler(seed=seed),
    "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "RandomSampler": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def bowl(trial: Any) -> float:
    x, y = trial.suggest_float("x", -1, 3), trial.suggest_float("y", -1, 1)
    return float((x - 0.7) ** 2 + 3 * (y + 0.2) ** 2)


def network(trial: Any) -> float:
    rate, layers = trial.suggest_float("rate", 1e-5, 1, log=True), trial.suggest_int("layers", 1, 8)
    kind = trial.suggest_categorical("kind", ["relu", "tanh", "gelu"])
    return abs(math.log10(rate) + 2.5) + 0.2 * abs(layers - 3) + {"relu": 0.3, "tanh": 0.6, "gelu": 0.0}[kind]


def valley(trial: Any) -> float:
    points = [trial.suggest_float(f"x{i}", -1, 1) for i in range(6)]
    turned = sum(points) / 6 - 0.3
    return float(9 * turned**2 + 0.3 * sum((p - 0.3) ** 2 for p in points))


def study_of(objective: Callable[[Any], float], sampler: Any, seed: int, noise: float) -> tuple[float, float]:
    """The mean true value of all trials, and that of the trial with the best told value."""
    rng, true = np.random.default_rng(seed), list[float]()

    def told(trial: Any) -> float:
        true.append(objective(trial))
        return true[-1] + noise * rng.standard_normal()

    study = optuna.create_study(sampler=sampler)
    study.optimize(told, n_trials=TRIALS)
    return float(np.mean(true)), true[study.best_trial.number]


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print(f"{'':10s}" + "".join(f"{name:>22s}" for name in SAMPLERS))
    for objective in (bowl, network, valley):
        random = [study_of(objective, SAMPLERS["RandomSampler"](s), s, 0.0)[0] for s in range(100, 110)]
        unit = float(np.mean(random))
        cells = []
        for make in SAMPLERS.values():
            found = np.array([study_of(objective, make(s), s, 0.2 * unit) for s in range(SEEDS)]) / unit
            cells.append(f"{found[:, 0].mean():.3f} / {found[:, 1].mean():.3f}")
        print(f"{objective.__name__:10s}" + "".join(f"{cell:>22s}" for cell in cells), flush=True)
    for name in ("RandomistSampler", "TPESampler"):
        study, done = optuna.create_study(sampler=SAMPLERS[name](0)), 0
        for size in GROWN if name == "RandomistSampler" else GROWN[:1]:
            study.optimize(bowl, n_trials=size - 100 - done)
            begin = time.perf_counter()
            study.optimize(bowl, n_trials=100)
            done = size
            print(f"{name}, trial {size}: {10 * (time.perf_counter() - begin):.1f} ms", flush=True)


if __name__ == "__main__":
    main()
