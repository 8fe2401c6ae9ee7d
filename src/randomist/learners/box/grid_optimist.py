"""OPTIMIST2: OPTIMIST on a grid that grows (Papini et al. 2019, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.importance import kernels
from randomist.importance.rows import Rows
from randomist.learners.box.base import BoxLearner
from randomist.learners.settings import check_positive

BERNSTEIN = math.sqrt(2) + 4 / 3  # bias plus Bernstein; Papini et al.'s code has sqrt(2) + 1/3


def points_per_dimension(rounds: int, kappa: float) -> int:
    """τ_t = ⌈t^(1/κ)⌉, exact where t is a power."""
    root = float(rounds ** (1 / kappa))
    return round(root) if round(root) ** kappa == rounds else math.ceil(root)


@dataclass(eq=False, kw_only=True)
class GridOptimist(BoxLearner):
    """Play the grid point with the largest optimistic estimate; the grid has ⌈t^(1/κ)⌉ points per dimension.

    Larger `kappa` is coarser. `failure_probability` is δ, `bonus` the factor of sqrt(d2 log(1/δ_t) / t). Points lie in
    the middle of equal cells. `max_points` stops a grid that no longer fits: it grows as t^(d/κ).

    Differences from the paper: x_1 is the middle of the box unless `first` is given; the grid is rebuilt as soon as the
    payoff that makes it grow has been told.
    """

    kappa: float = 2.0
    failure_probability: float = 0.2
    bonus: float = BERNSTEIN
    max_points: int = 20_000

    def __post_init__(self) -> None:
        check_positive(self.bonus, "bonus")
        if not self.kappa >= 1:
            raise ParameterError(f"kappa must be >= 1 (2, 3 or 4 in the paper), got {self.kappa}")
        if not 0 < self.failure_probability < 1:
            raise ParameterError(f"failure_probability must lie in (0, 1), got {self.failure_probability}")
        super().__post_init__()
        self._rows = Rows(self.space.dimension)
        self._regrid(1)

    @property
    def grid(self) -> Array:
        """The points that compete for the next round.  (τ^d, *shape)"""
        return self._grid.reshape(-1, *self.space.family.shape)

    def _term(self) -> float:
        """log(1/δ_t), δ_t = 6δ / (π² t² (1 + τ^d))."""
        t = self.told + 1
        return math.log(math.pi**2 * t**2 * (1 + len(self._grid)) / (6 * self.failure_probability))

    def _decide(self) -> Any:
        per_dimension, d = points_per_dimension(self.told + 1, self.kappa), self.space.dimension
        if per_dimension**d > self.max_points:
            raise ParameterError(
                f"the grid of round {self.told + 1} would have {per_dimension}^{d} = {per_dimension**d} points, more "
                f"than max_points={self.max_points}; take a larger kappa, fewer rounds, or more points"
            )
        if not self.told:
            return self._point(self._grid[0] if self.first is None else self.first)
        table = self._rows.estimate(self._term(), self.history.log_mixture.array, self.history.payoffs.array)
        value = self._combined(table[kernels.VALUE], table[kernels.COVERAGE])
        index = value + self.bonus * table[kernels.WIDTH]
        return self._point(self._grid[kernels.choose(index, table[kernels.LOG_EFFECTIVE], self._rng.random())])

    def _follow(self, sample: int) -> None:
        history = self.history
        self._rows.add_sample(history.mediators.array, sample, history.decisions.array, history.decisions.used - 1)
        per_dimension = points_per_dimension(sample + 2, self.kappa)  # of the next round
        if self._per_dimension < per_dimension and per_dimension**self.space.dimension <= self.max_points:
            self._regrid(per_dimension)

    def _regrid(self, per_dimension: int) -> None:
        d = self.space.dimension
        self._per_dimension = per_dimension
        middles = (np.arange(per_dimension) + 0.5) / per_dimension
        mesh = np.stack([axis.ravel() for axis in np.meshgrid(*[middles] * d, indexing="ij")], axis=1)  # (τ^d, d)
        low, high = np.ravel(self.space.low), np.ravel(self.space.high)
        self._grid = low + mesh * (high - low)
        self._rows = self._rows.replaced(self._grid / self.history.std, self.history.arrays())
