"""Learners on a finite set: General Randomized Exploration with Shared History, and its bandit cousin.

GRE-SH (Metelli et al. 2021, App. D.3): draw an index for every decision from its distribution given the history, play
the argmax. Subclasses say how an estimate becomes an index.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from randomist.errors import NoDataError, ParameterError, ShapeError
from randomist.families.base import Array
from randomist.history import Divergence, Estimates, SharedHistory
from randomist.importance import estimators, kernels
from randomist.learners.base import Learner
from randomist.learners.settings import bias_factor, check_choice
from randomist.spaces import Finite

Estimator: TypeAlias = Literal["paper", "optimistic", "self-normalised"]


@dataclass(eq=False, kw_only=True)
class FiniteLearner(Learner):
    """Play the argmax of an index over K decisions, after an opening of decisions that must each be played once."""

    space: Finite = field(kw_only=False)

    def __post_init__(self) -> None:
        if not isinstance(self.space, Finite):
            raise ParameterError(
                f"{type(self).__name__} searches a Finite space, got a {type(self.space).__name__}; take a box learner "
                "such as MCMCRandomist, or lay a grid with Finite.grid(family, low, high, points)"
            )
        super().__post_init__()
        if self.first is not None:
            if isinstance(self.first, bool) or np.ndim(self.first) or self.first not in range(self.space.size):
                raise ParameterError(f"first must be a decision in 0..{self.space.size - 1}, got {self.first!r}")
            self.first = int(self.first)
        self._opening = dict.fromkeys(self.opening())  # an ordered set: what is still to be told once
        self._estimates: Estimates | None = None

    @abstractmethod
    def opening(self) -> list[int]:
        """The decisions to play before the index decides, in order."""

    @abstractmethod
    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        """An index for every decision; the largest is played, ties at random.  (K,)"""

    @abstractmethod
    def _estimate(self) -> Estimates: ...

    @abstractmethod
    def _observe(self, decision: int, mediator: Any, payoff: float) -> None: ...

    def estimates(self) -> Estimates:
        """What the history says about every decision now."""
        if self._estimates is None:
            self._estimates = self._estimate()
        return self._estimates

    def recommend(self) -> int:
        """The decision with the best estimated value among those that the history knows, the first one of equals."""
        if not self.told:
            raise NoDataError("nothing has been told yet; tell at least one payoff before asking for a recommendation")
        estimates = self.estimates()
        known = estimates.log_effective_samples > -np.inf
        return int(np.argmax(np.where(known, estimates.value, -np.inf)))

    def _absorb(self, decision: int, mediator: Any, payoff: float) -> None:
        self._observe(decision, mediator, payoff)
        self._opening.pop(decision, None)
        self._estimates = None

    def _decide(self) -> int:
        if self._opening:
            asked = {trial.decision for trial in self._pending.values()}
            for decision in self._opening:
                if decision not in asked:
                    return decision
        estimates = self.estimates()
        index = self.index(estimates, self._rng)
        if type(index) is not np.ndarray or index.shape != (self.space.size,):
            raise ShapeError(
                f"{type(self).__name__}.index must return an array of shape ({self.space.size},), one per decision, "
                f"got {type(index).__name__} of shape {np.shape(index)}"
            )
        decision = kernels.choose(index, self._knowledge(estimates), self._rng.random())
        if decision < 0:
            raise ParameterError(f"{type(self).__name__}.index returned a NaN: {index}")
        return decision

    def _knowledge(self, estimates: Estimates) -> Array:
        """log η: -inf makes an index infinite, and the smaller one goes first among indices beyond float64."""
        return estimates.log_effective_samples

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for decision in self.record.decisions.tolist():
            self._opening.pop(decision, None)
        self._estimates = None


@dataclass(eq=False, kw_only=True)
class SharedHistoryLearner(FiniteLearner):
    """Every sample informs every decision: truncated multiple importance sampling over one shared history (Sec. 4).

    `estimator` is what becomes of the truncated sums: "paper" (TMIS, which truncation makes pessimistic), "optimistic"
    (1 minus the truncated estimate of the loss) or "self-normalised" (the weighted mean). `divergence` is how
    d2(p_x || Φ_t) is had: by the paper's "harmonic" bound, as an integral against the "mixture", or by the "empirical"
    second moment of the weights. `bias_correction` is b, what is added for the truncation: None is what the estimator
    needs ("paper" for the paper's, else 0), "paper" is sqrt(α log t / η), a number that multiple of it, and "computed"
    the mass beyond the threshold, integrated.
    """

    estimator: Estimator = "paper"
    divergence: Divergence = "harmonic"
    bias_correction: float | Literal["paper", "computed"] | None = None

    def __post_init__(self) -> None:
        check_choice(self.estimator, get_args(Estimator), "estimator")
        check_choice(self.divergence, get_args(Divergence), "divergence")
        super().__post_init__()
        if self.estimator == "optimistic" and self._scale.unbounded:
            raise ParameterError(
                "the optimistic estimator needs to know the best payoff there is: give payoff_range=(low, high), or "
                '"running" to learn it, instead of (-inf, inf)'
            )
        computes_bias = self.bias_correction == "computed"
        self._bias_factor = None if computes_bias else bias_factor(self.bias_correction, self.estimator)
        self.history = SharedHistory(self.space, nodes=computes_bias or self.divergence == "mixture")

    def opening(self) -> list[int]:
        """Remark 1: the decisions that some other one says nothing about, in index order; if there are none, x_1.

        The optimistic estimate of such a decision is 1, so that it needs no opening.
        """
        uninformed: list[int] = [] if self.estimator == "optimistic" else self.space.uninformed().tolist()
        if uninformed:
            return uninformed
        return [int(self._rng.integers(self.space.size)) if self.first is None else self.first]

    def bias(self, estimates: Estimates) -> Array:
        """b_t(x), what truncation may take away from the value; finite.  (K,)"""
        if self._bias_factor is None:
            assert self.history.nodes is not None
            return self.history.nodes.truncated_mass(estimates.threshold, self.told)
        return self._bias_factor * np.minimum(estimates.width, kernels.HUGE)

    def _estimate(self) -> Estimates:
        estimates = self.history.estimate(self.confidence, self.divergence)
        if self.estimator == "paper":
            return estimates
        if self.estimator == "self-normalised":
            return estimates._replace(value=estimators.self_normalised(estimates.value, estimates.coverage))
        value = estimators.optimistic(estimates.value, estimates.coverage)
        return estimates._replace(value=np.where(estimates.log_effective_samples > -np.inf, value, 1.0))

    def _knowledge(self, estimates: Estimates) -> Array:
        if (
            self.estimator == "optimistic"
        ):  # where nothing is known the value says so, and the index need not be infinite
            return np.maximum(estimates.log_effective_samples, -1e300)
        return estimates.log_effective_samples

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        self.history.append(decision, mediator, payoff)

    def _rescale(self, payoffs: Array) -> None:
        self.history.replace_payoffs(payoffs)

    def _caches(self) -> dict[str, Any]:
        return self.history.state()

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        record = self.record
        self.history = SharedHistory.restore(
            self.space, record.decisions, record.mediators, self._scale.units(record.payoffs), state["caches"]
        )


@dataclass(eq=False, kw_only=True)
class BanditLearner(FiniteLearner):
    """A decision is informed by its own payoffs only: counts and sums, O(K) a round however long the run."""

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
        value = estimators.monte_carlo(self.payoff_sums, self.plays)
        width = estimators.width(log_plays, self.told, self.confidence)
        threshold = np.exp(estimators.log_threshold(log_plays, self.told, self.confidence))
        return Estimates(value, plays, threshold, width, self.plays.copy(), (plays > 0).astype(np.float64), log_plays)

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        self.plays[decision] += 1
        self.payoff_sums[decision] += payoff

    def _rescale(self, payoffs: Array) -> None:
        self.plays[:], self.payoff_sums[:] = 0, 0.0
        for decision, payoff in zip(self.record.decisions.tolist(), payoffs.tolist(), strict=True):
            self._observe(decision, None, payoff)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._rescale(self._scale.units(self.record.payoffs))
