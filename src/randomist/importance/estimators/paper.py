"""Truncated multiple importance sampling (Metelli et al. 2021, Sec. 4; Papini et al. 2019)."""

from __future__ import annotations

from randomist._types import Array
from randomist.importance.estimators.base import Estimator


class Paper(Estimator):
    """J̌ = (1/m) Σ_i min(M, ω_i) y_i. Truncation makes it pessimistic, by at most sqrt(α log t / η)."""

    name = "paper"
    bias_factor = 1.0

    def combine(self, value: Array, coverage: Array) -> Array:
        return value
