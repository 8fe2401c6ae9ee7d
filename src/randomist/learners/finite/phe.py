"""Perturbed-history exploration (Kveton et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from randomist._checks import number
from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.bandit import BanditLearner


@dataclass(eq=False, kw_only=True)
class PerturbedHistory(BanditLearner):
    """Play the largest mean of a decision's own payoffs and of pseudo-rewards: bandit feedback, no sharing.

    Settings are those of `Learner`, and these.

    Parameters
    ----------
    perturbation_scale
        a: how many pseudo-rewards, 0 or 1 at random, are added per payoff. More of them explore more; the paper uses
        2.1.
    """

    perturbation_scale: float = 2.1

    def __post_init__(self) -> None:
        number(self.perturbation_scale, "perturbation_scale", above=0)
        super().__post_init__()

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        pseudo = np.ceil(self.perturbation_scale * estimates.plays).astype(np.int64)  # ⌈aT⌉
        successes = rng.binomial(pseudo, 0.5)
        index: Array = (self.payoff_sums + successes) / np.maximum(estimates.plays + pseudo, 1)
        return index
