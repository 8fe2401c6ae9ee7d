"""LQG, Mountain Car and Cartpole: the compiled episodes against their sources, the exact J against two oracles."""

from __future__ import annotations

import importlib
import math
import os
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from randomist.errors import EmptySpaceError, ParameterError, ShapeError, TaskError
from randomist.spaces import Box, Finite
from randomist.tasks import LQG, Cartpole, ContinuousCartPoleEnv, MountainCar, task
from randomist.tasks.lqg import gain_values

SETTINGS = [  # not the default, not symmetric in state and action
    {},
    {"horizon": 7, "discount": 0.8, "noise_std": 0.5, "limit": 3.0, "state_cost": 0.3, "action_cost": 1.7},
    {"horizon": 1},
    {"horizon": 12, "discount": 1.0, "noise_std": 0.0, "limit": 1.5, "action_cost": 0.0},
]


# Mountain Car


def gymnasium_episode(parameters, seed):
    """States and rewards of Gymnasium's own environment, stepped from Python."""
    env = gymnasium.make("MountainCarContinuous-v0").unwrapped
    observation, _ = env.reset(seed=seed)
    states, rewards = [np.array(env.state)], []
    for _ in range(999):
        action = parameters[0] * float(observation[0]) + parameters[1] * float(observation[1])
        observation, reward, terminated, _, _ = env.step(np.array([action]))
        states.append(observation.astype(np.float64))
        rewards.append(reward)
        if terminated:
            break
    return np.array(states), np.array(rewards)


@pytest.mark.parametrize(
    ("low", "high", "episodes"),
    [
        ([-1, 0], [1, 20], 40),  # the paper's box
        ([-4, -30], [4, 90], 40),  # clipped forces, walls, top speed
        ([-0.01, -0.5], [0.01, 0.5], 5),  # never there
        ([0.2, 15], [0.6, 60], 40),  # there in a hundred steps
    ],
)
def test_mountain_car_equals_gymnasium_bit_for_bit(low, high, episodes):
    car = MountainCar()
    rng = np.random.default_rng(0)
    for seed in range(episodes):
        parameters = rng.uniform(low, high)
        expected_states, expected_rewards = gymnasium_episode(parameters, seed)
        states, rewards = car.trajectory(parameters, expected_states[0, 0])
        np.testing.assert_array_equal(states, expected_states)
        np.testing.assert_array_equal(rewards, expected_rewards)
        payoff = car.payoff([parameters], np.random.default_rng(seed))  # the reset of that seed draws the same start
        assert payoff[0] == sum(rewards.tolist())


def test_mountain_car_is_the_papers():
    car = task("mountain-car")
    assert isinstance(car, MountainCar)
    assert isinstance(car.space, Box)
    assert car.payoff_range == (-5, 95)
    assert car.out_of_range == "clip"
    np.testing.assert_array_equal(car.first, [0, 0])
    np.testing.assert_array_equal(MountainCar(low=[0.5, -9], high=[1, -4]).first, [0.5, -4])
    np.testing.assert_array_equal(car.space.family.std, [0.15, 3.0])
    rng = np.random.default_rng(0)
    assert car.payoff(car.first[None], rng)[0] == 0
    assert 95 < car.payoff([[0.1, 9.0]] * 100, rng).mean() < 98.5  # beyond the range, reported raw
    assert car.payoff([[5.0, 0.0]], rng)[0] < -5


# Cartpole


def plain_cartpole(parameters, state, horizon=200):
    """Sutton's equations, transcribed."""
    x, x_dot, theta, theta_dot = (float(s) for s in state)
    states = [(x, x_dot, theta, theta_dot)]
    for _ in range(horizon):
        action = parameters[0] * x + parameters[1] * x_dot + parameters[2] * theta + parameters[3] * theta_dot
        force = min(max(action, -10.0), 10.0)
        temp = (force + 0.1 * 0.5 * theta_dot**2 * math.sin(theta)) / (0.1 + 1.0)
        theta_acc = (9.8 * math.sin(theta) - math.cos(theta) * temp) / (
            0.5 * (4.0 / 3.0 - 0.1 * math.cos(theta) ** 2 / (0.1 + 1.0))
        )
        x_acc = temp - 0.1 * 0.5 * theta_acc * math.cos(theta) / (0.1 + 1.0)
        x, x_dot = x + 0.02 * x_dot, x_dot + 0.02 * x_acc
        theta, theta_dot = theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc
        states.append((x, x_dot, theta, theta_dot))
        if x < -2.4 or x > 2.4 or theta < -12 * 2 * math.pi / 360 or theta > 12 * 2 * math.pi / 360:
            break
    return np.array(states)


