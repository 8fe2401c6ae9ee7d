"""Gymnasium tasks against a plain loop, the contract of every task, and rollouts that can be watched."""

from __future__ import annotations

import copy
import math
import os
import pickle
import sys

import gymnasium
import imageio.v3
import numpy as np
import pytest
from gymnasium import spaces

import randomist as rd
from randomist.errors import EmptySpaceError, ParameterError, RandomistError, ShapeError, TaskError
from randomist.policies import GaussianPolicy, Linear, Neural, load_policy, save_policy
from randomist.policies.rollouts import rollout
from randomist.tasks import GymnasiumTask, Illustrative
from randomist.testing import check_task


class Walk(gymnasium.Env):
    """s' = s + a + noise in a row of numbers; pays -|s|; what `fault` names goes wrong at the third step."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, fault="", render_mode=None):
        self.fault, self.carried = fault, 0.0
        if fault in ("Dict", "MultiDiscrete", "integers", "images", "matrix"):
            self.observation_space, self.action_space = {
                "Dict": (spaces.Dict({"a": self.observation_space}), self.action_space),
                "MultiDiscrete": (self.observation_space, spaces.MultiDiscrete([2, 3])),
                "integers": (self.observation_space, spaces.Box(0, 9, (2,), np.int64)),
                "images": (spaces.Box(0, 255, (2, 2, 3), np.uint8), spaces.Discrete(3, start=-1)),
                "matrix": (self.observation_space, spaces.Box(np.float32([[-1, -2]]), np.float32([[1, np.inf]]))),
            }[fault]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.state = 0, self.np_random.normal(size=2)
        return self.seen(), {}

    def seen(self):
        if self.fault == "images":
            return (np.arange(12).reshape(2, 2, 3) * abs(self.state[0]) * 10 % 256).astype(np.uint8)
        return self.state.copy()

    def step(self, action):
        assert self.action_space.contains(action), action
        self.steps += 1
        self.state = self.state + 0.1 * np.resize(action, 2) + 0.05 * self.np_random.normal(size=2)
        reward, observation = -float(np.abs(self.state).sum()), self.seen()
        if self.steps == 3:
            bad = self.state[0] > 0
            reward = {"nan reward": math.nan, "inf reward": math.inf}.get(self.fault, reward) if bad else reward
            if self.fault == "nan observation" and bad:
                observation[0] = math.nan
            if self.fault == "shape":
                observation = np.zeros(3)
        if self.fault == "memory":  # of the episodes before
            self.carried += 1
            reward += self.carried
        if self.fault == "process":
            reward += os.getpid()
        return observation, reward, False, self.steps == 8 and self.fault == "truncates", {}


for _name, _steps in (("Walk-v0", 10), ("Endless-v0", None)):
    if f"randomist-tests/{_name}" not in gymnasium.registry:
        gymnasium.register(f"randomist-tests/{_name}", entry_point=Walk, max_episode_steps=_steps)


def walk(fault="", **settings):
    return rd.tasks.gymnasium("randomist-tests/Walk-v0", fault=fault, **settings)


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
    played = [rollout(task, m, seed=seed) for m, seed in zip(mediators, seeds, strict=True)]
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
    module = rd.task("gym:test_gymnasium_task:randomist-tests/Walk-v0")  # Gymnasium imports the module
    assert module.horizon == 10
    endless = rd.task("gym:randomist-tests/Endless-v0", horizon=4)
    assert rollout(endless, np.zeros(4)).rewards.shape == (4,)


@pytest.mark.parametrize("fault", ["images", "matrix", "truncates"])
def test_unusual_spaces(fault):
    task = walk(fault)
    sizes = {"images": (12, 3, 10), "matrix": (2, 2, 10), "truncates": (2, 2, 8)}[fault]
    assert (task.policy.observation_size, task.policy.action_size) == sizes[:2]
    parameters = 1e3 * np.random.default_rng(0).normal(size=task.policy.size)
    played = rollout(task, parameters)  # the environment checks that actions lie in its space
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
    played = [rollout(task, m, seed=s) for m, s in zip(mediators, seeds, strict=True)]
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
    assert math.isnan(rollout(deep, parameters).payoff)
    assert math.isnan(rollout(task, mediators[2]).payoff)
    assert math.isnan(rollout("mountain-car", [1e200, 0.0]).payoff)


# The contract


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


# Rollouts


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
    noisy = GaussianPolicy(task.policy, 0.5)
    save_policy(tmp_path / "n.json", noisy, parameters)
    assert rollout(task, load_policy(tmp_path / "n.json"), seed=3).payoff == expected
    with pytest.raises(TaskError, match=r"does not fit task 'cartpole'"):
        rollout("cartpole", saved)


@pytest.mark.parametrize(
    ("task", "parameters"),
    [
        (lambda: rd.task("mountain-car", horizon=40), [0.3, 30.0]),
        (lambda: rd.task("cartpole", horizon=40), [0.0, 1.0, 9.0, 2.0]),
        (lambda: rd.tasks.gymnasium("CartPole-v1", horizon=20), np.arange(8.0)),
    ],
)
def test_a_gif_can_be_read_back(task, parameters, tmp_path):
    path = tmp_path / "film.gif"
    watched = rollout(task(), parameters, seed=1, render=path)
    unwatched = rollout(task(), parameters, seed=1)
    assert watched.payoff == unwatched.payoff
    np.testing.assert_array_equal(watched.observations, unwatched.observations)
    frames = imageio.v3.imread(path)
    assert 1 < len(frames) <= len(watched.observations)
    assert frames.shape[-1] == 3
    assert (frames[0] != frames[-1]).any()
    assert [p.name for p in tmp_path.iterdir()] == ["film.gif"]


def test_films_that_cannot_be_made(tmp_path, monkeypatch):
    def refused(error, words, task="mountain-car", parameters=(0.1, 9.0), render="film.gif"):
        with pytest.raises(error, match=f"(?s){words}"):
            rollout(task, parameters, render=tmp_path / render)
        assert not list(tmp_path.iterdir())

    refused(ParameterError, r"\.gif or an \.mp4.*film\.avi", render="film.avi")
    refused(ParameterError, "folder.*make it", render="nowhere/film.gif")
    refused(TaskError, "lqg.*draws nothing.*rgb_array", task="lqg", parameters=-0.5)
    monkeypatch.setattr("randomist.rollouts.find_spec", lambda name: None if name == "imageio_ffmpeg" else True)
    refused(ParameterError, r"\.mp4 film needs imageio-ffmpeg: pip install imageio-ffmpeg", render="film.mp4")
    monkeypatch.setattr("randomist.rollouts.find_spec", lambda name: None)
    refused(ParameterError, r"\.gif film needs pillow.*randomist\[run\]")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pygame", None)
    refused(TaskError, r"pygame is not installed.*randomist\[render\]")


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
        (lambda: rd.task("gymnasium:Pendulum-v1"), TaskError, "unknown task.*gym:<id>"),
        (lambda: rd.task("gym:Pendulum-v1", wings=2), TaskError, "wings"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", horizon=0), ParameterError, "horizon.*>= 1.*0"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", horizon=2.5), ParameterError, "horizon.*2.5"),
        (lambda: rd.tasks.gymnasium("randomist-tests/Endless-v0"), ParameterError, "without a time limit.*horizon="),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", max_episode_steps=5), ParameterError, "horizon="),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", render_mode="human"), ParameterError, "rollout"),
        (lambda: rd.tasks.gymnasium("Pendulum-v1", discount=0.0), ParameterError, r"discount.*\(0, 1\]"),
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
        (lambda: rollout(walk("shape"), np.zeros(4)), ShapeError, "3 numbers, the policy takes 2"),
        (lambda: walk().payoff(np.zeros((2, 5)), RNG), ShapeError, r"\(n, 4\), got \(2, 5\)"),
        (lambda: walk(lambda: 0, workers=2), TaskError, "worker processes.*entry point.*workers=1"),
        (lambda: rollout("illustrative", [0.0]), TaskError, "illustrative.*no policy"),
        (lambda: rollout("mountain-car", [0.0]), ShapeError, r"\(2,\)"),
        (lambda: rollout("mountain-car", np.zeros((3, 2))), ShapeError, r"one parameter vector.*\(3, 2\)"),
        (lambda: rollout("mountain-car", [0.0, 1.0], seed=-1), ParameterError, "seed.*-1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error, match=f"(?s){words}") as caught:
        make()
    assert isinstance(caught.value, RandomistError)


RNG = np.random.default_rng(0)
SCALED = Linear(3, 1, observation_scale=2.0)
