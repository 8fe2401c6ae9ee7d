"""REALIST: play what the data could least rule out as the best. The default on a finite set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from randomist._types import Array, Indices
from randomist.histories.estimates import Estimates
from randomist.importance.empirical_divergence import k_gaussian, k_inf
from randomist.learners.finite.sharing import SharedHistoryLearner

AT_ONCE = 4096  # decisions whose K_inf is computed at once, the most likely ones first
UNSEEN = 2.0  # times the range seen so far: the ceiling of payoffs whose range is learned


@dataclass(eq=False, kw_only=True)
class Realist(SharedHistoryLearner):
    """Play the smallest η(x) K_inf(F̂_x, μ*) + log η(x): how strongly the data say that x is not the best.

    F̂_x are the payoffs of all samples, weighted for x; η(x) is what they are worth in samples; μ* is the largest value.
    K_inf(F, μ) is how far F is from the nearest distribution on the range of payoffs whose mean is μ: it sees the
    variance of the payoffs and how much room there is above them. A decision is left alone as long as data like its own
    would be unlikely, e^(-η K_inf), if it were the best; as rounds go by less and less is unlikely enough, so that a
    few unlucky payoffs never settle the matter for good.

    Where payoffs have no ceiling the normal distribution takes the place of K_inf; one whose range is learned is taken
    to be twice what was seen.

    Not in the paper. For decisions that share nothing this is IMED (Honda and Takemura 2015), whose regret is
    asymptotically optimal for payoffs in a known range; payoffs are binned here, 64 bins between the ends of the range.
    Nothing is proven for decisions that share samples. Before version 0.2 the name stood for another index, UCB-V's on
    weighted samples, which could lock in on the worse decision.

    Settings are those of `SharedHistoryLearner`, with other defaults for these.

    Parameters
    ----------
    estimator
        "self-normalised": the weighted mean of payoffs.
    divergence
        "mixture": effective samples are computed against the mixture of what was played.
    """

    estimator: str = "self-normalised"
    divergence: str = "mixture"

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        log_eta, eta = estimates.log_effective_samples, np.maximum(estimates.effective_samples, 1e-300)
        known = (log_eta > -np.inf) & self.active
        best = float(np.max(estimates.value, where=known, initial=-np.inf))  # μ*
        gap = np.maximum(best - estimates.value, 0.0)
        if self._scale.unbounded or not self.history.sees_payoffs:
            return -(eta * k_gaussian(gap, self._variance(estimates, eta)) + log_eta)
        ceiling = self._ceiling
        against = eta * 2 * (gap / ceiling) ** 2 + log_eta  # at least: K_inf >= 2 gap², Pinsker's inequality
        leading = np.min(log_eta, where=known & (gap == 0.0), initial=np.inf)
        rivals = np.flatnonzero(known & (against <= leading))  # all others are behind the leader anyway
        if len(rivals) > AT_ONCE:
            rivals = rivals[np.argsort(against[rivals], kind="stable")]
        for start in range(0, len(rivals), AT_ONCE):
            some = rivals[start : start + AT_ONCE]
            if against[some[0]] > leading:  # by the bound alone, they and all that follow are behind
                break
            against[some] = eta[some] * self._divergences(some, estimates, best, ceiling) + log_eta[some]
            leading = np.minimum(leading, against[some].min())
        return -against

    @property
    def _ceiling(self) -> float:
        return UNSEEN if self._scale.running else 1.0

    def _divergences(self, rows: Indices, estimates: Estimates, best: float, ceiling: float) -> Array:
        """K_inf of some decisions.  (n,) -> (n,)"""
        if "weights" in self.digested:
            if best == self.digested["best"] and self._prior is None:
                return self.digested["divergences"][rows]
            weight, sums = self.digested["weights"][rows], self.digested["sums"][rows]
        else:
            weight, sums = self.history.payoff_distributions(rows, estimates)
        if self._prior is not None:
            told = self._told(estimates.effective_samples)[rows]
            weight, sums = self._prior.mixed_in(rows, told, weight, sums, self._scale)
        return k_inf(weight, sums / ceiling, best / ceiling)

    def _variance(self, estimates: Estimates, eta: Array) -> Array:
        """Of the payoffs, as if one sample more had missed the mean by the range of all values.  (K,)"""
        kept = self.digested if "errors" in self.digested else self._errors(estimates)
        eta = self._told(eta)
        return eta * kept["errors"] ** 2 + kept["spread"] ** 2 / (1 + eta)

    def _told(self, effective: Array) -> Array:
        """Effective samples without those of a prior, which has no distribution of payoffs.  (K,)"""
        return effective if self._prior is None else np.maximum(effective - self._prior.plays, 0.0)

    def digest(self, estimates: Estimates) -> dict[str, Array]:
        """Estimates that are kept for long: what `index` needs of the payoffs, of all decisions."""
        digested = super().digest(estimates)
        if not self.keeps_estimates:
            return digested
        if self._scale.unbounded or not self.history.sees_payoffs:
            return digested | self._errors(estimates)
        weights, sums = self.history.payoff_distributions(np.arange(self.space.size), estimates)
        known = (estimates.log_effective_samples > -np.inf) & self.active
        best, ceiling = float(np.max(estimates.value, where=known, initial=-np.inf)), self._ceiling
        divergences = k_inf(weights, sums / ceiling, best / ceiling) if known.any() else np.zeros(self.space.size)
        return digested | {"weights": weights, "sums": sums, "best": np.array(best), "divergences": divergences}

    def _errors(self, estimates: Estimates) -> dict[str, Array]:
        error = self.history.standard_error(estimates.value, estimates)
        seen = self.record.keep and len(self.record)
        spread = max(float(np.ptp(self.record.payoffs)) * self._scale.factor if seen else 1.0, 1e-9)
        return {"errors": error, "spread": np.array(spread)}
