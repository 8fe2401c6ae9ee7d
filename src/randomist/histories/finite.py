"""The shared history of a finite space: what turns one sample into an estimate of every decision.

Telling costs O(K + t), estimating one fused pass over (K, t), and memory grows by blocks. Samples that repeat are
counted: for n distinct ones both cost O(K n), however many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Indices
from randomist.errors import MediatorError
from randomist.histories.atoms import Atoms, Effects
from randomist.histories.record import Estimates, Record
from randomist.importance import confidence_term, counts, estimators, kernels
from randomist.importance.nodes import Nodes
from randomist.importance.steps import StepDivergences
from randomist.spaces import Finite

__all__ = ["Divergence", "Estimates", "Record", "SharedHistory"]

# How d2(p_x || Φ_t) is had: the paper's harmonic-mean bound, an integral, the second moment of the weights, or, for
# policies over trajectories, the harmonic-mean bound on what the closed forms of the steps say.
Divergence: TypeAlias = Literal["harmonic", "mixture", "empirical", "per-step"]

BLOCK_ENTRIES = 2**17  # ratios per block: a mebibyte, so that a block's samples stay near the core


@dataclass(slots=True)
class _Block:
    """Some consecutive samples: their ratios to every decision, mixture densities and payoffs."""

    ratios: Array  # r_k = p_k(z_i) / p_{x_i}(z_i)  (K, size)
    mixture: Array  # D_i = Σ_k T_k r_k             (size,)
    inverse_mixture: Array  # 1 / D_i               (size,)
    payoffs: Array  # in [0, 1]                     (size,)
    used: int = 0

    @classmethod
    def empty(cls, decisions: int, size: int) -> _Block:
        return cls(np.empty((decisions, size)), np.empty(size), np.empty(size), np.empty(size))


@dataclass(slots=True)
class _Wild:
    """A sample whose ratios leave float64's range, in log space. Drawn honestly, one in e^600 does."""

    number: int  # which of the recorded samples it is; -1 for one that is known by its likelihoods alone
    log_ratios: Array  # (K,)
    log_mixture: float
    payoff: float


