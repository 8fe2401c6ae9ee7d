"""Intervals for the mean payoff at a point: what they say, and on what they stand."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from randomist._types import Array, Flags, Indices
from randomist.histories.estimates import Estimates
from randomist.histories.record import Record
from randomist.importance.intervals.fixed import Constant, ConstantBets
from randomist.importance.passes import surface as passes
from randomist.learners.box.auto.samples import Payoffs, Samples
from randomist.learners.box.auto.search import patience
from randomist.learners.box.auto.surface import USUAL, Evidence, Surface, length_of, surface

# Plays that a point's samples are worth, and the part of its variance that they explain, at least:
# with less, an interval misses too often.
SUPPORT = 5.0, 0.5
# Than a surface says, for what it does not know, that it is the right one: at 1 one in ten misses.
WIDER = 1.5
# Nats by which a surface is much less likely than another: with fewer, doubt does not count.
MUCH = 4.0
# Variance of ripples over that of the noise: without, ripples are taken for noise.
SHARES = 0.25, 1.0, 4.0


class Interval(NamedTuple):
    """Bounds on a mean payoff, or a median, in the user's units.

    `basis` says on what it stands:

    - "surface": the learner's Gaussian process. It holds as far as the mean payoff is as smooth
      around the point as the process has found it, and the noise is about Gaussian and the same
      everywhere.
    - "range": independent payoffs between two known bounds. Nothing else is assumed.
    - "seen": independent payoffs between the smallest and the largest that were told. Where all
      plays of a confirmation were equal, and other points paid that, too.
    - "asymptotic": independent payoffs with a variance, and enough of them for their mean to be
      about Gaussian.
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
        bounds = f"{self.low:.6g} to {self.high:.6g}, {self.level:.0%}, {self.basis}"
        return f"{self.mean:.6g} ({bounds})"

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


# By a surface, and by all others that the samples allow.


class Rippled(NamedTuple):
    """The posterior given samples, of a surface and ripples of a shorter length on it.

    Noise is new with every play, while ripples stay where they are: samples near one another share
    them. A surface that has none takes them for noise, and is too sure of its mean.
    """

    samples: Array  # (n, d)
    lengths: tuple[float, float]  # of the surface, and of its ripples
    height: float  # the variance of ripples over that of the surface
    level: float  # prior mean
    variance: float  # of both together
    noise: float  # variance of a payoff around its mean
    weights: Array  # (n,)
    factor: Array  # (n, n)

    def posterior(self, points: Array) -> tuple[Array, Array]:
        """Mean payoffs and their standard deviations.  (n, d) -> (n,), (n,)"""
        rows = np.ascontiguousarray(points)
        smooth, fine = (passes.kernel(rows, self.samples, length) for length in self.lengths)
        covariance = smooth + self.height * fine
        explained = np.array([passes.forward(self.factor, row) for row in covariance])
        whole = 1 + self.height
        left = np.maximum(whole - np.sum(explained**2, axis=1), 0.0) / whole
        return self.level + covariance @ self.weights, np.sqrt(self.variance * left)


def rippled(evidence: Evidence, at: tuple[int, int]) -> list[Rippled]:
    """Those that the samples prefer to the surface of a pair of numbers, which has no ripples."""
    samples, payoffs = evidence.samples, evidence.payoffs[:3]
    matrix, noise = evidence.model(at)
    plain, found = passes.regress(matrix, noise, *payoffs)[-1], []
    for shorter in range(at[0]):
        lengths = length_of(at[0], samples), length_of(shorter, samples)
        fine = passes.covariances(evidence.apart, lengths[1])
        for height in (share * noise for share in SHARES):
            fit = passes.regress(matrix + height * fine, noise, *payoffs)
            level, variance, weights, factor, likelihood = fit
            if likelihood > plain:
                spreads = height, level, (1 + height) * variance, noise * variance
                found.append(Rippled(samples, lengths, *spreads, weights, factor))
    return found


def possible(samples: Array, payoffs: Payoffs) -> tuple[Surface, list[Surface | Rippled]]:
    """The likeliest surface, and all others that the samples allow.  (n, d), (n,)"""
    evidence, none = Evidence(samples, payoffs), np.empty((0, samples.shape[1]))
    best = evidence.best(USUAL)
    near = [at for at in evidence.neighbours(best) if at != best]
    likely = [at for at in near if evidence(at) > evidence(best) - MUCH]
    pairs = best, *likely
    first, *others = (surface(samples, payoffs, *at, none, evidence.apart) for at in pairs)
    return first, [*others, *rippled(evidence, best)]