def test_cartpole_equals_a_plain_transcription():
    pole = Cartpole()
    rng = np.random.default_rng(1)
    lengths = []
    for _ in range(200):
        parameters = rng.uniform([-4, -2, -2, -3], [4, 6, 15, 15])
        before = rng.bit_generator.state
        payoff = pole.payoff([parameters], rng)[0]
        rng.bit_generator.state = before
        start = rng.uniform(-0.05, 0.05, size=4)
        expected = plain_cartpole(parameters, start)
        np.testing.assert_allclose(pole.trajectory(parameters, start)[0], expected, rtol=1e-11, atol=1e-13)
        assert payoff == len(expected) - 1
        lengths.append(payoff)
    assert min(lengths) < 40
    assert max(lengths) == 200


def test_cartpole_equals_gymnasium_at_full_force():
    env = gymnasium.make("CartPole-v1").unwrapped
    rng = np.random.default_rng(2)
    for seed in range(20):
        env.reset(seed=seed)
        states = [env.state]
        parameters = 1e15 * rng.normal(size=4)  # always at ±10
        terminated = False
        while not terminated and len(states) <= 200:
            _, _, terminated, _, _ = env.step(int(sum(parameters * env.state) > 0))
            states.append(env.state)
        np.testing.assert_allclose(Cartpole().trajectory(parameters, states[0])[0], states, rtol=1e-9, atol=1e-11)


def test_cartpole_is_the_papers():
    pole = task("cartpole")
    assert isinstance(pole, Cartpole)
    assert pole.payoff_range == (0, 200)
    assert pole.out_of_range == "refuse"
    assert isinstance(pole.space, Box)
    np.testing.assert_array_equal(pole.space.low, [-2, 0, 0, 0])
    np.testing.assert_array_equal(pole.space.high, [2, 4, 10, 12])
    assert (pole.payoff([[1.0, 2.0, 10.0, 12.0]] * 20, np.random.default_rng(0)) == 200).all()
    assert (pole.payoff([[0.0, 0.0, -10.0, 0.0]] * 20, np.random.default_rng(0)) < 60).all()


# LQG


def naive_lqg(problem, gain, draws):
    """One coordinate, one episode; draws are the start and the noises."""
    x, total, norm = float(draws[0]), 0.0, 0.0
    for t in range(problem.horizon):
        u = float(np.clip(gain * x, -problem.limit, problem.limit))
        most = (problem.state_cost + problem.action_cost) * problem.limit**2
        total += problem.discount**t * (1 - (problem.state_cost * x**2 + problem.action_cost * u**2) / most)
        norm += problem.discount**t
        if t + 1 < problem.horizon:
            x = float(np.clip(x + u + draws[t + 1], -problem.limit, problem.limit))
    return total / norm


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("dimension", [1, 3])
def test_lqg_equals_a_naive_loop(setting, dimension):
    problem = LQG(dimension=dimension, **setting)
    gains = np.random.default_rng(3).normal(-0.5, 1.5, size=(50, dimension))
    payoffs = problem.payoff(gains if dimension > 1 else gains[:, 0], np.random.default_rng(4))
    draws = np.random.default_rng(4).standard_normal((50, problem.horizon, dimension))
    uniform = np.vectorize(lambda z: math.erfc(-z / math.sqrt(2)) / 2)(draws[:, 0])
    draws *= problem.noise_std
    draws[:, 0] = problem.limit * (2 * uniform - 1)
    naive = [
        np.mean([naive_lqg(problem, g[i], d[:, i]) for i in range(dimension)])
        for g, d in zip(gains, draws, strict=True)
    ]
    np.testing.assert_allclose(payoffs, naive, rtol=1e-12, atol=1e-14)


