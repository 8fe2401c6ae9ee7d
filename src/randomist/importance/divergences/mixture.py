"""d2(p_x || Φ_t) as an integral, at a price that does not grow with the history.

E_{p_x}[f] is a weighted sum over fixed nodes of p_x. At each node the ratio m Φ_t/p_x = Σ_j T_j p_j/p_x is kept and
grows by one term per play, so that a round costs O(K L) for L nodes however long the history. Two integrals are of use:
d2(p_x || Φ_t) = E_{p_x}[p_x/Φ_t], and the mass that truncation takes away, E_{p_x}[(1 - M Φ_t/p_x)_+].

Nodes may miss where p_x/Φ_t has its mass: in several dimensions they are draws, and its tail is heavy. With the exact
d2_j = d2(p_x || p_j) and the harmonic bound η_h = Σ_j T_j/d2_j, the Cauchy-Schwarz inequality has at every point

    p_x/Φ_t <= G = (m/η_h²) Σ_j (T_j/d2_j²) p_x/p_j,    E_{p_x} G = m/η_h,

so the integral is m/η_h times the mean of (p_x/Φ_t)/G, which lies in [0, 1], under the density in proportion to p_x G.
That mean is a ratio of two sums over the nodes, and exactly 1 where one decision was played. A quadrature in one
dimension needs no correction where it reaches: p_x/Φ_t is at most (m/T_j) p_x/p_j for each j, and if it lacks nothing
of one of these, it lacks nothing of p_x/Φ_t.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance.divergences.base import Divergence
from randomist.importance.divergences.empirical import Empirical, at_least_plays
from randomist.importance.passes.layout import ERAS, FIRST, LAST_ERA, SINCE

if TYPE_CHECKING:
    from randomist.histories.columns import Columns
    from randomist.spaces import Finite

ACCURATE = 1e-2  # a quadrature that lacks no more than this of an integral needs no correction
MOST_KEPT = 2**23  # ratios at nodes that are kept rather than computed again: 64 MiB


class Mixture(Divergence):
    """d2 integrated over nodes; estimated from the weights where there is no family to integrate under."""

    name = "mixture"

    @cached_property
    def nodes(self) -> Nodes:
        """Made when they are first needed; a history on a device has its own."""
        return Nodes(self.space)

    @classmethod
    def for_space(cls, space: Finite) -> type[Divergence]:
        return cls if space.family.drawn else Empirical

    def effective_samples(self, columns: Columns, eta: Array) -> Array:
        self.nodes.follow(columns)
        harmonic, log_harmonic = np.asarray(eta)
        effective = self.nodes.effective_samples(harmonic)
        if not self.space.family.discrete:  # there the sum over nodes is exact
            effective[log_harmonic == -np.inf] = 0.0  # nodes cannot see an infinite divergence
        # The harmonic mean is an upper bound on d2, and exact in the far tails.
        return at_least_plays(np.maximum(effective, harmonic), columns, eta)


class Nodes:
    """Nodes of every member of a family, with the mixture of the plays so far at each."""

    def __init__(self, space: Finite) -> None:
        family = self.family = space.family
        self._space = space
        points, self.weights = family.nodes()  # (K, L, *shape), (K, L)
        self._points = points.reshape(-1, *family.shape)
        K, L = self.weights.shape
        self._own = np.array([family.log_density([k], points[k])[0] for k in range(K)])  # log p_k at its own nodes
        self._quadrature = math.prod(family.shape) == 1  # else nodes are draws
        parts = 1 if family.discrete else 2  # over atoms every sum is exact
        self.sums = np.zeros((parts, K, L))  # Σ_j T_j p_j/p_k, and Σ_j (T_j/d2_j²) p_k/p_j
        self._terms: dict[int, Array] | None = {} if parts * K * K * L <= MOST_KEPT else None  # of one play each
        self._unseen: dict[int, Array] = {}  # of d2(p_k || p_j), what the nodes of k lack, by j
        self._counts, self._tail = np.zeros(K), np.full(K, np.inf)  # T_j; the least of unseen / T_j over all j
        self._era, self._applied = 0, 0
        self._as_of = np.zeros(K)  # plays as of that era

    def follow(self, columns: Columns) -> None:
        """Bring the sums up to date with the plays: those of the last era anew, those since one by one."""
        recent = columns.recent
        if self._era != recent[ERAS]:
            counts = columns.plays[LAST_ERA]
            if self._applied or not np.array_equal(counts, self._as_of):
                self.sums[:], self._counts[:], self._tail[:] = 0.0, 0.0, np.inf
                for source in np.flatnonzero(counts).tolist():
                    self._add(source, float(counts[source]))
            self._era, self._applied, self._as_of = int(recent[ERAS]), 0, counts.copy()
        for source in recent[FIRST + self._applied : FIRST + recent[SINCE]].tolist():
            self._add(source, 1.0)
        self._applied = int(recent[SINCE])

    def _add(self, source: int, times: float) -> None:
        term = self._term(source)
        _add(term, self.sums, times)
        if self._quadrature and not self.family.discrete:
            self._counts[source] += times
            np.minimum(self._tail, self._unseen_of(source, term) / self._counts[source], out=self._tail)

    def _unseen_of(self, source: int, term: Array) -> Array:
        """E_{p_k}[p_k/p_j] is d2 exactly: what the nodes of every k lack of it.  (K,)"""
        unseen = self._unseen.get(source)
        if unseen is None:
            divergence = np.exp(np.minimum(self._space.log_divergences_to(source), 690.0))
            unseen = divergence * np.abs(1.0 - divergence * np.einsum("kl,kl->k", self.weights, term[1]))
            self._unseen[source] = unseen
        return unseen

    def effective_samples(self, harmonic: Array) -> Array:
        """m / d2(p_x || Φ_t).  (S,) -> (S,)"""
        inverse: Array = _inverse_sums(self.weights, self.sums[0])  # E 1/(m Φ/p_x)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.family.discrete:
                return 1.0 / inverse
            bound = np.einsum("kl,kl->k", self.weights, self.sums[1])  # of which the exact value is η_h
            exact = self._quadrature & (self._tail <= ACCURATE * inverse)  # p_x/Φ <= m p_x/(T_j p_j) for each j
            effective = np.where(exact, 1.0 / inverse, bound / (harmonic * inverse))
            return np.where((harmonic > 0) & (bound > 0) & (inverse > 0), effective, harmonic)

    def truncated_mass(self, threshold: Array, columns: Columns, told: float) -> Array:
        """E_{p_x}[(1 - M Φ_t/p_x)_+]: what min(M, ω) lacks of 1, and the most that TMIS can lack of J.  (K,) -> (K,)"""
        self.follow(columns)
        mass: Array = _truncated_mass(self.weights, self.sums[0], threshold, told)
        return mass

    def _term(self, source: int) -> Array:
        """What one play of a source adds to the sums.  (parts, K, L)"""
        term = None if self._terms is None else self._terms.get(source)
        if term is None:
            log_density = self.family.log_density([source], self._points).reshape(self.weights.shape)
            log_divergence = np.empty(0) if self.family.discrete else self._space.log_divergences_to(source)
            term = _ratios(log_density, self._own, log_divergence)
            if self._terms is not None:
                self._terms[source] = term
        return term


@compiled
def _ratios(log_density: Array, own: Array, log_divergence: Array) -> Array:
    """p_j/p_k at the nodes of k, 0 where these have no density; with divergences also p_k/p_j / d2_j²."""
    several = log_divergence.size > 0
    out = np.zeros((2 if several else 1, *own.shape))
    for k in range(own.shape[0]):
        for i in range(own.shape[1]):
            if own[k, i] > -math.inf:
                log_ratio = log_density[k, i] - own[k, i]
                out[0, k, i] = math.exp(min(log_ratio, 600.0))
                if several and log_divergence[k] < math.inf:
                    out[1, k, i] = math.exp(min(-log_ratio - 2.0 * log_divergence[k], 600.0))
    return out


@compiled
def _add(term: Array, sums: Array, times: float) -> None:
    for part in range(term.shape[0]):
        for k in range(term.shape[1]):
            for i in range(term.shape[2]):
                sums[part, k, i] += times * term[part, k, i]


@compiled
def _inverse_sums(weights: Array, mixture: Array) -> Array:
    out = np.zeros(weights.shape[0])
    for k in range(weights.shape[0]):
        for i in range(weights.shape[1]):
            if weights[k, i] > 0.0:
                out[k] += weights[k, i] / mixture[k, i] if mixture[k, i] > 0.0 else math.inf
    return out


@compiled
def _truncated_mass(weights: Array, mixture: Array, threshold: Array, told: float) -> Array:
    out = np.ones(threshold.shape[0])
    for k in range(threshold.shape[0]):
        if threshold[k] == math.inf:
            continue  # nothing is known
        out[k] = 0.0
        for i in range(weights.shape[1]):
            out[k] += weights[k, i] * max(0.0, 1.0 - threshold[k] * (mixture[k, i] / told))
    return out
