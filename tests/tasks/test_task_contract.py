"""`check_task`: every task keeps the contract, and one with something wrong is told what."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.tasks import GymnasiumTask, Illustrative
from randomist.testing import check_task
from tests.tasks.walks import walk


@pytest.mark.parametrize("id", rd.task_ids())
def test_registered_tasks_keep_the_contract(id):
    check_task(rd.task(id))


@pytest.mark.parametrize("settings", [{"dimension": 3}, {"space": "box"}, {"horizon": 3, "noise_std": 0.0}])
def test_lqg_in_other_settings_keeps_the_contract(settings):
    check_task(rd.task("lqg", **settings))


@pytest.mark.parametrize(
    ("env_id", "settings"),
    [
        ("Pendulum-v1", {"policy": "neural", "payoff_range": (-3300, 0)}),
        ("Pendulum-v1", {"low": -2, "high": 2, "std": 0.3, "observation_scale": [1, 1, 8]}),
        ("CartPole-v1", {"payoff_range": (0, 500)}),
        ("CartPole-v1", {"policy": "neural"}),
        ("MountainCarContinuous-v0", {"policy": "linear-bias", "horizon": 300}),
        ("Acrobot-v1", {"horizon": 150}),
        ("randomist/LQG-v0", {"dimension": 2, "discount": 0.99}),
        ("randomist/ContinuousCartPole-v0", {}),
        ("randomist-tests/Walk-v0", {}),
    ],
)
def test_gymnasium_tasks_keep_the_contract(env_id, settings):
    check_task(rd.tasks.gymnasium(env_id, **settings), episodes=6)


class Broken(Illustrative):
    """A task with one thing wrong."""

    def __init__(self, wrong):
        super().__init__()
        object.__setattr__(self, "wrong", wrong)
        object.__setattr__(self, "calls", [])

    def payoff(self, mediators, rng):
        z = np.asarray(mediators)
        payoffs = super().payoff(z, rng)
        self.calls.append(len(z))
        match self.wrong:
            case "own randomness":
                return np.clip(payoffs + 0.01 * np.random.default_rng().random(len(z)), 0, 1)
            case "shared noise":
                return np.clip(payoffs + 0.1 * rng.random(), 0, 1) if len(z) else payoffs
            case "draws for the batch":
                rng.random()
                return payoffs
            case "batch":
                return payoffs / (1 + len(z))
            case "memory":
                return payoffs / len(self.calls)
            case "shape":
                return payoffs[:, None]
            case "dtype":
                return payoffs.astype(np.float32)
            case "list":
                return payoffs.tolist()
            case "range":
                return 2 * payoffs
            case "nan":
                return np.nan_to_num(payoffs, nan=1.0)
            case "never finite":
                return np.full(len(z), np.nan)
            case "changes mediators":
                mediators[:] = 0.5
                return payoffs
            case "expectation":
                return 0.98 * payoffs
        return payoffs

    def expected_payoff(self, decisions=None):
        expected = super().expected_payoff(decisions)
        return expected[:, None] if self.wrong == "expected shape" else expected

    @property
    def optimum(self):
        return super().optimum + {"optimum too low": -0.01, "optimum too high": 0.01}.get(self.wrong, 0.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("own randomness", "same generator"),
        ("shared noise", "one by one"),
        ("draws for the batch", "generator where"),
        ("batch", "one by one"),
        ("memory", "same generator"),
        ("shape", "shape"),
        ("dtype", "float64"),
        ("list", "array"),
        ("range", "payoff_range"),
        ("nan", "must not look good"),
        ("never finite", "none has a finite payoff"),
        ("changes mediators", "must not change the mediators"),
        ("expectation", "expected_payoff says"),
        ("expected shape", "shape"),
        ("optimum too low", "more than the optimum"),
        ("optimum too high", "no decision attains"),
    ],
)
def test_the_contract_catches_broken_tasks(wrong, words):
    check_task(Broken("nothing"))
    with pytest.raises(AssertionError, match=words):
        check_task(Broken(wrong))


def test_the_contract_catches_broken_control_tasks():
    with pytest.raises(AssertionError, match="same generator"):
        check_task(walk("memory"))
    forgiving = rd.tasks.gymnasium("CartPole-v1")
    forgiving.payoff = lambda mediators, rng: np.nan_to_num(GymnasiumTask.payoff(forgiving, mediators, rng), nan=500.0)
    with pytest.raises(AssertionError, match=r"nan must not look good.*500"):
        check_task(forgiving)
    narrow = rd.tasks.gymnasium("Pendulum-v1", payoff_range=(-10, 0))
    with pytest.raises(AssertionError, match="payoff_range"):
        check_task(narrow)
    check_task(rd.tasks.gymnasium("Pendulum-v1", payoff_range=(-10, 0), out_of_range="clip"), episodes=3)
    nowhere = Broken("nothing")
    object.__setattr__(nowhere, "space", None)
    with pytest.raises(AssertionError, match="mediators="):
        check_task(nowhere)
