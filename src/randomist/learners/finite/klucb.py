"""KL-UCB (Garivier and Cappé 2011), and kl-UCB++ (Ménard and Garivier 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from randomist._checks import choice, number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.histories.estimates import Estimates
from randomist.importance.bernoulli import upper_means
from randomist.learners.finite.bandit import BanditLearner


@dataclass(eq=False, kw_only=True)
class KLUCB(BanditLearner):
    """The largest mean whose divergence from a decision's own payoffs is not too large: bandit feedback, no sharing.

    Settings are those of `Learner`, and these.

    Parameters
    ----------
    variant
        "kl-ucb": T kl(S/T, q) <= log t + c log log t, which is optimal for payoffs of 0 and 1 in the long run.
        "kl-ucb++": T kl(S/T, q) <= log⁺(s (1 + log⁺(s)²)) with s = t/(K T), for many decisions.
    log_log
        c >= 0 of "kl-ucb": 3 in the proof, 0 (the default) in its authors' experiments.
    """

    variant: Literal["kl-ucb", "kl-ucb++"] = "kl-ucb"
    log_log: float = 0.0

    def __post_init__(self) -> None:
        choice(self.variant, ("kl-ucb", "kl-ucb++"), "variant")
        number(self.log_log, "log_log", least=0)
        super().__post_init__()
        if self._scale.unbounded:
            raise ParameterError(
                'KLUCB needs to know the range of payoffs: give payoff_range=(low, high), or "running" to learn it, '
                "instead of (-inf, inf); or take UCB1"
            )

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        plays = np.maximum(estimates.plays, 1)  # what was never played goes first anyway
        upper: Array = upper_means(estimates.value, self.levels(self.told + 1, plays) / plays)
        return upper

    def levels(self, t: int, plays: Array) -> Array:
        """What T kl(S/T, q) may be in round t.  (K,) -> (K,)"""
        if self.variant == "kl-ucb":
            log_t = math.log(t)
            return np.full(len(plays), log_t + self.log_log * math.log(max(log_t, 1.0)))
        share = t / (len(plays) * plays)
        log_share = np.log(np.maximum(share, 1.0))  # log⁺
        return np.log(np.maximum(share * (1.0 + log_share**2), 1.0))
