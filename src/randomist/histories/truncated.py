"""Told samples of a box under truncated Gaussians of one std: the same numbers as `BoxHistory`, faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array
from randomist.families._truncated import log_masses, log_second_moments, means
from randomist.histories.box import BoxHistory
from randomist.histories.growing import Growing
from randomist.importance import ascent
from randomist.importance.passes.layout import LOG_HUGE
from randomist.importance.passes.points import exponents

if TYPE_CHECKING:
    from randomist.spaces import Box


class TruncatedHistory(BoxHistory):
    """In units of the std log p_x(z) is -|z - x|²/2 - c_x up to a constant; c_x is computed once, when x is played."""

    COLUMNS = (*BoxHistory.COLUMNS, "log_masses")

    def __init__(self, space: Box) -> None:
        super().__init__(space)
        self.log_masses = Growing()  # c_x of the distinct decisions
        low, high = space.family.corners
        self._shape = np.ones((1, space.dimension)), low / self.spread, high / self.spread

    def climb(self, candidates: Array, lengths: Array, low: Array, high: Array, term: float) -> Array:
        """The best candidate by the optimistic estimate, or the best point uphill of it.  (n, d), (m,) -> (d,)"""
        return ascent.climb(candidates, lengths, low, high, term, self, _optimistic_at, _gradient_at)

    def means(self, points: Array) -> Array:
        """What is drawn on average at points, which may lie outside of the box.  (n, d)"""
        return means(points, *self._shape)

    def log_shares(self, points: Array) -> Array:
        """log T_j / d2(p_x || p_{x_j}) of the distinct decisions.  (n, d) -> (n, used)"""
        std, low, high = self._shape
        moments = log_second_moments(points, std, self.decisions.rows, std, low, high)
        divergences = np.maximum(moments - 2 * log_masses(points, *self._shape)[:, None] + self.log_masses.rows, 0.0)
        return np.asarray(np.log(self.plays.rows) - divergences)

    def _log_weights(self, points: Array) -> Array:
        weights = exponents(points, self.mediators.array, len(self), 0.5, self.log_mixture.rows)
        return np.asarray(weights - log_masses(points, *self._shape)[:, None])

    def _log_effective(self, points: Array) -> Array:
        log_effective: Array = np.logaddexp.reduce(self.log_shares(points), axis=1)
        return log_effective

    def _add_play(self) -> None:
        rows, mass = self.log_mixture.rows, np.full(len(self), self.log_masses.rows[-1])
        np.logaddexp(rows, exponents(self.decisions.rows[-1:], self.mediators.array, len(self), 0.5, mass)[0], out=rows)

    def _mixture_of_last(self) -> float:
        shift = self.log_masses.rows - np.log(self.plays.rows)
        densities = exponents(self.mediators.rows[-1:], self.decisions.array, self.decisions.used, 0.5, shift)[0]
        return float(np.logaddexp.reduce(densities))

    def _count(self, decision: ArrayLike) -> None:
        super()._count(decision)
        if self.log_masses.used < self.decisions.used:
            self.log_masses.append(log_masses(self.decisions.rows[-1:], *self._shape)[0])


def _optimistic_at(points: Array, term: float, history: TruncatedHistory) -> ascent.Surface:
    shares = np.exp(history.log_shares(points))
    weights = np.exp(np.minimum(history._log_weights(points), LOG_HUGE))
    return ascent.cut_surface(shares, weights, term, history.payoffs.rows)


def _gradient_at(points: Array, surface: ascent.Surface, k: int, history: TruncatedHistory) -> Array:
    """With the mean μ(x) of draws at x: ∇ log p_x(z) = z - μ(x) and ∇D_2(p_x || p_x') = 2 (μ(2x - x') - μ(x)).  (d,)"""
    x, (uncut, cut_loss) = points[k], ascent.losses(surface, k, history.payoffs.rows)
    mean, shares = history.means(x[None])[0], surface.shares[k]
    towards = uncut @ history.mediators.rows - uncut.sum() * mean
    away = shares @ history.means(2 * x - history.decisions.rows) - shares.sum() * mean
    gradient: Array = -towards - cut_loss * away
    return gradient
