"""The law of a sum of fair coins, Binomial(n, 1/2), in log space: tabulated once per process, exact.

log G_n(k) = log P(B <= k) is stored for k within 20 standard deviations below and 9 above the mean, where it falls from
0 to -200; below it is computed from its series, above it is 0 to within 1e-18. With r_k = k/(n-k+1), the ratio of two
neighbouring masses, G_n(k) = g_n(k) F_k with F_k = 1 + r_k F_{k-1}: a sum of positive terms, so that every entry is
accurate to about 1e-12, and the upper half follows by symmetry, 1 - G_n(n-k-1). More than `MOST` coins are not
tabulated: their G is summed when it is asked for.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices

Coins: TypeAlias = tuple[Array, Array, Indices, Indices]  # log k!, rows of log G_n, where row n begins, its first k

MOST = 2**13  # 57 MiB of tables
BELOW, ABOVE = 10.0, 4.5  # the stored window, in units of sqrt(n): two of these are a standard deviation


class CoinTable:
    """Tables for every n up to a largest one, which grows on demand."""

    def __init__(self) -> None:
        self._log_factorial: Array = np.empty(0)
        self._largest = -1  # nothing is tabulated before it is needed

    def upto(self, flips: int) -> Coins:
        """What the kernels take, good for at least `flips` coins."""
        if flips >= len(self._log_factorial):
            self._log_factorial = _log_factorials(max(2 * flips, 64))
        if flips > self._largest and self._largest < MOST:
            self._tabulate(min(max(flips, 2 * self._largest, 64), MOST))
        return self._log_factorial, self._log_cdf, self._offsets, self._first

    def _tabulate(self, largest: int) -> None:
        windows = np.array([_window(n) for n in range(largest + 1)])
        self._largest, self._first = largest, windows[:, 0]
        self._offsets = np.concatenate([[0], np.cumsum(windows[:, 1] - windows[:, 0])])
        self._log_cdf = _fill(_log_factorials(largest + 1), self._offsets)


TABLE = CoinTable()


def _log_factorials(count: int) -> Array:
    """log k! for k < count."""
    from scipy.special import gammaln  # slow to import

    return np.asarray(gammaln(np.arange(count) + 1.0))


@compiled
def _window(n: int) -> tuple[int, int]:
    """First stored k, and one past the last."""
    root = math.sqrt(n)
    return max(0, math.ceil(0.5 * n - BELOW * root)), min(n, math.floor(0.5 * n + ABOVE * root)) + 1


@compiled
def _fill(log_factorial: Array, offsets: Indices) -> Array:
    table = np.empty(offsets[-1])
    for n in range(len(offsets) - 1):
        low, high = _window(n)
        series = 1.0  # F_k
        for k in range(n // 2 + 1):
            if k > 0:
                series = 1.0 + series * k / (n - k + 1.0)
            if k >= low and 2 * k < n:
                log_cdf = log_mass(log_factorial, n, k) + math.log(series)
                table[offsets[n] + k - low] = log_cdf
                mirror = n - k - 1
                if mirror < high:
                    table[offsets[n] + mirror - low] = math.log1p(-math.exp(log_cdf))
        if high == n + 1:
            table[offsets[n] + n - low] = 0.0
        if n % 2 == 0 and n > 0:  # the middle one: 1/2 + g/2
            table[offsets[n] + n // 2 - low] = math.log(0.5 + 0.5 * math.exp(log_mass(log_factorial, n, n // 2)))
    return table


@compiled
def log_mass(log_factorial: Array, n: int, k: int) -> float:
    """log g_n(k) = log C(n, k) - n log 2."""
    return float(log_factorial[n] - log_factorial[k] - log_factorial[n - k] - n * math.log(2.0))


@compiled
def bounds(coins: Coins, n: int) -> tuple[int, int]:
    """G_n is tabulated from the first of these on (or summed), and 1 from the second on."""
    _, _, offsets, first = coins
    if n < first.shape[0]:
        return first[n], first[n] + offsets[n + 1] - offsets[n]
    return _window(n)


@compiled
def log_cdf(coins: Coins, n: int, k: float) -> float:
    """log G_n(k) for a whole number k of any sign or size."""
    if k < 0:
        return -math.inf
    log_factorial, table, offsets, first = coins
    low, high = bounds(coins, n)
    if k >= high:
        return 0.0
    if n < first.shape[0] and k >= low:
        return float(table[offsets[n] + int(k) - low])
    if 2 * k >= n:
        return math.log1p(-math.exp(_summed(log_factorial, n, n - int(k) - 1)))
    return _summed(log_factorial, n, int(k))


@compiled
def _summed(log_factorial: Array, n: int, k: int) -> float:
    """log G_n(k) for k < n/2, term by term."""
    series, term, j = 1.0, 1.0, k
    while j > 0 and term > 1e-17 * series:
        term *= j / (n - j + 1.0)
        series += term
        j -= 1
    return log_mass(log_factorial, n, k) + math.log(series)
