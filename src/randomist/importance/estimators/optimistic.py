"""The truncated estimate of the loss, taken from the best payoff. Not in the paper."""

from __future__ import annotations

from randomist._types import Array
from randomist.importance.estimators.base import Estimator


class Optimistic(Estimator):
    """value⁺ = 1 - (1/m) Σ_i min(M, ω_i) (1 - y_i), optimistic by truncation, and 1 where nothing is known."""

    name = "optimistic"
    needs_range = True
    unknown = 1.0

    def combine(self, value: Array, coverage: Array) -> Array:
        return 1.0 - (coverage - value)
