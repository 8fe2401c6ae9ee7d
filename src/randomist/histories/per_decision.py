"""Per-decision weights: each reward is weighted by the actions before it, and not by those that came after.

The expected payoff is Σ_h E[g_h r_h], and a reward depends on the first h + 1 actions only: so step h is a history of
its own, whose mediators are trajectories up to there (Precup, Sutton and Singh 2000, here with the balance heuristic).
Weights of short beginnings vary less than those of whole trajectories, whose variance grows exponentially in H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.histories.estimates import Estimates
from randomist.histories.finite import FiniteHistory
from randomist.importance.divergences import Divergence
from randomist.importance.estimators import Estimator
from randomist.importance.estimators.paper import Paper
from randomist.importance.estimators.self_normalised import SelfNormalised

if TYPE_CHECKING:
    from randomist.spaces import Finite

BLOCK = 512  # samples per block of each step


class PerDecisionHistory:
    """One history per step; sums over them are the estimates. It offers what `FiniteHistory` does, but for logs.

    With c_h the share of step h in the largest payoff, the standard deviation of a sum is at most the sum of standard
    deviations: so 1/√η = Σ c_h/√η_h, and likewise for width and threshold.
    """

    def __init__(
        self,
        space: Finite,
        divergence: type[Divergence],
        estimator: Estimator,
        *,
        nodes: bool = False,
        window: int | None = None,
        discount: float | None = None,
    ) -> None:
        if window is not None or discount is not None:
            raise ParameterError(
                "per-decision weights have no window and no discount of samples; take weights='trajectory' with them, "
                "or leave both at None"
            )
        if not estimator.of_sums:
            raise ParameterError(
                f"the {estimator.name} estimator is no sum over steps; take another one, or weights='trajectory'"
            )
        self.space, self.estimator = space, estimator
        whole = space.of_whole_trajectories()
        assert space.family.weighted_steps is not None
        weights = space.family.step_weights(space.family.weighted_steps)
        self.steps = [FiniteHistory(whole, divergence, Paper(), size=BLOCK) for _ in weights]
        self.shares = weights / weights.sum()  # c_h
        self._last: list[Estimates] = []

    @property
    def plays(self) -> Indices:
        return self.steps[0].plays

    def __len__(self) -> int:
        return len(self.steps[0])

    @property
    def samples(self) -> float:
        return self.steps[0].samples

    def append(self, source: int, mediator: Any, payoff: float, factor: float = 1.0) -> None:
        """A trajectory: step h earned factor g_h r_h, and c_h of what the map to [0, 1] adds.  O(H K)

        `factor` is what that map multiplies payoffs with.
        """
        earned = factor * mediator[:, -1]
        earned = earned + self.shares * (payoff - earned.sum())
        for step, row, y in zip(self.steps, mediator[:, :-1], earned.tolist(), strict=True):
            step.append(source, row, y)

    def check(self, sources: Indices, mediators: NDArray[Any]) -> None:
        """Nothing: a trajectory is checked when it is told."""

    def extend(
        self,
        sources: Indices,
        mediators: NDArray[Any],
        payoffs: Array,
        factor: float = 1.0,
        *,
        checked: bool = False,
    ) -> None:
        for source, mediator, payoff in zip(sources.tolist(), mediators, payoffs.tolist(), strict=True):
            self.append(source, mediator, payoff, factor)

    def add_plays(self, times: Indices) -> None:
        raise ParameterError("a log has no steps to weight one by one; take weights='trajectory' to absorb it")

    def add_counted(self, source: int, log_density: Array, payoff: float) -> None:
        self.add_plays(np.zeros(0, np.int64))

    def harmonic(self) -> Array:
        """η by the harmonic bounds of the steps, as of now.  (K,)"""
        with np.errstate(divide="ignore"):
            roots = np.array([1.0 / np.sqrt(step.harmonic()) for step in self.steps])  # (H, K)
        return np.asarray((self.shares @ roots) ** -2.0)

    def estimate(self, confidence: float) -> Estimates:
        self._last = [step.estimate(confidence) for step in self.steps]
        value = np.sum([step.value for step in self._last], axis=0)
        log_effective = np.array([step.log_effective_samples for step in self._last])  # (H, K)
        known = (log_effective > -np.inf).all(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_root = np.logaddexp.reduce(np.log(self.shares)[:, None] - 0.5 * log_effective, axis=0)
        log_eta = np.where(known, -2 * np.where(known, log_root, 0.0), -np.inf)
        coverage = self._shared("coverage")
        value = self.estimator.combine(value, coverage)
        if self.estimator.unknown is not None:
            value = np.where(known, value, self.estimator.unknown)
        threshold, width = self._shared("threshold"), self._shared("width")
        plays = self.plays[: self.space.size].copy()
        return Estimates(value, np.exp(log_eta), threshold, width, plays, coverage, log_eta)

    def standard_error(self, mean: Array, estimates: Estimates) -> Array:
        """At most: the sum of the steps' own.  (K,) -> (K,)"""
        total = np.zeros(self.space.size)
        for history, step in zip(self.steps, self._last, strict=True):
            own = SelfNormalised().combine(step.value, step.coverage)
            total += history.standard_error(own, step)
        return total

    sees_payoffs: ClassVar[bool] = False  # those of whole trajectories are sums over steps, each weighted on its own

    def payoff_distributions(self, rows: Indices, estimates: Estimates) -> tuple[Array, Array]:
        raise NotImplementedError

    def truncated_mass(self, threshold: Array) -> Array:
        raise ParameterError('bias_correction="computed" needs a family to integrate under, which trajectories lack')

    def rescale(self, factor: float, shift: float, payoffs: Array | None) -> None:
        for step, share in zip(self.steps, self.shares.tolist(), strict=True):
            step.rescale(factor, share * shift, None)

    def state(self) -> dict[str, Any]:
        return {"steps": [step.state() for step in self.steps]}

    def restore(self, state: dict[str, Any], sources: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        for step, saved in zip(self.steps, state["steps"], strict=True):
            step.restore(saved, sources, mediators, payoffs)

    def _shared(self, name: str) -> Array:
        """Σ_h c_h of a field of the steps' estimates.  (K,)"""
        out: Array = self.shares @ np.array([getattr(step, name) for step in self._last])
        return out
