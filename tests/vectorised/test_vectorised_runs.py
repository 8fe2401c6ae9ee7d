"""Runs over many seeds at once, on JAX's CPU: the same estimates, choices and regrets as one run after the other."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.optimize

import randomist as rd
from randomist.errors import ParameterError

jax = pytest.importorskip("jax", reason="runs on a device need JAX")

from randomist import vectorised  # noqa: E402
from randomist.vectorised import history, realist, runs, spaces  # noqa: E402
from randomist.vectorised.backend import computing_on, device_named  # noqa: E402
from randomist.vectorised.coins import coins_upto  # noqa: E402
from randomist.vectorised.tasks import cartpole_return, mountain_car_return, payoff_of  # noqa: E402

pytestmark = pytest.mark.xdist_group("vectorised")  # some runs are made once for several tests
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


CAR = rd.Finite.grid(rd.Gaussian(std=[0.15, 3.0]), low=[-1, 0], high=[1, 20], points=[3, 4])
POLE = rd.Finite.grid(
    rd.TruncatedGaussian(std=[1.0] * 4), low=[-2.0, 0, 0, 0], high=[2.0, 4, 10, 12], points=[1, 2, 2, 2]
)


@pytest.mark.parametrize(
    ("learner", "task"),
    [
        (rd.Optimist, rd.task("lqg", points=40)),
        (rd.FollowTheLeader, rd.task("lqg", points=40)),
        (rd.UCB1, rd.task("lqg", points=40)),
        (rd.Realist, rd.task("lqg", points=40)),
        (rd.Realist, rd.task("lqg", dimension=2, space="grid", points=5)),
        (rd.Realist, rd.task("illustrative", sigma=2, lambda_=0.1)),
    ],
)
def test_given_the_same_history_the_choices_are_those_of_the_learner(learner, task):
    """At least 99.9% of them; the others are near-ties, which the order of a sum decides."""
    rounds = 600 if learner is not rd.Realist else 250
    run = vectorised.optimize_many(task, learner, rounds, 2, device="cpu")[1]
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
    assert different <= 0.001 * rounds


LQG, GAUSSIANS = rd.task("lqg", points=15), rd.task("illustrative", sigma=2, lambda_=2)


@cache
def played(task, name):
    """150 runs of 150 rounds: nearly all of the time that a few runs take goes into compiling them."""
    return vectorised.optimize_many(task, name, 150, 150, device="cpu")


@pytest.mark.parametrize(
    ("name", "task"),
    [
        *((name, LQG) for name in ("randomist", "optimist", "ucb1")),
        *((name, GAUSSIANS) for name in ("randomist", "optimist", "realist")),
    ],
)
def test_regrets_are_the_same_on_average(name, task):
    """Welch's test with fixed seeds; by chance it would fail once in 1,000 choices of them."""
    regret = played(task, name).regret[:, -1]
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
    assert seen == [*range(2, 121, 2)]  # of all rounds, two at a time
    for mine, theirs in ((apart[0], together[4]), (apart[1], together[2])):
        np.testing.assert_array_equal(mine.decisions, theirs.decisions)
        np.testing.assert_array_equal(mine.payoffs, theirs.payoffs)
        np.testing.assert_array_equal(mine.regret, theirs.regret)
    assert not np.array_equal(together[0].decisions, together[1].decisions)


def test_many_decisions_are_one_run_at_a_time(monkeypatch):
    """The same choices, but for near-ties; here there are none."""
    task = rd.task("lqg", points=20)
    together = vectorised.optimize_many(task, "realist", 40, 2, device="cpu")
    monkeypatch.setattr(runs, "ALONE", 10)
    alone = vectorised.optimize_many(task, "realist", 40, 2, device="cpu", progress=lambda done: None)
    np.testing.assert_array_equal(alone.decisions, together.decisions)
    np.testing.assert_allclose(alone.payoffs, together.payoffs, rtol=1e-12)


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


def test_episodes_are_those_of_the_compiled_tasks():
    """The same starts and parameters give the same returns: where a last bit differs, an episode may end otherwise."""
    rng, n = np.random.default_rng(4), 300
    with computing_on(CPU):
        car, pole = rd.task("mountain-car", horizon=250), rd.task("cartpole")
        parameters, starts = rng.uniform([-1, 0], [1, 20], (n, 2)), rng.uniform(-0.6, -0.4, n)
        mine = jax.jit(jax.vmap(lambda z, s: mountain_car_return(z, s, 250)))(parameters, starts)
        theirs = [car.trajectory(*given)[1].sum() for given in zip(parameters, starts, strict=True)]
        assert np.mean(np.abs(np.asarray(mine) - theirs) > 1e-9) <= 0.01
        assert 0.1 < np.mean(np.array(theirs) > 50) < 0.9
        parameters, starts = rng.uniform(pole.space.low, pole.space.high, (n, 4)), rng.uniform(-0.05, 0.05, (n, 4))
        mine = jax.jit(jax.vmap(lambda z, s: cartpole_return(z, s, 200)))(parameters, starts)
        theirs = [len(pole.trajectory(*given)[1]) for given in zip(parameters, starts, strict=True)]
        assert np.mean(np.asarray(mine) != theirs) <= 0.01
        assert 0.1 < np.mean(np.array(theirs) < 200) < 0.9


