"""D-UCB: contextual bandits with stochastic experts (Sen, Shanmugam and Shakkottai 2018, arXiv 1802.08737)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from randomist._checks import choice
from randomist._types import Array, Indices
from randomist.errors import MediatorError, ParameterError
from randomist.histories.estimates import Estimates
from randomist.importance import bounds, experts
from randomist.learners.finite.base import FiniteLearner

CHUNK = 4096  # samples whose densities are computed at once


@dataclass(eq=False, kw_only=True)
class StochasticExperts(FiniteLearner):
    """Optimism over samples that are weighted one by one, by p_x/p_j for the j that drew them (D-UCB).

    The index is value + sqrt(α t log t) / Z(x), where Z(x) = Σ_i 1/M_xj counts each sample by how much its source says
    about x. A tell costs O(K). The sums are made anew, in O(K t), whenever the history has grown by a quarter, because
    groups and clip levels follow t; that is O(K) a round on average.

    Settings are those of `Learner`, and this. `confidence` is the constant α under the root.

    Parameters
    ----------
    mean
        "median-of-means": the median over 4 log t groups, M = sqrt(d2(p_x || p_j)). "clipped": ratios above
        2 log(2/ε) M count as 0, M = log E_{p_x} exp(p_x/p_j), which is infinite unless p_x/p_j is bounded.
    """

    mean: Literal["median-of-means", "clipped"] = "median-of-means"

    def __post_init__(self) -> None:
        clipped = choice(self.mean, ("median-of-means", "clipped"), "mean") == "clipped"
        super().__post_init__()
        family = self.space.family
        if not family.divergences_known:
            raise ParameterError(
                "StochasticExperts weights samples by divergences, and they are not known here: give "
                "Finite.likelihoods(K, log_divergences=...), or take a learner that estimates them, such as Randomist"
            )
        if clipped and not family.drawn:
            raise ParameterError(
                'mean="clipped" needs a family to integrate under; here only likelihoods are known: take '
                'mean="median-of-means"'
            )
        self._weights: dict[int, Array] = {}  # 1/M of every decision, by source
        self._begin(0)

    def opening(self) -> list[int]:
        """`first`, or one that is drawn: what it says nothing about has an infinite index."""
        return [int(self._rng.integers(self.space.size) if self.first is None else self.first)]

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        if self.mean == "median-of-means":
            return estimates.value + estimates.width
        excess = 2.0 * np.exp(-0.5 * clip_level(estimates.width))  # β_t
        lost = 2.0 * np.exp(-0.5 * estimates.threshold)  # ε, of which clipping takes at most half
        return estimates.value + excess + 0.5 * lost  # 3β/2 with ε = β

    # Estimates.

    def _estimate(self) -> Estimates:
        told = self.told
        if self._epoch != experts.epoch(told):
            self._begin(experts.epoch(told))
            self._add(self.record.decisions, self.record.mediators, self._scale.units(self.record.payoffs))
        mass, seen, earned = self._sums.sum(axis=1)  # (K,) each
        log_effective = _log_effective(mass, told)
        known = np.maximum(mass, np.finfo(float).tiny)
        value = experts.median_of_means(self._sums) if self.mean == "median-of-means" else earned / known
        return Estimates(
            value,
            np.exp(log_effective),
            self._levels.copy(),
            bounds.width(log_effective, told, self.confidence),
            self._plays[: self.space.size].copy(),
            seen / known,
            log_effective,
        )

    def _begin(self, epoch: int) -> None:
        """Empty sums, with the groups and clip levels of an epoch."""
        K = self.space.size
        groups = max(1, 4 * math.floor(math.log(max(epoch, 1)))) if self.mean == "median-of-means" else 1
        self._epoch = epoch
        self._plays = np.zeros(self.space.sources, np.int64)
        self._places: dict[int, int] = {}  # of the sources, in the order in which they were first told
        self._sums = np.zeros((3, groups, K))
        self._levels = np.full(K, np.inf)
        if self.mean == "clipped" and epoch:
            mass = np.zeros(K)
            for source, plays in enumerate(np.bincount(self.record.decisions[:epoch]).tolist()):
                mass += plays * self._weight(source) if plays else 0.0
            self._levels = clip_level(bounds.width(_log_effective(mass, epoch), epoch, self.confidence))

    # Samples come in.

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        log_density = self.space.family.log_densities(mediator)[None]
        self._check(np.array([decision]), log_density, [mediator])
        self._add_rows(np.array([decision]), log_density, np.array([payoff]))

    def _observe_all(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        for start in range(0, len(decisions), CHUNK):
            part = slice(start, start + CHUNK)
            self._check(decisions[part], self._log_density(mediators[part]), mediators[part])
        self._add(decisions, mediators, payoffs)

    def _add(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        for start in range(0, len(decisions), CHUNK):
            part = slice(start, start + CHUNK)
            self._add_rows(decisions[part], self._log_density(mediators[part]), payoffs[part])

    def _add_rows(self, decisions: Indices, log_density: Array, payoffs: Array) -> None:
        played, firsts, rows = np.unique(decisions, return_index=True, return_inverse=True)
        weights = np.array([self._weight(source) for source in played.tolist()])  # (P, K)
        groups = np.empty(len(decisions), np.int64)
        for source in played[np.argsort(firsts)].tolist():  # in turn: each group has its share of every source
            where = np.flatnonzero(decisions == source)
            start = self._places.setdefault(source, len(self._places)) + self._plays[source]
            groups[where] = (start + np.arange(len(where))) % self._sums.shape[1]
            self._plays[source] += len(where)
        experts.add_samples(
            self._sums, groups, log_density, decisions, weights, rows.astype(np.int64), self._levels, payoffs
        )

    def _weight(self, source: int) -> Array:
        """1/M of every decision to a source.  (K,)"""
        weight = self._weights.get(source)
        if weight is None:
            if self.mean == "clipped":
                weight = 1.0 / experts.exponential_divergences(self.space.family, source)
            else:
                weight = np.exp(-0.5 * self.space.log_divergences_to(source))
            weight = self._weights[source] = weight[: self.space.size].copy()
        return weight

    def _log_density(self, mediators: NDArray[Any]) -> Array:
        """(n, *shape) -> (n, S)"""
        return np.ascontiguousarray(self.space.family.log_density(None, mediators).T)

    def _check(self, decisions: Indices, log_density: Array, mediators: Any) -> None:
        wrong = np.flatnonzero(log_density[np.arange(len(decisions)), decisions] == -np.inf)
        if wrong.size:
            raise MediatorError(
                f"mediator {mediators[wrong[0]]!r} has density 0 under decision {decisions[wrong[0]]}, which is said "
                "to have drawn it; tell a trial with the mediator that it carries"
            )

    def _rescale(self, payoffs: Array) -> None:
        self._epoch = -1  # so that the next estimate begins anew

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._epoch = -1


def clip_level(width: Array) -> Array:
    """2 log(2/β) for the β with β/log(2/β) = width: twice Lambert's W of 2/width.  (K,) -> (K,)"""
    from scipy.special import lambertw

    return np.asarray(2.0 * lambertw(2.0 / width).real)


def _log_effective(mass: Array, told: int) -> Array:
    """log η with η = Z²/t, so that sqrt(α log t / η) = sqrt(α t log t)/Z.  (K,) -> (K,)"""
    with np.errstate(divide="ignore"):
        return 2.0 * np.log(mass) - math.log(max(told, 1))
