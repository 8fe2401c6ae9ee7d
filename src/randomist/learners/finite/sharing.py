"""Every sample informs every decision: General Randomized Exploration with Shared History, GRE-SH (App. D.3)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.errors import CoverageWarning, ParameterError
from randomist.histories.estimates import Estimates
from randomist.importance import bounds
from randomist.importance.divergences import find_divergence
from randomist.importance.estimators import find_estimator
from randomist.importance.passes.layout import HUGE
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.finite.logged import logged_rows
from randomist.learners.settings import bias_factor, check_range_known

if TYPE_CHECKING:
    from randomist.logs import Log

MOST_MISSING = 0.25  # of a policy's mass: where the history has seen less, `recommend` warns


@dataclass(eq=False, kw_only=True)
class SharedHistoryLearner(FiniteLearner):
    """Every sample informs every decision: truncated multiple importance sampling over one shared history (Sec. 4).

    Settings are those of `Learner`, and these.

    Parameters
    ----------
    estimator
        What becomes of the weighted samples: "paper" (TMIS, which truncation makes pessimistic), "optimistic" (1 minus
        the truncated estimate of the loss), "self-normalised" (the weighted mean) or "log-smoothing" (large weights
        count by their logarithm). "module:Class" names one of your own.
    divergence
        How d2(p_x || Φ_t) is computed: by the paper's "harmonic" bound, as an integral against the "mixture", or as the
        "empirical" second moment of the weights. Where a space does not know its divergences (`Finite.likelihoods`,
        `Finite.policies`), "empirical" takes the place of the first two; "per-step", for policies, averages the closed
        form of the steps over visited states (Metelli et al. 2018). `history.divergence` is the one in use.
    bias_correction
        b, what is added for the truncation: None for what the estimator needs, "paper" for sqrt(α log t / η), a number
        for that multiple of it, or "computed" for the mass beyond the threshold, integrated.
    keep_record
        False forgets what was told but for its sums, where mediators are counted: those of a discrete family, or
        likelihoods that repeat.
    """

    estimator: str = "paper"
    divergence: str = "harmonic"
    bias_correction: float | Literal["paper", "computed"] | None = None
    keep_record: bool = True

    def __post_init__(self) -> None:
        self._estimator, divergence = find_estimator(self.estimator), find_divergence(self.divergence)
        self._bias_factor = bias_factor(self.bias_correction, self._estimator)
        super().__post_init__()
        check_range_known(self._estimator, self._scale)
        family = self.space.family
        if not family.drawn and self._bias_factor is None:
            raise ParameterError(
                'bias_correction="computed" needs a family to integrate under; here only likelihoods are known: '
                "take None or a number"
            )
        if not self.keep_record and family.drawn and not family.discrete:
            raise ParameterError(
                "keep_record=False needs mediators that are counted, of a discrete family or known by likelihoods; "
                f"those of a {type(family).__name__} hardly ever repeat"
            )
        divergence = divergence.for_space(self.space)
        self.history = self.space.history(divergence, self._estimator, nodes=self._bias_factor is None)

    def _keeps_record(self) -> bool:
        return self.keep_record

    @property
    def told(self) -> int:
        """How many payoffs are known, told or absorbed; the next round is t = told + 1."""
        return len(self.history)

    def absorb(self, log: Log) -> None:
        """Begin with what others logged, or go on with it: rows of an `rd.Log` inform the estimates like told ones.

        The log's candidates are the decisions, in their order, and its other loggers are those that the space names:
        their densities are part of the mixture that weights are divided by. The log must say who acted. Rows are not
        asked, so `record` has none of them; payoffs are mapped by the learner's range, not by the log's.
        """
        if find_divergence(self.divergence).stepwise:
            raise ParameterError("a log has no trajectories; take divergence='empirical' to absorb it")
        sources, low, high = np.zeros(self.space.sources, np.int64), np.inf, -np.inf
        for rows in logged_rows(log, self.space):
            sources += np.bincount(rows.sources, minlength=len(sources))
            low, high = min(low, rows.payoffs.min()), max(high, rows.payoffs.max())
        if self._scale.running:
            self._widen(low, high)
        elif not self._scale.clip:
            self._scale.unit(low), self._scale.unit(high)  # refuses what is outside, before anything has changed
        self.history.add_plays(sources)
        for rows in logged_rows(log, self.space):
            payoffs = map(self._scale.unit, rows.payoffs.tolist())
            for source, log_density, payoff in zip(rows.sources.tolist(), rows.log_density, payoffs, strict=True):
                self.history.add_counted(source, log_density, payoff)
        self._close_opening(np.flatnonzero(self.history.plays[: self.space.size]))
        self._estimates = None

    def recommend(self) -> int:
        """The decision with the best estimated value among those that the history knows, the first one of equals.

        Where divergences are estimated, a `CoverageWarning` names policies that might be better and of which more than
        a quarter has hardly been seen, by the missing mass 1 - mean min(M, ω).
        """
        best = super().recommend()
        if not self.space.family.divergences_known:
            estimates = self._unit_estimates()
            missing = 1.0 - estimates.coverage
            rivals = (missing > MOST_MISSING) & (estimates.value + missing > estimates.value[best])
            if rivals.any():
                named = ", ".join(f"{k} ({missing[k]:.0%} unseen)" for k in np.flatnonzero(rivals)[:5])
                more = "" if rivals.sum() <= 5 else f" and {rivals.sum() - 5} more"
                warnings.warn(
                    f"the history hardly covers decision {named}{more}: estimates say little of them, and decision "
                    f"{best} may not be the best; play them, or policies more like them",
                    CoverageWarning,
                    stacklevel=2,
                )
        return best

    def opening(self) -> list[int]:
        """Remark 1: the decisions that some other one says nothing about, in index order; if there are none, x_1.

        Where the estimator knows what such a decision is worth, it needs no opening.
        """
        uninformed: list[int] = [] if self._estimator.unknown is not None else self.space.uninformed().tolist()
        if uninformed:
            return uninformed
        return [int(self._rng.integers(self.space.size) if self.first is None else self.first)]

    def bias(self, estimates: Estimates) -> Array:
        """b_t(x), what truncation may take away from the value.  (K,)"""
        if self._bias_factor is None:
            return self.history.truncated_mass(estimates.threshold)
        if self._bias_factor == 1.0:
            return estimates.width  # infinite where nothing is known
        return self._bias_factor * np.minimum(estimates.width, HUGE)

    def _estimate(self) -> Estimates:
        return self.history.estimate(self.confidence)

    def _with_pending(self, estimates: Estimates) -> Estimates:
        """A pending trial of j is 1/d2(p_x || p_j) samples more, which paid what is expected of j: ½ if nothing is.

        So the trials of a batch, and the workers of a study, do not all try the same decision because it is unknown.
        """
        if not self._drawn:  # divergences are not known before the mediator is
            return estimates
        more, weighted = np.zeros(self.space.size), np.zeros(self.space.size)
        for trial in self._pending.values():
            samples = np.exp(-self.space.log_divergences_to(trial.decision)[: self.space.size])
            known = estimates.log_effective_samples[trial.decision] > -np.inf
            more += samples
            weighted += samples * (estimates.value[trial.decision] if known else 0.5)
        effective = estimates.effective_samples + more
        seen = effective > 0
        value = np.where(seen, estimates.effective_samples * estimates.value + weighted, estimates.value)
        value = np.divide(value, effective, out=value, where=seen)
        with np.errstate(divide="ignore"):
            log_effective = np.logaddexp(estimates.log_effective_samples, np.log(more))
        width = bounds.width(log_effective, self.told, self.confidence)
        return estimates._replace(
            value=value, effective_samples=effective, width=width, log_effective_samples=log_effective
        )

    def _knowledge(self, estimates: Estimates) -> Array:
        if self._estimator.unknown is not None:  # the value says it, and the index need not be infinite
            return np.maximum(estimates.log_effective_samples, -1e300)
        return estimates.log_effective_samples

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        self.history.append(decision, mediator, payoff, self._scale.factor)

    def _observe_all(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        self.history.extend(decisions, mediators, payoffs, self._scale.factor)

    @property
    def _sums_only(self) -> bool:
        return self.space.family.discrete or not self.space.family.drawn

    def _widen(self, low: float, high: float) -> None:
        factor, shift = self._scale.widen(low, high)
        recorded = self._scale.units(self.record.payoffs) if self.record.keep else None
        self.history.rescale(factor, shift, recorded)
        self._estimates = None

    def _rescale(self, payoffs: Array) -> None:
        """Nothing: `_widen` has done it."""

    def _caches(self) -> dict[str, Any]:
        return self.history.state()

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        record = self.record
        told: tuple[Any, ...] = (np.empty(0, np.int64), np.empty(0), np.empty(0))
        if record.keep:
            told = record.decisions, record.mediators, self._scale.units(record.payoffs)
        self.history.restore(state["caches"], *told)
        self._close_opening(np.flatnonzero(self.history.plays[: self.space.size]))
