"""What all families share: densities and samples against scipy.stats, batches, states, laws of divergences."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from randomist.families import Categorical, Dirac, Family, Gaussian, Mixed, Uniform, family_from_state
from tests.families.cases import BOXES, FAMILIES, GAUSSIANS, LOCATION, PLANE, POINTS, TABLE

FALSE_ALARM = 1e-6  # of each statistical test, over seeds; the seeds are fixed


def test_log_density_is_that_of_scipy() -> None:
    z = np.array([-7.0, 0.0, 0.3, 0.7, 2.95, 1e4])
    expected = [stats.norm.logpdf(z, m, s) for m, s in zip(GAUSSIANS.mean, GAUSSIANS.std, strict=True)]
    np.testing.assert_allclose(GAUSSIANS.log_density(None, z), expected, rtol=1e-13)
    z2 = np.array([[0.0, 80.0], [1.0, 1.0], [-9.0, 500.0]])
    expected = [stats.norm.logpdf(z2, m, s).sum(axis=1) for m, s in zip(PLANE.mean, PLANE.std, strict=True)]
    np.testing.assert_allclose(PLANE.log_density(None, z2), expected, rtol=1e-13)
    np.testing.assert_allclose(
        LOCATION.log_density([[0.1, 2.0]], z2), [stats.norm.logpdf(z2, [0.1, 2], [0.15, 3]).sum(axis=1)]
    )
    expected = [stats.uniform.logpdf(z, lo, hi - lo) for lo, hi in zip(BOXES.low, BOXES.high, strict=True)]
    np.testing.assert_allclose(BOXES.log_density(None, z), expected, rtol=1e-13)
    box = Uniform(low=[[0.0, -50.0]], high=[[1.0, 100.0]])
    np.testing.assert_allclose(box.log_density(None, z2), [[-math.log(150), -math.log(150), -math.inf]])


@pytest.mark.parametrize("name", FAMILIES)
def test_log_density_of_no_mediator_is_minus_infinity(name: str) -> None:
    family = FAMILIES[name]
    z = np.stack([np.full(family.shape, v) for v in (math.nan, math.inf, -math.inf)])
    assert (family.log_density(None, z) == -math.inf).all()
    if not family.shape:
        assert (family.log_densities(math.nan) == -math.inf).all()


def test_gaussian_and_uniform_samples_pass_kolmogorov_smirnov() -> None:
    rng = np.random.default_rng(11)
    n = 20_000
    for k, (m, s) in enumerate(zip(PLANE.mean, PLANE.std, strict=True)):
        draws = PLANE.sample(np.full(n, k), rng)
        for d in range(2):
            assert stats.kstest(draws[:, d], stats.norm(m[d], s[d]).cdf).pvalue > FALSE_ALARM
        assert stats.pearsonr(draws[:, 0], draws[:, 1]).pvalue > FALSE_ALARM
    for k in range(5):
        draws = BOXES.sample(np.full(n, k), rng)
        assert stats.kstest(draws, stats.uniform(BOXES.low[k], BOXES.high[k] - BOXES.low[k]).cdf).pvalue > FALSE_ALARM
    draws = LOCATION.sample(np.tile([0.5, 7.0], (n, 1)), rng)
    assert stats.kstest(draws[:, 1], stats.norm(7.0, 3.0).cdf).pvalue > FALSE_ALARM


def test_categorical_samples_pass_chi_square() -> None:
    rng = np.random.default_rng(12)
    for k in range(4):
        counts = np.bincount(TABLE.sample(np.full(20_000, k), rng), minlength=3)
        positive = TABLE.probabilities[k] > 0
        assert (counts[~positive] == 0).all()
        if positive.sum() > 1:
            expected = 20_000 * TABLE.probabilities[k][positive]
            assert stats.chisquare(counts[positive], expected).pvalue > FALSE_ALARM


def test_uniform_samples_never_leave_the_box() -> None:
    narrow = Uniform(low=1.0, high=np.nextafter(1.0, 2.0))
    draws = narrow.sample(np.zeros(1000, dtype=np.int64), np.random.default_rng(0))
    assert (narrow.log_density([0], draws) > -math.inf).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_batch_draws_like_a_sequence(name: str) -> None:
    family = FAMILIES[name]
    decisions = np.random.default_rng(0).integers(family.members, size=20)
    together, apart = np.random.default_rng(1), np.random.default_rng(1)
    expected = np.concatenate([family.sample([k], apart) for k in decisions])
    np.testing.assert_array_equal(family.sample(decisions, together), expected)
    assert family.sample([], together).shape == (0, *family.shape)


@pytest.mark.parametrize("name", FAMILIES)
def test_state_survives_json(name: str) -> None:
    family = FAMILIES[name]
    restored = family_from_state(json.loads(json.dumps(family.state(), default=np.ndarray.tolist)))
    draws = family.sample(None, np.random.default_rng(0))
    np.testing.assert_array_equal(restored.log_density(None, draws), family.log_density(None, draws))
    np.testing.assert_array_equal(restored.log_renyi(None, None), family.log_renyi(None, None))


def test_parameters_cannot_be_changed() -> None:
    mean = np.array([0.0, 1.0])
    family = Gaussian(mean=mean, std=1.0)
    mean[0] = 7.0
    assert family.mean[0] == 0.0
    for array in (family.mean, BOXES.low, BOXES.high, TABLE.probabilities, POINTS.at):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


finite = st.floats(-1e3, 1e3)
positive = st.floats(1e-3, 1e3)
masses = st.lists(st.floats(1e-6, 1.0) | st.just(0.0), min_size=3, max_size=3).filter(any)


@st.composite
def members(draw: Any) -> Family:
    kind = draw(st.sampled_from(["gaussian", "uniform", "categorical", "dirac"]))
    if kind == "gaussian":
        return Gaussian(draw(finite), draw(positive))
    if kind == "uniform":
        low = draw(finite)
        return Uniform(low, low + draw(positive))
    if kind == "categorical":
        weights = np.array(draw(masses))
        return Categorical(weights / weights.sum())
    return Dirac(draw(st.sampled_from([0.0, 1.0, 2.0, 0.5])))


@settings(deadline=None, max_examples=150)
@given(st.lists(members(), min_size=1, max_size=4), st.floats(0.01, 50.0), st.floats(0.01, 50.0))
def test_renyi_laws(parts: list[Family], order: float, other: float) -> None:
    family = Mixed(tuple(parts))
    lower, upper = (family.log_renyi(None, None, a) for a in sorted((order, other)))
    for values in (lower, upper, family.log_renyi(None, None, math.inf)):
        assert not np.isnan(values).any()
        assert (values >= 0).all()
        np.testing.assert_array_equal(np.diag(values), 0)
    assert (upper >= lower * (1 - 1e-9) - 1e-12).all()
    assert (family.log_renyi(None, None, math.inf) >= upper * (1 - 1e-9) - 1e-12).all()


@settings(deadline=None, max_examples=100)
@given(st.lists(members(), min_size=2, max_size=4), st.floats(0.05, 0.95))
def test_renyi_is_skew_symmetric_below_order_one(parts: list[Family], order: float) -> None:
    """(1 - a) D_a(p || q) = a D_{1-a}(q || p)."""
    family = Mixed(tuple(parts))
    one, other = (1 - order) * family.log_renyi(None, None, order), order * family.log_renyi(None, None, 1 - order).T
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
