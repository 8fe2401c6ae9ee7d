"""What means hide: the distribution of a candidate's payoff, its quantiles, and the mean of its worst part.

F(t) = E[ω 1{y <= t}] is a mean like any other, so the bets that bound a value bound F at a threshold. On a grid of
thresholds that is fixed in advance, the error is shared by all of them, both sides and all candidates: the bands hold
together. Between thresholds F is monotone. The smallest distribution that the bands allow has the lowest quantiles and
the lowest conditional value at risk, CVaR_α = (1/α) ∫_0^α Q(u) du (Rockafellar and Uryasev 2000), the largest the
highest. So quantiles and CVaR at all levels at once cost no further error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from randomist import _checks
from randomist._types import Array
from randomist.logs import bounds as known
from randomist.logs.log import Log
from randomist.logs.tally import Ends
from randomist.logs.units import of_rows

THRESHOLDS = 64


@dataclass(frozen=True, eq=False)
class Risk:
    """Bands of the distribution functions of K candidates, in the units of the payoffs."""

    candidates: tuple[str, ...]
    level: float
    payoff_range: tuple[float, float]
    thresholds: Array  # from the least payoff to the largest  (T,)
    estimate: Array  # Σ ω 1{y <= t} / Σ ω  (K, T)
    low: Array  # of F(t)  (K, T)
    high: Array

    def quantile(self, share: float) -> tuple[Array, Array]:
        """Low and high of the payoff that a share of the payoffs does not exceed.  (K,), (K,)"""
        _checks.probability(share, "share")
        low, high = self._supports()
        return _quantile(low, self.high, share), _quantile(high, self.low, share)

    def cvar(self, share: float) -> tuple[Array, Array]:
        """Low and high of the mean of the worst share of the payoffs.  (K,), (K,)"""
        _checks.probability(share, "share")
        low, high = self._supports()
        return _cvar(low, self.high, share), _cvar(high, self.low, share)

    def _supports(self) -> tuple[Array, Array]:
        """Where the mass up to each threshold lies at the least, and at the most: anywhere since the one before."""
        least = np.concatenate([[self.payoff_range[0]], self.thresholds[:-1]])
        least[0] = min(self.thresholds[0], self.payoff_range[0])
        return least, self.thresholds


def _quantile(support: Array, distribution: Array, share: float) -> Array:
    reached = distribution >= share - 1e-12
    reached[:, -1] = True
    return np.asarray(support[reached.argmax(axis=1)])


def _cvar(support: Array, distribution: Array, share: float) -> Array:
    """(1/α) Σ of support times the mass that the worst α of the distribution has there."""
    full = distribution.copy()
    full[:, -1] = 1.0
    mass = np.diff(np.minimum(full, share), axis=1, prepend=0.0)
    return np.asarray(mass @ support / share)


def risk(
    log: Log,
    *,
    level: float = 0.95,
    thresholds: int = THRESHOLDS,
    weight_bounds: float | Mapping[str, float] | None = None,
) -> Risk:
    """Bands of every candidate's distribution of payoffs, which hold together with probability `level`.

    Parameters
    ----------
    log
        What was logged.
    level
        The probability with which all bands hold.
    thresholds
        How many payoffs the range is divided by; what is said is no finer.
    weight_bounds
        What no weight can exceed, as for `evaluate`.
    """
    _checks.probability(level, "level")
    count = _checks.whole_number(thresholds, "thresholds", least=2)
    names, rows = log.candidates, len(log)
    bounds = known.weight_bounds(log, weight_bounds)
    same_mean = log.weights == "own" or len(log.loggers) == 1
    if same_mean and log.early_bounds:
        bounds = np.minimum(bounds, known.early_bounds(log))
    side = (1.0 - level) / (2 * len(names) * (count - 1))  # F is 1 at the last threshold
    grid = np.linspace(0.0, 1.0, count)
    ends = [[Ends(rows, side, bound, same_mean) for _ in grid[:-1]] for bound in bounds.tolist()]
    sums, totals = np.zeros((len(names), count)), np.zeros((len(names), 1))
    for batch in log.batches():
        units = of_rows(batch)
        below = batch.payoffs[None, :] <= grid[:, None] + 1e-12  # (T, n)
        for k, of_candidate in enumerate(ends):
            weight, control = units.weight[k], units.control(k)
            sums[k] += np.minimum(weight, 1e300) @ below.T
            totals[k] += np.minimum(weight, 1e300).sum()
            for end, inside in zip(of_candidate, below, strict=False):
                end.add(weight * inside, weight * ~inside, control)
    low = np.array([[*(end.low() for end in of_candidate), 1.0] for of_candidate in ends])
    high = np.array([[*(end.high() for end in of_candidate), 1.0] for of_candidate in ends])
    low = np.maximum.accumulate(low, axis=1)
    high = np.minimum.accumulate(high[:, ::-1], axis=1)[:, ::-1]
    empty = (low > high).any(axis=1, keepdims=True)  # contradictions: nothing is known
    low, high = np.where(empty, grid >= 1.0, low), np.where(empty, 1.0, high)
    start, span = log.payoff_range[0], log.payoff_range[1] - log.payoff_range[0]
    estimate = np.divide(sums, totals, out=np.full_like(sums, np.nan), where=totals > 0)
    return Risk(names, level, log.payoff_range, start + span * grid, estimate, low, high)
