"""Weights, what is wrong with rows, and the point estimates that sums of them give."""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.logs.totals import CROSS, CUT, CUT_GAIN, GAIN, LARGEST, SHIFT, SQUARED, SQUARED_GAIN, WEIGHT

_HUGE = 600.0  # logarithms of estimates are cut here: e^600 is as good as infinity, and can be computed with


def log_mixture(log_likelihood: Array, log_share: Array) -> Array:
    """log Φ = log Σ_l (n_l / n) p_l of every row.  (n, C), (C,) -> (n,)"""
    terms = [log_share[c] + log_likelihood[:, c] for c in np.flatnonzero(log_share > -math.inf)]
    high = terms[0]
    for term in terms[1:]:
        high = np.maximum(high, term)
    total = np.zeros(len(high))
    with np.errstate(invalid="ignore"):  # where all are -inf, which is refused elsewhere
        for term in terms:
            total += np.exp(term - high)
    return np.asarray(np.where(high > -math.inf, high + np.log(total), -math.inf))


def weights(log_likelihood: Array, log_density: Array) -> Array:
    """ω = p/Φ, as large as float64 allows.  (n, K), (n,) -> (K, n)"""
    return np.asarray(np.exp(np.minimum(log_likelihood.T - log_density, 700.0)))


class Moments:
    """The sums behind every point estimate of one candidate, from its table: see `logs.totals`."""

    def __init__(self, table: Array) -> None:
        self._table, self._shift = table, float(table[SHIFT])
        self.largest_log_weight = float(table[LARGEST])

    def _sum(self, entry: int) -> float:
        return float(self._table[entry])

    def _scaled(self, entry: int, power: int) -> float:
        total = self._sum(entry)
        return math.exp(min(math.log(total) + power * self._shift, _HUGE)) if total > 0 else 0.0

    def mean_weight(self, rows: int) -> float:
        return self._scaled(WEIGHT, 1) / rows

    def importance(self, rows: int) -> float:
        """(1/n) Σ ω y"""
        return self._scaled(GAIN, 1) / rows

    def standard_error(self, rows: int) -> float:
        """Of the mean of ω y, by the normal approximation."""
        mean = self.importance(rows)
        return math.sqrt(max(self._scaled(SQUARED_GAIN, 2) / rows - mean * mean, 0.0) / rows)

    def coverage(self, rows: int) -> float:
        """(1/n) Σ min(M, ω)"""
        return self._sum(CUT) / rows

    def truncated(self, rows: int) -> float:
        """(1/n) Σ min(M, ω) y"""
        return self._sum(CUT_GAIN) / rows

    def relative_sums(self) -> tuple[float, float]:
        """Σ ω y and Σ ω, both divided by the same number, so that they are finite."""
        return self._sum(GAIN), self._sum(WEIGHT)

    def self_normalised_error(self) -> float:
        """Standard error of Σ ω y / Σ ω by the delta method: the root of Σ ω² (y - ratio)², divided by Σ ω."""
        total = self._sum(WEIGHT)
        if total <= 0:
            return math.nan
        ratio = self._sum(GAIN) / total
        spread = self._sum(SQUARED_GAIN) - 2.0 * ratio * self._sum(CROSS) + ratio**2 * self._sum(SQUARED)
        return math.sqrt(max(spread, 0.0)) / total

    def effective_samples(self) -> float:
        """(Σ ω)² / Σ ω² (Kish 1965), 0 where every weight is 0."""
        return self._sum(WEIGHT) ** 2 / self._sum(SQUARED) if self._sum(SQUARED) > 0 else 0.0


# What can be wrong with a row, as bits.
PAYOFF, RANGE, LIKELIHOOD, LOGGER, IMPOSSIBLE, PROPENSITY, ABOVE_ONE, ID, REPEATED = (1 << bit for bit in range(9))


@compiled(nogil=True)
def flag_rows(
    payoffs: Array,
    low: float,
    high: float,
    log_likelihood: Array,
    loggers: Indices,
    log_propensity: Array,
    most: float,
) -> Indices:
    """What is wrong with each row. `loggers` and `log_propensity` are empty where the log has none.  -> (n,)"""
    flags = np.zeros(len(payoffs), np.int64)
    for i in range(len(payoffs)):
        if not math.isfinite(payoffs[i]):
            flags[i] |= PAYOFF
        elif payoffs[i] < low or payoffs[i] > high:
            flags[i] |= RANGE
        for c in range(log_likelihood.shape[1]):
            value = log_likelihood[i, c]
            if math.isnan(value) or value == math.inf:
                flags[i] |= LIKELIHOOD
            elif value > most:
                flags[i] |= ABOVE_ONE
        if len(loggers):
            if loggers[i] < 0:
                flags[i] |= LOGGER
            elif log_likelihood[i, loggers[i]] == -math.inf:
                flags[i] |= IMPOSSIBLE
        if len(log_propensity) and not (math.isfinite(log_propensity[i]) and log_propensity[i] <= most):
            flags[i] |= PROPENSITY
    return flags
