"""The shared history of one run in JAX: ratios in float32, sums in float64. Runs are many: all of it is vectorised.

A sample i is stored by its ratios r_k = p_k(z_i) / p_x(z_i); with D_i = Σ_k T_k r_k its weight for decision k is
r_k / D_i (see `importance.passes.jax`, of which this is the same in arrays of one shape). A weighted payoff has a
relative error of some 1e-7 here, and so has a value; mixtures, effective samples and values are summed in float64. Log-
ratios are cut at 60: a sample whose density is e^60 times larger elsewhere is drawn once in e^60 times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from randomist.families.in_jax import Categories
from randomist.importance.divergences.mixture import ACCURATE
from randomist.importance.passes import jax as passes
from randomist.importance.passes.layout import BINS
from randomist.vectorised.spaces import Set

LONG, SHORT = 1024, 256  # samples that are summed at once, in runs of more than 2 LONG rounds and in shorter ones


class Seen(NamedTuple):
    """What an index is made of, on the [0, 1] scale.  (K,) each"""

    value: Any
    effective: Any  # η, or plays without sharing
    width: Any  # sqrt(α log t / η)
    cut: Any = None  # M/m
    coverage: Any = None  # Σ min(M, ω)/m


class Shared(NamedTuple):
    """Every sample informs every decision."""

    ratios: Any  # (K, T)
    mixture: Any  # D_i, 1 where there is no sample yet  (T,)
    payoffs: Any  # 0 where there is no sample yet  (T,)
    plays: Any  # (K,)
    effective: Any  # η by the harmonic bound  (K,)
    at_nodes: Any = None  # sums at nodes, where effective samples are integrated
    stakes: Any = None  # λ of K_inf, where that is computed with those of the round before  (K,)

    @classmethod
    def empty(cls, size: int, rounds: int) -> Shared:
        tile = _tile(rounds)
        length = -(-rounds // tile) * tile
        none = jnp.zeros(size)
        return cls(jnp.zeros((size, length), jnp.float32), jnp.ones(length), jnp.zeros(length), none, none)

    @classmethod
    def beginning(cls, space: Set, rounds: int) -> Shared:
        """An empty one, which integrates where the space has nodes."""
        empty, nodes = cls.empty(space.size, rounds), space.nodes
        if nodes is None:
            return empty
        return empty._replace(at_nodes=passes.nothing_at_nodes(nodes, isinstance(space.members, Categories)))

    @property
    def known(self) -> Any:
        """Which decisions some sample speaks of.  (K,)"""
        return self.effective > 0

    def told(self, t: Any, x: Any, z: Any, payoff: Any, space: Set) -> Shared:
        """One more sample, the t-th, of decision x."""
        log_density = space.log_densities(z)
        column = passes.relative(log_density - log_density[x])  # (K,)
        plays = self.plays.at[x].add(1.0)
        mixture = self.mixture + self.ratios[x].astype(jnp.float64)  # one play more of x, for all samples before
        at_nodes = self.at_nodes
        if at_nodes is not None:
            divergences = space.log_divergences_to(x)
            at_nodes = passes.play_at_nodes(at_nodes, space.nodes, space.members, divergences, x, 1.0, plays[x])
        return Shared(
            jax.lax.dynamic_update_slice(self.ratios, column[:, None], (0, t)),
            mixture.at[t].set(plays @ column.astype(jnp.float64)),
            self.payoffs.at[t].set(payoff),
            plays,
            self.effective + space.worth(x),
            at_nodes,
            self.stakes,
        )

    def seen(self, t: Any, confidence: float) -> Seen:
        """The truncated estimate of every decision from the t samples so far (Sec. 4, App. C)."""
        term = confidence * jnp.log(t + 1.0)
        cut = self._cut(self.effective, term)
        most = cut.astype(jnp.float32)[:, None]

        def gained(ratios: Any, inverse: Any, payoffs: Any) -> Any:
            gains = jnp.minimum(most, ratios * inverse) * payoffs  # min(M, ω)/m y  (K, size)
            return gains.astype(jnp.float64).sum(axis=1)

        value = self._summed(t, gained, jnp.zeros(len(cut)))
        return Seen(value, self.effective, jnp.sqrt(term / self.effective), cut)

    def weighed(self, t: Any, confidence: float, space: Set) -> Seen:
        """The weighted mean of payoffs for every decision, and effective samples by integrals where there are nodes."""
        term, effective = confidence * jnp.log(t + 1.0), self.effective
        if self.at_nodes is not None:
            integrated = passes.effective_at_nodes(self.at_nodes, space.nodes.points.shape[2], effective, ACCURATE)
            if self.at_nodes.bound is not None:  # nodes cannot see an infinite divergence
                integrated = jnp.where(effective > 0, integrated, 0.0)
            effective = jnp.maximum(jnp.maximum(integrated, effective), self.plays)
        cut = self._cut(effective, term)
        most = cut.astype(jnp.float32)[:, None]

        def sums(ratios: Any, inverse: Any, payoffs: Any) -> Any:
            weights = jnp.minimum(most, ratios * inverse)
            both = weights * payoffs, weights
            return tuple(side.astype(jnp.float64).sum(axis=1) for side in both)

        value, coverage = self._summed(t, sums, (jnp.zeros(len(cut)), jnp.zeros(len(cut))))
        mean = jnp.where(coverage > 0, value / jnp.where(coverage > 0, coverage, 1.0), 0.0)
        return Seen(mean, effective, jnp.sqrt(term / effective), cut, coverage)

    def wagered(self, t: Any, seen: Seen, level: Any, stakes: Any) -> tuple[Any, Any, Any]:
        """E log(1 - λ u), u = (y - μ)/(1 - μ), of every decision with a stake λ of its own, and two slopes.  (K,)"""
        most, stake = (side.astype(jnp.float32)[:, None] for side in (seen.cut, stakes))

        def sums(ratios: Any, inverse: Any, payoffs: Any) -> Any:
            weights = jnp.minimum(most, ratios * inverse)
            gain = ((payoffs - level) / (1.0 - level)).astype(jnp.float32)
            left = 1.0 - stake * gain
            ratio = gain / left
            sides = weights * jnp.log(left), weights * ratio, weights * ratio * ratio
            return tuple(side.astype(jnp.float64).sum(axis=1) for side in sides)

        none, covered = jnp.zeros(len(stakes)), jnp.where(seen.coverage > 0, seen.coverage, 1.0)
        found = self._summed(t, sums, (none, none, none))
        return found[0] / covered, found[1] / covered, found[2] / covered

    def distributions(self, t: Any, cut: Any) -> tuple[Any, Any]:
        """The payoffs of all samples, weighted for every decision: weights and sums by bins.  (K, BINS)"""
        most = cut.astype(jnp.float32)[:, None]

        def binned(ratios: Any, inverse: Any, payoffs: Any) -> Any:
            weights = jnp.minimum(most, ratios * inverse).astype(jnp.float64)
            middle = 1 + (payoffs * (BINS - 2)).astype(jnp.int32)
            place = jnp.where(payoffs <= 0.0, 0, jnp.where(payoffs >= 1.0, BINS - 1, middle))
            bins = (place[:, None] == jnp.arange(BINS)).astype(jnp.float64)
            return weights @ jnp.concatenate([bins, bins * payoffs[:, None]], axis=1)

        both = self._summed(t, binned, jnp.zeros((len(cut), 2 * BINS)), self.payoffs)
        return both[:, :BINS], both[:, BINS:]

    def _cut(self, effective: Any, term: Any) -> Any:
        return jax.lax.rsqrt(jnp.maximum(effective * term, 1e-300))  # M/m = 1/sqrt(η α log t)

    def _summed(self, t: Any, part: Any, begin: Any, payoffs: Any = None) -> Any:
        """Sums over the samples so far, some at a time: of their ratios, 1/D, and payoffs, in float32 if not given."""
        inverse = (1.0 / self.mixture).astype(jnp.float32)
        payoffs = self.payoffs.astype(jnp.float32) if payoffs is None else payoffs
        size = _tile(len(inverse))

        def tile(j: Any, total: Any) -> Any:
            ratios = jax.lax.dynamic_slice_in_dim(self.ratios, j * size, size, axis=1)
            sides = (jax.lax.dynamic_slice_in_dim(side, j * size, size) for side in (inverse, payoffs))
            return jax.tree.map(jnp.add, total, part(ratios, *sides))

        return jax.lax.fori_loop(0, (t + size - 1) // size, tile, begin)


def _tile(rounds: int) -> int:
    return LONG if rounds > 2 * LONG else SHORT


class Own(NamedTuple):
    """A decision is informed by its own payoffs only."""

    plays: Any  # (K,)
    sums: Any  # (K,)

    @classmethod
    def beginning(cls, space: Set, rounds: int) -> Own:
        return cls(jnp.zeros(space.size), jnp.zeros(space.size))

    @property
    def known(self) -> Any:
        return self.plays > 0

    def told(self, t: Any, x: Any, z: Any, payoff: Any, space: Set) -> Own:
        return Own(self.plays.at[x].add(1.0), self.sums.at[x].add(payoff))

    def seen(self, t: Any, confidence: float) -> Seen:
        term = confidence * jnp.log(t + 1.0)
        return Seen(self.sums / jnp.maximum(self.plays, 1.0), self.plays, jnp.sqrt(term / self.plays))
