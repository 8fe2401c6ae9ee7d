"""OPTIMIST on a finite set (Papini et al. 2019; Metelli et al. 2021, Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.sharing import SharedHistoryLearner


@dataclass(eq=False, kw_only=True)
class Optimist(SharedHistoryLearner):
    """Optimism over truncated multiple importance sampling: constant regret where divergences are finite (Theorem 4).

    Settings are those of `SharedHistoryLearner`.

    Differences from the paper: d2(p_x || Φ_t) is the harmonic-mean bound, as in the paper's own experiments (App. F.1),
    unless `divergence` says otherwise. The bonus has two parts, for the bias and for the deviation; `bias_correction`
    replaces the first.
    """

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        return estimates.value + self.bias(estimates) + math.sqrt(2) * estimates.width  # B_t(x), Algorithm 1
