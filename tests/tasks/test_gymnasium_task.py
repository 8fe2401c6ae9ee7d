"""Gymnasium tasks against a plain loop, what is not finite, worker processes, and what is refused."""

from __future__ import annotations

import copy
import math
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import randomist as rd
from randomist.errors import EmptySpaceError, ParameterError, RandomistError, ShapeError, TaskError
from randomist.policies import GaussianPolicy, Linear, Neural
from randomist.tasks import GymnasiumTask
from randomist.testing import check_task
from tests.tasks.walks import walk

# Payoffs


def plain_payoff(env_id, act, seed, horizon, discount=1.0):
    """An episode as Gymnasium's own documentation writes it."""
    env = gymnasium.make(env_id, max_episode_steps=horizon)
    observation, _ = env.reset(seed=seed)
    total, weight, over = 0.0, 1.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(act([float(x) for x in np.ravel(observation)]))
        total, weight, over = total + weight * float(reward), weight * discount, terminated or truncated
    env.close()
    return total


def plain_linear(env_id, parameters, bias=False, scale=1.0):
    """W s + b in Python's arithmetic, clipped to the box, or the largest of them."""
    space = gymnasium.make(env_id).action_space
    discrete = isinstance(space, spaces.Discrete)

    def act(observation):
        inputs = [x / scale for x in observation]
        rows = int(space.n) if discrete else space.shape[0]
        outputs = []
        for i in range(rows):
            total = parameters[i * len(inputs)] * inputs[0]
            for j in range(1, len(inputs)):
                total += parameters[i * len(inputs) + j] * inputs[j]
            outputs.append(total + parameters[rows * len(inputs) + i] if bias else total)
        if discrete:
            return outputs.index(max(outputs))
        return np.clip(outputs, space.low.tolist(), space.high.tolist()).astype(np.float32)

    return act


@pytest.mark.parametrize(
    ("env_id", "settings", "spread"),
    [
        ("Pendulum-v1", {"discount": 0.97}, 4.0),  # clipped often
        ("Pendulum-v1", {"policy": "linear-bias", "observation_scale": 2.5, "horizon": 250}, 0.5),
        ("CartPole-v1", {"horizon": 60}, 1.0),
        ("CartPole-v1", {"policy": "linear-bias", "discount": 0.9}, 1.0),
        ("MountainCarContinuous-v0", {"horizon": 80}, 30.0),
        ("Acrobot-v1", {"horizon": 70}, 1.0),
    ],
)
def test_payoffs_equal_a_plain_loop(env_id, settings, spread):
    task = rd.tasks.gymnasium(env_id, **settings)
    mediators = spread * np.random.default_rng(1).normal(size=(5, task.policy.size))
    seeds = np.random.default_rng(2).integers(2**31, size=5).tolist()
    expected = [
        plain_payoff(
            env_id,
            plain_linear(env_id, m.tolist(), task.policy.bias, settings.get("observation_scale", 1.0)),
            seed,
            settings.get("horizon"),
            settings.get("discount", 1.0),
        )
        for m, seed in zip(mediators, seeds, strict=True)
    ]
    payoffs = task.payoff(mediators, np.random.default_rng(2))
    np.testing.assert_array_equal(payoffs, expected)
    played = [rd.rollout(task, m, seed=seed) for m, seed in zip(mediators, seeds, strict=True)]
    np.testing.assert_array_equal(payoffs, [p.payoff for p in played])
    task.close()
    np.testing.assert_array_equal(payoffs[:1], task.payoff(mediators[0], np.random.default_rng(2)))


def test_a_policy_of_ones_own():
    policy = Neural(3, 1, hidden=(4,), activation="relu", action_scale=2.0)
    task = rd.tasks.gymnasium("Pendulum-v1", policy=policy, horizon=50)
    parameters = np.random.default_rng(3).normal(size=policy.size)
    seed = int(np.random.default_rng(4).integers(2**31))
    expected = plain_payoff("Pendulum-v1", lambda s: np.clip(policy.act(parameters, s), -2, 2).astype("f4"), seed, 50)
    assert task.payoff([parameters], np.random.default_rng(4))[0] == expected
    scaled = rd.tasks.gymnasium("Pendulum-v1", policy=policy, observation_scale=[1, 1, 8])
    assert scaled.policy == Neural(3, 1, (4,), "relu", action_scale=2.0, observation_scale=(1, 1, 8))