class Report(NamedTuple):
    """Surfaces through samples, whose payoffs are between 0 and 1."""

    likeliest: Surface
    others: list[Surface | Rippled]
    low: float  # what 0 is, in the user's units
    span: float  # what 1 is more
    known: int  # samples

    @property
    def noise(self) -> float:
        """The variance of a payoff around its mean, in the user's units."""
        return self.likeliest.noise * self.span**2

    def estimates(self, points: Array, plays: Indices) -> Estimates:
        """What the likeliest surface says of points that were played so often.  (n, d), (n,)"""
        value, deviation = self.likeliest.posterior(points)
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = np.fmin(self.likeliest.noise / deviation**2, float(self.known))
            log_effective = np.log(effective)
        coverage, never = 1 - deviation**2 / self.likeliest.variance, np.full(len(points), np.inf)
        found = Estimates(value, effective, never, deviation, plays, coverage, log_effective)
        return found.scaled(self.low, self.span)

    def bounds(self, points: Array, level: float) -> tuple[Array, Array]:
        """Low and high that all surfaces allow; NaN where too few samples support one.

        In many dimensions they lie lower, and as far apart: where a surface is highest, its errors
        add up to more.  (n, d) -> (n,), (n,)
        """
        n, d = points.shape
        above = 1 / patience(d)
        low, high, supported = np.full(n, np.inf), np.full(n, -np.inf), np.ones(n, bool)
        (worth, explained), noise = SUPPORT, max(math.sqrt(self.likeliest.noise), 1e-150)
        louder = np.array([max(1.0, self.likeliest.noise_near(at) / noise) for at in points])
        factor = WIDER * float(ndtri((1 + level) / 2)) * louder
        for one in (self.likeliest, *self.others):
            mean, deviation = one.posterior(points)
            supported &= one.noise >= worth * deviation**2
            supported &= deviation**2 <= (1 - explained) * one.variance
            reach = factor * deviation
            low = np.minimum(low, mean - (2 - above) * reach)
            high = np.maximum(high, mean + above * reach)
        low, high = (np.where(supported, end, np.nan) for end in (low, high))
        return self.low + self.span * low, self.low + self.span * high


def report(samples: Samples, near: Array, grain: float) -> Report:
    """Surfaces through samples, in cells finer than a search's.  (d,)"""
    chosen, payoffs = samples.near(near, grain / 4), samples.payoffs  # wider ones hide steep places
    kept = payoffs[chosen.point >= 0]
    low, span = float(kept.min()), float(np.ptp(kept)) or 1.0
    surfaces = possible(chosen.points, chosen.of((payoffs - low) / span))
    return Report(*surfaces, low, span, len(payoffs))


# By plays of the point alone.


def confirmation(
    record: Record, rows: Flags, ends: tuple[float, float] | None, level: float
) -> Confirmation:
    """What some plays of one point say, where payoffs lie between these ends, or any.  (t,)"""
    payoffs, points = record.payoffs[rows], record.mediators.reshape(len(record), -1)
    point = points[rows][0]
    elsewhere = record.payoffs[(points != point).any(axis=1)]
    if ends is not None:
        mean = bounded_mean(np.clip(payoffs, *ends), *ends, level)
    elif np.ptp(payoffs) == 0 and (elsewhere == payoffs[0]).any():  # payoffs come in levels
        mean = equal_payoffs(payoffs, record.payoffs, level)
    else:
        mean = asymptotic_mean(payoffs, level)
    return Confirmation(point, len(payoffs), mean, median(payoffs, level))


def bounded_mean(payoffs: Array, low: float, high: float, level: float) -> Interval:
    """Of independent payoffs between two bounds, by betting (`importance.intervals`).  (n,)"""
    units, span = (payoffs - low) / (high - low), high - low

    def lower(values: Array) -> float:
        bets = Constant(ConstantBets.on(len(values), (1 - level) / 2, [0.0], [0.0]))
        bets.add([values])
        return bets.lower_bound(0.0, 1.0)

    least, most = low + span * lower(units), high - span * lower(1 - units)
    return Interval(float(payoffs.mean()), least, most, level, "range")


def equal_payoffs(payoffs: Array, told: Array, level: float) -> Interval:
    """Of independent equal payoffs, as if none could leave the range of all told.  (n,), (m,)"""
    low, high = float(told.min()), float(told.max())
    if low == high:
        return unsupported(level)
    return bounded_mean(payoffs, low, high, level)._replace(basis="seen")


def asymptotic_mean(payoffs: Array, level: float) -> Interval:
    """Student's interval.  (n,)"""
    from scipy.stats import t  # slow to import

    n = len(payoffs)
    if n < 2:
        return unsupported(level)
    mean = float(np.clip(payoffs.mean(), payoffs.min(), payoffs.max()))  # rounding may leave it
    half = float(t.ppf((1 + level) / 2, n - 1) * payoffs.std(ddof=1)) / math.sqrt(n)
    return Interval(mean, mean - half, mean + half, level, "asymptotic")


def median(payoffs: Array, level: float) -> Interval:
    """Between two order statistics, which hold it with this probability, whatever the distribution.

    Fewer than k of n payoffs are below the median, or above it, with the probability of fewer than
    k heads.  (n,)
    """
    from scipy.stats import binom  # slow to import

    n, ordered = len(payoffs), np.sort(payoffs)
    heads = binom.cdf(np.arange(n + 1), n, 0.5)
    k = int(np.searchsorted(heads, (1 - level) / 2, side="right"))  # P(heads < k) <= (1 - level)/2
    low, high = (float(ordered[k - 1]), float(ordered[n - k])) if k else (-math.inf, math.inf)
    return Interval(float(np.median(payoffs)), low, high, level, "order")
