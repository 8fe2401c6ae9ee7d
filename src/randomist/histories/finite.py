"""The shared history of a finite set: what turns one sample into an estimate of every decision.

Telling costs O(K), estimating one fused pass over (K, t), and memory grows by blocks. Samples that repeat are counted:
for n distinct ones an estimate costs O(K n), however many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.errors import MediatorError, ParameterError
from randomist.histories.columns import Columns, block_size
from randomist.histories.estimates import Estimates
from randomist.histories.window import Window, span
from randomist.importance.bounds import confidence_term
from randomist.importance.divergences import Divergence
from randomist.importance.divergences.mixture import Mixture, Nodes
from randomist.importance.estimators import Estimator
from randomist.importance.estimators.self_normalised import SelfNormalised
from randomist.importance.passes import layout

if TYPE_CHECKING:
    from randomist.spaces import Finite

CHUNK = 4096  # samples whose densities are computed at once when a history is loaded


class FiniteHistory:
    """Told samples of a finite set, and the estimate of every decision from all of them.

    A sample comes from a source: a decision, or one of the space's loggers. Samples of a discrete family, and those
    known by their likelihoods alone, are counted; all others are stored one by one. With a `window`, or a `discount` by
    which older samples count less, only the last ones are kept.
    """

    def __init__(
        self,
        space: Finite,
        divergence: type[Divergence],
        estimator: Estimator,
        *,
        nodes: bool = False,
        size: int | None = None,
        window: int | None = None,
        discount: float | None = None,
    ) -> None:
        self.space, self.estimator = space, estimator
        self.span = span(window, discount)  # how many samples count; None for all
        self.divergence = divergence(space)
        if self.span is not None and divergence.stepwise:
            raise ParameterError(
                f"divergence={divergence.name!r} keeps sums over all visited states, and forgets none of them; take "
                "divergence='empirical' with a window or a discount"
            )
        self._biases = self._nodes(nodes)  # integrals where only biases need them
        self.columns = self._columns(size or block_size(space.sources), discount)
        self.eta: Any = np.zeros((2, space.sources))  # the harmonic bound: η and log η
        self.eta[layout.LOG_ETA] = -np.inf
        self.counted = self.span is None and (space.family.discrete or not space.family.drawn)
        self._seen: dict[Any, Array] = {}  # log-densities of a discrete family's mediators
        self._divergences: dict[int, Array] = {}  # D2 of every source to a played one, computed when it is first played
        self._told = 0

    def __len__(self) -> int:
        return self._told

    @property
    def samples(self) -> float:
        """m: what the samples that count are worth; all that were told, unless older ones are forgotten."""
        return self.columns.samples if isinstance(self.columns, Window) else self._told

    @property
    def plays(self) -> Indices:
        """T of every source.  (S,)"""
        self.columns.settle()
        plays: Indices = self.columns.plays[layout.NOW]
        return plays

    # Samples come in.

    def append(self, source: int, mediator: Any, payoff: float, factor: float = 1.0) -> None:
        """One more sample, payoff in [0, 1]: O(K). `factor` of the map to [0, 1] is for histories of single steps."""
        log_density = self._log_density(source, mediator)
        self.columns.append(source, log_density, payoff, self._divergence(source), self.eta, counted=self.counted)
        self._told += 1
        if self.divergence.stepwise:
            self.divergence.observe(source, mediator)

    def check(self, sources: Indices, mediators: NDArray[Any]) -> None:
        """Refuse mediators that cannot have come from their sources."""
        if self.counted:
            for source, mediator in zip(sources.tolist(), _entries(mediators), strict=True):
                self._log_density(source, mediator)
        else:
            for chunk in _chunks(sources, mediators):
                self._log_densities(*chunk)

    def extend(
        self,
        sources: Indices,
        mediators: NDArray[Any],
        payoffs: Array,
        factor: float = 1.0,
        *,
        checked: bool = False,
    ) -> None:
        """Many samples in the order in which they were told: the same as one by one, without a loop where possible.

        They are checked before anything changes, unless they have been.
        """
        if not checked:
            self.check(sources, mediators)
        if self.counted:
            for source, mediator, payoff in zip(sources.tolist(), _entries(mediators), payoffs.tolist(), strict=True):
                self.append(source, mediator, payoff)
            return
        if isinstance(self.columns, Window):
            self._remember(self.columns, sources, mediators, payoffs)
            return
        played, rows = np.unique(sources, return_inverse=True)
        if len(sources):
            log_divergences = np.array([self._divergence(source) for source in played.tolist()])
            self.columns.passes.add_effectives(self.eta, log_divergences, rows.astype(np.int64))
        self.columns.passes.count_plays(self.columns.plays, self.columns.recent, sources)
        self._write(sources, mediators, payoffs)
        self._told += len(sources)

    def add_plays(self, times: Indices) -> None:
        """So many more plays of every source, whose samples are to follow by `add_counted`.  (S,)"""
        self.columns.add_plays(times)
        for source in np.flatnonzero(times).tolist():
            self.columns.passes.add_effective(self.eta, self._divergence(source), float(times[source]))

    def add_counted(self, source: int, log_density: Array, payoff: float) -> None:
        """A sample known by its log-density under every source, its play being counted before.  (S,)"""
        self._told += 1
        self.columns.count(source, log_density, payoff)

    # Estimates.

    def harmonic(self) -> Array:
        """η by the harmonic bound, as of now, without a pass over the samples.  (K,)"""
        if self.span is not None:
            self._count_effective()
        bound: Array = self.eta[layout.ETA, : self.space.size].copy()
        return bound

    def estimate(self, confidence: float) -> Estimates:
        """With the threshold and the width of round t = m + 1 (Sec. 4, App. C), on the [0, 1] scale.  (K,) each"""
        samples: float = self._told
        if self.span is not None:  # older samples are forgotten
            samples = self.samples
            self.columns.settle()
            self._count_effective()
        term = confidence_term(samples, confidence)
        eta = self.divergence.effective_samples(self.columns, self.eta) if self._told else self.eta
        table = self.columns.table(eta, term, samples)
        estimator = self.estimator
        if not estimator.of_sums:
            table[layout.VALUE] = self._gains(table[layout.CUT])
        table.setflags(write=False)
        coverage, log_effective = table[layout.COVERAGE], table[layout.LOG_EFFECTIVE]
        value = estimator.combine(table[layout.VALUE], coverage)
        if estimator.unknown is not None:
            value = np.where(log_effective > -np.inf, value, estimator.unknown)
        estimates = Estimates(
            value,
            table[layout.EFFECTIVE],
            table[layout.THRESHOLD],
            table[layout.WIDTH],
            self.columns.plays[layout.NOW].copy(),
            coverage,
            log_effective,
        )
        return estimates.first(self.space.size) if self.space.loggers else estimates

    def standard_error(self, mean: Array, estimates: Estimates) -> Array:
        """Of the weighted mean ȳ = Σ w y / Σ w: sqrt(Σ w² (y - ȳ)²) / Σ w, 0 where there is no weight.  (K,) -> (K,)

        The delta method for a ratio of means (Owen 2013, Sec. 9.2).
        """
        S, K = self.space.sources, self.space.size
        cut = np.minimum(estimates.threshold / max(self.samples, 1), 1e150)
        ww, wwy, wwyy = self.columns.moments(np.append(cut, np.full(S - K, 1e150)) if S > K else cut)[:, :K]
        squared = np.maximum(wwyy - mean * (2 * wwy - mean * ww), 0.0)
        return SelfNormalised().combine(np.sqrt(squared), estimates.coverage)

    sees_payoffs: ClassVar[bool] = True  # whether it has `payoff_distributions`

    def payoff_distributions(self, rows: Indices, estimates: Estimates) -> tuple[Array, Array]:
        """The payoffs of all samples, weighted for some decisions: weights and sums by bins.  (n,) -> (n, BINS) each"""
        cut = np.full(self.space.sources, 1e150)
        cut[: self.space.size] = np.minimum(estimates.threshold / max(self.samples, 1), 1e150)
        return self.columns.histograms(rows, cut)

    def truncated_mass(self, threshold: Array) -> Array:
        """What truncation at M may take away from a value, integrated.  (K,) -> (K,)"""
        assert self.nodes is not None
        self.columns.settle()
        return self.nodes.truncated_mass(threshold, self.columns, self.samples)

    def _gains(self, cut: Array) -> Array:
        """Σ_i of what each sample adds, for an estimator that is no function of the truncated sums.  (S,) -> (S,)"""
        total = np.zeros(len(cut))
        for part in self.columns.parts():
            gains = self.estimator.gains(part.weights, cut[:, None], part.payoffs / part.counts)
            total += np.sum(gains * part.counts, axis=1)
        return total

    # Payoffs change when the range of payoffs does.

    def rescale(self, factor: float, shift: float, payoffs: Array | None) -> None:
        """Payoffs y become factor y + shift; those that are recorded are given anew."""
        self.columns.rescale(factor, shift)
        if payoffs is not None and not self.counted and len(payoffs):
            self.columns.replace_payoffs(payoffs)

    # Save and load.

    def state(self) -> dict[str, Any]:
        """What the record does not say: plays, counted samples, and the harmonic bound, whose sums have an order."""
        if self.span is not None:
            return {"told": self._told}
        return {"columns": self.columns.state(), "eta": self.eta.copy()} | self.divergence.state()

    def restore(self, state: dict[str, Any], sources: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        """Undo `state` on an empty history, with the samples of the record: bit for bit, in one pass."""
        if isinstance(self.columns, Window):
            self._told = int(state["told"]) - len(sources)
            self._remember(self.columns, sources, mediators, payoffs)
            return
        if "columns" not in state:
            state = _of_format_1(self, state, sources)
        self.columns.restore(state["columns"])
        self.eta[:] = state["eta"]
        self.divergence.restore(state)
        if not self.counted:
            self._write(sources, mediators, payoffs)
        elif "counted" not in state["columns"]:  # of a version before 0.1.0, which stored them
            for source, mediator, payoff in zip(sources.tolist(), mediators, payoffs.tolist(), strict=True):
                self.columns.count(source, self._log_density(source, mediator), payoff)
        self._told = int(self.plays.sum())

    # Inside.

    def _columns(self, size: int, discount: float | None) -> Columns:
        by_payoff = not self.estimator.of_sums
        if self.span is None:
            return Columns(self.space.sources, size, by_payoff)
        return Window(self.space.sources, min(size, self.span), by_payoff, span=self.span, discount=discount)

    def _remember(self, columns: Window, sources: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        """Many samples enter a window, of which the last ones stay; those before need not be looked at."""
        self._told += len(sources)
        if len(sources) >= columns.span:
            shift = columns.refill(self._told)
            sources, mediators, payoffs = (
                np.roll(entries[len(entries) - columns.span :], shift, axis=0)
                for entries in (sources, mediators, payoffs)
            )
        self._write(sources, mediators, payoffs)
        columns.told = self._told

    def _count_effective(self) -> None:
        """η from the plays that count."""
        self.eta[:] = [[0.0], [-np.inf]]
        plays = self.plays
        for source in np.flatnonzero(plays).tolist():
            self.columns.passes.add_effective(self.eta, self._divergence(source), float(plays[source]))

    @property
    def nodes(self) -> Nodes | None:
        """For integrals under the decisions, where there are some."""
        return self.divergence.nodes if isinstance(self.divergence, Mixture) else self._biases

    def _nodes(self, wanted: bool) -> Nodes | None:
        return Nodes(self.space) if wanted and not isinstance(self.divergence, Mixture) else None

    def _write(self, sources: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        start = 0
        for some, drawn in _chunks(sources, mediators):
            end = start + len(some)
            self.columns.write(some, self._log_densities(some, drawn), payoffs[start:end])
            start = end

    def _divergence(self, source: int) -> Array:
        """D2 of every source to one that is played; where they are not known, a source informs itself alone.  (S,)"""
        divergence = self._divergences.get(source)
        if divergence is None:
            if self.space.family.divergences_known:
                divergence = np.ascontiguousarray(self.space.log_divergences_to(source))
            else:
                divergence = np.full(self.space.sources, np.inf)
                divergence[source] = 0.0
            self._divergences[source] = divergence
        return divergence

    def _log_density(self, source: int, mediator: Any) -> Array:
        """log p_k(z) of every source, refused where the sample cannot have come from its own.  (S,)"""
        family = self.space.family
        if self.counted and family.drawn:
            name = mediator.tobytes() if isinstance(mediator, np.ndarray) else mediator
            log_density = self._seen.get(name)
            if log_density is None:
                log_density = np.ascontiguousarray(family.log_densities(mediator))
                if log_density[source] > -np.inf:
                    self._seen[name] = log_density
        else:
            log_density = family.log_densities(mediator)
        if log_density[source] == -np.inf:
            raise MediatorError(
                f"mediator {mediator!r} has density 0 under decision {source}, which is said to have drawn it; "
                "tell a trial with the mediator that it carries"
            )
        return log_density

    def _log_densities(self, sources: Indices, mediators: NDArray[Any]) -> Array:
        """The same for many samples.  (n,), (n, *shape) -> (n, S)"""
        log_density = np.ascontiguousarray(self.space.family.log_density(None, mediators).T)
        wrong = np.flatnonzero(log_density[np.arange(len(sources)), sources] == -np.inf)
        if wrong.size:
            self._log_density(int(sources[wrong[0]]), mediators[wrong[0]])  # which refuses it
        return log_density


def _entries(mediators: NDArray[Any]) -> Any:
    return mediators.tolist() if mediators.ndim == 1 else mediators


def _chunks(sources: Indices, mediators: NDArray[Any]) -> list[tuple[Indices, NDArray[Any]]]:
    return [(sources[i : i + CHUNK], mediators[i : i + CHUNK]) for i in range(0, len(sources), CHUNK)]


def _of_format_1(history: FiniteHistory, state: dict[str, Any], sources: Indices) -> dict[str, Any]:
    """What 0.1.0 saved, in the present form: the order of plays is the record's, where it is recorded."""
    columns = Columns(history.space.sources, 1)
    counted = state.get("atoms")
    absorbed = np.zeros(history.space.sources, np.int64)
    if counted is not None:
        absorbed += np.asarray(state["plays"]) - np.bincount(sources, minlength=len(absorbed))
    if absorbed.any():
        columns.add_plays(absorbed)
    columns.passes.count_plays(columns.plays, columns.recent, np.asarray(sources, np.int64))
    found = columns.state()
    if counted is not None:
        found["counted"] = {name: counted[name] for name in ("keys", "ratios", "payoffs", "counts", "squares")}
        found["counted"]["distant_log_ratios"] = state["aside"]["log_ratios"]
        found["counted"]["distant_payoffs"] = state["aside"]["payoffs"]
    return state | {"columns": found, "eta": np.array([state["effective"], state["log_effective"]])}
