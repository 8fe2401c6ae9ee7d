"""UCB1 (Auer et al. 2002), with the paper's exploration parameter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.bandit import BanditLearner


@dataclass(eq=False, kw_only=True)
class UCB1(BanditLearner):
    """Play the largest mean of a decision's own payoffs plus sqrt(α log t / T): bandit feedback, no sharing (Sec. 5).

    T is how often a decision was played. Settings are those of `Learner`; α is `confidence`.
    """

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        return estimates.value + estimates.width
