"""What a learner in a box reports of points, in the user's units: by the likeliest surface near them, and by all others
that the samples allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from randomist._types import Array, Indices
from randomist.histories.estimates import Estimates
from randomist.learners.box import interval
from randomist.learners.box.alternatives import Rippled, possible
from randomist.learners.box.samples import Samples
from randomist.learners.box.surface import Surface

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


def report(samples: Samples, near: Array, grain: float) -> Report:
    """By the samples near a point, in cells that are finer than a search's.  (d,)"""
    chosen = samples.near(near, FINER * grain)
    kept = samples.payoffs[chosen.point >= 0]
    low, span = float(kept.min()), float(np.ptp(kept)) or 1.0
    surfaces = possible(chosen.points, chosen.of((samples.payoffs - low) / span))
    return Report(*surfaces, low, span, len(samples.payoffs))
