"""The samples that a search in a box looks at: a bounded number of all that are known, payoffs in units of their own."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array, Flags, Indices

REMEMBERED = 1024  # samples: the last ones, and as many of those before
FEWEST, MOST = 200, 400  # of a surface, four per dimension between these bounds
NEAR = 0.5  # of these: the last and the nearest ones
ABOVE, BELOW = 8.0, 100.0  # quartile ranges from the median: a payoff beyond counts as that far


class Samples(NamedTuple):
    """Points of the unit cube and what they paid, in units where the lowest is 0 and the highest 1."""

    points: Array  # (n, d)
    payoffs: Array  # (n,)
    centres: Array  # where they were drawn from  (n, d)
    seen: Flags  # whether a point was played to see what is there  (n,)
    low: float  # what 0 is, in the user's units
    span: float  # what 1 is more; 0 where all are the same

    def near(self, point: Array) -> tuple[Array, Array]:
        """Points and payoffs of the last samples, of the nearest ones, and of some of all others.  (n, d), (n,)"""
        n, most = len(self.payoffs), min(max(FEWEST, 4 * point.size), MOST)
        if n <= most:
            return self.points, self.payoffs
        distance = np.sum((self.points - point) ** 2, axis=1)
        distance[-(most // 4) :] = -1.0
        order, nearest = np.argsort(distance, kind="stable"), int(NEAR * most)
        spread = np.linspace(nearest, n - 1, most - nearest).astype(np.int64)
        chosen = np.sort(order[np.concatenate([np.arange(nearest), spread])])
        return self.points[chosen], self.payoffs[chosen]

    def leaders(self, count: int) -> Indices:
        """Those with the best payoffs."""
        n = min(count, len(self.payoffs))
        return np.argpartition(-self.payoffs, n - 1)[:n]


def in_units(payoffs: Array) -> tuple[Array, float, float]:
    """Payoffs from 0 to 1, what 0 is and what 1 is more; those far from all others are drawn nearer.  (n,) -> (n,)

    What is far above is luck more often than not, and what is far below hides how the others differ.
    """
    low, middle, high = np.quantile(payoffs, (0.25, 0.5, 0.75))
    if high > low:
        payoffs = np.clip(payoffs, middle - BELOW * (high - low), middle + ABOVE * (high - low))
    least, span = float(payoffs.min()), float(payoffs.max() - payoffs.min())
    return ((payoffs - least) / span if span > 0 else np.full(len(payoffs), 0.5)), least, span


def remembered(known: int) -> Indices:
    """The last samples, and those before them at even distances: a bounded number of all."""
    older = known - REMEMBERED
    if older <= REMEMBERED:
        return np.arange(known)
    stride = 2 ** math.ceil(math.log2(older / REMEMBERED))
    return np.concatenate([np.arange(0, older, stride), np.arange(older, known)])
