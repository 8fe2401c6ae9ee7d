"""The one record that all learners share, and the caches that make its estimates cheap.

`Record` is what was told, append-only. `SharedHistory` adds, for a finite space, what turns one sample into an estimate
of every decision: telling costs O(K + t), estimating one fused pass over (K, t), and memory grows by blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from randomist.errors import MediatorError
from randomist.families.base import Array, Indices
from randomist.importance import confidence_term, estimators, kernels
from randomist.importance.nodes import Nodes
from randomist.spaces import Finite

# How d2(p_x || Φ_t) is had: the paper's harmonic-mean bound, an integral, or the second moment of the weights.
Divergence: TypeAlias = Literal["harmonic", "mixture", "empirical"]

BLOCK_ENTRIES = 2**17  # ratios per block: a mebibyte, so that a block's samples stay near the core


class Estimates(NamedTuple):
    """What the history says about each decision; payoffs are mapped from `payoff_range` to [0, 1].  (K,) each"""

    value: Array  # J̌_t(x)
    effective_samples: Array  # η_t(x); as small as float64 allows, so see the logarithm
    threshold: Array  # M_t(x)
    width: Array  # sqrt(α log t / η)
    plays: Indices  # T_t(x)
    coverage: Array  # mean of min(M, ω), 1 in expectation but for truncation and what the samples cannot see
    log_effective_samples: Array


class Record:
    """Decisions, mediators and payoffs (in the user's units) as they were told: append-only, with read-only views."""

    def __init__(
        self, decision_shape: tuple[int, ...], mediator_shape: tuple[int, ...], dtypes: tuple[DTypeLike, DTypeLike]
    ) -> None:
        self._told = 0
        self._capacity = 64
        self._decisions = np.empty((self._capacity, *decision_shape), dtypes[0])
        self._mediators = np.empty((self._capacity, *mediator_shape), dtypes[1])
        self._payoffs = np.empty(self._capacity)

    def append(self, decision: Any, mediator: Any, payoff: float) -> None:
        told = self._told
        if told == self._capacity:
            self._capacity *= 2
            self._decisions, self._mediators, self._payoffs = map(
                self._grown, (self._decisions, self._mediators, self._payoffs)
            )
        self._decisions[told] = decision
        self._mediators[told] = mediator
        self._payoffs[told] = payoff
        self._told = told + 1

    def __len__(self) -> int:
        return self._told

    @property
    def decisions(self) -> NDArray[Any]:
        return self._view(self._decisions)

    @property
    def mediators(self) -> NDArray[Any]:
        return self._view(self._mediators)

    @property
    def payoffs(self) -> Array:
        return self._view(self._payoffs)

    def _grown(self, array: NDArray[Any]) -> NDArray[Any]:
        grown = np.empty((self._capacity, *array.shape[1:]), array.dtype)
        grown[: len(array)] = array
        return grown

    def _view(self, array: NDArray[Any]) -> NDArray[Any]:
        view = array[: self._told]
        view.flags.writeable = False
        return view

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name).copy() for name in ("decisions", "mediators", "payoffs")}


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

    number: int  # which of the told samples it is
    log_ratios: Array  # (K,)
    log_mixture: float
    payoff: float


