"""Intervals for the mean payoff at a point: what they say, and on what they stand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from randomist._types import Array
from randomist.importance.intervals.fixed import Constant, ConstantBets
from randomist.learners.box.alternatives import Rippled
from randomist.learners.box.climbing import patience
from randomist.learners.box.surface import Surface

SUPPORT = 5.0, 0.5  # plays of a point alone that its samples must be worth, and the part of its variance they explain
WIDER = 1.5  # than a surface says, for what it does not know: that it is the right one
ROUGH = 0.05  # chance of replays that agree so well, if all that a surface calls noise were noise


class Interval(NamedTuple):
    """Bounds on a mean payoff, or a median, in the user's units.

    `basis` says on what it stands:

    - "surface": the learner's Gaussian process. It holds as far as the mean payoff is as smooth around the point as the
      process has found it, and the noise is about Gaussian and the same everywhere.
    - "range": independent payoffs between two known bounds. Nothing else is assumed.
    - "seen": independent payoffs between the smallest and the largest that were told. Where all plays of a confirmation
      were equal, and other points paid that, too.
    - "asymptotic": independent payoffs with a variance, and enough of them for their mean to be about Gaussian.
    - "order": independent payoffs; for the median.
    - "unsupported": too little is known there. `mean` is NaN, and the bounds are infinite.
    """

    mean: float
    low: float
    high: float
    level: float
    basis: str

    def __str__(self) -> str:
        if self.basis == "unsupported":
            return "unsupported: too few samples near enough; play the point itself, see confirm"
        return f"{self.mean:.6g} ({self.low:.6g} to {self.high:.6g}, {self.level:.0%}, {self.basis})"

    def turned(self) -> Interval:
        """Of costs, where this is of payoffs that are minus these."""
        return self._replace(mean=-self.mean, low=-self.high, high=-self.low)

    @property
    def supported(self) -> bool:
        return self.basis != "unsupported"


class Confirmation(NamedTuple):
    """What plays of one point say about it, having been chosen before them."""

    point: Array  # a number where there is one dimension
    plays: int  # that were answered
    mean: Interval  # basis "range" where the range of payoffs is known, else "asymptotic" or "seen"
    median: Interval  # basis "order"


def unsupported(level: float) -> Interval:
    return Interval(math.nan, -math.inf, math.inf, level, "unsupported")


def of_surfaces(surfaces: Iterable[Surface | Rippled], points: Array, level: float) -> tuple[Array, Array]:
    """Low and high that all surfaces allow; NaN where too few samples support one.  (n, d) -> (n,), (n,)

    In many dimensions they lie lower, and as far apart: where a surface is highest, its errors add up to more.
    """
    n, d = points.shape
    above = 1 / patience(d)
    below = 2 - above
    low, high, supported = np.full(n, np.inf), np.full(n, -np.inf), np.ones(n, bool)
    factor, (worth, explained) = WIDER * float(ndtri((1 + level) / 2)), SUPPORT
    for one in surfaces:
        mean, deviation = one.posterior(points)
        supported &= ~((one.noise < worth * deviation**2) | (deviation**2 > (1 - explained) * one.variance))
        reach = factor * deviation
        low, high = np.minimum(low, mean - below * reach), np.maximum(high, mean + above * reach)
    return np.where(supported, low, np.nan), np.where(supported, high, np.nan)


def rough(differences: Array, noise: float) -> bool:
    """Whether payoffs of one point, played twice, differ less than so much noise lets them.  (n,)

    Then some of it is no noise, but a mean payoff that changes faster than the surface knows.
    """
    from scipy.stats import chi2  # slow to import

    n = len(differences)
    return n > 0 and float(np.sum(np.square(differences))) < 2 * noise * float(chi2.ppf(ROUGH, n))


def bounded_mean(payoffs: Array, low: float, high: float, level: float) -> Interval:
    """Of independent payoffs between two bounds, by betting (`importance.intervals`).  (n,)"""
    units = (payoffs - low) / (high - low)

    def lower(values: Array) -> float:
        bets = Constant(ConstantBets.on(len(values), (1 - level) / 2, [0.0], [0.0]))
        bets.add([values])
        return bets.lower_bound(0.0, 1.0)

    span = high - low
    return Interval(float(payoffs.mean()), low + span * lower(units), high - span * lower(1 - units), level, "range")


def equal_payoffs(payoffs: Array, told: Array, level: float) -> Interval:
    """Of independent payoffs that were all the same, as if none could leave the range of all told.  (n,), (m,)"""
    low, high = float(told.min()), float(told.max())
    return bounded_mean(payoffs, low, high, level)._replace(basis="seen") if low < high else unsupported(level)


def asymptotic_mean(payoffs: Array, level: float) -> Interval:
    """Student's interval.  (n,)"""
    from scipy.stats import t  # slow to import

    n = len(payoffs)
    if n < 2:
        return unsupported(level)
    mean = float(np.clip(payoffs.mean(), payoffs.min(), payoffs.max()))  # rounding may leave the range of equal payoffs
    half = float(t.ppf((1 + level) / 2, n - 1) * payoffs.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, level, "asymptotic")


def median(payoffs: Array, level: float) -> Interval:
    """Between two order statistics, which hold the median with at least this probability, whatever the distribution.

    Fewer than k of n payoffs are below the median, or above it, with the probability of fewer than k heads.  (n,)
    """
    from scipy.stats import binom  # slow to import

    n, ordered = len(payoffs), np.sort(payoffs)
    k = int(np.searchsorted(binom.cdf(np.arange(n + 1), n, 0.5), (1 - level) / 2, side="right"))  # P(heads < k) <= it
    low, high = (float(ordered[k - 1]), float(ordered[n - k])) if k else (-math.inf, math.inf)
    return Interval(float(np.median(payoffs)), low, high, level, "order")
