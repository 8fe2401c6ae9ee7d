"""What a learner in a box reports of points, in the user's units: by the likeliest surface near them, and by all others
that the samples allow."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array, Indices
from randomist.histories.estimates import Estimates
from randomist.learners.box import interval
from randomist.learners.box.alternatives import Rippled, possible
from randomist.learners.box.pool import Pool, apart
from randomist.learners.box.samples import MOST, Samples
from randomist.learners.box.surface import Surface

LOCAL, EACH = 80, 12  # samples nearest to a point that are a report for themselves: so many, or so many per dimension
CLEARLY, COMPARED = 1.5, 0.95  # times as narrow, at this level
FINER = 0.25  # than those of a search: cells of what is reported, as the mean payoff may be steeper than its surface


class Report(NamedTuple):
    """Surfaces through samples near a point, whose payoffs are between 0 and 1."""

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
        coverage = 1 - deviation**2 / self.likeliest.variance
        never = np.full(len(points), np.inf)
        found = Estimates(value, effective, never, deviation, plays, coverage, log_effective)
        return found.scaled(self.low, self.span)

    def bounds(self, points: Array, level: float) -> tuple[Array, Array]:
        """Low and high that all surfaces allow; NaN where too few samples support one.  (n, d) -> (n,), (n,)"""
        low, high = interval.of_surfaces([self.likeliest, *self.others], points, level)
        return self.low + self.span * low, self.low + self.span * high


def reports(samples: Samples, near: Array, grain: float) -> list[Report]:
    """By all samples, in cells finer than a search's; and by those nearest to a point alone, where there are more.

    A payoff that falls steeply far away, or noise that grows there, makes the surface through all of them rough
    everywhere, while the nearest ones know better; on a smooth one all of them know more. In many dimensions the
    nearest ones would be more than a surface has.  (d,)
    """
    most, found = max(LOCAL, EACH * near.size), [_through(samples.near(near, FINER * grain), samples.payoffs)]
    if most < min(len(samples.payoffs), MOST):
        distance = np.sum((samples.points - near) ** 2, axis=1)
        nearest = np.sort(np.argsort(distance, kind="stable")[:most])
        if np.ptp(payoffs := samples.payoffs[nearest]) > 0:
            found.append(_through(apart(samples.points[nearest]), payoffs, found[0].likeliest.length))
    return found


def clearest(found: list[Report], point: Array) -> Report:
    """The first report, unless the interval of another is clearly narrower at a point.  (d,)"""
    widths = [np.subtract(*one.bounds(point[None], COMPARED)[::-1])[0] for one in found]
    handicapped = np.append(widths[0], np.multiply(CLEARLY, widths[1:]))
    return found[int(np.argmin(np.nan_to_num(handicapped, nan=np.inf)))]


def _through(chosen: Pool, payoffs: Array, smoothest: float = math.inf) -> Report:
    """Points that stand for samples, and what these paid.  (n,)"""
    kept = payoffs[chosen.point >= 0]
    low, span = float(kept.min()), float(np.ptp(kept)) or 1.0
    surfaces = possible(chosen.points, chosen.of((payoffs - low) / span), smoothest)
    return Report(*surfaces, low, span, len(payoffs))
