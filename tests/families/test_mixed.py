"""Lists of families of different kinds: densities at atoms, divergences across kinds."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from randomist.families import Categorical, Dirac, Gaussian, Mixed, Uniform
from tests.families.cases import ALL_ORDERS, GAUSSIANS, ORDERS
from tests.families.oracles import assert_relative, exact_masses, exact_uniform_gaussian, nodes_on, renyi_by_quadrature


def test_mixed_density_at_atoms_and_elsewhere() -> None:
    family = Mixed((Uniform(low=[0, 0], high=[1, 2]), Dirac(at=0.25), Gaussian(0.0, 1.0), Categorical([0.5, 0.5, 0.0])))
    no = -math.inf
    at_half = float(stats.norm.logpdf(0.5))
    expected = {
        0.25: [no, no, 0, no, no],  # the Dirac's atom
        1.0: [no, no, no, no, math.log(0.5)],  # a category
        2.0: [no, -math.log(2), no, stats.norm.logpdf(2), no],  # a category without mass is no atom
        0.5: [0, -math.log(2), no, at_half, no],
        -7.0: [no, no, no, stats.norm.logpdf(-7), no],
    }
    actual = family.log_density(None, list(expected))
    np.testing.assert_allclose(actual, np.array(list(expected.values())).T, rtol=1e-14)
    np.testing.assert_array_equal(family.log_density([3], [0.25]), [[no]])  # the Dirac is there, asked for or not
    np.testing.assert_array_equal(family.log_density([4, 0], list(expected)), actual[[4, 0]])
    draws = family.sample([4, 2, 0], np.random.default_rng(0))
    assert draws.dtype == np.float64
    assert draws[1] == 0.25


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("low", "high"), [(-0.7, 1.9), (2.0, 5.5), (-4.0, -3.9)])
def test_mixed_uniform_against_gaussian_is_the_integral(low: float, high: float, order: float) -> None:
    mean, std = 0.4, 1.3
    family = Mixed((Gaussian(mean, std), Uniform(low, high)))
    x, w = nodes_on(low, high, panels=50)
    gaussian, uniform = stats.norm.logpdf(x, mean, std), stats.uniform.logpdf(x, low, high - low)
    assert family.log_renyi([1], [0], order)[0, 0] == pytest.approx(
        renyi_by_quadrature(uniform, gaussian, w, order), rel=1e-10
    )
    back = family.log_renyi([0], [1], order)[0, 0]
    if order >= 1:
        assert back == math.inf
    else:
        assert back == pytest.approx(renyi_by_quadrature(gaussian, uniform, w, order), rel=1e-10)


def test_mixed_uniform_against_gaussian_of_order_infinity_is_the_largest_log_ratio() -> None:
    family = Mixed((Gaussian(mean=[[0.4, 10.0]], std=[[1.3, 4.0]]), Uniform(low=[[-1.0, 11.0]], high=[[3.0, 12.0]])))
    x, y = np.linspace(-1, 3, 1001), np.linspace(11, 12, 1001)
    smallest = stats.norm.logpdf(x, 0.4, 1.3).min() + stats.norm.logpdf(y, 10, 4).min()
    assert family.log_renyi([1], [0], math.inf)[0, 0] == pytest.approx(-math.log(4) - smallest, rel=1e-12)
    assert family.log_renyi([0], [1], math.inf)[0, 0] == math.inf


FAR_AND_NARROW = [  # mean, std, low, high
    (0.3, 1.0, -1.0, 2.5),
    (0.0, 1.0, 40.0, 41.0),  # the Gaussian underflows on the box
    (0.0, 1.0, 30.0, 30.0 + 2**-30),
    (1.7, 2.0, 1.5, 1.5 + 2e-9),
    (1.0, 1e6, 0.0, 1e-3),
    (0.2, 1e-2, -5.0, 3.0),  # 500 stds wide
    (0.0, 1.0, 0.0, 3.0),  # from the mean on
    (-5.0, 1.0, -5.000001, 20.0),
    (0.0, 1.0, 0.9, 1.9),
]


@pytest.mark.parametrize("order", ALL_ORDERS)
@pytest.mark.parametrize(("mean", "std", "low", "high"), FAR_AND_NARROW)
def test_mixed_uniform_against_gaussian_keeps_its_digits(
    mean: float, std: float, low: float, high: float, order: float
) -> None:
    family = Mixed((Gaussian(mean, std), Uniform(low, high)))
    assert_relative(family.log_renyi([1], [0], order)[0, 0], exact_uniform_gaussian(low, high, mean, std, order), 1e-11)
    if order < 1:
        exact = mp.mpf(order) / (1 - mp.mpf(order)) * exact_uniform_gaussian(low, high, mean, std, 1 - mp.mpf(order))
        assert_relative(family.log_renyi([0], [1], order)[0, 0], exact, 1e-11)


def test_mixed_uniform_against_gaussian_survives_scales_at_the_edge_of_float64() -> None:
    for mean, std, low, high in [
        (0, 1e-300, -1e300, 1e300),
        (1e308, 1e-5, 0, 5e-324),
        (0, 1e300, 0, 1e-300),
        (0, 1, 5, 1e200),
    ]:
        family = Mixed((Gaussian(mean, std), Uniform(low, high)))
        for order in [1e-300, *ALL_ORDERS, 1e300]:
            divergence = family.log_renyi(None, None, order)
            assert not np.isnan(divergence).any(), (mean, std, low, high, order)
            assert (divergence >= 0).all()
    tiny = Mixed((Gaussian(0, 1e300), Uniform(0, 1e-300)))
    assert tiny.log_renyi([1], [0])[0, 0] == pytest.approx(
        math.log(math.sqrt(2 * math.pi)) + 600 * math.log(10), rel=1e-13
    )


def test_mixed_exponents_in_the_thousands_do_not_overflow() -> None:
    family = Mixed((Gaussian(0.0, 1.0), Uniform(90.0, 100.0)))
    assert family.log_renyi([1], [0], 3.0)[0, 0] == pytest.approx(5000, rel=1e-2)
    assert family.log_renyi([0], [1], 0.5)[0, 0] == pytest.approx(0.5 * 90**2, rel=1e-2)


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_mixed_discrete_against_continuous_is_infinite(order: float) -> None:
    family = Mixed((Dirac(0.5), Gaussian(0.5, 1.0), Categorical([0.5, 0.5]), Uniform(-1, 2)))
    divergence = family.log_renyi(None, None, order)
    for discrete in (0, 2):
        for continuous in (1, 3):
            assert divergence[discrete, continuous] == math.inf
            assert divergence[continuous, discrete] == math.inf


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_mixed_discrete_pairs_sum_over_atoms(order: float) -> None:
    family = Mixed(
        (Dirac(at=[1.0, 0.5]), Categorical([0.2, 0.8]), Dirac(at=2.0), Categorical([[0.0, 0.0, 1.0], [0.5, 0.0, 0.5]]))
    )
    atoms = [0.0, 0.5, 1.0, 2.0]
    masses = np.exp(family.log_density(None, atoms))
    np.testing.assert_allclose(masses.sum(axis=1), 1, rtol=1e-14)
    actual = family.log_renyi(None, None, order)
    for i, p in enumerate(masses):
        for j, q in enumerate(masses):
            assert actual[i, j] == pytest.approx(float(exact_masses(p, q, order)), rel=1e-11)


def test_mixed_joins_what_is_alike() -> None:
    """A list of one-member families is the family with all members, to the last bit."""
    z = np.linspace(-3, 5, 7)
    rows = [Gaussian(m, s) for m, s in zip(GAUSSIANS.mean, GAUSSIANS.std, strict=True)]
    mixed = Mixed(tuple(rows))
    np.testing.assert_array_equal(mixed.log_density(None, z), GAUSSIANS.log_density(None, z))
    np.testing.assert_array_equal(mixed.log_renyi(None, None), GAUSSIANS.log_renyi(None, None))
    one, other = (f.sample(None, np.random.default_rng(5)) for f in (mixed, GAUSSIANS))
    np.testing.assert_array_equal(one, other)
    nested = Mixed((Mixed((Dirac(0.0), rows[0])), rows[1]))
    assert [type(part) for part in nested.parts] == [Dirac, Gaussian, Gaussian]
