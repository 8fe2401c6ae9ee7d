"""Categorical and Dirac against sums over atoms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from randomist.families import Categorical
from tests.families.cases import ALL_ORDERS, ORDERS, POINTS, TABLE
from tests.families.oracles import assert_relative, exact_masses


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
