"""d2(p_x || Φ_t) as the second moment of the weights that were seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from randomist._types import Array
from randomist.importance.divergences.base import Divergence
from randomist.importance.passes.layout import NOW

if TYPE_CHECKING:
    from randomist.histories.columns import Columns

UNCUT = 1e150  # no cut, but for what could not be squared


class Empirical(Divergence):
    """1 / Σ_i (ω_i/m)², with the part that no sample saw: weights that sum to c < 1 lack one of 1 - c."""

    name = "empirical"

    def effective_samples(self, columns: Columns, eta: Array) -> Array:
        whole = np.full(columns.sources, UNCUT)
        coverage, squares = columns.coverage(whole), columns.moments(whole)[0]
        effective = 1.0 / (squares + np.maximum(1.0 - coverage, 0.0) ** 2)
        if self.space.family.divergences_known:
            effective[np.asarray(eta[1]) == -np.inf] = 0.0  # samples cannot see an infinite divergence
        else:
            effective[coverage == 0.0] = 0.0
        return at_least_plays(effective, columns, eta)


def at_least_plays(effective: Array, columns: Columns, eta: Array) -> Array:
    """η and log η with η >= T; where η is too small for float64, the harmonic bound has its logarithm."""
    effective = np.maximum(effective, columns.plays[NOW])
    with np.errstate(divide="ignore"):
        return np.array([effective, np.where(effective > 0, np.log(effective), eta[1])])
