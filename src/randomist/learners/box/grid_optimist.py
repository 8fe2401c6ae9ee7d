"""OPTIMIST2: OPTIMIST on a grid that grows (Papini et al. 2019, Algorithm 2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from randomist._checks import choice, number, probability
from randomist._lookup import ours
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.histories.gaussian import GaussianHistory
from randomist.importance.passes.layout import COVERAGE, LOG_EFFECTIVE, VALUE, WIDTH
from randomist.importance.perturbation import choose
from randomist.importance.rows import Rows
from randomist.learners.box.base import FixedStdLearner
from randomist.learners.settings import DEVICES

BERNSTEIN = math.sqrt(2) + 4 / 3  # bias plus Bernstein; Papini et al.'s code has sqrt(2) + 1/3


def points_per_dimension(rounds: int, kappa: float) -> int:
    """τ_t = ⌈t^(1/κ)⌉, exact where t is a power."""
    root = float(rounds ** (1 / kappa))
    return round(root) if round(root) ** kappa == rounds else math.ceil(root)


@dataclass(eq=False, kw_only=True)
class GridOptimist(FixedStdLearner):
    """Search a box on a grid that gets finer, and play the point whose value plus bonus is largest.

    The grid has ⌈t^(1/κ)⌉ points per dimension in round t, in the middle of equal cells. `grid` has those that compete
    for the next round.

    Differences from the paper: x_1 is the middle of the box unless `first` is given; the grid is rebuilt as soon as the
    payoff that makes it grow has been told.

    Parameters
    ----------
    space
        The box: `Box(Gaussian(std=...), low, high)`, or of another family with a `spread`.
    kappa
        κ >= 1; the paper has 2, 3 and 4. A larger one makes the grid coarser, and rounds faster.
    failure_probability
        δ: with probability 1 - δ the bounds of all rounds hold. A smaller one makes the bonus wider.
    bonus
        The factor of sqrt(d2 log(1/δ_t) / t) that is added to the value. A larger one explores more.
    max_points
        `ask` raises an error where the grid would have more points than this: it grows as t^(d/κ). On a GPU a million
        points take milliseconds a round.
    device
        Where the grid is estimated: "cpu", or "gpu" for a fine one, which needs JAX; "jax-cpu" is the same code on
        JAX's CPU. For Gaussians, and estimators that are functions of sums. It is not part of what is saved.
    estimator
        What becomes of the weighted samples: "paper", "optimistic", "self-normalised", "log-smoothing", or
        "module:Class" for one of your own.
    payoff_range
        The smallest and the largest payoff, in your units: (0, 1) by default. "running" learns it from what is told.
    out_of_range
        What happens to a payoff outside of the range: "refuse" raises an error, "clip" clips and counts it.
    first
        The first decision, a point of the box; its middle by default.
    seed
        A whole number. The same seed gives the same run; None takes one from the system, which `entropy` then names.
    confidence
        Not used: `failure_probability` takes its place.
    """

    kappa: float = 2.0
    failure_probability: float = 0.2
    bonus: float = BERNSTEIN
    max_points: int = 20_000
    device: str = "cpu"

    def __post_init__(self) -> None:
        choice(self.device, DEVICES, "device")
        number(self.bonus, "bonus", above=0)
        if not self.kappa >= 1:
            raise ParameterError(f"kappa must be >= 1 (2, 3 or 4 in the paper), got {self.kappa}")
        probability(self.failure_probability, "failure_probability")
        super().__post_init__()
        fast = self._estimator.of_sums and isinstance(self.history, GaussianHistory)
        if self.device != "cpu" and not fast:
            raise ParameterError(
                f"a grid on a device is one of Gaussians, with an estimator of sums, got "
                f"{type(self.space.family).__name__} and estimator={self.estimator!r}; leave device= out"
            )
        self._rows: Any = None
        if fast and self.device == "cpu":
            self._rows = Rows(self.space.dimension)
        elif fast:
            self._rows = ours("randomist.histories.device_rows:DeviceRows")(self.space.dimension, self.device)
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
        value, width, log_effective = self._estimated()
        index = value + self.bonus * width
        return self._point(self._grid[choose(index, log_effective, self._rng.random())])

    def _estimated(self) -> tuple[Array, Array, Array]:
        """Values, widths and log η of the grid.  (τ^d,) each"""
        if self._rows is None:
            found = self.history.estimate(self._grid / self.history.spread, self._term(), self._estimator)
            return found.value, found.width, found.log_effective_samples
        table = self._rows.estimate(self._term(), self.history.arrays())
        return self._estimator.combine(table[VALUE], table[COVERAGE]), table[WIDTH], table[LOG_EFFECTIVE]

    def state(self) -> dict[str, Any]:
        state = super().state()
        del state["settings"]["device"]  # a run is the same on another one
        return state

    def _follow(self) -> None:
        if self._rows is not None:
            self._rows.add_sample(self.history.arrays())
        per_dimension = points_per_dimension(len(self.history) + 1, self.kappa)  # of the next round
        if self._per_dimension < per_dimension and per_dimension**self.space.dimension <= self.max_points:
            self._regrid(per_dimension)

    def _regrid(self, per_dimension: int) -> None:
        d = self.space.dimension
        self._per_dimension = per_dimension
        middles = (np.arange(per_dimension) + 0.5) / per_dimension
        mesh = np.stack([axis.ravel() for axis in np.meshgrid(*[middles] * d, indexing="ij")], axis=1)  # (τ^d, d)
        low, high = self.space.corners
        self._grid = low + mesh * (high - low)
        if self._rows is not None:
            self._rows = self._rows.replaced(self._grid / self.history.spread, self.history.arrays())
