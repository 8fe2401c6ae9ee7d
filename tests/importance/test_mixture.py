"""η under the mixture, against quadrature in the plane that holds all means, in 1 to 20 dimensions."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.importance.divergences import find_divergence
from randomist.importance.estimators import find_estimator


def in_the_plane(coordinates, plays):
    """η of N(x, I) for every x, by the trapezoidal rule: p_x²/Φ has its mass within 12 std of the points 2x - x_j."""
    reach = 12 + 3 * np.abs(coordinates).max()
    axis = np.linspace(-reach, reach, 1201)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_density = -0.5 * ((grid[None] - coordinates[:, None]) ** 2).sum(axis=-1) - np.log(2 * np.pi)  # (K, G)
    played = plays > 0
    log_sum = np.logaddexp.reduce(np.log(plays[played])[:, None] + log_density[played], axis=0)  # m Φ
    cell = (axis[1] - axis[0]) ** 2
    return 1.0 / (np.exp(2 * log_density - log_sum).sum(axis=1) * cell)


def history(space, plays, rng):
    found = space.history(find_divergence("mixture"), find_estimator("paper"))
    for decision, times in enumerate(plays.tolist()):
        for _ in range(times):
            found.append(decision, space.family.draw(decision, rng), 0.5)
    return found


@pytest.mark.parametrize("dimension", [2, 8, 20])
@pytest.mark.parametrize("played", [1, 2, 3, 4, 5])
def test_effective_samples_are_within_five_percent(dimension, played):
    rng = np.random.default_rng([dimension, played])
    plane = np.linalg.qr(rng.normal(size=(dimension, 2)))[0]  # (d, 2), orthonormal columns
    for spread in (0.4, 0.9, 1.4):
        coordinates = rng.normal(0, spread, (6, 2))
        plays = np.zeros(6, np.int64)
        plays[:played] = rng.integers(1, 6, size=played)
        found = history(rd.Finite(rd.Gaussian(coordinates @ plane.T, 1.0)), plays, rng)
        np.testing.assert_allclose(found.estimate(2.0).effective_samples, in_the_plane(coordinates, plays), rtol=0.05)


@pytest.mark.parametrize("played", [1, 2, 3, 4, 5])
def test_in_one_dimension(played):
    rng = np.random.default_rng(played)
    for spread in (0.4, 1.5, 4.0):
        line = np.zeros((6, 2))
        line[:, 0] = rng.normal(0, spread, 6)
        plays = np.zeros(6, np.int64)
        plays[:played] = rng.integers(1, 6, size=played)
        found = history(rd.Finite(rd.Gaussian(line[:, 0], 1.0)), plays, rng)
        expected = np.maximum(in_the_plane(line, plays), plays)
        np.testing.assert_allclose(found.estimate(2.0).effective_samples, expected, rtol=0.05)


def test_one_decision_that_was_played_is_exact_however_far_the_others_are():
    means = np.array([[0.0] * 8, [1.0] * 8, [3.0, -2.0] * 4])
    space = rd.Finite(rd.Gaussian(means, [0.9, 1.0, 1.1] * 2 + [1.0, 1.2]))
    found = history(space, np.array([7, 0, 0]), np.random.default_rng(0)).estimate(2.0)
    exact = np.log(7) - space.family.log_renyi(None, [0])[:, 0]
    np.testing.assert_allclose(found.log_effective_samples, exact, rtol=1e-9, atol=1e-9)


def test_a_quadrature_that_does_not_reach_is_corrected():
    """std 1.41 against 1: d2 is almost infinite, and its mass lies far beyond 12 std."""
    space = rd.Finite(rd.Gaussian([0.0, 1.0], [1.41, 1.0]))
    found = history(space, np.array([0, 5]), np.random.default_rng(0)).estimate(2.0)
    exact = np.log(5) - space.family.log_renyi([0], [1])[0, 0]
    np.testing.assert_allclose(found.log_effective_samples[0], exact, rtol=1e-9)


def test_one_part_near_the_border_of_finiteness_does_not_spoil_the_rest():
    """N(0, 1) against nine plays of N(0, .708²), whose d2 is almost infinite, and one of N(.5, 1), which covers it."""
    space = rd.Finite(rd.Gaussian([0.0, 0.0, 0.5], [1.0, 0.708, 1.0]))
    found = history(space, np.array([0, 9, 1]), np.random.default_rng(0)).estimate(2.0)
    axis = np.linspace(-60, 60, 2_400_001)
    log_density = space.family.log_density(None, axis)
    log_sum = np.logaddexp(np.log(9) + log_density[1], log_density[2])
    exact = 1.0 / (np.exp(2 * log_density[0] - log_sum).sum() * (axis[1] - axis[0]))
    assert found.effective_samples[0] == pytest.approx(exact, rel=1e-3)
