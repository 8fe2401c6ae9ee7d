"""Learners on a box: what they share is the history, and estimates at any decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array
from randomist.errors import NoDataError, ParameterError, ShapeError
from randomist.families import Gaussian
from randomist.histories.box import BoxHistory
from randomist.histories.finite import Estimates
from randomist.importance import confidence_term
from randomist.importance.estimators import ESTIMATORS, Estimator
from randomist.learners.base import Learner
from randomist.learners.settings import check_best_known, check_choice
from randomist.spaces import Box


@dataclass(eq=False, kw_only=True)
class BoxLearner(Learner):
    """A learner whose decisions are points of a box.

    `estimator` is what becomes of the truncated sums: "paper", "optimistic" or "self-normalised" (see
    `SharedHistoryLearner`).
    """

    space: Box = field(kw_only=False)
    estimator: Estimator = "paper"

    def __post_init__(self) -> None:
        if not isinstance(self.space, Box):
            raise ParameterError(
                f"{type(self).__name__} searches a Box, got a {type(self.space).__name__}; take a learner of finite "
                "sets such as Randomist, or give it a Box(family, low, high)"
            )
        if not isinstance(self.space.family, Gaussian):
            raise ParameterError(
                f"{type(self).__name__} searches points at a fixed std, a Box(Gaussian(std=...), low, high), got one "
                f"of {type(self.space.family).__name__}; Auto chooses the scale itself"
            )
        super().__post_init__()
        if self.first is not None:
            self.first = np.array(self.first, dtype=np.float64)
            if self.first.shape != self.space.family.shape:
                raise ShapeError(f"first must have shape {self.space.family.shape}, got {self.first.shape}")
            if not self.space.contains(self.first).all():
                raise ParameterError(f"first must lie in the box, got {self.first}; the box is {self._box()}")
        check_choice(self.estimator, get_args(Estimator), "estimator")
        check_best_known(self.estimator, self._scale)
        self._kind = get_args(Estimator).index(self.estimator)
        self.history = BoxHistory(self.space)

    def estimate(self, decisions: ArrayLike) -> Estimates:
        """What the history says about any decisions of the box; `value` on the [0, 1] scale of `payoff_range`."""
        rows = self.space.family._rows(decisions, "decisions")
        outside = ~self.space.contains(decisions)
        if outside.any():
            raise ParameterError(f"decision {rows[outside][0]} lies outside the box {self._box()}")
        return self._estimate(decisions)

    def recommend(self) -> Any:
        """The played decision with the best estimated value."""
        if not self.told:
            raise NoDataError("nothing has been told yet; tell at least one payoff before asking for a recommendation")
        decisions = self.record.decisions
        fresh = np.ones(self.told, bool)
        rows = decisions.reshape(self.told, -1)
        fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        played = decisions[fresh]
        return self._point(played[int(np.argmax(self._estimate(played).value))])

    def _estimate(self, decisions: ArrayLike) -> Estimates:
        estimates = self.history.estimate(decisions, self._term())
        return estimates._replace(value=self._combined(estimates.value, estimates.coverage))

    def _combined(self, value: Array, coverage: Array) -> Array:
        """What the estimator makes of the truncated sums.  (n,), (n,) -> (n,)"""
        return ESTIMATORS[self.estimator](value, coverage)

    def _term(self) -> float:
        """α log t: what the threshold and the width are made of."""
        return confidence_term(self.told, self.confidence)

    def _absorb(self, decision: Any, mediator: Any, payoff: float) -> None:
        self.history.append(decision, mediator, payoff)
        self._follow(len(self.history) - 1)

    def _follow(self, sample: int) -> None:
        """What a learner caches beside the history, after a sample entered it: told now, or told before a load."""

    def _rescale(self, payoffs: Array) -> None:
        self.history.payoffs.rows[:] = payoffs

    def _first(self) -> Array:
        """x_1: as given, else uniform in the box.  (d,)"""
        if self.first is not None:
            return np.ravel(self.first)
        return self._rng.uniform(np.ravel(self.space.low), np.ravel(self.space.high))

    def _point(self, decision: ArrayLike) -> Any:
        """A decision as users see it: a number where the family is scalar, else a read-only array."""
        if self.space.family.shape == ():
            return float(np.reshape(decision, ()))
        point = np.array(decision, dtype=np.float64).reshape(self.space.family.shape)
        point.flags.writeable = False
        return point

    def _box(self) -> str:
        return f"[{self.space.low}, {self.space.high}]"

    def _caches(self) -> dict[str, Any]:
        return self.history.state()

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        record, log_mixture = self.record, state["caches"]["log_mixture"]
        told = zip(record.decisions, record.mediators, self._scale.units(record.payoffs), log_mixture, strict=True)
        for i, sample in enumerate(told):
            self.history.append_again(*sample)
            self._follow(i)