def test_lqg_is_the_papers():
    problem = task("lqg")
    assert isinstance(problem, LQG)
    assert isinstance(problem.space, Finite)
    assert problem.space.size == 100
    assert problem.space.points is not None
    expected = problem.expected_payoff()
    best = int(expected.argmax())
    assert problem.space.points[best, 0] == pytest.approx(-0.657, abs=1e-3)
    assert problem.optimum == expected.max() == pytest.approx(0.9840, abs=1e-4)
    box = LQG(space="box")
    at_0, at_1 = box.expected_payoff([0.0, 1.0])
    assert at_0 == pytest.approx(0.8019, abs=1e-4)
    assert at_1 == pytest.approx(0.1214, abs=1e-4)
    np.testing.assert_array_equal(problem.expected_payoff([3, 0, 3]), expected[[3, 0, 3]])
    np.testing.assert_allclose(box.expected_payoff(problem.space.points[:, 0]), expected, rtol=1e-12)
    assert expected.max() <= box.optimum < expected.max() + 1e-5


def refined_expected_payoff(decision, std, **setting):
    """Twice the cells, every gain its own dynamic programme, Gauss-Legendre between the kinks of J(θ)."""
    ends = np.linspace(decision - 6 * std, decision + 6 * std, 13)
    ends = np.unique(np.concatenate([ends, [k for k in (-2, -1, 0, 1) if ends[0] < k < ends[-1]]]))
    nodes, weights = np.polynomial.legendre.leggauss(6)
    half = np.diff(ends)[:, None] / 2
    gains = (ends[:-1, None] + half * (1 + nodes)).ravel()
    density = np.exp(-0.5 * ((gains - decision) / std) ** 2) / (std * math.sqrt(2 * math.pi))
    return float(np.sum((half * weights).ravel() * density * gain_values(gains, cells=800, **setting)))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "std", [0.15, pytest.param(0.02, marks=pytest.mark.slow), pytest.param(0.6, marks=pytest.mark.slow)]
)
def test_lqg_expected_payoff_is_stable_under_refinement(setting, std):
    problem = LQG(space="box", std=std, low=-1.4, high=1, **setting)
    decisions = np.array([-0.657, 0.1, 1.0])
    expected = [refined_expected_payoff(decision, std, **setting) for decision in decisions]
    np.testing.assert_allclose(
        problem.expected_payoff(decisions), expected, rtol=0, atol=2e-5 if problem.noise_std > 0 else 2e-4
    )


def assert_within_standard_errors(problem, decisions, episodes, rng):
    """4 standard errors: one false alarm in 16,000 per decision."""
    for decision, exact in zip(decisions, problem.expected_payoff(decisions), strict=True):
        payoffs = problem.payoff(problem.space.family.sample(np.full(episodes, decision), rng), rng)
        assert abs(payoffs.mean() - exact) < 4 * payoffs.std() / math.sqrt(episodes)


@pytest.mark.parametrize("setting", SETTINGS)
def test_lqg_expected_payoff_matches_simulation(setting):
    problem = LQG(space="box", **setting)
    assert_within_standard_errors(problem, [-1.0, -0.657, 0.0, 0.4], 100_000, np.random.default_rng(5))


def test_lqg_expected_payoff_does_not_depend_on_the_threads_of_blas():
    script = "import randomist as rd; print(rd.task('lqg').expected_payoff().tobytes().hex())"
    one, two = (
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    )
    assert len(one) > 1000
    assert one == two


@pytest.mark.slow
def test_lqg_expected_payoff_matches_a_million_episodes():
    problem = LQG()
    assert_within_standard_errors(problem, range(0, 100, 9), 1_000_000, np.random.default_rng(6))