def test_more_episodes_than_environments_and_episodes_of_many_lengths():
    task = rd.tasks.gymnasium("CartPole-v1", horizon=100)
    mediators = np.random.default_rng(5).normal(size=(75, 8))
    batch = task.payoff(mediators, np.random.default_rng(6))
    assert len(np.unique(batch)) > 20
    rng = np.random.default_rng(6)
    np.testing.assert_array_equal(batch, [task.payoff(m, rng)[0] for m in mediators])
    for generator in (np.random.MT19937, np.random.Philox, np.random.SFC64):
        ours, theirs = (np.random.Generator(generator(7)) for _ in range(2))
        split = [task.payoff(mediators[:3], theirs), task.payoff(mediators[3:9], theirs)]
        np.testing.assert_array_equal(task.payoff(mediators[:9], ours), np.concatenate(split))


def test_settings_spaces_and_ids():
    task = rd.task(
        "gym:Pendulum-v1", low=-2, high=[2, 2, 5], std=0.3, payoff_range=(-2000, 0), out_of_range="clip", g=9.81
    )
    assert isinstance(task, GymnasiumTask)
    assert task.id == "gym:Pendulum-v1"
    assert task.horizon == 200
    assert task.payoff_range == (-2000, 0)
    assert task.out_of_range == "clip"
    assert task.policy == Linear(3, 1)
    assert isinstance(task.space, rd.Box)
    np.testing.assert_array_equal(task.space.low, [-2, -2, -2])
    np.testing.assert_array_equal(task.space.high, [2, 2, 5])
    np.testing.assert_array_equal(task.space.family.std, [0.3] * 3)
    assert task.make_env().unwrapped.g == 9.81
    plain = rd.task("gym:Pendulum-v1")
    assert plain.space is None
    assert plain.payoff_range == (-math.inf, math.inf)
    mediators = np.ones((2, 3))
    assert (task.payoff(mediators, np.random.default_rng(0)) != plain.payoff(mediators, np.random.default_rng(0))).all()
    module = rd.task("gym:tests.tasks.walks:randomist-tests/Walk-v0")  # Gymnasium imports the module
    assert module.horizon == 10
    endless = rd.task("gym:randomist-tests/Endless-v0", horizon=4)
    assert rd.rollout(endless, np.zeros(4)).rewards.shape == (4,)


@pytest.mark.parametrize("fault", ["images", "matrix", "truncates"])
def test_unusual_spaces(fault):
    task = walk(fault)
    sizes = {"images": (12, 3, 10), "matrix": (2, 2, 10), "truncates": (2, 2, 8)}[fault]
    assert (task.policy.observation_size, task.policy.action_size) == sizes[:2]
    parameters = 1e3 * np.random.default_rng(0).normal(size=task.policy.size)
    played = rd.rollout(task, parameters)  # the environment checks that actions lie in its space
    assert played.observations.shape == (sizes[2] + 1, sizes[0])
    assert played.actions.shape == (sizes[2], *task.action_space.shape)
    assert math.isfinite(task.payoff([parameters, -parameters], np.random.default_rng(0))[1])
    if fault == "images":
        assert set(played.actions.tolist()) <= {-1, 0, 1}


def test_the_same_task_after_a_journey():
    task = rd.tasks.gymnasium("Pendulum-v1", horizon=20)
    mediators = np.random.default_rng(0).normal(size=(3, 3))
    expected = task.payoff(mediators, np.random.default_rng(1))
    for other in (pickle.loads(pickle.dumps(task)), copy.copy(task), copy.deepcopy(task)):
        np.testing.assert_array_equal(other.payoff(mediators, np.random.default_rng(1)), expected)


# What is not finite


