"""The weighted mean of payoffs (Owen 2013, Sec. 9.2)."""

from __future__ import annotations

import numpy as np

from randomist._types import Array
from randomist.importance.estimators.base import Estimator


class SelfNormalised(Estimator):
    """Σ min(M, ω_i) y_i / Σ min(M, ω_i): never outside the payoffs seen; 0 where no sample has any weight."""

    name = "self-normalised"

    def combine(self, value: Array, coverage: Array) -> Array:
        mean: Array = np.divide(value, coverage, out=np.zeros_like(value), where=coverage > 0)
        return mean
