"""Learners on a finite set: General Randomized Exploration with Shared History, and its bandit cousin.

GRE-SH (Metelli et al. 2021, App. D.3): draw an index for every decision from its distribution given the history, play
the argmax. Subclasses say how an estimate becomes an index.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from randomist._types import Array, Indices
from randomist.errors import CoverageWarning, NoDataError, ParameterError, ShapeError
from randomist.families.likelihoods import Likelihoods
from randomist.histories.finite import Divergence, Estimates, SharedHistory
from randomist.importance import estimators, kernels
from randomist.importance.estimators import Estimator
from randomist.learners.base import Learner, Trial
from randomist.learners.finite.logged import logged_rows
from randomist.learners.settings import bias_factor, check_best_known, check_choice
from randomist.spaces import Finite

if TYPE_CHECKING:
    from randomist.logs import Log
    from randomist.policies.episodes import Episode

MOST_MISSING = 0.25  # of a policy's mass: where the history has seen less, `recommend` warns


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

    def tell(self, trial: Trial | int, payoff: Any, *, log_likelihoods: Any = None) -> None:
        """The payoff of an asked trial, in the user's units; in any order, each trial once.

        In a space of likelihoods, `log_likelihoods` has the log-likelihood of what was done under each policy.
        """
        ticket = self._ticket(trial)
        mediator = ticket.mediator
        if not self._drawn:
            assert isinstance(self.space.family, Likelihoods)
            payoff, mediator = self.space.family.observe(ticket.decision, payoff, log_likelihoods)
        elif log_likelihoods is not None:
            raise ParameterError(
                "log_likelihoods are told in a space of likelihoods, Finite.likelihoods(K); here the family knows them"
            )
        self._tell(ticket, mediator, payoff)

    def tell_episode(self, trial: Trial | int, episode: Episode) -> None:
        """What the policy of an asked trial did, in a space of policies: likelihoods and payoff are computed from it."""
        ticket = self._ticket(trial)
        if self._drawn:
            raise ParameterError(
                "episodes are told in a space of policies, Finite.policies(...); here the mediator was drawn by ask: "
                "tell(trial, payoff)"
            )
        assert isinstance(self.space.family, Likelihoods)
        payoff, mediator = self.space.family.observe_episode(ticket.decision, episode)
        self._tell(ticket, mediator, payoff)

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
        estimates = self._with_pending(self.estimates()) if self._pending else self.estimates()
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

    def _with_pending(self, estimates: Estimates) -> Estimates:
        """The estimates as if the pending trials had been answered, where the learner can say what they would tell."""
        return estimates

    def _knowledge(self, estimates: Estimates) -> Array:
        """log η: -inf makes an index infinite, and the smaller one goes first among indices beyond float64."""
        return estimates.log_effective_samples

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if self.record.keep:
            self._close_opening(self.record.decisions)
        self._estimates = None

    def _close_opening(self, decisions: Indices) -> None:
        """These have been played."""
        for decision in decisions.tolist():
            self._opening.pop(decision, None)


@dataclass(eq=False, kw_only=True)
class SharedHistoryLearner(FiniteLearner):
    """Every sample informs every decision: truncated multiple importance sampling over one shared history (Sec. 4).

    `estimator` is what becomes of the truncated sums: "paper" (TMIS, which truncation makes pessimistic), "optimistic"
    (1 minus the truncated estimate of the loss) or "self-normalised" (the weighted mean). `divergence` is how
    d2(p_x || Φ_t) is had: by the paper's "harmonic" bound, as an integral against the "mixture", or by the "empirical"
    second moment of the weights. `bias_correction` is b, what is added for the truncation: None is what the estimator
    needs ("paper" for the paper's, else 0), "paper" is sqrt(α log t / η), a number that multiple of it, and "computed"
    the mass beyond the threshold, integrated.

    In a space that does not know its divergences, `Finite.likelihoods` or `Finite.policies`, they are estimated:
    "empirical" takes the place of the first two, and "per-step", for policies, averages the closed form of the steps
    over visited states (Metelli et al. 2018). `keep_record=False` forgets what was told but for its sums, where
    mediators are counted: those of a discrete family, or likelihoods that repeat.
    """

    estimator: Estimator = "paper"
    divergence: Divergence = "harmonic"
    bias_correction: float | Literal["paper", "computed"] | None = None
    keep_record: bool = True

    def __post_init__(self) -> None:
        check_choice(self.estimator, get_args(Estimator), "estimator")
        check_choice(self.divergence, get_args(Divergence), "divergence")
        super().__post_init__()
        check_best_known(self.estimator, self._scale)
        computes_bias = self.bias_correction == "computed"
        self._bias_factor = None if computes_bias else bias_factor(self.bias_correction, self.estimator)
        self._stepwise = self._per_decision  # kept: a round asks for it
        self._fit_to_space()
        nodes, steps = computes_bias or self.divergence == "mixture", self.divergence == "per-step"
        self.history = self._history_type()(self.space, nodes=nodes, steps=steps)

    def _fit_to_space(self) -> None:
        """What this space cannot give is replaced where there is one substitute, and refused otherwise."""
        family = self.space.family
        if not family.drawn and self.bias_correction == "computed":
            raise ParameterError(
                'bias_correction="computed" needs a family to integrate under; here only likelihoods are known: '
                "take None or a number"
            )
        if self.divergence == "per-step" and not hasattr(family, "step_divergences"):
            raise ParameterError('divergence="per-step" needs a space of policies over trajectories: Finite.policies')
        if not family.drawn and (self.divergence == "mixture" or not family.divergences_known):
            self.divergence = self.divergence if self.divergence == "per-step" else "empirical"
        if not self.keep_record and family.drawn and not family.discrete:
            raise ParameterError(
                "keep_record=False needs mediators that are counted, of a discrete family or known by likelihoods; "
                f"those of a {type(family).__name__} hardly ever repeat"
            )

    @property
    def _per_decision(self) -> bool:
        return getattr(self.space.family, "weights", None) == "per-decision"

    def _history_type(self) -> type[SharedHistory]:
        if self._per_decision:
            from randomist.histories.per_decision import PerDecisionHistory

            return PerDecisionHistory
        return SharedHistory

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
        if self._per_decision or self.divergence == "per-step":
            raise ParameterError(
                "a log has no trajectories; take divergence='empirical' and weights='trajectory' to absorb it"
            )
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
            estimates = self.estimates()
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

    def _with_pending(self, estimates: Estimates) -> Estimates:
        """A pending trial of j is 1/d2(p_x || p_j) samples more, which paid what is expected of j: ½ if nothing is.

        So the trials of a batch, and the workers of a study, do not all try the same decision because it is unknown.
        """
        if not self._drawn:  # divergences are not known before the mediator is
            return estimates
        more, weighted = np.zeros(self.space.size), np.zeros(self.space.size)
        for trial in self._pending.values():
            samples = np.exp(-self.space.log_divergences_to(trial.decision))
            known = estimates.log_effective_samples[trial.decision] > -np.inf
            more += samples
            weighted += samples * (estimates.value[trial.decision] if known else 0.5)
        effective = estimates.effective_samples + more
        seen = effective > 0
        value = np.where(seen, estimates.effective_samples * estimates.value + weighted, estimates.value)
        value = np.divide(value, effective, out=value, where=seen)
        with np.errstate(divide="ignore"):
            log_effective = np.logaddexp(estimates.log_effective_samples, np.log(more))
        width = estimators.width(log_effective, self.told, self.confidence)
        return estimates._replace(
            value=value, effective_samples=effective, width=width, log_effective_samples=log_effective
        )

    def _knowledge(self, estimates: Estimates) -> Array:
        if (
            self.estimator == "optimistic"
        ):  # where nothing is known the value says so, and the index need not be infinite
            return np.maximum(estimates.log_effective_samples, -1e300)
        return estimates.log_effective_samples

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        if self._stepwise:
            self.history.factor = self._scale.factor  # type: ignore[attr-defined]
        self.history.append(decision, mediator, payoff)

    def _widen(self, low: float, high: float) -> None:
        self.history.rescale(*self._scale.widen(low, high))
        if self.record.keep:
            self._rescale(self._scale.units(self.record.payoffs))
        self._estimates = None

    def _rescale(self, payoffs: Array) -> None:
        self.history.replace_payoffs(payoffs)

    def _caches(self) -> dict[str, Any]:
        return self.history.state()

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        record, nothing = self.record, np.empty(0, np.int64)
        decisions, mediators = (record.decisions, record.mediators) if record.keep else (nothing, nothing)
        payoffs = self._scale.units(record.payoffs) if record.keep else np.empty(0)
        self.history = self._history_type().restore(self.space, decisions, mediators, payoffs, state["caches"])
        self._close_opening(np.flatnonzero(self.history.plays[: self.space.size]))


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