@pytest.mark.parametrize(("task", "space"), [("mountain-car", CAR), ("cartpole", POLE)])
def test_tasks_of_a_box_are_searched_on_a_grid(task, space):
    """Welch's test with fixed seeds; by chance it would fail once in 1,000 choices of them."""
    mine = vectorised.optimize_many(rd.task(task, horizon=100), "randomist", 60, 30, device="cpu", space=space)
    theirs = rd.optimize_many(rd.task(task, horizon=100), "randomist", 60, 30, space=space)
    assert mine.regret is None
    assert mine[0].regret is None
    assert mine[0].mediators.shape == theirs[0].mediators.shape
    sides = np.array([[run.payoffs.mean() for run in runs] for runs in (mine, theirs)])
    error = np.sqrt(sides.var(axis=1, ddof=1).sum() / 30)
    assert abs(sides.mean(axis=1)[0] - sides.mean(axis=1)[1]) < 3.29 * error


def test_coins_are_fair():
    """The quantiles of SciPy's binomial, for few coins and many, and for more than are tabulated."""
    from scipy.stats import binom

    rng = np.random.default_rng(0)
    with computing_on(CPU):
        coins = coins_upto(300)
        for flips in (1, 2, 3, 5, 17, 64, 300, 9000):
            levels = np.concatenate([rng.random(3000), 10.0 ** -rng.uniform(0, 15, 500)])
            heads = coins.heads(np.full(len(levels), float(flips)), levels)
            np.testing.assert_array_equal(heads, binom.ppf(levels, flips, 0.5))
        assert float(coins.heads(np.zeros(1), np.full(1, 0.3))[0]) == 0.0


def test_kept_stakes_find_k_inf():
    """Against the largest E log(1 - λ u), found by SciPy from the weights themselves."""
    rng, size, n = np.random.default_rng(3), 40, 256
    with computing_on(jax.devices("cpu")[0]):
        known = history.Shared.empty(size, n)
        ratios, payoffs = rng.gamma(0.5, size=(size, n)).astype(np.float32), rng.beta(2, 3, size=n)
        mixture, effective = rng.uniform(20, 60, size=n), rng.uniform(2, 200, size=size)
        known = known._replace(ratios=ratios, payoffs=payoffs, mixture=mixture, effective=effective)
        known = known._replace(stakes=np.full(size, 0.5))
        seen = known.weighed(n, 2.0, None)
        for _ in range(8):
            found, known = realist.index(known, n, seen)
    weights = np.minimum(np.asarray(seen.cut)[:, None], ratios / mixture)
    means = weights @ payoffs / weights.sum(axis=1)
    gain = (payoffs - means.max()) / (1 - means.max())
    for k in range(size):
        share = weights[k] / weights[k].sum()
        best = scipy.optimize.minimize_scalar(
            lambda stake, share=share: -share @ np.log1p(-stake * gain), bounds=(0, 0.999), method="bounded"
        )
        expected = effective[k] * max(-best.fun, 0.0) + np.log(effective[k])
        assert -float(found[k]) == pytest.approx(expected, abs=1e-4 * effective[k])


def test_realist_keeps_stakes_in_large_sets(monkeypatch):
    monkeypatch.setattr(realist, "EXACT", 16)
    monkeypatch.setattr(runs, "ALONE", 16)
    found = vectorised.optimize_many(rd.task("lqg", points=40), "realist", 300, 2, device="cpu").regret
    assert (found[:, -1] < 0.5 * 300 * found[:, 0]).all(), "it learns"


@pytest.mark.parametrize(("name", "task"), [("randomist", LQG), ("realist", GAUSSIANS), ("ucb1", LQG)])
def test_a_run_of_a_device_goes_on_on_the_cpu(name, task):
    runs = played(task, name)
    learner = runs.resumed(1)
    np.testing.assert_array_equal(learner.record.decisions, runs.decisions[1])
    np.testing.assert_array_equal(learner.record.mediators, runs.mediators[1])
    assert learner.told == 150
    trial = learner.ask()
    learner.tell(trial, 0.5)
    assert rd.load(learner.state()).ask().decision == learner.ask().decision


def test_a_bar_shows_how_far_runs_are(capsys):
    pytest.importorskip("rich", reason="a progress bar needs rich")
    vectorised.optimize_many("illustrative", "ucb1", 30, 2, device="cpu", progress=True)
    assert "100%" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "abacus"}, "device must be one of cpu, gpu, tpu"),
        ({"device": "tpu"}, "no device"),
        ({"task": "mountain-car"}, "has a box"),
        ({"learner": "gp-ucb"}, "know FollowTheLeader"),
        ({"learner": "randomist", "perturbation": "gaussian"}, "perturbation"),
        ({"learner": "optimist", "window": 10}, "window"),
        ({"learner": "realist", "divergence": "empirical"}, "mixture"),
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
