"""What a search in a box goes by: ranks say where it is better, payoffs what may be lost, and some of it is infeasible.

Ranks are the same for any noise and any range of payoffs, so a surface through them finds the way where payoffs are
wild. But payoffs are what is earned: a place that pays a little more in nine of ten rounds, and in the tenth nothing,
has the better ranks. So ranks decide among the points whose mean payoff is not below the best that is sure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from randomist._types import Array, Flags
from randomist.importance.passes import surface as passes
from randomist.learners.box.surface import Surface

LIKELY = 0.8  # chance of being feasible that a point must have
REACH, BLUR = 0.12, 0.05  # length, in diagonals, and noise of the surface through what is feasible
FEW = 5.0  # plays that a recommended point is worth
FORBIDDEN = 1e9  # what is lost at a point that has less


class Border(NamedTuple):
    """A surface through 1 at feasible and 0 at infeasible samples; far from all of them it is 1."""

    samples: Array  # (n, d)
    length: float
    weights: Array  # (n,)

    def chances(self, points: Array) -> Array:
        """About the chance that a point is feasible.  (n, d) -> (n,)"""
        return passes.means(np.ascontiguousarray(points), self.samples, self.length, self.weights, 1.0)


class Landscape(NamedTuple):
    """Two surfaces through the same samples, and where infeasible ones were."""

    scores: Surface
    payoffs: Surface
    firm: float  # the largest cautious mean payoff that is known
    exchange: float  # scores per payoff
    room: float  # how much better it may be near the best point
    border: Border | None

    def values(self, points: Array) -> Array:
        """What makes a point a good one to play: its score, less what its mean payoff lacks.  (n, d) -> (n,)"""
        lacking = np.maximum(self.firm - self.payoffs.means(points), 0.0)
        return self._where_allowed(self.scores.cautious(points) - self.exchange * lacking, points)

    def firmness(self, points: Array) -> Array:
        """Cautious mean payoffs, where it is feasible.  (n, d) -> (n,)"""
        return self._where_allowed(self.payoffs.cautious(points), points)

    def stands(self, point: Array, played: Array) -> bool:
        """Whether a point is worth a few plays of it alone, if the one that is played is.

        Else it may be a lucky payoff: after a burst of noise a surface sometimes takes what it left for peaks.  (d,)
        """
        _, deviation = self.payoffs.posterior(np.stack([point, played]))
        new, old = self.payoffs.noise >= FEW * deviation**2
        return bool(new or not old)

    def allowed(self, points: Array) -> Flags:
        """Whether points are likely feasible.  (n, d) -> (n,)"""
        return np.ones(len(points), bool) if self.border is None else self.border.chances(points) >= LIKELY

    def _where_allowed(self, values: Array, points: Array) -> Array:
        """Below all others where a point may be infeasible, and the lower the less its chance."""
        if self.border is None:
            return values
        chances = self.border.chances(points)
        return np.where(chances >= LIKELY, values, chances - FORBIDDEN)


def room(payoffs: Surface, best: Array, plays: int, tail: float) -> float:
    """By how much the best payoffs exceed one another, or what noise hides near the best point, if that is more.

    Where all of the best are equal, the former says that there is nothing more to find. But luck has a ceiling, too:
    of payoffs 0 and 1 many are 1, and the mean is still far below. If n plays scatter by s in each of d coordinates,
    noise σ leaves a slope unsure by σ/(s√n), so that at a curvature c the best point loses dσ²/(4cs²n); the plays
    themselves lose cds². Whatever s is, both together are no less than dσ/√n: that much is hidden, and no more than
    the largest payoff is above the mean.  (d,)
    """
    hidden = best.size * payoffs.noise_near(best) / math.sqrt(plays)
    return max(tail, min(hidden, payoffs.ceiling - float(payoffs.means(best[None])[0])))


def border(feasible: Array, infeasible: Array) -> Border | None:
    """Between samples of both kinds; None where none is infeasible.  (n, d), (m, d)"""
    if not len(infeasible):
        return None
    samples = np.concatenate([feasible, infeasible])
    length = REACH * math.sqrt(samples.shape[1])
    factor = passes.cholesky(passes.covariances(passes.distances(samples), length), np.full(len(samples), BLUR))
    below = np.append(np.zeros(len(feasible)), np.full(len(infeasible), -1.0))
    return Border(samples, length, passes.backward(factor, passes.forward(factor, below)))