class SharedHistory:
    """Told samples of a finite space, and the estimate of every decision from all of them.

    A sample comes from a source: a decision, or one of the space's loggers. Samples of a discrete family, and those
    known by their likelihoods alone, are counted (`atoms`); all others are stored, block after block.
    """

    def __init__(
        self, space: Finite, *, nodes: bool = False, steps: bool = False, block_size: int | None = None
    ) -> None:
        self.space = space
        S, family = space.sources, space.family
        self.nodes = Nodes(family) if nodes else None  # for exact divergences and biases
        self.steps = StepDivergences(S) if steps else None  # for those of trajectories
        self.plays = np.zeros(S, np.int64)
        self._effective = np.zeros(S)
        self._log_effective = np.full(S, -np.inf)
        self._effects = Effects(self.plays, self._effective, self._log_effective)
        self._block_size = block_size or int(np.clip(BLOCK_ENTRIES // S, 64, 4096))
        self._earlier: list[_Block] = []  # full
        self._counted = family.discrete or not family.drawn
        self._block = _Block.empty(S, 1 if self._counted else self._block_size)  # has room for at least one more
        self.atoms = Atoms(S, self._block_size) if self._counted else None
        self._seen: dict[Any, tuple[bytes, Array]] = {}  # key and log-densities of a discrete family's mediators
        self._wild: list[_Wild] = []
        self._divergences: dict[int, Array] = {}  # D2 of every source to a played one, computed when it is first played
        self._told = 0
        self._recorded = 0  # of which stored or wild with a number

    def __len__(self) -> int:
        return self._told

    def append(self, decision: int, mediator: Any, payoff: float) -> None:
        """One more sample, payoff in [0, 1]: O(K + t), or O(K + n) for n distinct ones that are counted."""
        if self._counted:
            key, log_density = self._known_by(decision, mediator)
            self._count(decision, key, log_density, payoff)
            if self.steps is not None:
                self.steps.add(decision, self.space.family.step_divergences(mediator))  # type: ignore[attr-defined]
            return
        log_density = self._log_density(decision, mediator)
        divergence = self._divergences.get(decision)
        if divergence is None:
            divergence = self._divergence(decision)
        if self.nodes is not None:
            self.nodes.add_play(decision)
        for block in self._earlier:
            kernels.add_play(block.ratios, block.mixture, block.inverse_mixture, block.used, decision)
        for sample in self._wild:
            sample.log_mixture = float(np.logaddexp(sample.log_mixture, sample.log_ratios[decision]))
        if self.atoms is not None:
            self.atoms.add_play(decision)
        block = self._block
        stored = kernels.append(
            block.ratios,
            block.mixture,
            block.inverse_mixture,
            block.payoffs,
            block.used,
            self.plays,
            self._effective,
            self._log_effective,
            divergence,
            log_density,
            decision,
            payoff,
        )
        self._stored(stored, decision, log_density, payoff)

    def _count(self, source: int, key: bytes, log_density: Array, payoff: float) -> None:
        """One more sample that is counted, and its play."""
        assert self.atoms is not None
        if self.nodes is not None:
            self.nodes.add_play(source)
        for sample in self._wild:
            sample.log_mixture = float(np.logaddexp(sample.log_mixture, sample.log_ratios[source]))
        stored = self.atoms.append(key, log_density, self._divergence(source), source, payoff, self._effects)
        self._told += 1
        if not stored:
            self._keep_aside(-1, source, log_density, payoff)

    def add_plays(self, plays: Indices) -> None:
        """So many more plays of every source, whose samples are to follow by `add_counted`.  (S,)"""
        if self.atoms is None:
            self.atoms = Atoms(self.space.sources, self._block_size)
        for source in np.flatnonzero(plays).tolist():
            times = int(plays[source])
            if self.nodes is not None:
                self.nodes.add_play(source, times)
            for block in (*self._earlier, self._block):
                counts.add_plays(block.ratios, block.mixture, block.inverse_mixture, block.used, source, times)
            self.atoms.add_play(source, times)
            for sample in self._wild:
                sample.log_mixture = float(np.logaddexp(sample.log_mixture, sample.log_ratios[source] + np.log(times)))
            divergence = self._divergence(source)
            counts.count_plays(self.plays, self._effective, self._log_effective, divergence, source, times)

    def add_counted(self, source: int, log_density: Array, payoff: float) -> None:
        """A sample known by its log-density under every source, its play being counted before.  (S,)"""
        assert self.atoms is not None
        self._told += 1
        if not self.atoms.write(Atoms.key(log_density), log_density, source, payoff, self.plays):
            self._keep_aside(-1, source, log_density, payoff)

    def estimate(self, confidence: float, divergence: Divergence = "harmonic") -> Estimates:
        """TMIS with the threshold and the width of round t = m + 1 (Sec. 4, App. C): one pass over (K, t)."""
        term = confidence_term(self._told, confidence)
        effective, log_effective = self._effective_samples(divergence)
        block: Any = self._block
        plain = False
        if self._counted:
            assert self.atoms is not None
            plain = not self.atoms.blocks[-1].repeats
            block = self.atoms.blocks[-1] if plain else block  # as if it were stored: the same call, the same bits
        table = kernels.estimate(
            effective,
            log_effective,
            term,
            self._told,
            block.ratios,
            block.inverse_mixture,
            block.payoffs,
            block.used,
        )
        for block in self._earlier:
            kernels.add_truncated_sums(block.ratios, block.inverse_mixture, block.payoffs, block.used, table)
        if self.atoms is not None:
            self.atoms.add_sums(table, last=not plain)
        for sample in self._wild:
            weight = np.exp(np.minimum(sample.log_ratios - sample.log_mixture, kernels.LOG_HUGE))
            weight = np.minimum(weight, table[kernels.CUT])
            table[kernels.COVERAGE] += weight
            table[kernels.VALUE] += weight * sample.payoff
        table.flags.writeable = False
        plays = self.plays.copy()
        if self.space.loggers:
            table, plays = table[:, : self.space.size], plays[: self.space.size]
        value, effective, threshold, width, coverage, log_effective, _ = table
        return Estimates(value, effective, threshold, width, plays, coverage, log_effective)

    def moments(self, cut: Array) -> Array:
        """Σ_i w², Σ_i w² y and Σ_i w² y² with w = min(M, ω)/m; `cut` is M/m, at most 1e150.  (K,) -> (3, K)"""
        S, K = self.space.sources, self.space.size
        return self._moments(np.append(cut, np.full(S - K, 1e150)) if S > K else cut)[:, :K]

    def _moments(self, cut: Array) -> Array:
        """(S,) -> (3, S)"""
        moments = np.zeros((3, len(cut)))
        for block in (*self._earlier, self._block):
            kernels.add_moments(block.ratios, block.inverse_mixture, block.payoffs, block.used, cut, moments)
        if self.atoms is not None:
            self.atoms.add_moments(cut, moments)
        for sample in self._wild:
            weight = np.exp(np.minimum(sample.log_ratios - sample.log_mixture, kernels.LOG_HUGE))
            moments += np.minimum(weight, cut) ** 2 * sample.payoff ** np.arange(3)[:, None]
        return moments

    def standard_error(self, mean: Array, estimates: Estimates) -> Array:
        """Of the weighted mean ȳ = Σ w y / Σ w: sqrt(Σ w² (y - ȳ)²) / Σ w, 0 where there is no weight.  (K,) -> (K,)

        The delta method for a ratio of means (Owen 2013, Sec. 9.2).
        """
        cut = np.minimum(estimates.threshold / max(self._told, 1), 1e150)
        ww, wwy, wwyy = self.moments(cut)
        coverage = estimates.coverage
        squared = np.maximum(wwyy - mean * (2 * wwy - mean * ww), 0.0)
        return estimators.self_normalised(np.sqrt(squared), coverage)

    def _effective_samples(self, divergence: Divergence) -> tuple[Array, Array]:
        """η and log η: m / d2(p_x || Φ_t), never below T(x), 0 where the divergence is infinite.  (S,), (S,)"""
        if divergence == "harmonic" or not self._told:
            return self._effective, self._log_effective
        if divergence == "per-step":
            assert self.steps is not None
            log_effective = np.maximum(self.steps.log_effective_samples(self.plays), self._log_effective)  # log T
            return np.exp(log_effective), log_effective
        if divergence == "mixture":
            assert self.nodes is not None
            effective = self.nodes.effective_samples()
        else:
            effective = self._empirical()
        exact = divergence == "mixture" and self.space.family.discrete  # the sum over nodes is
        if self.space.family.divergences_known and not exact:
            effective[self._log_effective == -np.inf] = 0.0  # draws cannot see an infinite divergence
        if divergence == "mixture":  # the harmonic mean is an upper bound on d2, and exact in the far tails
            effective = np.maximum(effective, self._effective)
        effective = np.maximum(effective, self.plays)
        with np.errstate(divide="ignore"):
            return effective, np.where(effective > 0, np.log(effective), self._log_effective)

    def _empirical(self) -> Array:
        """1 / Σ_i (ω_i/m)² with the part that no sample saw: weights that sum to c < 1 lack one of 1 - c.  (S,)

        0 where no sample has any weight and no divergence says more.
        """
        K = self.space.sources
        whole = np.full(K, 1e150)  # no cut, but for what could not be squared
        table = np.zeros((7, K))
        table[kernels.CUT] = whole
        for block in (*self._earlier, self._block):
            kernels.add_truncated_sums(block.ratios, block.inverse_mixture, block.payoffs, block.used, table)
        if self.atoms is not None:
            self.atoms.add_sums(table)
        for sample in self._wild:
            table[kernels.COVERAGE] += np.exp(np.minimum(sample.log_ratios - sample.log_mixture, kernels.LOG_HUGE))
        coverage, squares = table[kernels.COVERAGE], self._moments(whole)[0]
        effective: Array = 1.0 / (squares + np.maximum(1.0 - coverage, 0.0) ** 2)
        if not self.space.family.divergences_known:
            effective[coverage == 0.0] = 0.0
        return effective

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs in [0, 1] for the stored samples, in the order in which they were told."""
        if self._counted:
            return
        aside = [sample for sample in self._wild if sample.number >= 0]
        for sample in aside:
            sample.payoff = float(payoffs[sample.number])
        start, stored = 0, np.delete(payoffs, [sample.number for sample in aside])
        for block in (*self._earlier, self._block):
            block.payoffs[: block.used] = stored[start : start + block.used]
            start += block.used

    def rescale(self, factor: float, shift: float) -> None:
        """Payoffs y of the counted samples become factor y + shift."""
        if self.atoms is not None:
            self.atoms.rescale(factor, shift)
        for sample in self._wild:
            if sample.number < 0:
                sample.payoff = factor * sample.payoff + shift

    def state(self) -> dict[str, Any]:
        """What the record does not say: counted samples, and caches that depend on the order of additions."""
        mixture = np.concatenate([block.mixture[: block.used] for block in (*self._earlier, self._block)])
        recorded = [sample for sample in self._wild if sample.number >= 0]
        state: dict[str, Any] = {
            "mixture": mixture,
            "log_mixture_wild": np.array([sample.log_mixture for sample in recorded]),
            "effective": self._effective.copy(),
            "log_effective": self._log_effective.copy(),
        }
        if self.atoms is not None:
            aside = [sample for sample in self._wild if sample.number < 0]
            state["plays"], state["atoms"] = self.plays.copy(), self.atoms.state()
            state["aside"] = {
                "log_ratios": np.array([sample.log_ratios for sample in aside]).reshape(-1, self.space.sources),
                "log_mixture": np.array([sample.log_mixture for sample in aside]),
                "payoffs": np.array([sample.payoff for sample in aside]),
            }
        for part in (self.nodes, self.steps):
            state |= {} if part is None else part.state()
        return state

    @classmethod
    def restore(
        cls,
        space: Finite,
        decisions: Indices,
        mediators: NDArray[Any],
        payoffs: Array,
        caches: dict[str, Any],
        **settings: Any,
    ) -> SharedHistory:
        """The history with these samples (payoffs in [0, 1]) and caches, bit for bit: O(K n)."""
        history = cls(space, nodes="node_mixture" in caches, steps="step_log_sums" in caches, **settings)
        if history._counted and "atoms" not in caches:  # of a version that stored them
            for decision, mediator, payoff in zip(
                decisions.tolist(), mediators.tolist(), payoffs.tolist(), strict=True
            ):
                history.append(decision, mediator, payoff)
            return history
        if history.nodes is not None:
            history.nodes.mixture[:] = caches["node_mixture"]
        if history.steps is not None:
            history.steps.log_sums[:] = caches["step_log_sums"]
        history._effective[:] = caches["effective"]
        history._log_effective[:] = caches["log_effective"]
        if "atoms" in caches:
            history._restore_counted(caches)
        else:
            history.plays += np.bincount(decisions, minlength=space.sources)
        if not history._counted:
            history._restore_stored(decisions, mediators, payoffs, caches)
        history._told = int(history.plays.sum())
        return history

    def _restore_counted(self, caches: dict[str, Any]) -> None:
        self.plays += np.asarray(caches["plays"])
        self.atoms = Atoms(self.space.sources, self._block_size)
        self.atoms.restore(caches["atoms"])
        aside = caches["aside"]
        for log_ratios, log_mixture, payoff in zip(
            aside["log_ratios"], aside["log_mixture"], aside["payoffs"], strict=True
        ):
            self._wild.append(_Wild(-1, np.array(log_ratios), float(log_mixture), float(payoff)))

    def _restore_stored(
        self, decisions: Indices, mediators: NDArray[Any], payoffs: Array, caches: dict[str, Any]
    ) -> None:
        for decision, mediator, payoff in zip(decisions.tolist(), mediators, payoffs.tolist(), strict=True):
            log_density, block = self._log_density(decision, mediator), self._block
            stored = kernels.write_sample(
                block.ratios,
                block.mixture,
                block.inverse_mixture,
                block.payoffs,
                block.used,
                log_density,
                self.plays,
                decision,
                payoff,
            )
            self._stored(stored, decision, log_density, payoff)
        start, mixture = 0, np.asarray(caches["mixture"], dtype=np.float64)
        for block in (*self._earlier, self._block):
            block.mixture[: block.used] = mixture[start : start + block.used]
            block.inverse_mixture[: block.used] = 1.0 / block.mixture[: block.used]
            start += block.used
        wild = [sample for sample in self._wild if sample.number >= 0]
        for sample, log_mixture in zip(wild, caches["log_mixture_wild"], strict=True):
            sample.log_mixture = float(log_mixture)

    def _divergence(self, source: int) -> Array:
        """D2 of every source to one that is played; where they are not known, a source informs itself alone.  (S,)"""
        divergence = self._divergences.get(source)
        if divergence is None:
            if self.space.family.divergences_known:
                divergence = self.space.log_divergences_to(source)
            else:
                divergence = np.full(self.space.sources, np.inf)
                divergence[source] = 0.0
            self._divergences[source] = divergence
        return divergence

    def _known_by(self, decision: int, mediator: Any) -> tuple[bytes, Array]:
        """What a counted sample is known by: the key of its log-densities, and these.  (S,)"""
        name = mediator.tobytes() if isinstance(mediator, np.ndarray) else mediator
        known = self._seen.get(name) if self.space.family.drawn else None
        if known is None or known[1][decision] == -np.inf:
            log_density = np.ascontiguousarray(self._log_density(decision, mediator))
            known = Atoms.key(log_density), log_density
            if self.space.family.drawn:
                self._seen[name] = known
        return known

    def _log_density(self, decision: int, mediator: Any) -> Array:
        """log p_k(z) of every decision, refused where the sample cannot have come from its own.  (K,)"""
        log_density = self.space.family.log_densities(mediator)
        if log_density[decision] == -np.inf:
            raise MediatorError(
                f"mediator {mediator!r} has density 0 under decision {decision}, which is said to have drawn it; "
                "tell a trial with the mediator that it carries"
            )
        return log_density

    def _stored(self, fits: bool, decision: int, log_density: Array, payoff: float) -> None:
        """A sample was written to the block, or does not fit into float64 and is kept aside."""
        self._told += 1
        self._recorded += 1
        if fits:
            self._block.used += 1
            if self._block.used == self._block_size:
                self._earlier.append(self._block)
                self._block = _Block.empty(self.space.sources, self._block_size)
        else:
            self._keep_aside(self._recorded - 1, decision, log_density, payoff)

    def _keep_aside(self, number: int, source: int, log_density: Array, payoff: float) -> None:
        log_ratios = log_density - log_density[source]
        played = self.plays > 0
        log_mixture = np.logaddexp.reduce(np.log(self.plays[played]) + log_ratios[played])
        self._wild.append(_Wild(number, log_ratios, float(log_mixture), payoff))
