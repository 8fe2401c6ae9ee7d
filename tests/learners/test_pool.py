"""Samples that count as plays of one point, against a loop over all of them."""

import math

import numpy as np
import pytest

from randomist.learners.box.auto.samples import FARTHER, POINTS, apart, cells, gathered, once, pooled
from randomist.learners.box.auto.surface import likeliest


def known(points, payoffs):
    return gathered(points, payoffs, np.empty((0, points.shape[1])))


def slow_cells(points, around, width):
    """By a dictionary of corners, in the order in which they come."""
    seen = {}
    numbers = []
    for point in points:
        far, own = max(abs(a - b) for a, b in zip(point, around, strict=True)), width
        while far > FARTHER * own:
            own *= 2
        key = own, *(math.floor(x / own) for x in point)
        numbers.append(seen.setdefault(key, len(seen)))
    return numbers


@pytest.mark.parametrize("d", [1, 2, 7])
def test_cells_are_those_of_a_dictionary(d):
    rng = np.random.default_rng(d)
    points, around = np.clip(0.4 + 0.1 * rng.standard_normal((500, d)), 0, 1), np.full(d, 0.41)
    for width in (0.003, 0.04):
        found = cells(points, around, width)
        assert found.tolist() == slow_cells(points, around, width)
        far = np.abs(points - around).max(axis=1)
        for number in range(found.max() + 1):
            own = points[found == number]
            assert np.ptp(own, axis=0).max() <= max(width, 2 * far[found == number].max() / FARTHER)


def test_payoffs_of_a_cell_are_their_mean_and_what_scatters():
    rng = np.random.default_rng(0)
    points, payoffs, cell = rng.random((60, 2)), rng.random(60), np.arange(60) % 7
    pool = pooled(points, cell)
    got = pool.of(payoffs)
    for number in range(7):
        np.testing.assert_allclose(pool.points[number], points[cell == number].mean(axis=0), rtol=1e-14)
        assert got.means[number] == pytest.approx(payoffs[cell == number].mean(), rel=1e-14)
        assert got.plays[number] == (cell == number).sum()
    within = sum(((payoffs[cell == k] - payoffs[cell == k].mean()) ** 2).sum() for k in range(7))
    assert (got.scatter, got.largest, got.total) == pytest.approx((within, payoffs.max(), 60), rel=1e-12)
    assert got.variance == pytest.approx(payoffs.var(), rel=1e-12)
    some = pool.only(np.array([1, 4]))
    few, kept = some.of(payoffs), np.isin(cell, [1, 4])
    assert few.means.tolist() == got.means[[1, 4]].tolist()
    assert few.variance == pytest.approx(payoffs[kept].var(), rel=1e-12)
    assert few.largest == payoffs[kept].max()


def test_few_samples_stay_apart():
    rng = np.random.default_rng(1)
    points = np.repeat(rng.random((POINTS[0] // 2, 2)), 2, axis=0)  # each of them twice
    samples = known(points, rng.random(POINTS[0]))
    near = samples.near(points[0], 0.04)
    np.testing.assert_array_equal(near.points, points)
    assert near.of(samples.payoffs).scatter == 0
    assert [x.tolist() for x in near.of(samples.payoffs)[:2]] == [x.tolist() for x in once(samples.payoffs)[:2]]
    assert apart(points).plays.tolist() == [1] * POINTS[0]


def test_many_samples_near_one_another_all_count():
    rng = np.random.default_rng(2)
    points = np.clip(0.5 + 0.02 * rng.standard_normal((1500, 2)), 0, 1)
    samples = known(points, rng.random(1500))
    near = samples.near(np.full(2, 0.5), 0.02)
    assert len(near.points) <= POINTS[0]
    assert near.plays.sum() == 1500
    assert near.of(samples.payoffs).variance == pytest.approx(samples.payoffs.var(), rel=1e-12)


def test_of_too_many_cells_the_last_the_nearest_and_some_others_remain():
    rng = np.random.default_rng(3)
    points, middle = rng.random((1000, 6)), np.full(6, 0.5)
    samples = known(points, rng.random(1000))
    near = samples.near(middle, 0.001)
    assert len(near.points) == POINTS[0]
    assert (near.point[-POINTS[0] // 4 :] >= 0).all()
    distance = np.linalg.norm(points - middle, axis=1)
    nearest = np.argsort(distance)[: POINTS[0] // 4]
    assert (near.point[nearest] >= 0).all()
    kept = distance[near.point >= 0]
    assert kept.max() == distance.max()  # of those far away some


def test_what_is_gained_beside_mere_noise_is_that_of_all_plays():
    """Points that were played several times, each play for itself and as one."""
    rng = np.random.default_rng(3)
    places, cell = rng.random((40, 2)), rng.integers(40, size=160)
    for signal in (0.0, 3.0):
        points, payoffs = places[cell], signal * places[cell, 0] + rng.standard_normal(160)
        order = np.unique(cell, return_inverse=True)[1]
        pool = pooled(points, order)
        each, together = likeliest(points, once(payoffs), 4, 6), likeliest(pool.points, pool.of(payoffs), 4, 6)
        assert together[:2] == each[:2]
        assert together.gain == pytest.approx(each.gain, abs=0.1)  # the unit of the noise depends on what is averaged
        assert (together.gain > 10) == (signal > 0)