@pytest.mark.parametrize("fault", ["nan reward", "inf reward", "nan observation"])
def test_an_episode_that_leaves_the_numbers_fails_alone(fault):
    task, sound = walk(fault), walk()
    mediators = np.random.default_rng(0).normal(size=(40, 4))
    payoffs, expected = (t.payoff(mediators, np.random.default_rng(1)) for t in (task, sound))
    failed = np.isnan(payoffs)
    assert 5 < failed.sum() < 35
    np.testing.assert_array_equal(payoffs[~failed], expected[~failed])
    seeds = np.random.default_rng(1).integers(2**31, size=40).tolist()
    played = [rd.rollout(task, m, seed=s) for m, s in zip(mediators, seeds, strict=True)]
    np.testing.assert_array_equal([p.payoff for p in played], payoffs)
    assert {len(p.rewards) for p, f in zip(played, failed, strict=True) if f} == {3}
    check_task(task)


def test_a_run_goes_on_after_failed_episodes_and_says_so():
    space = rd.Finite(rd.Gaussian(np.random.default_rng(0).normal(size=(3, 4)), 0.5))
    task = walk("nan reward")
    run = rd.optimize(task, rd.UCB1, 60, space=space, payoff_range=(-100, 0))
    assert len(run.payoffs) + len(run.failures) == 60
    assert len(run.payoffs) > 5
    assert len(run.failures) > 5
    assert np.isfinite(run.payoffs).all()
    assert all("nan" in reason for reason in run.failures.values())


def test_parameters_that_overflow_have_no_payoff():
    huge = 1.7e308  # times an angular velocity of some 2: inf - inf
    mediators = [[0, 0, 1e300], [0, 0, 0], [1, 1, math.inf]]
    task = rd.tasks.gymnasium("Pendulum-v1", horizon=20)
    payoffs = task.payoff(mediators, np.random.default_rng(1))
    np.testing.assert_array_equal(np.isfinite(payoffs), [True, True, False])  # the first is clipped
    policy = Neural(3, 1, hidden=(2,), activation="relu")
    parameters = [huge, huge, huge, -huge, -huge, -huge, 0, 0, huge, -huge, huge]
    deep = rd.tasks.gymnasium("Pendulum-v1", policy=policy, horizon=20)
    assert np.isnan(deep.payoff([parameters], np.random.default_rng(1)))[0]
    assert math.isnan(rd.rollout(deep, parameters).payoff)
    assert math.isnan(rd.rollout(task, mediators[2]).payoff)
    assert math.isnan(rd.rollout("mountain-car", [1e200, 0.0]).payoff)


# Worker processes


def test_worker_processes_change_nothing():
    task = rd.tasks.gymnasium("Pendulum-v1", policy="neural", horizon=50, workers=2)
    check_task(task, episodes=9)
    mediators = np.random.default_rng(0).normal(size=(70, task.policy.size))
    mediators[3, 2] = math.nan
    alone = task.with_workers(1).payoff(mediators, np.random.default_rng(1))
    np.testing.assert_array_equal(task.payoff(mediators, np.random.default_rng(1)), alone)
    task.close()
    broken = walk("process", workers=2)
    with pytest.raises(AssertionError, match=r"one process|one by one|same generator"):
        check_task(broken)
    broken.close()


