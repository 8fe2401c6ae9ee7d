"""PGPE: policy gradients with parameter-based exploration.

F. Sehnke, C. Osendorfer, T. Rückstieß, A. Graves, J. Peters and J. Schmidhuber, Policy Gradients with Parameter-Based
Exploration for Control, ICANN 2008. What the learners of this kind share, a mean that moves once a batch, is here too.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from randomist._checks import choice, flag, number, whole_number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.histories.gaussian import GaussianHistory
from randomist.learners.box.base import FixedStdLearner
from randomist.learners.trial import Trial


def gradient(
    decisions: Array, mediators: Array, payoffs: Array, std: Array, baseline: Literal["mean", "none"] = "mean"
) -> Array:
    """The likelihood-ratio estimate of the gradient of the expected payoff.  (n, d), (n, d), (n,), (d,) -> (d,)

    1/n Σ_i (θ_i - x_i)/σ² (y_i - b), unbiased. With the mean of all payoffs for b it takes the factor n/(n-1) to be so:
    then b is in effect the mean of the other payoffs. Where the x_i differ, it estimates the mean of their gradients.
    """
    scores = (mediators - decisions) / std**2  # ∇ log p_x(θ)  (n, d)
    if baseline == "none":
        advantages, n = payoffs, len(payoffs)
    else:
        advantages, n = payoffs - payoffs.mean(), len(payoffs) - 1
    return np.asarray(np.sum(scores * advantages[:, None], axis=0) / n)


@dataclass(eq=False, kw_only=True)
class BatchLearner(FixedStdLearner):
    """Play the mean of a hyperpolicy, and move it each time that `batch` payoffs have been told.

    Each episode of a batch is a round. Trials are drawn at the mean of the moment when they are asked, however many are
    pending. A payoff that is told late enters the batch in which it is told, with the decision that drew it; a failed
    trial enters no batch. Settings are those of `Learner`, and these.

    Parameters
    ----------
    batch
        After how many payoffs the mean moves.
    estimator
        What `estimate` and `recommend` make of the weighted samples (see `SharedHistoryLearner`); the moves do not
        depend on it.
    """

    batch: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.history, GaussianHistory):
            raise ParameterError(
                f"{type(self).__name__} follows gradients of Gaussians, got a Box of "
                f"{type(self.space.family).__name__}; take MCMCRandomist or GridOptimist"
            )
        self._mean = self._first()  # of the hyperpolicy  (d,)

    @property
    def mean(self) -> Any:
        """The mean of the hyperpolicy: what is played next. `recommend` names the best of what was played."""
        return self._point(self._mean)

    @abstractmethod
    def _improved(self, decisions: Array, mediators: Array, payoffs: Array) -> Array:
        """Where a batch sends the mean; it is then projected onto the box.  (n, d), (n, d), (n,) -> (d,)"""

    def tell(self, trial: Trial | int, payoff: float | None = None, *, feasible: bool = True) -> None:
        super().tell(trial, payoff, feasible=feasible)
        if self.told % self.batch == 0:  # so the record says what the unfinished batch is
            rows, last = self.space.family.mediator_rows, slice(self.told - self.batch, self.told)
            decisions, mediators = rows(self.record.decisions[last]), rows(self.record.mediators[last])
            mean = self._improved(decisions, mediators, self.history.payoffs.rows[last].copy())
            self._mean = self._inside(mean)

    def _decide(self) -> Any:
        return self.mean

    def _caches(self) -> dict[str, Any]:
        return super()._caches() | {"mean": self._mean.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._mean = np.array(state["caches"]["mean"])


@dataclass(eq=False, kw_only=True)
class PGPE(BatchLearner):
    """Gradient ascent on the expected payoff of the hyperpolicy, estimated from a batch of episodes.

    Differences from the paper: the std is fixed; the baseline is the batch's mean, made unbiased, not a moving average;
    the mean is projected onto the box.

    Settings are those of `Learner`, and these.

    Parameters
    ----------
    batch
        After how many payoffs the mean moves; at least 2 with a baseline, which compares payoffs.
    step_size
        What the gradient of the payoff, on its [0, 1] scale, is multiplied by.
    baseline
        What payoffs are compared with: "mean" is the mean of the batch, "none" is 0.
    natural
        Whether steps are also multiplied by σ², as Sehnke et al.'s α_i = α σ_i². They then do not depend on the units
        of the parameters.
    estimator
        What `estimate` and `recommend` make of the weighted samples (see `SharedHistoryLearner`).
    """

    step_size: float = 10.0
    baseline: Literal["mean", "none"] = "mean"
    natural: bool = True

    def __post_init__(self) -> None:
        number(self.step_size, "step_size", above=0)
        choice(self.baseline, ("mean", "none"), "baseline")
        flag(self.natural, "natural")
        if self.baseline == "mean":
            whole_number(self.batch, "batch", 2, ' with baseline="mean", which compares payoffs')
        else:
            whole_number(self.batch, "batch")
        super().__post_init__()

    def _improved(self, decisions: Array, mediators: Array, payoffs: Array) -> Array:
        std = self.history.spread
        slope = gradient(decisions, mediators, payoffs, std, self.baseline)
        if self.natural:
            slope *= std**2  # F⁻¹ ∇J, Fisher information F = diag(1/σ²)
        with np.errstate(over="ignore"):  # a step as long as that ends at the box
            return self._mean + self.step_size * slope
