"""Follow the leader (Metelli et al. 2021, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from randomist._checks import choice
from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.sharing import SharedHistoryLearner


@dataclass(eq=False, kw_only=True)
class FollowTheLeader(SharedHistoryLearner):
    """Play the largest truncated estimate: constant regret under perfect mediator feedback, linear without (Fact 1).

    Settings are those of `SharedHistoryLearner`, and these.

    Parameters
    ----------
    start
        What is played before the estimates decide: "remark-1" plays the decisions that no other one informs, as the
        paper does; "each" plays every decision once, as the proof of Fact 1 does.
    """

    start: Literal["remark-1", "each"] = "remark-1"

    def opening(self) -> list[int]:
        choice(self.start, ("remark-1", "each"), "start")
        return list(range(self.space.size)) if self.start == "each" else super().opening()

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        return estimates.value  # J̌_t(x)