# Bad input


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rd.tasks.gymnasium("Nope-v0"), TaskError, "unknown environment 'Nope-v0'.*gymnasium.registry"),
        (lambda: rd.tasks.gymnasium("Pendulum-v77"), TaskError, "unknown environment.*v77"),
        (lambda: rd.tasks.gymnasium("nowhere/Nope-v0"), TaskError, "unknown environment.*nowhere"),
        (lambda: rd.tasks.gymnasium("no_such_module:Nope-v0"), TaskError, "unknown environment.*no_such_module"),
        (lambda: rd.tasks.gymnasium("LunarLander-v3"), TaskError, "not installed.*box2d"),
        (lambda: rd.tasks.gymnasium(""), TaskError, "environment ''"),
        (lambda: rd.task("gym:Nope-v0"), TaskError, "unknown environment 'Nope-v0'"),
        (lambda: rd.task("gymnasium:Pendulum-v1"), RandomistError, "gymnasium:Pendulum-v1"),
        (lambda: rd.task("gym:Pendulum-v1", wings=2), TaskError, "wings"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", horizon=0), ParameterError, "horizon.*>= 1.*0"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", horizon=2.5), ParameterError, "horizon.*2.5"),
        (lambda: rd.tasks.gymnasium("randomist-tests/Endless-v0"), ParameterError, "without a time limit.*horizon="),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", max_episode_steps=5), ParameterError, "horizon="),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", render_mode="human"), ParameterError, "rollout"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", discount=0.0), ParameterError, "discount.* > 0 and <= 1, got 0"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", discount=math.nan), ParameterError, "discount.*nan"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", workers=0), ParameterError, "workers.*0"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", low=-1), ParameterError, "high missing"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", low=-1, high=1, std=0.0), ParameterError, "std must be > 0"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", low=1, high=1, std=1), EmptySpaceError, "low must be below high"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", low=-1, high=1, std=[1, 1]), ShapeError, r"\(3,\), got \(2,\)"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", low=[0, 0], high=1, std=1), ShapeError, "low"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", payoff_range=(1, 0)), ParameterError, "low < high"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", payoff_range=7), ParameterError, "pair.*7"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", out_of_range="drop"), ParameterError, "refuse.*clip.*drop"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", policy="deep"), ParameterError, "linear-bias.*deep"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", policy=GaussianPolicy(Linear(3, 1), 1)), ParameterError, "determin"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", policy=Linear(4, 1)), ShapeError, "3 observations and 1 actions"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", policy=Linear(3, 2)), ShapeError, "do not fit"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", policy=Linear(3, 1, discrete=True)), TaskError, "continuous.*=F"),
        (lambda: rd.tasks.gymnasium("CartPole-v1", policy=Linear(4, 1)), TaskError, "discrete actions.*=True"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", observation_scale=[1, 2]), ShapeError, "3 of them"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", observation_scale=0), ParameterError, "> 0"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", policy=SCALED, observation_scale=2), ParameterError, "give it once"),
        (lambda: rd.tasks.gymnasium("FrozenLake-v1"), TaskError, "Box observations.*Discrete"),
        (lambda: walk("Dict"), TaskError, "Box observations.*Dict.*FlattenObservation"),
        (lambda: walk("MultiDiscrete"), TaskError, "Discrete or a real Box.*MultiDiscrete"),
        (lambda: walk("integers"), TaskError, "real Box.*int64"),
        (lambda: walk("shape").payoff(np.zeros((2, 4)), RNG), ShapeError, "3 numbers, it declares 2"),
        (lambda: walk().payoff(np.zeros((2, 5)), RNG), ShapeError, r"\(n, 4\), got \(2, 5\)"),
        (lambda: walk(lambda: 0, workers=2), TaskError, "worker processes.*entry point.*workers=1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error, match=f"(?s){words}") as caught:
        make()
    assert isinstance(caught.value, RandomistError)


RNG = np.random.default_rng(0)
SCALED = Linear(3, 1, observation_scale=2.0)


# What nobody has registered


def test_classes_and_instances_are_tasks_too():
    from gymnasium.envs.classic_control import CartPoleEnv, PendulumEnv

    registered = rd.task("gym:CartPole-v1", horizon=50)
    parameters = np.random.default_rng(0).normal(size=(4, registered.policy.size))
    expected = registered.payoff(parameters, np.random.default_rng(1))
    made = gymnasium.make("CartPole-v1")
    for task in (rd.task(CartPoleEnv, horizon=50), rd.task(made, horizon=50), rd.task(CartPoleEnv(), horizon=50)):
        assert task.id == "gym:CartPoleEnv"
        np.testing.assert_array_equal(task.payoff(parameters, np.random.default_rng(1)), expected)
    assert rd.task(made).horizon == 500
    heavy = rd.task(PendulumEnv, horizon=5, g=9.81)
    assert heavy.make_env().unwrapped.g == 9.81
    run = rd.optimize(heavy, rounds=3)
    assert (run.task, run.learner, len(run.payoffs)) == ("gym:PendulumEnv", "Auto", 3)
    assert rd.task(rd.tasks.Illustrative, sigma=2).id == "illustrative"


def test_unregistered_environments_that_do_not_fit():
    from gymnasium.envs.classic_control import CartPoleEnv

    with pytest.raises(ParameterError, match="pass horizon="):
        rd.task(CartPoleEnv)
    with pytest.raises(TaskError, match=r"takes no settings, got g.*give its class"):
        rd.task(CartPoleEnv(), horizon=5, g=3)
    with pytest.raises(TaskError, match="an id, a class or an instance"):
        GymnasiumTask(3)