class SharedHistory:
    """Told samples of a finite space, and the estimate of every decision from all of them."""

    def __init__(self, space: Finite, *, nodes: bool = False) -> None:
        self.space = space
        self.nodes = Nodes(space.family) if nodes else None  # for exact divergences and biases
        self.plays = np.zeros(space.size, np.int64)
        self._effective = np.zeros(space.size)
        self._log_effective = np.full(space.size, -np.inf)
        self._block_size = int(np.clip(BLOCK_ENTRIES // space.size, 64, 4096))
        self._earlier: list[_Block] = []  # full
        self._block = _Block.empty(space.size, self._block_size)  # has room for at least one more sample
        self._wild: list[_Wild] = []
        self._divergences: dict[
            int, Array
        ] = {}  # D2 of every decision to a played one, computed when it is first played
        self._told = 0

    def __len__(self) -> int:
        return self._told

    def append(self, decision: int, mediator: Any, payoff: float) -> None:
        """One more sample, payoff in [0, 1]: O(K + t)."""
        log_density = self._log_density(decision, mediator)
        divergence = self._divergences.get(decision)
        if divergence is None:
            divergence = self._divergences[decision] = self.space.log_divergences_to(decision)
        if self.nodes is not None:
            self.nodes.add_play(decision)
        for block in self._earlier:
            kernels.add_play(block.ratios, block.mixture, block.inverse_mixture, block.used, decision)
        for sample in self._wild:
            sample.log_mixture = float(np.logaddexp(sample.log_mixture, sample.log_ratios[decision]))
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

    def estimate(self, confidence: float, divergence: Divergence = "harmonic") -> Estimates:
        """TMIS with the threshold and the width of round t = m + 1 (Sec. 4, App. C): one pass over (K, t)."""
        term = confidence_term(self._told, confidence)
        effective, log_effective = self._effective_samples(divergence)
        block = self._block
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
        for sample in self._wild:
            weight = np.exp(np.minimum(sample.log_ratios - sample.log_mixture, kernels.LOG_HUGE))
            weight = np.minimum(weight, table[kernels.CUT])
            table[kernels.COVERAGE] += weight
            table[kernels.VALUE] += weight * sample.payoff
        table.flags.writeable = False
        value, effective, threshold, width, coverage, log_effective, _ = table
        return Estimates(value, effective, threshold, width, self.plays.copy(), coverage, log_effective)

    def moments(self, cut: Array) -> Array:
        """Σ_i w², Σ_i w² y and Σ_i w² y² with w = min(M, ω)/m; `cut` is M/m, at most 1e150.  (K,) -> (3, K)"""
        moments = np.zeros((3, self.space.size))
        for block in (*self._earlier, self._block):
            kernels.add_moments(block.ratios, block.inverse_mixture, block.payoffs, block.used, cut, moments)
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
        """η and log η: m / d2(p_x || Φ_t), never below T(x), 0 where the divergence is infinite.  (K,), (K,)"""
        if divergence == "harmonic" or not self._told:
            return self._effective, self._log_effective
        if divergence == "mixture":
            assert self.nodes is not None
            effective = self.nodes.effective_samples()
        else:
            effective = self._empirical()
        if not (divergence == "mixture" and self.space.family.discrete):  # there the sum over nodes is exact
            effective[self._log_effective == -np.inf] = 0.0  # draws cannot see an infinite divergence
        if divergence == "mixture":  # the harmonic mean is an upper bound on d2, and exact in the far tails
            effective = np.maximum(effective, self._effective)
        effective = np.maximum(effective, self.plays)
        with np.errstate(divide="ignore"):
            return effective, np.where(effective > 0, np.log(effective), self._log_effective)

    def _empirical(self) -> Array:
        """1 / Σ_i (ω_i/m)² with the part that no sample saw: weights that sum to c < 1 lack one of 1 - c.  (K,)"""
        whole = np.full(self.space.size, 1e150)  # no cut, but for what could not be squared
        table = np.zeros((7, self.space.size))
        table[kernels.CUT] = whole
        for block in (*self._earlier, self._block):
            kernels.add_truncated_sums(block.ratios, block.inverse_mixture, block.payoffs, block.used, table)
        for sample in self._wild:
            table[kernels.COVERAGE] += np.exp(np.minimum(sample.log_ratios - sample.log_mixture, kernels.LOG_HUGE))
        squares = self.moments(whole)[0]
        effective: Array = 1.0 / (squares + np.maximum(1.0 - table[kernels.COVERAGE], 0.0) ** 2)
        return effective

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs in [0, 1] for the same samples, in the order in which they were told."""
        aside = [sample.number for sample in self._wild]
        for sample in self._wild:
            sample.payoff = float(payoffs[sample.number])
        start, stored = 0, np.delete(payoffs, aside)
        for block in (*self._earlier, self._block):
            block.payoffs[: block.used] = stored[start : start + block.used]
            start += block.used

    def state(self) -> dict[str, Any]:
        """The caches that depend on the order of additions; the rest follows from the record."""
        mixture = np.concatenate([block.mixture[: block.used] for block in (*self._earlier, self._block)])
        wild = np.array([sample.log_mixture for sample in self._wild])
        return {
            "mixture": mixture,
            "log_mixture_wild": wild,
            "effective": self._effective.copy(),
            "log_effective": self._log_effective.copy(),
        } | ({} if self.nodes is None else self.nodes.state())

    @classmethod
    def restore(
        cls, space: Finite, decisions: Indices, mediators: NDArray[Any], payoffs: Array, caches: dict[str, Any]
    ) -> SharedHistory:
        """The history with these samples (payoffs in [0, 1]) and caches, bit for bit: O(K n)."""
        history = cls(space, nodes="node_mixture" in caches)
        if history.nodes is not None:
            history.nodes.mixture[:] = caches["node_mixture"]
        history.plays += np.bincount(decisions, minlength=space.size)
        mixture = np.asarray(caches["mixture"], dtype=np.float64)
        history._effective[:] = caches["effective"]
        history._log_effective[:] = caches["log_effective"]
        for decision, mediator, payoff in zip(decisions.tolist(), mediators, payoffs.tolist(), strict=True):
            log_density, block = history._log_density(decision, mediator), history._block
            stored = kernels.write_sample(
                block.ratios,
                block.mixture,
                block.inverse_mixture,
                block.payoffs,
                block.used,
                log_density,
                history.plays,
                decision,
                payoff,
            )
            history._stored(stored, decision, log_density, payoff)
        start = 0
        for block in (*history._earlier, history._block):
            block.mixture[: block.used] = mixture[start : start + block.used]
            block.inverse_mixture[: block.used] = 1.0 / block.mixture[: block.used]
            start += block.used
        for sample, log_mixture in zip(history._wild, caches["log_mixture_wild"], strict=True):
            sample.log_mixture = float(log_mixture)
        return history

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
        if fits:
            self._block.used += 1
            if self._block.used == self._block_size:
                self._earlier.append(self._block)
                self._block = _Block.empty(self.space.size, self._block_size)
        else:
            log_ratios = log_density - log_density[decision]
            played = self.plays > 0
            log_mixture = np.logaddexp.reduce(np.log(self.plays[played]) + log_ratios[played])
            self._wild.append(_Wild(self._told - 1, log_ratios, float(log_mixture), payoff))
