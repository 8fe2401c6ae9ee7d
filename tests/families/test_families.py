"""Families against independent oracles: quadrature of the definition, mpmath at high precision, scipy.stats."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from randomist.errors import EmptySpaceError, ParameterError, RandomistError, ShapeError, StateError
from randomist.families import Categorical, Dirac, Family, Gaussian, Mixed, Uniform, family_from_state
from randomist.testing import check_family

ORDERS = [0.5, 1.0, 2.0, 3.0]
ALL_ORDERS = [0.05, 0.5, 0.9, 1.0, 1.0 + 1e-9, 1.5, 2.0, 3.0, 20.0, math.inf]
FALSE_ALARM = 1e-6  # of each statistical test, over seeds; the seeds are fixed

GAUSSIANS = Gaussian(mean=[0, 1, 2, 2.95, 3], std=[2, 2, 2, 0.1, 2])
PLANE = Gaussian(mean=[[0.0, 100.0], [0.3, 80.0], [-2.0, 130.0]], std=[[0.5, 40.0], [0.6, 31.0], [0.45, 33.0]])
BOXES = Uniform(low=[0.0, 0.2, -1.0, 0.9, 7.0], high=[1.0, 0.7, 3.0, 4.0, 8.0])
TABLE = Categorical([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]])
POINTS = Dirac(at=[0.25, 1.0, 1.0, -3.0])
MIXTURE = Mixed((Uniform(0, 1), Dirac(0.25), Gaussian([0.1, 0.6], [0.5, 0.2]), Categorical([0.5, 0.5]), Dirac(1)))
LOCATION = Gaussian(std=[0.15, 3.0])

FAMILIES = {
    "gaussian": GAUSSIANS,
    "gaussian-2d": PLANE,
    "gaussian-one": Gaussian(mean=-3.0, std=1e-4),
    "uniform": BOXES,
    "uniform-2d": Uniform(low=[[0.0, -50.0], [0.1, -20.0]], high=[[1.0, 50.0], [0.7, 90.0]]),
    "categorical": TABLE,
    "categorical-one": Categorical([0.25, 0.75]),
    "dirac": POINTS,
    "dirac-2d": Dirac(at=[[0.0, 1.0], [0.0, 2.0]]),
    "mixed": MIXTURE,
    "mixed-2d": Mixed((PLANE, Dirac(at=[[0.0, 100.0]]), Uniform(low=[[-1.0, 60.0]], high=[[1.0, 140.0]]))),
    "mixed-alike": Mixed((Gaussian(0.0, 1.0), Gaussian(0.5, 1.2))),
}


# --- oracles ---------------------------------------------------------------------------------------------------------


def nodes_on(low: float, high: float, panels: int = 400) -> tuple[Any, Any]:
    """Composite Gauss-Legendre nodes and log weights."""
    x, w = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, panels + 1)
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half) + half * x
    return nodes.ravel(), np.log(np.broadcast_to(half * w, nodes.shape)).ravel()


def renyi_by_quadrature(log_p: Any, log_q: Any, log_weights: Any, order: float) -> float:
    """The definition, on nodes that cover what matters of p^order q^(1-order)."""
    inside = log_p > -np.inf
    log_p, log_q, log_weights = log_p[inside], log_q[inside], log_weights[inside]
    if order == 1:
        return float(np.sum(np.exp(log_weights + log_p) * (log_p - log_q)))
    return float(logsumexp(log_weights + order * log_p + (1 - order) * log_q) / (order - 1))


def exact_gaussian(mean_p: float, std_p: float, mean_q: float, std_q: float, order: float) -> Any:
    """Gil et al. (2013), Table 2, at 60 digits."""
    a, b, s, t = (mp.mpf(float(v)) for v in (mean_p, mean_q, std_p, std_q))
    if order == math.inf:
        return mp.log(t / s) + (a - b) ** 2 / (2 * (t**2 - s**2)) if s < t else mp.inf
    order = mp.mpf(order)
    if order == 1:
        return mp.log(t / s) + (s**2 - t**2 + (a - b) ** 2) / (2 * t**2)
    mixed = order * t**2 + (1 - order) * s**2
    if mixed <= 0:
        return mp.inf
    return mp.log(t / s) + mp.log(t**2 / mixed) / (2 * (order - 1)) + order * (a - b) ** 2 / (2 * mixed)


def exact_uniform_gaussian(low: float, high: float, mean: float, std: float, order: Any) -> Any:
    """D_order(Uniform || Gaussian), by erf, erfc and erfi at 100 digits."""
    low, high, mean, std = (mp.mpf(float(v)) for v in (low, high, mean, std))
    a, b = (low - mean) / std, (high - mean) / std
    offset = mp.log(std * mp.sqrt(2 * mp.pi) / (high - low))
    if order == math.inf:
        return offset + max(a * a, b * b) / 2
    rate = 1 - mp.mpf(order)
    if rate == 0:
        return offset + (a * a + a * b + b * b) / 6
    k = mp.sqrt(abs(rate) / 2)
    with mp.workdps(100):  # a narrow box loses some of them
        if rate < 0:
            integral = mp.erfi(k * b) - mp.erfi(k * a)
        elif a * b > 0:  # in one tail
            integral = abs(mp.erfc(k * abs(a)) - mp.erfc(k * abs(b)))
        else:
            integral = mp.erf(k * b) - mp.erf(k * a)
        return offset - mp.log(integral * mp.sqrt(mp.pi) / (2 * k * (b - a))) / rate


def exact_masses(p: Any, q: Any, order: float) -> Any:
    """The definition over atoms, of rows whose sum is 1 to all digits."""
    p, q = ([mp.mpf(float(mass)) / mp.fsum(row) for mass in row] for row in (p, q))
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    if order >= 1 and any(b == 0 for _, b in pairs):
        return mp.inf
    if order == math.inf:
        return max(mp.log(a / b) for a, b in pairs)
    if order == 1:
        return mp.fsum(a * mp.log(a / b) for a, b in pairs)
    order = mp.mpf(order)
    total = mp.fsum(a**order * b ** (1 - order) for a, b in pairs)
    return mp.log(total) / (order - 1) if total > 0 else mp.inf


def assert_relative(value: float, exact: Any, tolerance: float = 1e-10) -> None:
    if mp.isinf(exact):
        assert value == math.inf
    else:
        assert abs(mp.mpf(float(value)) - exact) <= tolerance * abs(exact), f"{value} is not {mp.nstr(exact, 17)}"


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mp.workdps(60):
        yield


# --- Gaussian --------------------------------------------------------------------------------------------------------


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


# --- Uniform ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_uniform_renyi_is_the_integral(order: float) -> None:
    actual = BOXES.log_renyi(None, None, order)
    edges = np.unique(np.concatenate([BOXES.low, BOXES.high]))
    x, w = (np.concatenate(v) for v in zip(*(nodes_on(*e, panels=2) for e in pairwise(edges)), strict=True))
    log_p = [stats.uniform.logpdf(x, lo, hi - lo) for lo, hi in zip(BOXES.low, BOXES.high, strict=True)]
    for i in range(5):
        for j in range(5):
            with np.errstate(divide="ignore", over="ignore"):
                expected = renyi_by_quadrature(log_p[i], log_p[j], w, order)
            assert actual[i, j] == pytest.approx(expected, rel=1e-10, abs=1e-13), (i, j)


def test_uniform_renyi_adds_over_dimensions() -> None:
    family = Uniform(low=[[0.0, -3.0], [-1.0, -4.0], [0.5, -3.5]], high=[[1.0, 1.0], [2.0, 1.0], [1.5, 0.0]])
    for order in [*ORDERS, math.inf]:
        total = sum(Uniform(family.low[:, d], family.high[:, d]).log_renyi(None, None, order) for d in range(2))
        np.testing.assert_allclose(family.log_renyi(None, None, order), total, rtol=1e-14)
    assert family.log_renyi([0], [1], 2.0)[0, 0] == pytest.approx(math.log(3 * 5 / 4))
    assert family.log_renyi([0], [2], 1.0)[0, 0] == math.inf
    # order 1/2: -2 log ∫ √(pq) = -2 log(0.5 · 3 / √(4 · 3.5))
    assert family.log_renyi([0], [2], 0.5)[0, 0] == pytest.approx(-2 * math.log(1.5 / math.sqrt(14)))


def test_uniform_renyi_keeps_its_digits() -> None:
    low, high, wider = 1.0, 2.0, 2.0 + 2**-40
    family = Uniform(low=[low, low, 0.0, 0.0], high=[high, wider, 1e-200, 1e200])
    assert_relative(family.log_renyi([0], [1])[0, 0], mp.log1p(mp.mpf(2) ** -40), 1e-15)
    assert_relative(family.log_renyi([2], [3])[0, 0], 400 * mp.log(10), 1e-14)
    assert_relative(family.log_renyi([1], [0], 0.5)[0, 0], mp.log1p(mp.mpf(2) ** -40), 1e-15)


def test_uniform_touching_boxes_share_nothing() -> None:
    family = Uniform(low=[0.0, 1.0], high=[1.0, 2.0])
    for order in [0.5, 1.0, 2.0, math.inf]:
        np.testing.assert_array_equal(family.log_renyi(None, None, order), [[0, math.inf], [math.inf, 0]])
    np.testing.assert_array_equal(family.log_density(None, [1.0, 0.0, 2.0]), [[0, 0, -math.inf], [0, -math.inf, 0]])


def test_uniform_broadcasts() -> None:
    assert (Uniform(0, 1).members, Uniform(0, 1).shape) == (1, ())
    assert (Uniform(0, [1, 2, 3]).members, Uniform(0, [1, 2, 3]).shape) == (3, ())
    family = Uniform(low=[0, -5], high=[[1, 5], [2, 6], [3, 7]])
    assert (family.members, family.shape) == (3, (2,))
    np.testing.assert_array_equal(family.low, [[0, -5]] * 3)


# --- Categorical and Dirac -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [*ORDERS, 0.05, 1 + 1e-9, math.inf])
def test_categorical_renyi_is_the_sum(order: float) -> None:
    rng = np.random.default_rng(3)
    rows = [*TABLE.probabilities, *rng.dirichlet([0.05, 1.0, 3.0], size=6), [1 - 1e-14, 1e-14, 0.0], [1e-300, 0.0, 1.0]]
    family = Categorical(rows)
    actual = family.log_renyi(None, None, order)
    for i, p in enumerate(family.probabilities):
        for j, q in enumerate(family.probabilities):
            assert float(actual[i, j]) == pytest.approx(float(exact_masses(p, q, order)), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("order", ORDERS)
def test_categorical_renyi_keeps_its_digits_for_rows_that_almost_agree(order: float) -> None:
    step = 2.0**-30
    p, q = [0.5 + step, 0.25 - step, 0.25], [0.5, 0.25, 0.25]  # exact in float64, and exactly normalised
    actual = Categorical([p, q]).log_renyi([0], [1], order)[0, 0]
    assert_relative(actual, exact_masses(p, q, order), 1e-13)


def test_categorical_mediators_may_be_anything() -> None:
    z = [0, 1.0, 2, -1, 3, 0.5, math.nan, math.inf, -math.inf, 1e300]
    expected = np.full((4, 10), -np.inf)
    with np.errstate(divide="ignore"):
        expected[:, :3] = np.log(TABLE.probabilities)
    np.testing.assert_array_equal(TABLE.log_density(None, z), expected)
    np.testing.assert_array_equal(TABLE.log_density([2], np.array([1, 2])), expected[2:3, 1:3])
    assert TABLE.sample([0, 1], np.random.default_rng(0)).dtype == np.int64


def test_categorical_is_normalised_once() -> None:
    family = Categorical([1 / 3, 1 / 3, 1 / 3 - 1e-10])
    assert family.probabilities.sum() == pytest.approx(1, abs=1e-15)
    again = Categorical(family.probabilities)
    np.testing.assert_array_equal(again.probabilities, family.probabilities)


def test_dirac_is_exact() -> None:
    np.testing.assert_array_equal(POINTS.sample(None, np.random.default_rng(0)), POINTS.at)
    above = np.nextafter(0.25, 1)
    np.testing.assert_array_equal(POINTS.log_density([0], [0.25, above, math.nan]), [[0, -math.inf, -math.inf]])
    for order in ALL_ORDERS:
        expected = np.where(POINTS.at[:, None] == POINTS.at, 0, math.inf)
        np.testing.assert_array_equal(POINTS.log_renyi(None, None, order), expected)


# --- Mixed -----------------------------------------------------------------------------------------------------------


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


# --- what all share --------------------------------------------------------------------------------------------------


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


# --- errors: typed, with the value, the bound and the remedy ---------------------------------------------------------

ERRORS: list[tuple[Callable[[], object], type[RandomistError], str]] = [
    (lambda: Uniform(1, 1), ParameterError, r"low must be below high .* low=1.0 and high=1.0; .* Dirac"),
    (lambda: Uniform([0, 3], [1, 2]), ParameterError, r"low=\[0. 3.\] and high=\[1. 2.\]"),
    (lambda: Uniform(0, math.inf), ParameterError, r"high must be finite, got inf"),
    (lambda: Uniform(math.nan, 1), ParameterError, r"low must be finite, got nan"),
    (lambda: Uniform(-1.7e308, 1.7e308), ParameterError, r"high - low must be finite.*rescale"),
    (lambda: Uniform([0, 1], [2, 3, 4]), ShapeError, r"\(2,\) and high of shape \(3,\) do not broadcast; give"),
    (lambda: Uniform(np.zeros((1, 1, 1)), 1), ShapeError, r"\(K,\) or \(K, d\), got \(1, 1, 1\)"),
    (lambda: Uniform([], []), EmptySpaceError, r"\(0,\) have no members; give"),
    (lambda: Uniform("wide", 1), ParameterError, r"low must be a number .* 'wide'"),
    (lambda: Categorical([0.5, 0.6]), ParameterError, r"sum to 1 within 1e-09, got a sum of 1.1 in row 0; divide"),
    (lambda: Categorical([[0.5, 0.5], [1e308, 1.5e308]]), ParameterError, r"sum of inf in row 1"),
    (lambda: Categorical([1.5, -0.5]), ParameterError, r"must be >= 0, got -0.5"),
    (lambda: Categorical([math.nan, 1]), ParameterError, r"probabilities must be finite"),
    (lambda: Categorical(1.0), ShapeError, r"\(C,\) or \(K, C\), got \(\)"),
    (lambda: Categorical(np.ones((1, 1, 1))), ShapeError, r"got \(1, 1, 1\)"),
    (lambda: Categorical([]), EmptySpaceError, r"have no categories; give"),
    (lambda: Categorical([[0.5, 0.5], [1.0]]), ParameterError, r"array of numbers"),
    (lambda: Dirac(math.inf), ParameterError, r"at must be finite, got inf"),
    (lambda: Dirac(np.zeros((2, 2, 2))), ShapeError, r"\(K, d\), got \(2, 2, 2\)"),
    (lambda: Dirac([]), EmptySpaceError, r"\(0,\) has no members; give"),
    (lambda: Gaussian(0, 0), ParameterError, r"std must be > 0, got 0.0; .* Dirac"),
    (lambda: Gaussian(0, -1), ParameterError, r"std must be > 0, got -1.0"),
    (lambda: Gaussian([0, math.nan]), ParameterError, r"mean must be finite"),
    (lambda: Gaussian([0, 1], [1, 2, 3]), ShapeError, r"\(3,\) does not broadcast to mean's \(2,\)"),
    (lambda: Gaussian(np.zeros((1, 1, 1))), ShapeError, r"got \(1, 1, 1\)"),
    (lambda: Gaussian([]), EmptySpaceError, r"no members; give"),
    (lambda: Gaussian(std=[[1.0]]), ShapeError, r"without a mean, std .* got \(1, 1\)"),
    (lambda: Mixed(()), EmptySpaceError, r"at least one part"),
    (lambda: Mixed((Gaussian(0), 3)), ParameterError, r"must be a Family, got 3; .* Dirac"),  # type: ignore[arg-type]
    (lambda: Mixed((Gaussian(std=1.0),)), ParameterError, r"needs members, .* give it a mean"),
    (lambda: Mixed((Gaussian(0), Dirac([[0, 1]]))), ShapeError, r"share the shape .* \(\) and \(2,\)"),
    (lambda: family_from_state({"kind": "Cauchy"}), StateError, r"'Cauchy'.*known kinds.*imported"),
    (lambda: family_from_state({"at": 0}), StateError, r"'kind'"),
    (lambda: family_from_state({"kind": "Dirac", "where": 0}), StateError, r"where"),
    (lambda: GAUSSIANS.log_renyi(None, None, 0), ParameterError, r"order must be > 0 .* got 0"),
    (lambda: MIXTURE.log_renyi(None, None, -1), ParameterError, r"got -1"),
    (lambda: TABLE.log_renyi(None, None, math.nan), ParameterError, r"got nan"),
    (lambda: POINTS.log_renyi(None, None, 0), ParameterError, r"order must be > 0"),
    (lambda: BOXES.log_renyi(None, None, 0), ParameterError, r"order must be > 0"),
    (lambda: GAUSSIANS.log_density([5], 0.0), ParameterError, r"0..4, got 5..5"),
    (lambda: BOXES.sample([-1], np.random.default_rng()), ParameterError, r"0..4, got -1..-1"),
    (lambda: TABLE.sample([0, 4], np.random.default_rng()), ParameterError, r"0..3, got 0..4"),
    (lambda: MIXTURE.log_density([0.5], 0.0), ShapeError, r"integers, got float64"),
    (lambda: POINTS.log_density([[0]], 0.0), ShapeError, r"1-D .* shape \(1, 1\)"),
    (lambda: PLANE.log_density(None, 0.0), ShapeError, r"mediators .* got \(\)"),
    (lambda: PLANE.log_densities(0.0), ShapeError, r"mediators .* got \(\)"),
    (lambda: PLANE.log_density(None, np.zeros((3, 3))), ShapeError, r"\(2,\), got \(3, 3\)"),
    (lambda: GAUSSIANS.log_density(None, np.zeros((3, 1))), ShapeError, r"got \(3, 1\)"),
    (lambda: LOCATION.log_density(None, [0.0, 1.0]), ParameterError, r"name the decisions"),
    (lambda: LOCATION.sample([[1.0, 2.0, 3.0]], np.random.default_rng()), ShapeError, r"decisions .* got \(1, 3\)"),
]


@pytest.mark.parametrize(("act", "error", "message"), ERRORS)
def test_errors_name_the_value_the_bound_and_the_remedy(
    act: Callable[[], object], error: type[RandomistError], message: str
) -> None:
    with pytest.raises(error, match=message):
        act()


# --- laws ------------------------------------------------------------------------------------------------------------

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


# --- the contract, and what breaks it --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_contract(name: str) -> None:
    check_family(FAMILIES[name], np.random.default_rng(2))


def test_contract_of_location_families() -> None:
    check_family(LOCATION, decisions=[[0.0, 1.0], [0.1, 3.0], [-1.0, 4.0]])
    check_family(Gaussian(std=0.4), decisions=[0.0, 0.1, 0.5])
    with pytest.raises(AssertionError, match="checked at points"):
        check_family(LOCATION)


@dataclass(frozen=True, eq=False)
class Broken(Gaussian):
    """A Gaussian with one fault."""

    fault: str = ""

    def sample(self, decisions: Any, rng: np.random.Generator) -> Any:
        draws = super().sample(decisions, np.random.default_rng() if self.fault == "seed" else rng)
        if self.fault == "spread":
            return 1.3 * draws
        return draws[:, None] if self.fault == "shape" else draws

    def draw(self, decision: Any, rng: np.random.Generator) -> Any:
        return self.sample([decision], rng)[0] + (self.fault == "draw")

    def log_density(self, decisions: Any, mediators: Any) -> Any:
        density = super().log_density(decisions, mediators)
        if self.fault == "nan":
            return np.where(density < -1e100, np.nan, density)
        if self.fault == "support":
            return np.where(density < -2, -np.inf, density)
        if self.fault == "none":
            return density[::-1] if decisions is None else density
        return density.T if self.fault == "axes" else density

    def log_densities(self, mediator: Any) -> Any:
        return super().log_densities(mediator) + (self.fault == "densities")

    def log_renyi(self, decisions: Any, others: Any, order: float = 2.0) -> Any:
        values = super().log_renyi(decisions, others, order)
        if self.fault == "sign":
            return -values
        if self.fault == "direction":
            return super().log_renyi(others, decisions, order).T
        if self.fault == "half":
            return values / 2
        if self.fault == "order":
            return super().log_renyi(decisions, others, 1 / min(order, 1e3))
        if self.fault == "bound":
            return (
                0.9 * values
                if order == math.inf
                else np.minimum(values, 0.9 * super().log_renyi(decisions, others, math.inf))
            )
        if self.fault == "self":
            return values + 1e-3
        return values

    def state(self) -> dict[str, Any]:
        return super().state() | ({"std": 1.0} if self.fault == "state" else {})


FAULTS = {
    "seed": "same seed",
    "spread": "samples and densities say",
    "shape": "must return one mediator of shape",
    "draw": "draw must equal sample",
    "nan": "never be NaN",
    "support": "gives density 0",
    "none": "log_density\\(None",
    "axes": "n_decisions, n_mediators",
    "densities": "log_densities must be",
    "sign": "never be negative",
    "direction": "samples and densities say",
    "half": "samples and densities say",
    "order": "below that of a smaller order",
    "bound": "exceeds their divergence of order inf",
    "self": "to itself must be 0",
    "state": "read back",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_contract_finds_faults(fault: str) -> None:
    means, stds = [0.0, 0.4, 2.0], [0.5, 1.3, 0.9]
    check_family(Broken(means, stds))
    with pytest.raises(AssertionError, match=FAULTS[fault]):
        check_family(Broken(means, stds, fault=fault))


@dataclass(frozen=True, eq=False)
class Laplace(Family):
    """A family of somebody else's: no closed form to any other kind."""

    at: float
    members: int = 1
    shape: tuple[int, ...] = ()

    def sample(self, decisions: Any, rng: np.random.Generator) -> Any:
        return rng.laplace(self.at, size=len(self._indices(decisions)))

    def log_density(self, decisions: Any, mediators: Any) -> Any:
        row = -np.abs(self._rows(mediators)[:, 0] - self.at) - math.log(2)
        return np.repeat(row[None], len(self._indices(decisions)), axis=0)

    def log_renyi(self, decisions: Any, others: Any, order: float = 2.0) -> Any:
        return np.zeros((len(self._indices(decisions)), len(self._indices(others))))


def test_families_of_others() -> None:
    check_family(Laplace(0.5))
    check_family(Mixed((Laplace(0.5), Dirac(1.0))))
    beside = Mixed((Laplace(0.0), Gaussian(0.0)))
    assert beside.log_renyi([0], [0])[0, 0] == 0
    with pytest.raises(ParameterError, match="no divergence is known between Laplace and Gaussian"):
        beside.log_renyi(None, None)
