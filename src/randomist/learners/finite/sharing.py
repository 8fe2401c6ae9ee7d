"""Every sample informs every decision: General Randomized Exploration with Shared History, GRE-SH (App. D.3)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from randomist._checks import choice
from randomist._types import Array, Indices
from randomist.errors import CoverageWarning, DriftWarning, ParameterError
from randomist.histories.estimates import Estimates
from randomist.histories.window import span
from randomist.importance import bounds
from randomist.importance.carry import carried
from randomist.importance.divergences import Divergence, find_divergence
from randomist.importance.drift import DriftTest
from randomist.importance.estimators import Estimator, find_estimator
from randomist.importance.passes.layout import HUGE
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.finite.logged import logged_prior, logged_rows
from randomist.learners.finite.prior import Prior
from randomist.learners.finite.refresh import FROM, Refresh
from randomist.learners.settings import DEVICES, bias_factor, check_range_known
from randomist.learners.trial import Trial
from randomist.spaces import Finite

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
        count by their logarithm); or an `Estimator` of your own: the class, an object, or "module:Class".
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
        likelihoods that repeat; with `window` or `discount` it forgets all samples but those that count.
    refresh
        A number r > 1 computes values anew only when the history has grown by this factor, and counts effective
        samples and widths on in between: a tell is O(K), and a run costs time in proportion to its length. "auto" is
        1.05; None computes all after every tell.
    refresh_from
        The number of told samples up to which estimates follow every tell, whatever `refresh` is.
    window
        The last samples that count; all of them by default. For payoffs that drift: memory and the cost of a round
        stay bounded.
    discount
        γ in (0, 1): a sample counts γ for each one that was told after it, and is dropped below 1e-6. For payoffs that
        drift, too.
    prior
        What is known from elsewhere, (values, plays): an expected payoff of each decision, in your units, and how many
        of its own plays that is worth; 0 where nothing is known.
    device
        Where samples are stored and estimated from: "cpu", or "gpu" for very many decisions, which needs JAX; "jax-cpu"
        is the same code on JAX's CPU. It is not part of what is saved: `rd.load(state, device="gpu")` names it again.
    """

    estimator: str | type[Estimator] | Estimator = "paper"
    divergence: str | type[Divergence] = "harmonic"
    bias_correction: float | Literal["paper", "computed"] | None = None
    keep_record: bool = True
    refresh: float | Literal["auto"] | None = "auto"
    refresh_from: int = FROM
    window: int | None = None
    discount: float | None = None
    prior: Any = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        choice(self.device, DEVICES, "device")
        self._span = span(self.window, self.discount)
        cheap = isinstance(self.space, Finite) and self.space.family.discrete  # counted samples: all rounds cost alike
        refresh = None if self.refresh == "auto" and cheap else self.refresh
        self._refresh = Refresh(refresh, self.refresh_from, self._span)
        self._prior: Prior | None = None
        self._logged: Prior | None = None  # what logs said that do not name who acted
        self._estimator, divergence = find_estimator(self.estimator), find_divergence(self.divergence)
        self._bias_factor = bias_factor(self.bias_correction, self._estimator)
        super().__post_init__()
        check_range_known(self._estimator, self._scale)
        if self._prior is not None:
            self._prior.check_range(self._scale)
        self._estimated_at = 0  # how many samples had been told when estimates were computed
        self._harmonic = np.zeros(self.space.size)  # the harmonic bound on η as of then
        self._carried: Estimates | None = None
        self.digested: dict[str, Array] = {}
        known_range = not (self._scale.running or self._scale.unbounded)
        self._drift = DriftTest(self.space.size) if known_range and self._span is None else None
        self._warned = False
        self._informed: dict[int, Array] = {}
        family = self.space.family
        if not family.drawn and self._bias_factor is None:
            raise ParameterError(
                'bias_correction="computed" needs a family to integrate under; here only likelihoods are known: '
                "take None or a number"
            )
        if not self.keep_record and family.drawn and not family.discrete and self._span is None:
            raise ParameterError(
                "keep_record=False needs mediators that are counted, of a discrete family or known by likelihoods; "
                f"those of a {type(family).__name__} hardly ever repeat"
            )
        divergence = divergence.for_space(self.space)
        self.history = self.space.history(
            divergence,
            self._estimator,
            nodes=self._bias_factor is None,
            window=self.window,
            discount=self.discount,
            device=self.device,
        )

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.prior is not None:
            self._prior = Prior(self.prior, self.space.size, self.space.added)

    def _keeps_record(self) -> bool:
        return self.keep_record

    def _remembered(self) -> int | None:
        return self._span

    @property
    def told(self) -> int:
        """How many payoffs are known, told or absorbed; the next round is t = told + 1."""
        return len(self.history)

    def absorb(self, log: Log) -> None:
        """Begin with what others logged, or go on with it: rows of an `rd.Log` inform the estimates like told ones.

        The log's candidates are the decisions, in their order, and its other loggers are those that the space names:
        their densities are part of the mixture that weights are divided by. Rows are not asked, so `record` has none of
        them; payoffs are mapped by the learner's range, not by the log's.

        A log that has only propensities does not say what its logger would have done elsewhere, so its rows cannot be
        part of a mixture. They are weighted by themselves, and count as a `prior` does: the self-normalised estimate of
        each decision, worth its effective rows.
        """
        if self._span is not None:
            raise ParameterError(
                "rows of a log have no age: absorb them into a learner without window or discount, and tell one that "
                "forgets what happens from now on"
            )
        if not log.names_loggers:
            self._absorb_estimates(log)
            return
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
        self._estimate_anew()

    def _absorb_estimates(self, log: Log) -> None:
        new = logged_prior(log, self.space)
        known = new.values[new.plays > 0]
        if self._scale.running and len(known):
            self._widen(float(known.min()), float(known.max()))
        new.check_range(self._scale)
        self._logged = Prior.joined([self._logged, new], self.space.size)
        self._know_before()
        self._close_opening(np.flatnonzero(new.plays))
        self._estimate_anew()

    def _know_before(self) -> None:
        """What is known without a sample: the setting `prior`, and logs that do not name who acted."""
        given = None if self.prior is None else Prior(self.prior, self.space.size, self.space.added)
        self._prior = given if self._logged is None else Prior.joined([given, self._logged], self.space.size)

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
        uninformed = self._uninformed()
        if uninformed:
            return uninformed
        if self.first is None and self._prior is not None and self._prior.total > 0:
            return []
        return [int(self._rng.integers(self.space.size) if self.first is None else self.first)]

    def opens(self, decision: int) -> bool:
        return decision in self._uninformed()

    def _uninformed(self) -> list[int]:
        if self._estimator.unknown is not None:
            return []
        uninformed = self.space.uninformed()
        if self._prior is not None:
            uninformed = uninformed[self._prior.plays[uninformed] == 0]
        return list(map(int, uninformed))

    def bias(self, estimates: Estimates) -> Array:
        """b_t(x), what truncation may take away from the value.  (K,)"""
        if self._bias_factor is None:
            return self.digested["bias"]
        if self._bias_factor == 1.0:
            return estimates.width  # infinite where nothing is known
        return self._bias_factor * np.minimum(estimates.width, HUGE)

    # Estimates, and when they are computed.

    def digest(self, estimates: Estimates) -> dict[str, Array]:
        """What an index needs to know of the history besides the estimates: computed and kept with them.

        An index that reads it in `digested`, and not from the history, costs O(K) between two refreshes.
        """
        return {"bias": self.history.truncated_mass(estimates.threshold)} if self._bias_factor is None else {}

    def _estimate(self) -> Estimates:
        estimates = self.history.estimate(self.confidence)
        self._estimated_at = told = len(self.history)
        if told >= self._refresh.exact_below:
            self._harmonic = self.history.harmonic()
        self.digested = self.digest(estimates)
        if self._prior is not None:
            estimates = self._prior.combine(estimates, self._scale, self.history.samples, self.confidence)
        return estimates

    @property
    def _worth(self) -> float:
        """What the samples that count are worth, those of a prior included."""
        return self.history.samples + (0.0 if self._prior is None else self._prior.total)

    def _unit_estimates(self) -> Estimates:
        if self._estimates is None:
            self._estimates = self._estimate()
        if self._estimated_at == len(self.history):
            return self._estimates
        if self._carried is None:
            self._carried = self._carry(self._estimates)
        return self._carried

    def _carry(self, kept: Estimates) -> Estimates:
        """Values of the last refresh, with the plays, the effective samples and the widths of now."""
        plays = self.history.plays[: self.space.size].copy()
        effective, log_effective, width = carried(
            kept.effective_samples,
            kept.log_effective_samples,
            self._harmonic,
            self.history.harmonic(),
            plays,
            bounds.confidence_term(self._worth, self.confidence),
        )
        return kept._replace(effective_samples=effective, log_effective_samples=log_effective, width=width, plays=plays)

    @property
    def keeps_estimates(self) -> bool:
        """Whether estimates are computed now and then, and kept in between (`refresh`)."""
        return not self._refresh.exact(self.told)

    def _learned(self) -> None:
        """Estimates wait until they are asked for; where they are kept for longer, the times of the grid decide."""
        self._carried = None
        if len(self.history) < self._refresh.exact_below:
            self._estimates = None
        elif self._estimates is None or self._estimated_at < self._refresh.last(self.told):
            self._estimates = self._estimate()

    def _estimate_anew(self) -> None:
        self._estimates = None
        self._learned()

    def _with_pending(self, estimates: Estimates) -> Estimates:
        """A pending trial of j is 1/d2(p_x || p_j) samples more, which paid what is expected of j: ½ if nothing is.

        So the trials of a batch, and the workers of a study, do not all try the same decision because it is unknown.
        """
        if not self._drawn:  # divergences are not known before the mediator is
            return estimates
        more, weighted = np.zeros(self.space.size), np.zeros(self.space.size)
        for trial in self._pending.values():
            samples = self._informed_by(trial.decision)
            known = estimates.log_effective_samples[trial.decision] > -np.inf
            more += samples
            weighted += samples * (estimates.value[trial.decision] if known else 0.5)
        effective = estimates.effective_samples + more
        seen = effective > 0
        value = np.where(seen, estimates.effective_samples * estimates.value + weighted, estimates.value)
        value = np.divide(value, effective, out=value, where=seen)
        with np.errstate(divide="ignore"):
            log_effective = np.logaddexp(estimates.log_effective_samples, np.log(more))
        width = bounds.width(log_effective, self._worth, self.confidence)
        return estimates._replace(
            value=value, effective_samples=effective, width=width, log_effective_samples=log_effective
        )

    def _informed_by(self, decision: int) -> Array:
        """1/d2(p_x || p_j) of every decision x: what a play of j is worth.  (K,)"""
        samples = self._informed.get(decision)
        if samples is None:
            samples = np.exp(-self.space.log_divergences_to(decision)[: self.space.size])
            self._informed[decision] = samples
        return samples

    def _knowledge(self, estimates: Estimates) -> Array:
        if self._estimator.unknown is not None:  # the value says it, and the index need not be infinite
            return np.maximum(estimates.log_effective_samples, -1e300)
        return estimates.log_effective_samples

    # Samples come in.

    def _tell(self, ticket: Trial, mediator: Any, payoff: float) -> None:
        super()._tell(ticket, mediator, payoff)
        if self._drift is not None and self._drift.found is not None and not self._warned:
            self._warn_of_drift(*self._drift.found)

    def tell_all(self, trials: Sequence[Trial | int], payoffs: Sequence[float]) -> None:
        """Many trials told at once, in this order: the same as one by one, in one pass where mediators are drawn."""
        super().tell_all(trials, payoffs)
        if self._drift is not None and self._drift.found is not None and not self._warned:
            self._warn_of_drift(*self._drift.found)

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        self.history.append(decision, mediator, payoff, self._scale.factor)
        if self._drift is not None:
            self._drift.add(decision, payoff)

    def _observe_all(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        self.history.check(decisions, mediators)
        told = self.told
        until = self._refresh.last(told + len(decisions)) - told  # where the estimates are of
        if 0 < until < len(decisions):
            self._extend(decisions[:until], mediators[:until], payoffs[:until])
            self._estimates = self._estimate()
            decisions, mediators, payoffs = decisions[until:], mediators[until:], payoffs[until:]
        self._extend(decisions, mediators, payoffs)

    def _extend(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        self.history.extend(decisions, mediators, payoffs, self._scale.factor, checked=True)
        if self._drift is not None:
            self._drift.add_all(decisions, payoffs)

    def _in_turn(self, tells: int, widening: bool) -> bool:
        """Sums are rescaled one step after the other, and kept estimates are computed anew when the range grows."""
        sums_only = self._span is None and (self.space.family.discrete or not self.space.family.drawn)
        return sums_only or (widening and not self._refresh.exact(self.told + tells))

    def _widen(self, low: float, high: float) -> None:
        factor, shift = self._scale.widen(low, high)
        recorded = self._scale.units(self.record.payoffs) if self.record.keep else None
        self.history.rescale(factor, shift, recorded)
        self._estimate_anew()

    def _warn_of_drift(self, decision: int, plays: int) -> None:
        self._warned = True
        warnings.warn(
            f"payoffs of decision {self.names[decision]} after its first {plays} plays contradict those before, which "
            "happens in 1% of runs without drift: estimates mix old times and new ones; take window=n or discount=γ "
            "to forget what is old",
            DriftWarning,
            stacklevel=4,
        )

    def _rescale(self, payoffs: Array) -> None:
        """Nothing: `_widen` has done it."""

    # Save and load.

    def state(self) -> dict[str, Any]:
        state = super().state()
        del state["settings"]["device"]  # a run is the same on another one
        if self._logged is None:
            return state
        return state | {"logged": {"values": self._logged.values, "plays": self._logged.plays}}

    def _caches(self) -> dict[str, Any]:
        caches = self.history.state()
        if self._estimates is not None and not self._refresh.exact(self.told):
            caches["refreshed"] = {
                "at": self._estimated_at,
                "harmonic": self._harmonic.copy(),
                "estimates": self._estimates._asdict(),
                "digested": self.digested,
            }
        return caches

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if "logged" in state:
            values, plays = (np.asarray(state["logged"][name], np.float64) for name in ("values", "plays"))
            self._logged = Prior.joined([Prior((values, plays), len(values), 0)], self.space.size)
            self._know_before()
        record, caches = self.record, state["caches"]
        told: tuple[Any, ...] = (np.empty(0, np.int64), np.empty(0), np.empty(0))
        if record.keep:
            told = record.decisions, record.mediators, self._scale.units(record.payoffs)
        if caches is None:  # decisions were added
            decisions, mediators, payoffs = told
            self.history.extend(decisions, mediators, payoffs, self._scale.factor)
        else:
            self.history.restore(caches, *told)
        if self._drift is not None and record.keep:
            self._drift.add_all(told[0], told[2])
            self._warned = self._drift.found is not None
        self._close_opening(np.flatnonzero(self.history.plays[: self.space.size]))
        kept = (caches or {}).get("refreshed")
        if kept is not None:
            self._estimated_at, self._harmonic = int(kept["at"]), np.asarray(kept["harmonic"])
            self._estimates = Estimates(**{name: np.asarray(entry) for name, entry in kept["estimates"].items()})
            self.digested = {name: np.asarray(entry) for name, entry in kept["digested"].items()}
        self._learned()
