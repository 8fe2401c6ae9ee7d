"""Vector environments as tasks, against episodes played one by one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import randomist as rd
from randomist.errors import ParameterError, TaskError
from randomist.tasks import VectorTask
from randomist.testing import check_task


class Drift(gymnasium.Env[Any, Any]):
    """Pays what it was made with, for as many steps as the seed says."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, pays: float = 1.0, broken: bool = False) -> None:
        self.pays, self.broken = pays, broken

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(2, 9))
        return np.ones(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        seen = np.full(2, np.nan if self.broken and self.left == 1 else self.left, np.float32)
        return seen, self.pays * float(action[0]), self.left == 0, False, {}


def drifts(*pays: float, **settings: Any) -> SyncVectorEnv:
    return SyncVectorEnv([lambda p=p: Drift(p) for p in pays], **settings)


def one_by_one(make: Any, theta: np.ndarray, seed: int, task: Any) -> float:
    """The same episode as a loop that anyone would write."""
    env = make()
    seen, _ = env.reset(seed=seed)
    total, weight = 0.0, 1.0
    for _ in range(task.horizon):
        action = task.to_action(task.policy.outputs(theta, np.asarray(seen, np.float64)))
        seen, reward, terminated, truncated, _ = env.step(action)
        total += weight * reward
        weight *= task.discount
        if terminated or truncated:
            break
    return total


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("horizon", [4, 20])
def test_a_payoff_is_the_mean_of_episodes_one_by_one(mode, horizon):
    pays = (1.0, 2.5, -0.5)
    task = rd.task(drifts(*pays, autoreset_mode=mode), horizon=horizon, discount=0.9)
    assert task.id == "gym-vector:SyncVectorEnv"
    thetas = np.random.default_rng(0).normal(size=(5, task.policy.size))
    found = task.payoff(thetas, np.random.default_rng(1))
    seeds = np.random.default_rng(1).integers(2**31 - 3, size=5).tolist()
    for payoff, theta, seed in zip(found, thetas, seeds, strict=True):
        returns = [one_by_one(lambda p=p: Drift(p), theta, seed + i, task) for i, p in enumerate(pays)]
        assert payoff == pytest.approx(np.mean(returns), rel=1e-12)


def test_instances_classes_and_ids_of_cartpole_agree():
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3)
    sync = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    tasks = [rd.task(vector), rd.task(CartPoleVectorEnv, num_envs=3, horizon=500)]
    tasks.append(rd.task("gym-vector:CartPole-v1", num_envs=3))
    thetas = np.random.default_rng(0).normal(size=(4, tasks[0].policy.size))
    first, *others = [task.payoff(thetas, np.random.default_rng(2)) for task in tasks]
    for other in others:
        np.testing.assert_array_equal(first, other)
    assert tasks[0].id == "gym-vector:CartPole-v1"
    assert tasks[0].horizon == rd.task(sync).horizon == 500
    check_task(rd.task(sync, horizon=30))


def test_a_run_and_a_rollout():
    task = rd.task("gym-vector:CartPole-v1", num_envs=2, vectorization_mode="sync", horizon=40)
    run = rd.optimize(task, rounds=12, seed=0)
    assert (run.task, run.learner, len(run.payoffs)) == ("gym-vector:CartPole-v1", "Auto", 12)
    assert (run.payoffs * 2 == np.round(run.payoffs * 2)).all()  # means of two
    episode = rd.rollout(task, run.best)
    assert 1 <= episode.payoff <= 40
    assert rd.rollout(rd.task(drifts(1.0), horizon=9), [0.1, 0.1]).rewards.size >= 2
    task.close()


def test_what_is_not_finite_is_no_payoff():
    broken = rd.task(SyncVectorEnv([lambda: Drift(broken=True), Drift]), horizon=9)
    theta = np.full((1, broken.policy.size), 0.1)
    assert np.isnan(broken.payoff(theta, np.random.default_rng(0))).all()
    assert np.isnan(rd.task(drifts(1.0), horizon=9).payoff(theta * np.inf, np.random.default_rng(0))).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: rd.task(drifts(1.0)), ParameterError, "without a time limit; pass horizon="),
        (lambda: rd.task(drifts(1.0), horizon=5, num_envs=2), TaskError, "takes no settings, got num_envs"),
        (lambda: rd.task(drifts(1.0, autoreset_mode=AutoresetMode.DISABLED), horizon=5), TaskError, "NEXT_STEP"),
        (lambda: rd.task(CartPoleVectorEnv), ParameterError, "needs num_envs="),
        (lambda: rd.task(SyncVectorEnv, num_envs=2), TaskError, "cannot be made with num_envs=2"),
        (lambda: rd.task("gym-vector:Nowhere-v0", num_envs=2), TaskError, "cannot be made with num_envs=2"),
        (lambda: rd.task("gym-vector:CartPole-v1", num_envs=0), ParameterError, "num_envs must be a whole number"),
        (lambda: rd.task("gym-vector:CartPole-v1", num_envs=2, render_mode="human"), ParameterError, "rollout"),
        (lambda: VectorTask(3, num_envs=2), TaskError, "an id, a class or an instance of VectorEnv"),
    ],
)
def test_what_does_not_fit_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
