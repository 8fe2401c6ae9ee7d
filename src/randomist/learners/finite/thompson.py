"""Thompson sampling with a Gaussian prior (Agrawal and Goyal 2013) or a Beta prior (Agrawal and Goyal 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from randomist._checks import choice
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.histories.estimates import Estimates
from randomist.learners.finite.bandit import BanditLearner


@dataclass(eq=False, kw_only=True)
class ThompsonSampling(BanditLearner):
    """Draw each decision's mean from its posterior, play the largest: bandit feedback, no sharing.

    Settings are those of `Learner`, and this.

    Parameters
    ----------
    prior
        "gaussian": draws from N(S/(T+1), 1/(T+1)), as in the paper's experiments, after each decision was played once.
        "beta": draws from Beta(S + 1, T - S + 1), from the first round on; for payoffs in a known or running range.
    """

    prior: Literal["gaussian", "beta"] = "gaussian"

    def __post_init__(self) -> None:
        choice(self.prior, ("gaussian", "beta"), "prior")
        super().__post_init__()
        if self.prior == "beta" and self._scale.unbounded:
            raise ParameterError(
                'prior="beta" needs to know the range of payoffs: give payoff_range=(low, high), or "running" to learn '
                'it, instead of (-inf, inf); or take prior="gaussian"'
            )

    def opening(self) -> list[int]:
        """Each decision once; a Beta prior needs no such beginning, and plays `first` first where it is given."""
        if self.prior == "gaussian":
            return super().opening()
        return [] if self.first is None else [self.first]

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        if self.prior == "beta":
            wins = np.clip(self.payoff_sums, 0.0, self.plays)  # sums of payoffs in [0, 1], but for the last bit
            draws: Array = rng.beta(wins + 1.0, self.plays - wins + 1.0)
            return draws
        precision = estimates.plays.astype(np.float64) + 1
        return self.payoff_sums / precision + rng.standard_normal(len(precision)) / np.sqrt(precision)

    def _knowledge(self, estimates: Estimates) -> Array:
        if self.prior == "beta":  # the prior says what is known of what was never played
            return np.zeros(self.space.size)
        return super()._knowledge(estimates)
