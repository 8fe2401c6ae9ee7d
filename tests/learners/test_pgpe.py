"""PGPE's gradient against an analytic objective and its definition."""

from __future__ import annotations

import numpy as np
import pytest

from randomist.learners.box import pgpe
from tests.learners.quadratic import CENTRE, CURVATURE, START, STD, differences, expected_quadratic, quadratic


def test_the_quadratic_payoff_is_one_of_a_task():
    payoffs = quadratic(START + STD * np.random.default_rng(0).standard_normal((10**6, 3)))
    assert np.mean((payoffs < 0) | (payoffs > 1)) < 1e-5


@pytest.mark.parametrize(("baseline", "batch"), [("mean", 2), ("mean", 5), ("none", 1), ("none", 5)])
def test_pgpe_gradient_is_unbiased(baseline, batch):
    """Within 4.5 standard errors of finite differences of the analytic objective: false alarm 2e-5 (3 coordinates)."""
    n = 60_000
    mediators = START + STD * np.random.default_rng(batch).standard_normal((n, batch, 3))
    payoffs = quadratic(mediators)
    decisions = np.broadcast_to(START, (batch, 3))
    found = np.array([pgpe.gradient(decisions, mediators[i], payoffs[i], STD, baseline) for i in range(n)])
    exact = differences(expected_quadratic, START, 1e-3 * STD)
    np.testing.assert_allclose(exact, -2 * CURVATURE * (START - CENTRE), rtol=1e-9)
    error = found.std(axis=0) / np.sqrt(n)
    assert (np.abs(found.mean(axis=0) - exact) < 4.5 * error).all()
    if baseline == "mean":  # the estimate is sharp enough to see that without n/(n-1) there would be a bias
        biased = found.mean(axis=0) * (batch - 1) / batch
        assert (np.abs(biased - exact) > 4.5 * error).all()


def test_pgpe_gradient_of_late_tells_is_the_mean_of_the_gradients_of_their_decisions():
    n, decisions = 60_000, np.array([START, CENTRE - STD, CENTRE - STD, START + 0.5 * STD])
    mediators = decisions + STD * np.random.default_rng(1).standard_normal((n, 4, 3))
    payoffs = quadratic(mediators)
    found = np.array([pgpe.gradient(decisions, mediators[i], payoffs[i], STD) for i in range(n)])
    exact = np.mean([differences(expected_quadratic, x, 1e-3 * STD) for x in decisions], axis=0)
    assert (np.abs(found.mean(axis=0) - exact) < 4.5 * found.std(axis=0) / np.sqrt(n)).all()


def test_pgpe_baseline_is_the_mean_of_the_others():
    rng = np.random.default_rng(2)
    decisions, mediators, payoffs = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.random(6)
    naive = [(mediators[i] - decisions[i]) / STD**2 * (payoffs[i] - np.delete(payoffs, i).mean()) for i in range(6)]
    np.testing.assert_allclose(pgpe.gradient(decisions, mediators, payoffs, STD), np.mean(naive, axis=0), rtol=1e-12)
    shifted = pgpe.gradient(decisions, mediators, payoffs + 5, STD)
    np.testing.assert_allclose(shifted, np.mean(naive, axis=0), rtol=1e-9)
