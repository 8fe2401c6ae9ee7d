"""REALIST: as optimistic about each decision as its own data leave room for. The default on a finite set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from randomist._checks import number
from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.sharing import SharedHistoryLearner

ALIKE = 0.01  # payoffs that differ by less, in units of their range, count as equal


@dataclass(eq=False, kw_only=True)
class Realist(SharedHistoryLearner):
    """Play the largest value + sqrt(c₁ L) · standard error + c L / η, where L = log(1 + t/η).

    The value is the weighted mean of payoffs and the standard error its own, so that decisions whose payoffs vary
    little are settled with few plays. The last term, and a minimum of c₃ log t effective samples, keep a decision alive
    whose few plays happened to agree, such as two losses of a good one: c is c₂, but 1 where payoffs do not vary at
    all, because what was never seen to vary may still do so.

    Not in the paper. The index is UCB-V's (Audibert, Munos and Szepesvári 2009) with MOSS's log(t/T) for log t
    (Audibert and Bubeck 2009), on importance-weighted samples. No bound on its regret is proven here.

    Settings are those of `SharedHistoryLearner`, and these.

    Parameters
    ----------
    estimator
        "self-normalised": the weighted mean of payoffs.
    divergence
        "mixture": effective samples are computed against the mixture of what was played.
    deviation
        c₁: how much of the standard error is added. More of it explores more.
    caution
        c₂: how much is added for what few effective samples may not have shown.
    minimum
        c₃: a decision with fewer than c₃ log t effective samples is played first.
    """

    estimator: str = "self-normalised"
    divergence: str = "mixture"
    deviation: float = 0.7
    caution: float = 0.1
    minimum: float = 0.3

    def __post_init__(self) -> None:
        number(self.deviation, "deviation", least=0)
        number(self.caution, "caution", least=0)
        number(self.minimum, "minimum", least=0)
        super().__post_init__()

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        t, eta = self.told + 1, np.maximum(estimates.effective_samples, 1e-300)
        room = np.log1p(t / eta)  # L
        error = self.history.standard_error(estimates.value, estimates)
        equal = np.exp(-eta * (error / ALIKE) ** 2)  # η σ̂² is the payoffs' weighted variance
        caution = self.caution + max(1.0 - self.caution, 0.0) * equal  # after T zeros, kl(0, q) <= L/T has q = L/T
        index = estimates.value + np.sqrt(self.deviation * room) * error + caution * room / eta
        return np.where(eta < self.minimum * math.log(t), np.inf, index)
