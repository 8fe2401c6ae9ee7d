"""Thompson sampling with a Gaussian prior (Agrawal and Goyal 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.bandit import BanditLearner


@dataclass(eq=False, kw_only=True)
class ThompsonSampling(BanditLearner):
    """Draw each decision's mean from N(S/(T+1), 1/(T+1)), play the largest: bandit feedback, no sharing.

    T is how often a decision was played, and S the sum of its payoffs in [0, 1]. Settings are those of `Learner`.
    """

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        precision = estimates.plays.astype(np.float64) + 1
        return self.payoff_sums / precision + rng.standard_normal(len(precision)) / np.sqrt(precision)
