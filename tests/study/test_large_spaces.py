"""A study of a large set is made without looking at every pair of its decisions."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.study.describe import learner_from


def test_a_grid_of_twenty_thousand_decisions(monkeypatch):
    pairs = []
    real = rd.Gaussian.log_renyi
    monkeypatch.setattr(rd.Gaussian, "log_renyi", lambda *a: pairs.append(real(*a)) or pairs[-1])
    grid = {"kind": "Grid", "family": {"kind": "Gaussian", "std": [0.15, 0.15]}, "low": [-1, -1], "high": [1, 1]}
    learner = learner_from("randomist", grid | {"points": 141}, {"seed": 0})
    rd.create_study("grid", learner, storage="memory://a-large-grid")
    assert learner.space.size == 141**2
    assert sum(map(np.size, pairs)) < 10 * learner.space.size


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dimensions", [1, 3])
def test_which_decisions_others_say_nothing_about(seed, dimensions):
    """Remark 1 of every pair."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=(30, dimensions)), rng.choice([0.5, 0.6, 0.8, 1.1], size=(30, dimensions))
    space = rd.Finite(rd.Gaussian(mean, std), loggers={"old": rd.Gaussian(np.zeros((1, dimensions)), 0.01)})
    naive = [x for x in range(30) if any(np.isinf(space.family.log_renyi([x], [y])[0, 0]) for y in range(30))]
    assert 0 < len(naive) < 30
    assert space.uninformed().tolist() == naive
