"""RANDOMIST on a finite set (Metelli et al. 2021, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from randomist._checks import choice, number
from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.importance.passes.layout import LOG_HUGE
from randomist.importance.perturbation import coin_words, perturb
from randomist.learners.finite.sharing import SharedHistoryLearner


@dataclass(eq=False, kw_only=True)
class Randomist(SharedHistoryLearner):
    """Perturb every truncated estimate with pseudo-rewards, play the largest.

    Differences from the paper: a η is rounded up to a whole number of pseudo-rewards, and the sum is divided by η.

    Settings are those of `SharedHistoryLearner`, and these.

    Parameters
    ----------
    perturbation_scale
        a: pseudo-rewards per effective sample. More of them explore more; Theorem 5(b) needs a > 8, and 1.1 is the
        paper's practical value.
    perturbation
        What is drawn: "binomial" is the sum of that many fair coins, as in the paper; "gaussian" is a normal number of
        the same mean and variance.
    """

    perturbation_scale: float = 1.1
    perturbation: Literal["binomial", "gaussian"] = "binomial"

    def __post_init__(self) -> None:
        number(self.perturbation_scale, "perturbation_scale", least=0)
        choice(self.perturbation, ("binomial", "gaussian"), "perturbation")
        super().__post_init__()

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        a, eta = self.perturbation_scale, estimates.effective_samples
        value = estimates.value + self.bias(estimates)
        if self.perturbation == "binomial":
            coins = rng.bit_generator.random_raw(coin_words(eta, a))
            return perturb(value, eta, a, coins)  # J̌_t(x) + U_t(x), Algorithm 2
        if a > 0:  # std sqrt(a / (4η)), of which the logarithm is known however small η is
            log_std = 0.5 * (math.log(a / 4) - np.maximum(estimates.log_effective_samples, -2 * LOG_HUGE))
            value = value + a / 2 + rng.standard_normal(len(value)) * np.exp(np.minimum(log_std, LOG_HUGE))
        return value
