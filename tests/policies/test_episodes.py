"""Episodes that are played: against compiled ones, by the equations, with noise, and what is refused."""

from __future__ import annotations

import math

import gymnasium
import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError, RandomistError, ShapeError, TaskError
from randomist.policies import GaussianPolicy, Linear, SoftmaxPolicy, load_policy, save_policy
from randomist.policies.episodes import rollout
from tests.tasks.walks import walk

NOISY = GaussianPolicy(Linear(3, 1), 0.5)


def test_a_mountain_car_rollout_is_the_compiled_episode():
    car = rd.task("mountain-car")
    for seed, parameters in enumerate(np.random.default_rng(0).uniform([-4, -20], [4, 60], size=(12, 2))):
        played = rollout(car, parameters, seed=seed)
        start = np.random.default_rng(seed).uniform(-0.6, -0.4)  # as the environment's reset draws it
        states, rewards = car.trajectory(parameters, start)
        np.testing.assert_array_equal(played.observations, states.astype(np.float32))
        np.testing.assert_array_equal(played.rewards, rewards)
        assert played.payoff == car.payoff([parameters], np.random.default_rng(seed))[0]
        np.testing.assert_array_equal(played.actions[:, 0], (played.observations[:-1] * parameters).sum(axis=1))


def test_a_cartpole_rollout_has_the_compiled_payoff():
    pole = rd.task("cartpole", horizon=150)
    for seed, parameters in enumerate(np.random.default_rng(0).uniform([-2, 0, 0, 0], [2, 4, 10, 12], size=(10, 4))):
        played = rollout(pole, parameters, seed=seed)
        assert played.payoff == len(played.rewards) == pole.payoff([parameters], np.random.default_rng(seed))[0]
        np.testing.assert_allclose(
            played.actions[:, 0], played.observations[:-1] @ parameters / 10, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("dimension", [1, 2])
def test_an_lqg_rollout_follows_the_equations(dimension):
    task = rd.task("lqg", dimension=dimension, limit=3.0, noise_std=0.3, state_cost=0.5, horizon=9, discount=0.8)
    gains = np.array([-1.3, 0.6])[:dimension]
    played = rollout(task, gains if dimension > 1 else -1.3, seed=5)
    x, rng = np.random.default_rng(5).uniform(-3, 3, size=dimension), np.random.default_rng(5)
    rng.uniform(size=dimension)
    total = 0.0
    for t in range(9):
        u = np.clip(gains * x, -3, 3)
        np.testing.assert_allclose(played.observations[t], x, atol=1e-12)
        total += 0.8**t * (1 - (0.5 * x @ x + 0.9 * u @ u) / (dimension * 9 * 1.4))
        x = np.clip(x + u + 0.3 * rng.standard_normal(dimension), -3, 3)
    assert played.payoff == pytest.approx(total / sum(0.8**t for t in range(9)), abs=1e-12)


def test_lqg_rollouts_agree_with_the_task_on_average():
    task = rd.task("lqg", std=1e-9, space="box")
    payoffs = [rollout(task, -0.4, seed=seed).payoff for seed in range(300)]
    assert abs(np.mean(payoffs) - task.expected_payoff([-0.4])[0]) < 4 * np.std(payoffs) / math.sqrt(300)


def test_a_saved_policy_can_be_played(tmp_path):
    task = rd.tasks.gymnasium("Pendulum-v1", policy="neural", observation_scale=3.0, horizon=30)
    parameters = np.random.default_rng(0).normal(size=task.policy.size)
    save_policy(tmp_path / "p.json", task.policy, parameters, task=task, settings={"horizon": 30})
    saved = load_policy(tmp_path / "p.json")
    expected = rollout(task, parameters, seed=3).payoff
    assert rollout(task, saved, seed=3).payoff == expected
    assert rollout(rd.task(saved.task, **saved.settings), saved, seed=3).payoff == expected  # of its own policy
    with pytest.raises(TaskError, match=r"does not fit task 'cartpole'"):
        rollout("cartpole", saved)


# With noise


def test_a_gaussian_policy_acts_as_drawn_and_the_task_clips():
    task, noisy, parameters = (
        rd.task("gym:Pendulum-v1", horizon=25),
        GaussianPolicy(Linear(3, 1), 3.0),
        [0.4, -1.0, 0.3],
    )
    played = rollout(task, (noisy, parameters), seed=6)
    env, rng = gymnasium.make("Pendulum-v1"), np.random.default_rng([6, 1])
    seen, rewards = [env.reset(seed=6)[0]], []
    for action in played.actions:
        np.testing.assert_array_equal(action, noisy.sample(parameters, seen[-1], rng))
        observation, reward, *_ = env.step(np.clip(action, -2, 2).astype(np.float32))
        seen.append(observation)
        rewards.append(reward)
    assert played.actions.shape == (25, 1)
    assert (np.abs(played.actions) > 2).any()
    np.testing.assert_array_equal(played.observations, np.array(seen, np.float64))
    np.testing.assert_array_equal(played.rewards, rewards)
    assert played.payoff == task.episode_payoff(rewards)


def test_a_softmax_policy_acts_as_drawn_from_nought():
    task, noisy = walk("images"), SoftmaxPolicy(Linear(12, 3, discrete=True))  # actions -1, 0 and 1
    parameters = np.random.default_rng(0).normal(scale=0.01, size=36)
    played = rollout(task, (noisy, parameters), seed=2)
    rng = np.random.default_rng([2, 1])
    drawn = [int(noisy.sample(parameters, observation, rng)) for observation in played.observations[:-1]]
    assert played.actions.tolist() == drawn
    assert set(drawn) == {0, 1, 2}
    env = task.make_env()
    env.reset(seed=2)
    assert played.rewards.tolist() == [env.step(np.int64(action - 1))[1] for action in drawn]


def test_a_saved_policy_acts_as_the_pair_that_was_saved(tmp_path):
    task = rd.task("gym:Pendulum-v1", horizon=30)
    noisy, parameters = GaussianPolicy(task.policy, 0.5), np.array([0.4, -1.0, 0.3])
    save_policy(tmp_path / "noisy.json", noisy, parameters)
    saved = load_policy(tmp_path / "noisy.json")
    with_noise, without = rollout(task, (noisy, parameters), seed=3), rollout(task, parameters, seed=3)
    np.testing.assert_array_equal(rollout(task, saved, seed=3).actions, with_noise.actions)
    assert (with_noise.actions != without.actions).all()
    calm = rollout(task, (saved.policy.base, saved.parameters), seed=3)
    np.testing.assert_array_equal(calm.actions, without.actions)
    np.testing.assert_array_equal(calm.actions, np.clip(saved.act(calm.observations[:-1]), -2, 2).astype(np.float32))


def test_a_pair_of_numbers_is_a_parameter_vector():
    for pair in ((0.1, 9.0), [0.1, 9.0]):
        assert rollout("mountain-car", pair).payoff == rollout("mountain-car", np.array(pair)).payoff


def test_an_episode_with_noise_may_fail_and_cannot_be_told():
    car = rd.task("mountain-car")
    policies = [(GaussianPolicy(car.policy, 1.0), [gain, 0.0]) for gain in (1e200, 0.0)]
    failed = rollout(car, policies[0])
    assert math.isnan(failed.payoff)
    wild = SoftmaxPolicy(Linear(4, 2, discrete=True, observation_scale=1e-9))
    assert math.isnan(rollout("gym:CartPole-v1", (wild, [1e308, -1e308] * 4)).payoff)  # inf - inf
    learner = rd.UCB1(rd.Finite.policies(policies), payoff_range=(-1e9, 100))
    trial = learner.ask()
    with pytest.raises(RandomistError, match="T in 1"):  # it never began
        learner.tell_episode(trial, failed)
    assert learner.pending == [trial]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rollout(walk("shape"), np.zeros(4)), ShapeError, "3 numbers, the policy takes 2"),
        (
            lambda: rollout("mountain-car", rd.task("mountain-car").policy),
            ParameterError,
            r"pair \(policy, parameters\)",
        ),
        (lambda: rollout("mountain-car", NOISY), ParameterError, r"pair \(policy, parameters\)"),
        (lambda: rollout("mountain-car", (NOISY, [0.0])), ShapeError, r"\(3,\), got \(1,\)"),
        (lambda: rollout("mountain-car", (NOISY, [0.0, 1.0, math.nan])), ParameterError, "must be finite"),
        (lambda: rollout("mountain-car", (NOISY, [0.0] * 3)), TaskError, "does not fit task 'mountain-car'"),
        (lambda: rollout("mountain-car", [0.0, 1.0], seed=True), ParameterError, "seed.*True"),
        (lambda: rollout("illustrative", [0.0]), TaskError, "illustrative.*no policy"),
        (lambda: rollout("mountain-car", [0.0]), ShapeError, r"\(2,\)"),
        (lambda: rollout("mountain-car", np.zeros((3, 2))), ShapeError, r"one parameter vector.*\(3, 2\)"),
        (lambda: rollout("mountain-car", [0.0, 1.0], seed=-1), ParameterError, "seed.*-1"),
    ],
)
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        make()
