"""Told samples of a box under Gaussians of one std: the same numbers as `BoxHistory`, by compiled passes."""

from __future__ import annotations

import numpy as np

from randomist._types import Array
from randomist.histories.box import BoxHistory
from randomist.importance import ascent
from randomist.importance.estimators import Estimator
from randomist.importance.passes import points as passes


class GaussianHistory(BoxHistory):
    """In units of the std log p_x(z) is -|z - x|²/2 and D_2(p_x || p_x') is |x - x'|²."""

    def sums(self, points: Array, term: float, estimator: Estimator) -> tuple[Array, Array, Array]:
        if not estimator.of_sums:
            return super().sums(points, term, estimator)
        value, log_effective, coverage = passes.estimate_at(points, term, self.arrays())
        return estimator.combine(value, coverage), log_effective, coverage

    def one(self, point: Array, term: float, estimator: Estimator) -> tuple[float, float]:
        if not estimator.of_sums:
            return super().one(point, term, estimator)
        value, log_effective, coverage = passes.estimate_one(point, term, *self.arrays())
        return float(estimator.combine(np.array([value]), np.array([coverage]))[0]), log_effective

    def climb(self, candidates: Array, lengths: Array, low: Array, high: Array, term: float) -> Array:
        """The best candidate by the optimistic estimate, or the best point uphill of it.  (n, d), (m,) -> (d,)"""
        return ascent.climb(candidates, lengths, low, high, term, self.arrays())

    def arrays(self) -> passes.Samples:
        """What the kernels take."""
        return passes.Samples(
            self.mediators.array,
            self.log_mixture.array,
            self.payoffs.array,
            len(self),
            self.decisions.array,
            self.plays.array,
            self.decisions.used,
        )

    def _log_weights(self, points: Array) -> Array:
        weights: Array = passes.exponents(points, self.mediators.array, len(self), 0.5, self.log_mixture.rows)
        return weights

    def _log_effective(self, points: Array) -> Array:
        log_effective: Array = passes.log_effective(points, self.arrays())
        return log_effective

    def _add_play(self) -> None:
        at = self.decisions.used - 1
        passes.add_play(self.mediators.array, self.log_mixture.array, len(self), self.decisions.array, at)

    def _mixture_of_last(self) -> float:
        mixture: float = passes.mixture_at(
            self.mediators.array, len(self) - 1, self.decisions.array, self.plays.array, self.decisions.used
        )
        return mixture
