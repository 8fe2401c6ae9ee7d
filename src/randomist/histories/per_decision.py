"""Per-decision weights: each reward is weighted by the actions before it, and not by those that came after.

The expected payoff is Σ_h E[g_h r_h], and a reward depends on the first h + 1 actions only: so step h is a history of
its own, whose mediators are trajectories up to there (Precup, Sutton and Singh 2000, here with the balance heuristic).
Weights of short beginnings vary less than those of whole trajectories, whose variance grows exponentially in H.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.histories.finite import Divergence, Estimates, SharedHistory
from randomist.importance import estimators
from randomist.policies.trajectories import Policies
from randomist.spaces import Finite

_BLOCK = 512  # samples per block of each step


class PerDecisionHistory(SharedHistory):
    """One history per step; sums over them are the estimates.

    With c_h the share of step h in the largest payoff, the standard deviation of a sum is at most the sum of standard
    deviations: so 1/√η = Σ c_h/√η_h, and likewise for width and threshold.
    """

    def __init__(self, space: Finite, *, nodes: bool = False, steps: bool = False, block_size: int = _BLOCK) -> None:
        assert isinstance(space.family, Policies)
        assert not nodes
        self.space, self.nodes, self.steps, self.atoms = space, None, None, None
        inner = Finite._of(space.family.whole(), space.loggers)
        self.parts = [SharedHistory(inner, steps=steps, block_size=block_size) for _ in range(space.family.shape[0])]
        weights = space.family.step_weights(len(self.parts))
        self.shares = weights / weights.sum()  # c_h
        self.factor = 1.0  # of the map from payoffs to [0, 1]; the learner keeps it
        self._last: list[Estimates] = []

    @property
    def plays(self) -> Indices:  # type: ignore[override]
        return self.parts[0].plays

    def __len__(self) -> int:
        return len(self.parts[0])

    def append(self, decision: int, mediator: Any, payoff: float) -> None:
        """A trajectory: its step h earned factor g_h r_h, and c_h of what the map to [0, 1] adds.  O(H (K + t))"""
        earned = self.factor * mediator[:, -1]
        earned = earned + self.shares * (payoff - earned.sum())
        for part, row, y in zip(self.parts, mediator[:, :-1], earned.tolist(), strict=True):
            part.append(decision, row, y)

    def estimate(self, confidence: float, divergence: Divergence = "harmonic") -> Estimates:
        self._last = [part.estimate(confidence, divergence) for part in self.parts]
        value = np.sum([step.value for step in self._last], axis=0)
        log_effective = np.array([step.log_effective_samples for step in self._last])  # (H, K)
        known = (log_effective > -np.inf).all(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_root = np.logaddexp.reduce(np.log(self.shares)[:, None] - 0.5 * log_effective, axis=0)
        log_eta = np.where(known, -2 * np.where(known, log_root, 0.0), -np.inf)
        return Estimates(
            value,
            np.exp(log_eta),
            self._shared("threshold"),
            self._shared("width"),
            self.plays[: self.space.size].copy(),
            self._shared("coverage"),
            log_eta,
        )

    def standard_error(self, mean: Array, estimates: Estimates) -> Array:
        """At most: the sum of the steps' own.  (K,) -> (K,)"""
        total = np.zeros(self.space.size)
        for part, step in zip(self.parts, self._last, strict=True):
            own = estimators.self_normalised(step.value, step.coverage)
            total += part.standard_error(own, step)
        return total

    def replace_payoffs(self, payoffs: Array) -> None:
        """All are counted: see `rescale`."""

    def rescale(self, factor: float, shift: float) -> None:
        for part, share in zip(self.parts, self.shares.tolist(), strict=True):
            part.rescale(factor, share * shift)

    def state(self) -> dict[str, Any]:
        return {"steps": [part.state() for part in self.parts]}

    @classmethod
    def restore(
        cls,
        space: Finite,
        decisions: Indices,
        mediators: NDArray[Any],
        payoffs: Array,
        caches: dict[str, Any],
        **settings: Any,
    ) -> PerDecisionHistory:
        history = cls(space)
        inner = history.parts[0].space
        history.parts = [
            SharedHistory.restore(inner, decisions, mediators, payoffs, step, block_size=_BLOCK)
            for step in caches["steps"]
        ]
        return history

    def _shared(self, name: str) -> Array:
        """Σ_h c_h of a field of the steps' estimates.  (K,)"""
        out: Array = self.shares @ np.array([getattr(step, name) for step in self._last])
        return out
