"""Truncated Gaussians against mpmath at high precision, scipy.stats, and Gaussians where nothing is cut off."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import randomist as rd
from randomist.families import Gaussian, TruncatedGaussian
from randomist.families._truncated import dawson, erfcx, means
from randomist.families.truncated_gaussian import draw, log_normaliser
from tests.families.cases import ALL_ORDERS, TRUNCATED
from tests.families.oracles import exact_truncated

FALSE_ALARM = 1e-6  # of each statistical test, over seeds; the seeds are fixed


def renyi(a: float, s: float, b: float, t: float, low: float, high: float, order: float = 2.0) -> float:
    return float(TruncatedGaussian([a, b], [s, t], low, high).log_renyi([0], [1], order)[0, 0])


def assert_close(value: float, exact: Any, tolerance: float) -> None:
    """Relative to the divergence, and to d2, its exponential, where the divergence is small."""
    assert abs(mp.mpf(value) - exact) <= tolerance * max(1, abs(exact)), f"{value} is not {mp.nstr(exact, 17)}"


def mass(mean: Any, std: Any, low: Any, high: Any) -> Any:
    """Of a Gaussian between two points, of 60 digits in its tails too."""
    a, b = ((mp.mpf(end) - mp.mpf(mean)) / (mp.mpf(std) * mp.sqrt(2)) for end in (low, high))
    if a * b <= 0:
        return (mp.erf(b) - mp.erf(a)) / 2
    near, far = sorted((abs(a), abs(b)))
    return (mp.erfc(near) - mp.erfc(far)) / 2


def pairs(count: int, seed: int, outside: float = 0.3) -> list[tuple[float, ...]]:
    """Two members of a box: stds of 1e-6 to 1e6 widths, some alike, some of ratios close to √2; some means outside."""
    rng, out = np.random.default_rng(seed), []
    for i in range(count):
        low = rng.normal() * 10.0 ** rng.uniform(-2, 2)
        high = low + 10.0 ** rng.uniform(-3, 3)
        width = high - low
        reach = [(-1, 1), (-6, 6), (-3, 0)][i % 3]
        s, t = width * 10.0 ** rng.uniform(*reach, 2)
        if i % 4 == 1:
            t = s / math.sqrt(2) * (1 + rng.normal() * 10.0 ** rng.uniform(-17, -1))
        elif i % 4 == 2:
            t = s * (1 + rng.normal() * 10.0 ** rng.uniform(-12, -1))
        a, b = low + width * (
            rng.normal(size=2) * 10.0 ** rng.uniform(0, 3) if rng.random() < outside else rng.random(2)
        )
        if i % 5 == 0:
            b = a + rng.normal() * s * 10.0 ** rng.uniform(-3, 0.5)
        elif i % 7 == 0:
            a = b = rng.choice([low, high])
        out.append((float(a), float(s), float(b), float(abs(t)), float(low), float(high)))
    return out


# Special functions.


def test_special_functions_keep_their_digits() -> None:
    for x in np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(0.01, 9, 157), 10.0 ** np.arange(1, 150, 7)]):
        with mp.workdps(60 + int(x * x) if x < 30 else 60):
            scaled = mp.erfc(x) * mp.exp(mp.mpf(x) ** 2) if x < 30 else mp.mpf(special.erfcx(x))
            other = mp.exp(-(mp.mpf(x) ** 2)) * mp.erfi(x) * mp.sqrt(mp.pi) / 2 if x < 30 else mp.mpf(special.dawsn(x))
        assert abs(erfcx(x) - scaled) <= 1e-14 * scaled, x
        assert abs(dawson(x) - other) <= 1e-14 * other, x
        assert dawson(-x) == -dawson(x)


# Divergences.


@pytest.mark.parametrize("seed", range(6))
def test_d2_keeps_its_digits(seed: int) -> None:
    for pair in pairs(100, seed):
        assert_close(renyi(*pair), exact_truncated(*pair), 1e-12)


@pytest.mark.parametrize("width", [1e-6, 0.03, 0.5, 1.0, 30.0, 1e6])
def test_d2_has_no_seam_where_its_cases_meet(width: float) -> None:
    """2 σ_q² - σ_p² from below 0 to above it, by steps down to the last digit: exact values on either side."""
    q = width / math.sqrt(2)
    for exponent in np.linspace(-17, 0, 18):
        for sign in (-1, 0, 1):
            for mean_p, mean_q in ((0.3, 0.3), (0.3, 0.3 + 0.1 * width), (0.0, 1.0), (0.5, 0.2)):
                pair = (mean_p, width * math.sqrt(1 + 0.9 * sign * 10.0**exponent), mean_q, q, 0.0, 1.0)
                assert_close(renyi(*pair), exact_truncated(*pair), 1e-12)


def test_d2_of_all_three_cases_is_the_integral() -> None:
    """By the definition, in 30 digits: with densities of scipy's formula and mpmath's quadrature."""

    def density(z: Any, mean: float, std: float) -> Any:
        return mp.npdf(z, mean, std) / mass(mean, std, 0, 1)

    with mp.workdps(30):
        for p, q in [((0.2, 0.3), (0.7, 0.5)), ((0.2, 0.5), (0.7, 0.5 / math.sqrt(2))), ((0.9, 0.8), (0.1, 0.2))]:
            moment = mp.quad(lambda z, p=p, q=q: density(z, *p) ** 2 / density(z, *q), mp.linspace(0, 1, 9))
            assert_close(renyi(*p, *q, 0, 1), mp.log(moment), 1e-13)


@pytest.mark.parametrize("order", [order for order in ALL_ORDERS if order != math.inf])
def test_divergences_of_all_orders_keep_their_digits(order: float) -> None:
    for pair in pairs(40, 7):
        assert_close(renyi(*pair, order=order), exact_truncated(*pair, order=order), 1e-11)


def test_divergence_of_order_infinity_is_the_largest_log_ratio() -> None:
    z = np.linspace(0, 1, 100_001)
    for p, q in [((0.2, 0.3), (0.7, 0.5)), ((0.7, 0.5), (0.2, 0.3)), ((0.9, 0.4), (0.1, 0.4)), ((3, 0.4), (0.1, 0.6))]:
        family = TruncatedGaussian([p[0], q[0]], [p[1], q[1]], 0, 1)
        log_p, log_q = family.log_density(None, z)
        assert renyi(*p, *q, 0, 1, order=math.inf) == pytest.approx((log_p - log_q).max(), abs=1e-8)


def test_far_from_the_border_it_is_gaussian() -> None:
    mean, std = [0.45, 0.47, 0.52], [0.02, 0.022, 0.025]
    z = np.linspace(0.3, 0.7, 11)
    ours, theirs = TruncatedGaussian(mean, std, 0, 1), Gaussian(mean, std)
    np.testing.assert_allclose(ours.log_density(None, z), theirs.log_density(None, z), rtol=1e-12)
    for order in (0.5, 1.0, 1.5, 2.0):
        finite = np.isfinite(theirs.log_renyi(None, None, order + 0.2))  # where no tail counts
        np.testing.assert_allclose(
            ours.log_renyi(None, None, order)[finite],
            theirs.log_renyi(None, None, order)[finite],
            rtol=1e-10,
            atol=1e-14,
        )


member = st.tuples(st.floats(-3, 4), st.floats(-6, 6))


@settings(deadline=None, max_examples=150)
@given(st.lists(member, min_size=1, max_size=4), st.floats(0.01, 50), st.floats(0.01, 50), st.floats(0.05, 0.95))
def test_laws(members: list[tuple[float, float]], order: float, other: float, below: float) -> None:
    """Never negative, never infinite, 0 to itself, larger for larger orders, skew symmetric below order 1."""
    mean, log_std = np.array(members).T
    family = TruncatedGaussian(mean, 10.0**log_std, 0, 1)
    before = np.zeros((len(mean), len(mean)))
    for values in (family.log_renyi(None, None, a) for a in (*sorted((order, other)), math.inf)):
        assert np.isfinite(values).all()
        np.testing.assert_array_equal(np.diag(values), 0)
        assert (values >= before * (1 - 1e-9) - 1e-11).all()
        before = values
    assert np.isfinite(family.log_renyi(None, None)).all()
    one, two = (1 - below) * family.log_renyi(None, None, below), below * family.log_renyi(None, None, 1 - below).T
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


# Densities and draws.


@pytest.mark.parametrize("std", [1e-6, 1e-3, 0.2, 1.0, 1e6])
@pytest.mark.parametrize("mean", [-300.0, -0.4, 0.0, 0.3, 1.0, 7.0])
def test_log_density_keeps_its_digits_in_far_tails(mean: float, std: float) -> None:
    z = np.array([0.0, 1e-7, 0.3, 0.9, 1.0])
    got = TruncatedGaussian(mean, std, 0, 1).log_density(None, z)[0]
    offset = mp.log(mass(mean, std, 0, 1) * std * mp.sqrt(2 * mp.pi))
    for value, at in zip(got, z.tolist(), strict=True):
        exact = -(((mp.mpf(at) - mean) / std) ** 2) / 2 - offset
        assert abs(mp.mpf(float(value)) - exact) <= 1e-13 * max(1, abs(exact)), at


def test_log_density_is_that_of_scipy_and_none_outside() -> None:
    z = np.array([-0.3, -0.2, 0.1, 0.6, 1.0, 1.01, math.nan])
    for k, (m, s) in enumerate(zip(TRUNCATED.mean, TRUNCATED.std, strict=True)):
        expected = stats.truncnorm.logpdf(z[1:5], (-0.2 - m) / s, (1 - m) / s, m, s)
        np.testing.assert_allclose(TRUNCATED.log_density([k], z[1:5])[0], expected, rtol=1e-10)
    assert (TRUNCATED.log_density(None, z[[0, 5, 6]]) == -math.inf).all()


def test_draws_pass_kolmogorov_smirnov() -> None:
    rng = np.random.default_rng(3)
    for mean, std in [
        (0.3, 0.2),
        (0.0, 0.05),
        (1.0, 0.4),
        (0.5, 30.0),
        (-2.0, 0.3),
        (4.0, 0.7),
        (0.6, 1e-4),
        (-90.0, 1),
    ]:
        family = TruncatedGaussian(mean, std, 0, 1)
        draws = family.sample(np.zeros(20_000, np.int64), rng)
        truth = stats.truncnorm((0 - mean) / std, (1 - mean) / std, mean, std)
        assert stats.kstest(draws, truth.cdf).pvalue > FALSE_ALARM, (mean, std)
        fewer = np.array([draw(np.array([mean]), std, rng)[0] for _ in range(1000)])
        assert stats.kstest(fewer, truth.cdf).pvalue > FALSE_ALARM


@settings(deadline=None, max_examples=200)
@given(
    st.floats(-1e6, 1e6),
    st.floats(-6, 6),
    st.floats(-8, 8),
    st.floats(-2, 3),
    st.integers(0, 2**32 - 1),
)
def test_draws_never_leave_the_box(low: float, log_width: float, log_std: float, at: float, seed: int) -> None:
    """Corners and means outside included; each draw takes one random number, so that the generator is where it was."""
    high = low + max(10.0**log_width, 1e-12 * abs(low))
    family = TruncatedGaussian(low + at * (high - low), (high - low) * 10.0**log_std, low, high)
    rng, counter = np.random.default_rng(seed), np.random.default_rng(seed)
    draws = family.sample(np.zeros(50, np.int64), rng)
    assert ((draws >= low) & (draws <= high)).all()
    assert np.isfinite(family.log_density([0], draws)).all()
    counter.random(50)
    assert rng.random() == counter.random()


@pytest.mark.parametrize(("mean", "std"), [(0.3, 0.2), (0.0, 1e-6), (1.0, 1e6), (-2.0, 0.3), (4.0, 0.01), (0.5, 3.0)])
def test_draws_are_quantiles(mean: float, std: float) -> None:
    """The distribution function at a draw is the random number that made it, the ends of the box at 0 and 1."""

    class Given:
        def __init__(self, levels: Any) -> None:
            self.levels = levels

        def random(self, shape: Any) -> Any:
            return np.broadcast_to(self.levels[:, None], shape).copy()

    levels = np.array([0.0, 1e-12, 1e-3, 0.2, 0.5, 0.77, 0.999, 1 - 1e-12, 1.0])
    generator: Any = Given(levels)
    draws = TruncatedGaussian(mean, std, 0, 1).sample(np.zeros(len(levels), np.int64), generator)
    for level, z in zip(levels.tolist(), draws.tolist(), strict=True):
        total = mass(mean, std, 0, 1)
        density = mp.npdf(z, mean, std) / total
        reached = mass(mean, std, 0, z) / total
        assert abs(reached - level) <= 1e-13 + 3e-16 * density, level  # and the rounding of the draw


def test_means_are_those_of_scipy() -> None:
    low, high = np.array([0.0]), np.array([1.0])
    for mean, std in [(0.3, 0.2), (0.0, 0.05), (1.0, 0.4), (0.5, 3.0), (-2.0, 0.3), (4.0, 0.7)]:
        expected = stats.truncnorm.mean((0 - mean) / std, (1 - mean) / std, mean, std)
        assert means(np.array([[mean]]), np.array([[std]]), low, high)[0, 0] == pytest.approx(expected, rel=1e-9)


def test_log_normaliser_in_the_unit_cube() -> None:
    rng = np.random.default_rng(0)
    mean = rng.uniform(-0.5, 1.5, (40, 7))
    mean[:10] = np.clip(mean[:10], 0, 1)
    for std in (1e-2, 0.3, 5.0, rng.uniform(0.1, 1, 7), rng.uniform(0.1, 1, (40, 1))):
        s = np.broadcast_to(std, mean.shape)
        exact = [
            sum(mp.log(mass(m, v, 0, 1)) for m, v in zip(*row, strict=True))
            for row in zip(mean.tolist(), s.tolist(), strict=True)
        ]
        np.testing.assert_allclose(log_normaliser(mean, std), np.array(exact, float), rtol=1e-12, atol=1e-13)
    assert log_normaliser(np.full((1, 1000), 0.5), 1e6)[0] == pytest.approx(
        -1000 * math.log(1e6 * math.sqrt(2 * math.pi))
    )
    family = TruncatedGaussian(mean[:10], 0.3, 0, 1)
    z = np.full((1, 7), 0.2)
    by_hand = stats.norm.logpdf(z, mean[:10], 0.3).sum(axis=1) - log_normaliser(mean[:10], 0.3)
    np.testing.assert_allclose(family.log_density(None, z)[:, 0], by_hand, rtol=1e-12)


def test_nodes_integrate_under_every_member() -> None:
    z, weights = TRUNCATED.nodes()
    for k, (m, s) in enumerate(zip(TRUNCATED.mean, TRUNCATED.std, strict=True)):
        expected = stats.truncnorm.moment(2, (-0.2 - m) / s, (1 - m) / s, m, s)
        assert weights[k] @ z[k] ** 2 == pytest.approx(expected, rel=1e-6)
    plane = TruncatedGaussian([[0.2, 9.0]], [[0.3, 4.0]], [0, 0], [1, 10])
    z, weights = plane.nodes()
    assert weights[0] @ z[0][:, 1] == pytest.approx(stats.truncnorm.mean(-9 / 4, 1 / 4, 9, 4), rel=2e-3)


# Spaces.


def test_a_box_truncates_to_its_corners() -> None:
    space = rd.Box(rd.TruncatedGaussian(std=[0.15, 3.0]), low=[-1, 0], high=[1, 20])
    np.testing.assert_array_equal(space.family.low, [-1, 0])
    np.testing.assert_array_equal(space.family.high, [1, 20])
    wider = rd.Box(rd.TruncatedGaussian(std=0.5, low=-3, high=3), low=-1, high=1)
    assert (wider.family.low, wider.family.high) == (-3, 3)
    with pytest.raises(
        rd.errors.ParameterError, match=r"from -1.0 to 1.0, must lie in that .* from 0.0 to 3.0; without"
    ):
        rd.Box(rd.TruncatedGaussian(std=0.5, low=0, high=3), low=-1, high=1)


def test_a_grid_equals_its_members() -> None:
    grid = rd.Finite.grid(rd.TruncatedGaussian(std=[0.3, 4.0]), low=[0, 0], high=[1, 10], points=[3, 2])
    assert grid.size == 6
    box = rd.Box(rd.TruncatedGaussian(std=[0.3, 4.0]), low=[0, 0], high=[1, 10])
    points = grid.points
    z = np.array([[0.0, 10.0], [0.7, 3.0]])
    np.testing.assert_array_equal(box.family.log_density(points, z), grid.family.log_density(None, z))
    np.testing.assert_array_equal(box.family.log_renyi(points, points), grid.family.log_renyi(None, None))
