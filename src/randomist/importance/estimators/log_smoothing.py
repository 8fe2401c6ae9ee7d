"""Logarithmic smoothing (Sakhi et al., NeurIPS 2024, arXiv 2405.14335).

Differences from the paper: its smoothing parameter is one λ for all policies, 1/√n by default; here each decision has
its own, λ = 1/M with the threshold M that truncation would use, so that both cut where the divergence says so. Weights
are those of the balance heuristic over all decisions that were played.
"""

from __future__ import annotations

import numpy as np

from randomist._types import Array
from randomist.importance.estimators.base import Estimator


class LogSmoothing(Estimator):
    """(1/m) Σ_i (1/λ) log(1 + λ ω_i y_i), λ = 1/M: large weights count by their logarithm, and none is cut.

    Since x - log(1 + x) <= x²/2, it lacks at most (λ/2) E ω² y² <= d2/(2M), half of the width.
    """

    name = "log-smoothing"
    bias_factor = 0.5
    needs_range = True
    of_sums = False

    def combine(self, value: Array, coverage: Array) -> Array:
        return value

    def gains(self, weights: Array, cut: Array, payoffs: Array) -> Array:
        gains: Array = cut * np.log1p(weights * payoffs / cut)  # (1/(λm)) log(1 + λ ω y), with cut = M/m = 1/(λm)
        return gains
