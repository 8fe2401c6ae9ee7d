"""Gaussians against quadrature of the definition, and mpmath at high precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from randomist.families import Gaussian
from tests.families.cases import ALL_ORDERS, GAUSSIANS, LOCATION, ORDERS, PLANE
from tests.families.oracles import assert_relative, exact_gaussian, nodes_on, renyi_by_quadrature


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("p", "q"),
    [
        ((0, 1), (0.3, 1.4)),
        ((-2, 0.11), (-1.7, 0.1)),
        ((5, 2e-3), (5.001, 3e-3)),
        ((1e3, 20), (950, 31)),
        ((0, 2), (1, 2)),
    ],
)
def test_gaussian_renyi_is_the_integral(p: tuple[float, float], q: tuple[float, float], order: float) -> None:
    reach = 60 * max(p[1], q[1])
    x, w = nodes_on(p[0] - reach, p[0] + reach)
    expected = renyi_by_quadrature(stats.norm.logpdf(x, *p), stats.norm.logpdf(x, *q), w, order)
    family = Gaussian(mean=[p[0], q[0]], std=[p[1], q[1]])
    assert family.log_renyi([0], [1], order)[0, 0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", ORDERS)
def test_gaussian_renyi_in_two_dimensions_is_the_integral(order: float) -> None:
    x, wx = nodes_on(-20, 20, panels=40)
    y, wy = nodes_on(-3500, 3500, panels=150)
    w = (wx[:, None] + wy).ravel()
    log_p = [
        np.add.outer(stats.norm.logpdf(x, m[0], s[0]), stats.norm.logpdf(y, m[1], s[1])).ravel()
        for m, s in zip(PLANE.mean, PLANE.std, strict=True)
    ]
    actual = PLANE.log_renyi(None, None, order)
    for i, j in [(0, 1), (2, 1), (2, 0), (0, 2)]:
        s2 = order * PLANE.std[j] ** 2 + (1 - order) * PLANE.std[i] ** 2
        if (s2 <= 0).any():
            assert actual[i, j] == math.inf
        else:
            assert actual[i, j] == pytest.approx(renyi_by_quadrature(log_p[i], log_p[j], w, order), rel=1e-9)


@pytest.mark.parametrize("order", ALL_ORDERS)
def test_gaussian_renyi_keeps_its_digits(order: float) -> None:
    rng = np.random.default_rng(1)
    for i in range(40):  # close stds, far means, scales from 1e-6 to 1e6
        mean_p, mean_q = rng.normal(size=2) * 10.0 ** rng.uniform(-6, 4)
        std_p = 10.0 ** rng.uniform(-6, 6)
        std_q = std_p * abs(1 + rng.normal() * 10.0 ** rng.uniform(-10, -1)) if i % 2 else 10.0 ** rng.uniform(-6, 6)
        mean_q = mean_p if i % 5 == 0 else mean_q
        family = Gaussian(mean=[mean_p, mean_q], std=[std_p, std_q])
        exact = exact_gaussian(mean_p, std_p, mean_q, std_q, order)
        assert_relative(family.log_renyi([0], [1], order)[0, 0], exact, 1e-11)


def test_gaussian_renyi_of_order_infinity_is_the_largest_log_ratio() -> None:
    x = np.linspace(-30, 30, 600_001)
    family = Gaussian(mean=[0.0, 0.7], std=[1.0, 1.5])
    expected = (stats.norm.logpdf(x, 0, 1) - stats.norm.logpdf(x, 0.7, 1.5)).max()
    assert family.log_renyi([0], [1], math.inf)[0, 0] == pytest.approx(expected, abs=1e-8)


def test_gaussian_renyi_diverges_where_the_tails_do() -> None:
    family = Gaussian(mean=[0.0, 0.0, 1.0], std=[math.sqrt(2), 1.0, 1.0])
    wide, narrow, shifted = 0, 1, 2
    assert family.log_renyi([wide], [narrow], 2.0)[0, 0] == math.inf  # 2 σ_q² - σ_p² = 0 is the edge
    assert np.isfinite(family.log_renyi([wide], [narrow], 1.99)[0, 0])
    assert family.log_renyi([wide], [narrow], math.inf)[0, 0] == math.inf
    assert family.log_renyi([shifted], [narrow], math.inf)[0, 0] == math.inf  # equal stds, other means
    assert family.log_renyi([shifted], [narrow], 1e6)[0, 0] == pytest.approx(5e5)
    assert GAUSSIANS.log_renyi([4], [3], 2.0)[0, 0] == math.inf
    assert Gaussian([0, 3.0], 0.1).log_renyi([0], [1])[0, 0] == pytest.approx(900)  # the paper's e^900


def test_gaussian_renyi_survives_scales_at_the_edge_of_float64() -> None:
    family = Gaussian(mean=[0.0, 1e200, -1e308, 1e308], std=[1e-200, 1e200, 1e-300, 1e300])
    for order in ALL_ORDERS:
        divergence = family.log_renyi(None, None, order)
        assert not np.isnan(divergence).any()
        assert (divergence >= 0).all()
        assert (np.diag(divergence) == 0).all()
    exact = exact_gaussian(0.0, 1e-200, 1e200, 1e200, 2.0)
    assert_relative(family.log_renyi([0], [1])[0, 0], exact)


def test_location_family_equals_its_members() -> None:
    points = np.array([[0.1, 3.0], [-0.5, 7.0], [0.9, 19.0]])
    members = LOCATION.at(points)
    z = np.array([[0.0, 1.0], [0.3, 9.0]])
    np.testing.assert_array_equal(LOCATION.log_density(points, z), members.log_density(None, z))
    for order in ALL_ORDERS:
        np.testing.assert_array_equal(LOCATION.log_renyi(points, points, order), members.log_renyi(None, None, order))