def test_lqg_separates_over_dimensions():
    problem, one = LQG(dimension=2, std=[0.15, 0.4], low=[-1, -2], high=[1, 0]), LQG(space="box")
    other = LQG(space="box", std=0.4, low=-2, high=0)
    exact = problem.expected_payoff([[0.7, -1.9], [-0.6, -0.1]])
    expected = (one.expected_payoff([0.7, -0.6]) + other.expected_payoff([-1.9, -0.1])) / 2
    np.testing.assert_allclose(exact, expected, atol=1e-6)
    assert problem.optimum == pytest.approx((one.optimum + other.optimum) / 2, abs=1e-6)
    rng = np.random.default_rng(7)
    payoffs = problem.payoff(problem.space.family.sample(np.tile([0.7, -1.9], (100_000, 1)), rng), rng)
    assert abs(payoffs.mean() - exact[0]) < 4 * payoffs.std() / math.sqrt(100_000)
    grid = LQG(dimension=2, points=5, space="grid")
    assert isinstance(grid.space, Finite)
    assert grid.space.size == 25
    assert grid.expected_payoff().shape == (25,)
    assert grid.optimum == grid.expected_payoff().max()


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(SETTINGS), st.integers(0, 99))
@settings(deadline=None, max_examples=200)
def test_lqg_payoffs_stay_in_range(gain, setting, seed):
    payoffs = LQG(**setting).payoff([gain, 0.0], np.random.default_rng(seed))
    assert (payoffs >= 0).all()
    assert (payoffs <= 1).all()


# All three


@pytest.mark.parametrize(("id", "size"), [("lqg", 1), ("mountain-car", 2), ("cartpole", 4)])
class TestContract:
    def mediators(self, size, n, scale=1.0):
        rows = scale * np.random.default_rng(8).normal(size=(n, size))
        return rows if size > 1 else rows[:, 0]

    def test_same_generator_same_payoffs_and_batch_equals_sequence(self, id, size):
        mediators = self.mediators(size, 40)
        batch = task(id).payoff(mediators, np.random.default_rng(9))
        assert batch.shape == (40,)
        assert batch.dtype == np.float64
        np.testing.assert_array_equal(batch, task(id).payoff(mediators, np.random.default_rng(9)))
        rng, problem = np.random.default_rng(9), task(id)
        np.testing.assert_array_equal(batch, [problem.payoff(m[None], rng)[0] for m in mediators])
        assert (batch != task(id).payoff(mediators, np.random.default_rng(10))).any()

    def test_parameters_that_are_not_finite_never_look_good(self, id, size):
        for bad in (np.nan, np.inf, -np.inf):
            for i in range(size):
                mediators = self.mediators(size, 5)
                mediators.reshape(5, size)[2, i] = bad
                payoffs = task(id).payoff(mediators, np.random.default_rng(0))
                assert np.isnan(payoffs[2])
                assert np.isfinite(np.delete(payoffs, 2)).all()

    def test_huge_parameters_do_not_pass_for_good_ones(self, id, size):
        payoffs = task(id).payoff(self.mediators(size, 50, 1e307), np.random.default_rng(0))
        if id != "cartpole":  # where switching between the two largest forces can be right
            assert not (payoffs > 0.97 * task(id).payoff_range[1]).any()
        assert not np.isposinf(payoffs).any()

    def test_shapes_are_checked(self, id, size):
        with pytest.raises(ShapeError):
            task(id).payoff(np.zeros((3, size + 1)), np.random.default_rng(0))
        assert task(id).payoff(np.zeros((0, size) if size > 1 else 0), np.random.default_rng(0)).shape == (0,)

    @pytest.mark.parametrize(
        ("setting", "error"),
        [
            ({"horizon": 0}, ParameterError),
            ({"horizon": 2.5}, ParameterError),
            ({"std": 0.0}, ParameterError),
            ({"std": [1.0] * 7}, ShapeError),
            ({"low": 2.0, "high": 1.0}, EmptySpaceError),
            ({"wings": 2}, TaskError),
        ],
    )
    def test_bad_settings_are_refused(self, id, size, setting, error):
        with pytest.raises(error):
            task(id, **setting)


