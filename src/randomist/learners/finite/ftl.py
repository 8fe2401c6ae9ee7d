"""Follow the leader (Metelli et al. 2021, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.histories.estimates import Estimates
from randomist.learners.finite.sharing import SharedHistoryLearner


@dataclass(eq=False, kw_only=True)
class FollowTheLeader(SharedHistoryLearner):
    """Play the largest truncated estimate: constant regret under perfect mediator feedback, linear without (Fact 1).

    `start="each"` plays every decision once first, as the proof of Fact 1 does; `"remark-1"` only those that need it.
    """

    start: Literal["remark-1", "each"] = "remark-1"

    def opening(self) -> list[int]:
        if self.start not in ("remark-1", "each"):
            raise ParameterError(f'start must be "remark-1" or "each", got {self.start!r}')
        return list(range(self.space.size)) if self.start == "each" else super().opening()

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        return estimates.value  # J̌_t(x)
