"""The passes over a log, compiled: row by row, with sums that do not depend on how the rows come in chunks."""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.logs import kernel

# Compensated sums of one candidate: each entry is followed by its correction.
WEIGHT, SQUARED, GAIN, SQUARED_GAIN, CUT, CUT_GAIN, CROSS = range(0, 14, 2)
_HUGE = 600.0  # logarithms of estimates are cut here: e^600 is as good as infinity, and can be computed with
_RESCALE = 300.0  # weights are summed relative to e^shift, which moves when one exceeds it by this


@compiled(nogil=True)
def log_mixture(log_likelihood: Array, log_share: Array) -> Array:
    """log Φ = log Σ_l (n_l / n) p_l of every row.  (n, C), (C,) -> (n,)"""
    acted = np.flatnonzero(log_share > -math.inf)
    result = np.empty(len(log_likelihood))
    for i in range(len(log_likelihood)):
        high, highest = -math.inf, acted[0]
        for c in acted:
            if log_share[c] + log_likelihood[i, c] > high:
                high, highest = log_share[c] + log_likelihood[i, c], c
        total = 1.0
        for c in acted:
            if c != highest:
                total += math.exp(log_share[c] + log_likelihood[i, c] - high)
        result[i] = high + math.log(total) if high > -math.inf else -math.inf  # the latter is refused elsewhere
    return result


@compiled
def weights(log_likelihood: Array, log_density: Array) -> tuple[Array, Array]:
    """log ω = log p - log Φ, and ω as large as float64 allows.  (n,), (n,) -> (n,), (n,)"""
    log_weight, weight = np.empty(len(log_density)), np.empty(len(log_density))
    for i in range(len(log_density)):
        log_weight[i] = log_likelihood[i] - log_density[i]
        weight[i] = math.exp(min(log_weight[i], 700.0))
    return log_weight, weight


@compiled
def _add(sums: Array, entry: int, value: float) -> None:
    """Neumaier's compensated sum."""
    total = sums[entry] + value
    if abs(sums[entry]) >= abs(value):
        sums[entry + 1] += (sums[entry] - total) + value
    else:
        sums[entry + 1] += (value - total) + sums[entry]
    sums[entry] = total


@compiled
def add_moments(log_weight: Array, payoffs: Array, threshold: float, sums: Array, shift: float) -> float:
    """Σω, Σω², Σωy, Σω²y, Σω²y² relative to e^shift, Σmin(M,ω) and Σmin(M,ω)y as they are; returns the new shift."""
    log_threshold = math.log(threshold)
    for i in range(len(payoffs)):
        log_w, y = log_weight[i], payoffs[i]
        if log_w == -math.inf:
            continue
        if shift == -math.inf:
            shift = log_w
        elif log_w > shift + _RESCALE:
            factor = math.exp(shift - log_w)
            for entry in (WEIGHT, WEIGHT + 1, GAIN, GAIN + 1):
                sums[entry] *= factor
            for entry in (SQUARED, SQUARED + 1, SQUARED_GAIN, SQUARED_GAIN + 1, CROSS, CROSS + 1):
                sums[entry] *= factor * factor
            shift = log_w
        w = math.exp(log_w - shift)
        _add(sums, WEIGHT, w)
        _add(sums, SQUARED, w * w)
        _add(sums, GAIN, w * y)
        _add(sums, SQUARED_GAIN, w * y * w * y)
        _add(sums, CROSS, w * w * y)
        cut = math.exp(min(log_w, log_threshold))
        _add(sums, CUT, cut)
        _add(sums, CUT_GAIN, cut * y)
    return shift


class Moments:
    """The sums behind every point estimate of one candidate."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.largest_log_weight = -math.inf
        self._sums = np.zeros(14)
        self._shift = -math.inf

    def add(self, log_weight: Array, payoffs: Array) -> None:
        self._shift = add_moments(log_weight, payoffs, self.threshold, self._sums, self._shift)
        self.largest_log_weight = max(self.largest_log_weight, float(log_weight.max()))

    def state(self) -> Array:
        """All that is known.  (17,)"""
        return np.array([*self._sums, self._shift, self.largest_log_weight, self.threshold])

    @classmethod
    def of_table(cls, table: Array, threshold: float) -> Moments:
        """What a table of `logs.kernel` says."""
        found = cls(threshold)
        kept = (kernel.WEIGHT, kernel.SQUARED, kernel.GAIN, kernel.SQUARED_GAIN, kernel.CUT, kernel.CUT_GAIN)
        found._sums[0::2] = table[[*kept, kernel.CROSS]]
        found._shift, found.largest_log_weight = float(table[kernel.SHIFT]), float(table[kernel.LARGEST])
        return found

    @classmethod
    def of(cls, state: Array) -> Moments:
        """Go on from a state, to the bit."""
        found = cls(float(state[16]))
        found._sums, found._shift, found.largest_log_weight = state[:14].copy(), float(state[14]), float(state[15])
        return found

    def _sum(self, entry: int) -> float:
        return float(self._sums[entry] + self._sums[entry + 1])

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
