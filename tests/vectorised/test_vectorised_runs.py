"""Runs over many seeds at once, on JAX's CPU: the same estimates, choices and regrets as one run after the other."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError

jax = pytest.importorskip("jax", reason="runs on a device need JAX")

from randomist import vectorised  # noqa: E402
from randomist.vectorised import history, runs, spaces  # noqa: E402
from randomist.vectorised.backend import computing_on, device_named  # noqa: E402
from randomist.vectorised.tasks import payoff_of  # noqa: E402

CPU = device_named("cpu")
UNEVEN = rd.Finite(rd.Gaussian(np.array([[0.0, 3.0], [0.1, 2.0], [-0.2, 3.5], [0.05, 3.1]]), np.array([0.3, 1.1])))
FAR = rd.Finite(rd.Gaussian([0.0, 1.0, 2.0, 2.95, 3.0], [0.1, 0.1, 0.1, 2.0, 0.1]))  # log-densities down to -10⁴
ACTIONS = rd.Finite(rd.Categorical([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))


class Other(rd.tasks.Illustrative):
    """Another task on the same policies."""


def told(space, rounds, seed=0):
    """Samples of a space: decisions, mediators and payoffs in [0, 1]."""
    rng = np.random.default_rng(seed)
    decisions = rng.integers(space.size, size=rounds)
    return decisions, np.array([space.family.draw(x, rng) for x in decisions.tolist()]), rng.random(rounds)


@pytest.mark.parametrize("space", [UNEVEN, FAR, ACTIONS], ids=["uneven", "far", "actions"])
def test_estimates_are_those_of_the_shared_history(space):
    decisions, mediators, payoffs = told(space, 300)
    learner = rd.Optimist(space, payoff_range=(0, 1), refresh=None)
    with computing_on(CPU):
        on_device, known = spaces.set_of(space), history.Shared.empty(space.size, 300)
        step = jax.jit(lambda known, t, x, z, y: known.told(t, x, z, y, on_device))
        for t, (x, z, y) in enumerate(zip(decisions.tolist(), mediators, payoffs.tolist(), strict=True)):
            learner.history.append(x, z if np.ndim(z) else z.item(), y)
            known = step(known, t, x, jax.numpy.asarray(z), y)
            if t in (0, 1, 7, 255, 256, 299):
                seen, expected = known.seen(t + 1, 2.0), learner.history.estimate(2.0)
                np.testing.assert_allclose(seen.effective, expected.effective_samples, rtol=1e-6, atol=1e-300)
                np.testing.assert_allclose(seen.value, expected.value, rtol=1e-5, atol=1e-30)
                some = expected.effective_samples > 1e-300  # below, a device takes it for nothing
                np.testing.assert_allclose(np.asarray(seen.width)[some], expected.width[some], rtol=1e-6)
                assert np.isfinite(seen.value).all()
        for x in range(space.size):
            worth = np.exp(-space.log_divergences_to(x))
            np.testing.assert_allclose(on_device.worth(x), worth, rtol=1e-12, atol=1e-300)
            log_density = on_device.log_densities(jax.numpy.asarray(mediators[x]))
            np.testing.assert_allclose(log_density, space.family.log_densities(mediators[x]), rtol=1e-12)


def test_divergences_by_their_closed_form(monkeypatch):
    monkeypatch.setattr(spaces, "TABULATED", 0)
    with computing_on(CPU):
        for space in (UNEVEN, FAR, rd.task("illustrative", sigma=2, lambda_=0.1).space):
            on_device = spaces.set_of(space)
            for x in range(space.size):
                worth = np.exp(-space.log_divergences_to(x))
                np.testing.assert_allclose(on_device.worth(x), worth, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("learner", [rd.Optimist, rd.FollowTheLeader, rd.UCB1])
def test_given_the_same_history_the_choices_are_those_of_the_learner(learner):
    """At least 99.9% of them; the others are near-ties, which the order of a sum decides."""
    task = rd.task("lqg", points=40)
    run = vectorised.optimize_many(task, learner, 600, 2, device="cpu")[1]
    one, different = rd.make(learner, task, seed=0), 0
    for t, (x, z, y) in enumerate(
        zip(run.decisions.tolist(), run.mediators.tolist(), run.payoffs.tolist(), strict=True)
    ):
        trial = rd.Trial(t, x, z)
        if not one._opening:
            index = one.index(one._unit_estimates(), np.random.default_rng(0))
            different += index[x] < index.max() - 1e-6 * abs(index.max())
        one.adopt(trial)
        one.tell(trial, y)
    assert different <= 0.001 * 600


@pytest.mark.parametrize("name", ["randomist", "optimist", "ucb1"])
@pytest.mark.parametrize(
    "task", [rd.task("lqg", points=15), rd.task("illustrative", sigma=2, lambda_=2)], ids=["lqg", "i"]
)
def test_regrets_are_the_same_on_average(task, name):
    """Welch's test with fixed seeds; by chance it would fail once in 1,000 choices of them."""
    regret = vectorised.optimize_many(task, name, 150, 150, device="cpu").regret[:, -1]
    others = np.array([run.regret[-1] for run in rd.optimize_many(task, name, 150, 60)])
    error = np.sqrt(regret.var(ddof=1) / len(regret) + others.var(ddof=1) / len(others))
    assert abs(regret.mean() - others.mean()) < 3.29 * error
    assert error < 0.1 * others.mean()  # so that it could fail


