"""Uniform boxes against quadrature of the definition, and mpmath at high precision."""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from randomist.families import Uniform
from tests.families.cases import BOXES, ORDERS
from tests.families.oracles import assert_relative, nodes_on, renyi_by_quadrature


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