@pytest.mark.parametrize(
    "setting",
    [
        {"discount": 0.0},
        {"discount": 1.1},
        {"noise_std": -0.1},
        {"noise_std": math.nan},
        {"limit": 0.0},
        {"state_cost": -1.0},
        {"state_cost": 0.0, "action_cost": 0.0},
        {"space": "ball"},
        {"dimension": 0},
        {"dimension": 9, "space": "grid"},
        {"points": 0},
    ],
)
def test_bad_lqg_settings_are_refused(setting):
    with pytest.raises((ParameterError, EmptySpaceError)):
        LQG(**setting)


def test_expected_payoff_of_a_box_names_its_decisions():
    with pytest.raises(ParameterError, match="name those"):
        LQG(space="box").expected_payoff()
    with pytest.raises(ParameterError, match="lie between"):
        LQG(space="box").expected_payoff([1.01])
    with pytest.raises(TaskError):
        Cartpole().expected_payoff([[0, 0, 0, 0]])
    with pytest.raises(ShapeError):
        Cartpole().trajectory([0, 0, 0], [0, 0, 0, 0])
    with pytest.raises(ShapeError):
        MountainCar().trajectory([0, 0, 0], -0.5)


# Gymnasium environments


@pytest.mark.parametrize(
    ("id", "settings"),
    [
        ("randomist/LQG-v0", {}),
        ("randomist/LQG-v0", {"dimension": 3}),
        ("randomist/ContinuousCartPole-v0", {}),
        ("randomist/ContinuousCartPole-v0", {"render_mode": "rgb_array"}),
    ],
)
def test_environments_pass_the_checker_without_a_warning(id, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(id, **settings).unwrapped)


def test_registering_twice_is_harmless():
    before = gymnasium.spec("randomist/LQG-v0")
    importlib.reload(importlib.import_module("randomist.tasks.environments"))
    assert gymnasium.spec("randomist/LQG-v0") is before
    assert before.max_episode_steps == 20
    assert gymnasium.spec("randomist/ContinuousCartPole-v0").max_episode_steps == 200


def test_cartpole_environment_follows_the_task():
    env = gymnasium.make("randomist/ContinuousCartPole-v0", render_mode="rgb_array")
    for seed, parameters in enumerate(np.random.default_rng(11).uniform([-2, 0, 0, 0], [2, 4, 10, 12], size=(10, 4))):
        observation, _ = env.reset(seed=seed)
        states, total, done = [observation], 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(np.array([parameters @ observation / 10]))
            states.append(observation)
            total, done = total + reward, terminated or truncated
        np.testing.assert_allclose(Cartpole().trajectory(parameters, states[0])[0], states, rtol=1e-7, atol=1e-9)
        assert Cartpole().payoff([parameters], np.random.default_rng(seed))[0] == total
    frame = env.render()
    assert frame.shape == (200, 300, 3)
    assert frame.dtype == np.uint8
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) == 4  # sky, track, cart, pole
    env.close()


def test_lqg_environment_follows_the_equations():
    env = gymnasium.make("randomist/LQG-v0", dimension=2)
    x, _ = env.reset(seed=12)
    rng = np.random.default_rng(12)
    np.testing.assert_array_equal(x, rng.uniform(-4, 4, size=2))
    for t in range(20):
        action = np.array([-0.5, 0.6]) * x / 4
        u = np.clip(4 * action, -4, 4)
        following, reward, terminated, truncated, _ = env.step(action)
        assert reward == pytest.approx(1 - (0.9 * x @ x + 0.9 * u @ u) / (2 * 28.8), abs=1e-12)
        x = np.clip(x + u + 0.1 * rng.standard_normal(2), -4, 4)
        np.testing.assert_allclose(following, x, atol=1e-12)
        assert not terminated
        assert truncated == (t == 19)
    env.close()


@pytest.mark.parametrize("id", ["randomist/LQG-v0", "randomist/ContinuousCartPole-v0"])
def test_environments_refuse_bad_actions(id):
    env = gymnasium.make(id).unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1))
    env.reset(seed=0)
    with pytest.raises(ParameterError):
        env.step(np.array([np.nan]))
    with pytest.raises(ShapeError):
        env.step(np.zeros(2))
    with pytest.raises(ParameterError):
        ContinuousCartPoleEnv(render_mode="human")
