"""An analytic objective for tests of gradients."""

from __future__ import annotations

import numpy as np

# A quadratic task with unlike axes: payoff 1 - Σ k (θ - c)², which stays in [0, 1] but for a few draws in a million.
STD = np.array([0.03, 5.0, 0.4])
CENTRE = np.array([-0.2, 11.0, 3.0])
CURVATURE = np.array([20.0, 4e-4, 0.02])
START = CENTRE + np.array([0.05, -8.0, 1.7])


def quadratic(mediators):
    return 1 - ((mediators - CENTRE) ** 2) @ CURVATURE


def expected_quadratic(decision):
    """E of it under N(decision, STD²), closed form."""
    return 1 - ((decision - CENTRE) ** 2 + STD**2) @ CURVATURE


def differences(function, at, steps):
    """Central finite differences."""
    steps = np.diag(steps)
    return np.array([(function(at + h) - function(at - h)) / (2 * h.sum()) for h in steps])
