"""Learners on a box: what they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._types import Array
from randomist.errors import NoDataError, ParameterError, ShapeError
from randomist.families import LocationScale
from randomist.histories.estimates import Estimates
from randomist.importance.bounds import confidence_term
from randomist.importance.estimators import Estimator, find_estimator
from randomist.learners.base import Learner
from randomist.learners.settings import check_range_known
from randomist.spaces import Box


@dataclass(eq=False, kw_only=True)
class BoxLearner(Learner):
    """A learner that searches a box.

    Settings are those of `Learner`; `space` is a `Box`, and `first` a point of it.
    """

    space: Box = field(kw_only=False)

    def __post_init__(self) -> None:
        if not isinstance(self.space, Box):
            raise ParameterError(
                f"{type(self).__name__} searches a Box, got a {type(self.space).__name__}; take a learner of finite "
                "sets such as Randomist, or give it a Box(family, low, high)"
            )
        super().__post_init__()
        if self.first is not None:
            first, (low, high) = finite_array(self.first, "first"), self.space.corners
            if first.size != self.space.dimension:
                raise ShapeError(f"first must have shape {self.space.family.shape}, got {first.shape}")
            if not ((low <= first.reshape(-1)) & (first.reshape(-1) <= high)).all():
                raise ParameterError(f"first must lie in the box, got {self.first}; the box is [{low}, {high}]")

    def _require_data(self) -> None:
        if not self.told:
            raise NoDataError("nothing has been told yet; tell at least one payoff before asking for a recommendation")

    def _point(self, point: ArrayLike) -> Any:
        """A point as users see it: a number where the family is scalar, else a read-only array."""
        if self.space.family.shape == ():
            return float(np.reshape(point, ()))
        array = np.array(point, dtype=np.float64).reshape(self.space.family.shape)
        array.flags.writeable = False
        return array


@dataclass(eq=False, kw_only=True)
class FixedStdLearner(BoxLearner):
    """A learner whose decisions are points, each with the same distribution around it; the space makes its history.

    Settings are those of `Learner`, and this.

    Parameters
    ----------
    estimator
        What becomes of the weighted samples: "paper", "optimistic", "self-normalised", "log-smoothing", or one
        of your own (see `SharedHistoryLearner`).
    """

    estimator: str | type[Estimator] | Estimator = "paper"

    def __post_init__(self) -> None:
        self._estimator = find_estimator(self.estimator)
        super().__post_init__()
        if isinstance(self.space.family, LocationScale):
            raise ParameterError(
                f"{type(self).__name__} searches points at a fixed std, a Box(Gaussian(std=...), low, high), got one "
                f"of {type(self.space.family).__name__}; Auto chooses the scale itself"
            )
        check_range_known(self._estimator, self._scale)
        self.history: Any = self.space.history()

    def estimate(self, decisions: ArrayLike) -> Estimates:
        """What the history says about any decisions of the box; `value` and `width` in the user's units.  (n,) each"""
        rows = self.space.family.decision_rows(decisions)
        outside = ~self.space.contains(decisions)
        if outside.any():
            raise ParameterError(
                f"decision {rows[outside][0]} lies outside the box [{self.space.low}, {self.space.high}]"
            )
        return self._scale.to_user(self._estimate(rows))

    def recommend(self) -> Any:
        """The played decision with the best estimated value."""
        self._require_data()
        value = self.history.sums(self.history.decisions.rows, self._term(), self._estimator)[0]
        rows = self.record.decisions.reshape(self.told, -1)
        fresh = np.append(True, (rows[1:] != rows[:-1]).any(axis=1))  # the history counts what is played again
        return self._point(rows[fresh][int(np.argmax(value))])

    def _estimate(self, decisions: Array) -> Estimates:
        points = self.history.scaled(decisions.reshape(-1, *self.space.family.shape))
        estimates: Estimates = self.history.estimate(points, self._term(), self._estimator)
        return estimates

    def _absorb(self, decision: Any, mediator: Any, payoff: float) -> None:
        self.history.append(decision, mediator, payoff)
        self._follow()

    def _follow(self) -> None:
        """What a learner caches beside the history, after a sample entered it: told now, or told before a load."""

    def _rescale(self, payoffs: Array) -> None:
        self.history.replace_payoffs(payoffs)

    def _caches(self) -> dict[str, Any]:
        cached: dict[str, Any] = self.history.state()
        return cached

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        record, log_mixture = self.record, state["caches"]["log_mixture"]
        told = zip(record.decisions, record.mediators, self._scale.units(record.payoffs), log_mixture, strict=True)
        for sample in told:
            self.history.append_again(*sample)
            self._follow()

    def _term(self) -> float:
        """α log t: what the threshold and the width are made of."""
        return confidence_term(self.told, self.confidence)

    def _first(self) -> Array:
        """x_1: as given, else uniform in the box.  (d,)"""
        if self.first is not None:
            return np.array(self.first, dtype=np.float64).reshape(-1)
        return self._rng.uniform(*self.space.corners)

    def _inside(self, points: Array) -> Array:
        """Points, not outside of the box by a rounding error."""
        return np.asarray(np.clip(points, *self.space.corners))

    def _scaled_corners(self) -> tuple[Array, Array]:
        """The corners in units of the spread.  (d,), (d,)"""
        low, high = self.space.corners
        return low / self.history.spread, high / self.history.spread
