"""Which decision is best, with as few runs as possible: top-two sampling on shared estimates, until one survives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from randomist._checks import probability
from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.learners.finite.sharing import SharedHistoryLearner

HINT = 0.1  # what the divergence of estimates counts beside the bets, which tell nothing at first
SQUARED_PAYOFF = 0.5  # of y² or (1 - y)², which multiplies the variance of weights


@dataclass(eq=False, kw_only=True)
class Identify(SharedHistoryLearner):
    """Play what tells the best decision from its closest rival soonest, until one decision survives: then `finished`.

    The leader has the best value, its rival is the decision against which the bets of `surviving` have won least; at
    first, when they have won nothing, the smallest η_a kl(v_a, m) + η_b kl(v_b, m) decides, which is what it takes to
    believe that both have the mean m in between. Where a run of some decision j is enough like both, the one that is
    most like them is played: it informs about their difference by w_a y + w_b (1 - y), whose variance is about
    (d2(a || j) - 1) + (d2(b || j) - 1) times y². Where that is more than (√V_a + √V_b)², with V = v (1 - v), which
    playing both costs, leader and rival are played in proportion to √V.

    Payoffs on the way do not count: this is for choosing before use. Settings are those of the learners that share
    samples, and this one.

    Parameters
    ----------
    level
        The probability with which the answer is right: `finished` once `surviving(level)` has one decision.

    Not in the paper. Top-two sampling is Russo's (2016, "Simple Bayesian algorithms for best arm identification"), the
    rival by transportation cost as in Jourdan et al. (2022, "Top two algorithms revisited"); identification with
    mediators is in Poiani, Metelli and Restelli (2023), whose tracking of the optimal proportions this is not.
    """

    estimator: str = "self-normalised"
    level: float = 0.95

    def __post_init__(self) -> None:
        probability(self.level, "level")
        super().__post_init__()
        self._decides = (
            self.keep_record and self.payoff_range != "running" and bool(np.isfinite(self.payoff_range).all())
        )

    @property
    def finished(self) -> bool:
        """Whether one decision is left that may be best: `recommend()` names it."""
        return len(self.surviving(self.level)) == 1

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        K, eta = self.space.size, estimates.effective_samples
        if K == 1:
            return np.zeros(1)
        value = (eta * np.clip(estimates.value, 0.0, 1.0) + 0.5) / (eta + 1.0)
        variance = value * (1.0 - value)  # V, never 0
        leader = int(np.argmax(np.where((eta > 0) & self.active, estimates.value, -np.inf)))
        share = eta / np.maximum(eta[leader] + eta, 1e-9)
        between = value[leader] + share * (value - value[leader])  # inside (0, 1), even where nothing is known
        evidence = eta[leader] * _divergence(value[leader], between) + eta * _divergence(value, between)
        if self._decides:
            evidence = self.certainty.evidence().best_stake + HINT * evidence
        evidence[~self.active] = np.inf
        evidence[leader] = np.inf
        rival = int(np.argmin(evidence))
        noise = self._noise(leader, rival)
        costs = float(np.sqrt(variance[[leader, rival]]).sum() ** 2)
        if noise.min() < costs:
            return -noise
        wanted, both = np.full(K, -np.inf), [leader, rival]
        wanted[both] = np.sqrt(variance[both]) / (eta[both] + 1e-9)
        return wanted

    def _noise(self, leader: int, rival: int) -> Array:
        """The variance of what a run of each decision says about the difference of two, roughly.  (K,)"""
        K, family = self.space.size, self.space.family
        if not family.divergences_known:
            return np.full(K, np.inf)
        log_divergences = family.log_renyi(np.array([leader, rival]), np.arange(K))
        with np.errstate(over="ignore"):
            return np.asarray(SQUARED_PAYOFF * np.expm1(log_divergences).sum(axis=0))


def _divergence(p: Array | float, q: Array) -> Array:
    """kl of two Bernoulli distributions, both inside (0, 1)."""
    return np.asarray(p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)))
