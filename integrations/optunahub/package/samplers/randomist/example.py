"""Tune two numbers and a choice under noise. Without optunahub's registry at hand, from this folder."""

from __future__ import annotations

import random
from pathlib import Path

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 1, 100, log=True)
    kind = trial.suggest_categorical("kind", ["plain", "bold"])
    return (x - 1) ** 2 + abs(n - 20) / 20 + (kind == "plain") + noise.gauss(0, 0.1)


if __name__ == "__main__":
    noise = random.Random(0)
    registry = Path(__file__).parents[2]
    module = optunahub.load_local_module("samplers/randomist", registry_root=str(registry))
    # From the registry: module = optunahub.load_module("samplers/randomist")
    study = optuna.create_study(sampler=module.RandomistSampler(seed=0))
    study.optimize(objective, n_trials=80)
    values = [trial.value for trial in study.trials]
    print(f"mean value of all trials: {sum(values) / len(values):.2f}")
    print(study.best_trial.params)
