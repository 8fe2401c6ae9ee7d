"""PB-POIS: its objective and gradient against definitions and an analytic payoff, and its search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import randomist as rd
from randomist.learners.box import pgpe, pois
from tests.learners.quadratic import CENTRE, START, STD, differences, expected_quadratic, quadratic


def some_batch(seed, n=40, late=0):
    """Samples of `START`, and `late` ones of each of two other decisions."""
    rng = np.random.default_rng(seed)
    decisions = np.repeat([START, START + np.array([0.02, 3, -0.3]), CENTRE], [n - 2 * late, late, late], axis=0)
    mediators = decisions + STD * rng.standard_normal((n, 3))
    return decisions, mediators, np.clip(quadratic(mediators) + 0.1 * rng.standard_normal(n), 0, 1)


@pytest.mark.parametrize("late", [0, 7])
def test_pois_objective_is_its_definition(late):
    decisions, mediators, payoffs = some_batch(3, late=late)
    batch, family = pois.gather(decisions, mediators, payoffs, STD), rd.Gaussian(std=STD)
    target, delta, bound = START + np.array([-0.04, 2.0, 0.1]), 0.3, 1.7
    density = stats.norm(target, STD).pdf(mediators).prod(axis=1)
    mixture = np.mean([stats.norm(x, STD).pdf(mediators).prod(axis=1) for x in decisions], axis=0)
    weights = density / mixture
    d2 = 1 / np.mean(np.exp(-family.log_renyi(target, decisions)))
    if late == 0:
        np.testing.assert_allclose(d2, np.exp((((target - START) / STD) ** 2).sum()), rtol=1e-12)
    naive = weights @ payoffs / weights.sum() - bound * np.sqrt((1 - delta) * d2 / (delta * len(payoffs)))
    np.testing.assert_allclose(pois.objective(target, batch, delta, bound), naive, rtol=1e-12)


def test_pois_estimates_the_analytic_payoff():
    """Without its penalty, the objective is the expected payoff, within 4.5 standard errors (false alarm 7e-6 each)."""
    n, rng = 400_000, np.random.default_rng(4)
    mediators = START + STD * rng.standard_normal((n, 3))
    batch = pois.gather(np.broadcast_to(START, (n, 3)), mediators, quadratic(mediators), STD)
    for target in (START, START + STD * [0.5, -0.4, 0.1], START - STD * [0.2, 0.3, 0.6]):
        log_ratio = (((mediators - START) / STD) ** 2).sum(axis=1) - (((mediators - target) / STD) ** 2).sum(axis=1)
        weights = np.exp(0.5 * log_ratio)
        exact = expected_quadratic(target)
        error = np.sqrt(np.mean((weights * (quadratic(mediators) - exact)) ** 2) / n)  # of a ratio of means
        found = pois.objective(target, batch, payoff_bound=1e-300)
        assert abs(found - exact) < 4.5 * error < 0.002
        slope = differences(expected_quadratic, target, 1e-3 * STD)
        np.testing.assert_allclose(
            STD * pois.objective_gradient(target, batch, payoff_bound=1e-300), STD * slope, atol=0.003
        )


@given(seed=st.integers(0, 10**6), late=st.integers(0, 12), delta=st.floats(0.01, 0.99), bound=st.floats(0.01, 5))
def test_pois_gradient_is_that_of_its_objective(seed, late, delta, bound):
    batch = pois.gather(*some_batch(seed, late=late), STD)
    target = START + STD * np.random.default_rng(seed + 1).uniform(-1.5, 1.5, 3)
    found = STD * pois.objective_gradient(target, batch, delta, bound)
    exact = STD * differences(lambda x: pois.objective(x, batch, delta, bound), target, 2e-5 * STD)
    assert np.max(np.abs(found - exact)) < 1e-6 * np.max(np.abs(exact))


def test_pois_gradient_where_the_samples_were_drawn_is_that_of_pgpe():
    decisions, mediators, payoffs = some_batch(5)
    batch = pois.gather(decisions, mediators, payoffs, STD)
    ours = pois.objective_gradient(START, batch) * len(payoffs) / (len(payoffs) - 1)
    np.testing.assert_allclose(ours, pgpe.gradient(decisions, mediators, payoffs, STD), rtol=1e-10)


def test_pois_far_away_neither_overflows_nor_returns_nan():
    batch = pois.gather(*some_batch(6, late=5), STD)
    for stds in (30.0, 1e3, 1e8):  # d2 = e^900 and far beyond
        target = START + stds * STD
        assert -np.inf < pois.objective(target, batch) < -1e90
        assert np.isfinite(pois.objective_gradient(target, batch)).all()
        path = pois.ascend(target, batch, target - STD, target + STD)
        assert np.isfinite(path).all()
        single = pois.gather(START[None], START[None], np.ones(1), STD)
        assert np.isfinite(pois.objective_gradient(target, single)).all()


# POIS's search.


@given(seed=st.integers(0, 10**6), late=st.integers(0, 12), delta=st.floats(0.01, 0.99), bound=st.floats(0.01, 5))
def test_pois_never_goes_down(seed, late, delta, bound):
    batch = pois.gather(*some_batch(seed, late=late), STD)
    low, high = START - [0.01, 30, 0.4], START + np.array([0.09, 2, 3])
    path = pois.ascend(START, batch, low, high, delta, bound)
    assert np.array_equal(path[0], START)
    assert len(path) <= 31
    assert ((low <= path) & (path <= high)).all()
    values = [pois.objective(point, batch, delta, bound) for point in path]
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("late", [0, 10])
def test_pois_ends_at_a_maximum(late):
    """Nowhere around the end is better: neither where the gradient vanishes nor at a face of the box."""
    batch = pois.gather(*some_batch(7, n=200, late=late), STD)
    high = START + np.array([0.01, 100, 100])
    path = pois.ascend(START, batch, START - 100, high, 0.4, 1.0, 200)
    slope = STD * pois.objective_gradient(path[-1], batch)
    free = path[-1] < high
    assert len(path) > 2
    assert (np.abs(slope[free]) < 1e-4).all()
    assert (slope[~free] >= 0).all()
    rng = np.random.default_rng(8)
    around = np.clip(path[-1] + 0.3 * STD * rng.standard_normal((500, 3)), START - 100, high)
    assert max(pois.objective(point, batch) for point in around) <= pois.objective(path[-1], batch)


def test_pois_steps_shrink_with_the_failure_probability():
    batch = pois.gather(*some_batch(9, n=100), STD)
    ends = [pois.ascend(START, batch, START - 100, START + 100, delta)[-1] for delta in (0.01, 0.1, 0.4, 0.9)]
    lengths = [np.linalg.norm((end - START) / STD) for end in ends]
    assert (np.diff(lengths) > 0).all()