def test_the_same_seed_is_the_same_run_in_any_chunk(monkeypatch):
    task = rd.task("illustrative")
    together = rd.optimize_many(task, "randomist", 60, 5, device="cpu")
    assert (len(together), together[2].seed, type(together[1:3])) == (5, 2, list)
    monkeypatch.setattr(runs, "memory_of", lambda device: 5000)
    seen = []
    apart = vectorised.optimize_many(task, "randomist", 60, [4, 2], device="cpu", progress=seen.append)
    assert seen == [1, 2]
    for mine, theirs in ((apart[0], together[4]), (apart[1], together[2])):
        np.testing.assert_array_equal(mine.decisions, theirs.decisions)
        np.testing.assert_array_equal(mine.payoffs, theirs.payoffs)
        np.testing.assert_array_equal(mine.regret, theirs.regret)
    assert not np.array_equal(together[0].decisions, together[1].decisions)


def test_payoffs_of_lqg_have_the_right_mean():
    """Of 4,000 episodes each, within four standard errors: by chance once in 5,000 choices of the seed."""
    task = rd.task("lqg", dimension=2, space="grid", points=3)
    gains = np.array([[-0.9, 0.1], [-0.4, -0.5]])
    with computing_on(CPU):
        payoff = jax.jit(jax.vmap(payoff_of(task), (None, 0)))
        for one in gains:
            mine = np.asarray(payoff(one, jax.random.split(jax.random.key(3), 4000)))
            theirs = task.payoff(np.tile(one, (4000, 1)), np.random.default_rng(3))
            error = np.sqrt((mine.var() + theirs.var()) / 4000)
            assert abs(mine.mean() - theirs.mean()) < 4 * error


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "abacus"}, "device must be one of cpu, gpu, tpu"),
        ({"device": "tpu"}, "no device"),
        ({"task": "mountain-car"}, "has a box"),
        ({"learner": "gp-ucb"}, "know FollowTheLeader"),
        ({"learner": "randomist", "perturbation": "gaussian"}, "perturbation"),
        ({"learner": "optimist", "window": 10}, "window"),
        ({"learner": "optimist", "bias_correction": "computed"}, "computed"),
        ({"task": rd.task("bernoulli", means=[0.1, 0.2])}, "got Dirac"),
        ({"task": Other()}, "know the tasks"),
        ({"rounds": 0}, "rounds"),
        ({"learner": None}, "name a learner"),
        ({"seeds": [3, -1]}, "seeds must be whole numbers >= 0, got -1"),
        ({"payoff_range": "running"}, "payoff_range of two numbers"),
        ({"jobs": 2}, "leave jobs, or device, out"),
    ],
)
def test_what_a_device_cannot_do_is_said(given, words):
    arguments = {"task": "illustrative", "learner": "optimist", "rounds": 5, "seeds": 2, "device": "cpu"} | given
    with pytest.raises(ParameterError, match=words):
        rd.optimize_many(**arguments)
