"""Bandit feedback: a decision is informed by its own payoffs only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.histories.estimates import Estimates
from randomist.importance import bounds
from randomist.importance.means import monte_carlo
from randomist.learners.finite.base import FiniteLearner


@dataclass(eq=False, kw_only=True)
class BanditLearner(FiniteLearner):
    """A decision is informed by its own payoffs only: counts and sums, O(K) a round however long the run.

    Settings are those of `Learner`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plays = np.zeros(self.space.size, np.int64)
        self.payoff_sums = np.zeros(self.space.size)

    def opening(self) -> list[int]:
        """Each decision once."""
        return list(range(self.space.size))

    def _estimate(self) -> Estimates:
        plays = self.plays.astype(np.float64)
        with np.errstate(divide="ignore"):
            log_plays = np.log(plays)
        value = monte_carlo(self.payoff_sums, self.plays)
        width = bounds.width(log_plays, self.told, self.confidence)
        threshold = np.exp(bounds.log_threshold(log_plays, self.told, self.confidence))
        return Estimates(value, plays, threshold, width, self.plays.copy(), (plays > 0).astype(np.float64), log_plays)

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        self.plays[decision] += 1
        self.payoff_sums[decision] += payoff

    def _observe_all(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        self.plays += np.bincount(decisions, minlength=self.space.size)
        np.add.at(self.payoff_sums, decisions, payoffs)  # one after the other

    def _rescale(self, payoffs: Array) -> None:
        self.plays[:], self.payoff_sums[:] = 0, 0.0
        self._observe_all(self.record.decisions, self.record.mediators, payoffs)

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._rescale(self._scale.units(self.record.payoffs))
