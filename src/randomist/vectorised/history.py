"""The shared history of one run in JAX: ratios in float32, sums in float64. Runs are many: all of it is vectorised.

A sample i is stored by its ratios r_k = p_k(z_i) / p_x(z_i); with D_i = Σ_k T_k r_k its weight for decision k is
r_k / D_i (see `importance.passes.numba`, of which this is the same with sums in another order). A weighted payoff has a
relative error of some 1e-7 here, and so has a value; mixtures, effective samples and values are summed in float64. Log-
ratios are cut at 60: a sample whose density is e^60 times larger elsewhere is drawn once in e^60 times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from randomist.vectorised.learners import Seen
from randomist.vectorised.spaces import Set

LONG, SHORT = 1024, 256  # samples that are summed at once, in runs of more than 2 LONG rounds and in shorter ones
MOST = 60.0  # of a log-ratio
BYTES = 4  # of a stored ratio


class Shared(NamedTuple):
    """Every sample informs every decision."""

    ratios: Any  # (K, T)
    mixture: Any  # D_i, 1 where there is no sample yet  (T,)
    payoffs: Any  # 0 where there is no sample yet  (T,)
    plays: Any  # (K,)
    effective: Any  # η by the harmonic bound  (K,)

    @classmethod
    def empty(cls, size: int, rounds: int) -> Shared:
        tile = _tile(rounds)
        length = -(-rounds // tile) * tile
        none = jnp.zeros(size)
        return cls(jnp.zeros((size, length), jnp.float32), jnp.ones(length), jnp.zeros(length), none, none)

    def told(self, t: Any, x: Any, z: Any, payoff: Any, space: Set) -> Shared:
        """One more sample, the t-th, of decision x."""
        log_density = space.log_densities(z)
        column = jnp.exp(jnp.minimum(log_density - log_density[x], MOST)).astype(jnp.float32)  # (K,)
        plays = self.plays.at[x].add(1.0)
        mixture = self.mixture + self.ratios[x].astype(jnp.float64)  # one play more of x, for all samples before
        return Shared(
            jax.lax.dynamic_update_slice(self.ratios, column[:, None], (0, t)),
            mixture.at[t].set(plays @ column.astype(jnp.float64)),
            self.payoffs.at[t].set(payoff),
            plays,
            self.effective + space.worth(x),
        )

    def seen(self, t: Any, confidence: float) -> Seen:
        """The truncated estimate of every decision from the t samples so far (Sec. 4, App. C)."""
        term = confidence * jnp.log(t + 1.0)
        cut = jax.lax.rsqrt(jnp.maximum(self.effective * term, 1e-300))  # M/m = 1/sqrt(η α log t)
        inverse, payoffs = ((1.0 / self.mixture).astype(jnp.float32), self.payoffs.astype(jnp.float32))
        size, most = _tile(len(inverse)), cut.astype(jnp.float32)[:, None]

        def tile(j: Any, total: Any) -> Any:
            ratios = jax.lax.dynamic_slice_in_dim(self.ratios, j * size, size, axis=1)
            invert, paid = (jax.lax.dynamic_slice_in_dim(side, j * size, size) for side in (inverse, payoffs))
            gains = jnp.minimum(most, ratios * invert) * paid  # min(M, ω)/m y  (K, size)
            return total + gains.astype(jnp.float64).sum(axis=1)

        value = jax.lax.fori_loop(0, (t + size - 1) // size, tile, jnp.zeros(len(cut)))
        return Seen(value, self.effective, jnp.sqrt(term / self.effective))


def _tile(rounds: int) -> int:
    return LONG if rounds > 2 * LONG else SHORT


class Own(NamedTuple):
    """A decision is informed by its own payoffs only."""

    plays: Any  # (K,)
    sums: Any  # (K,)

    @classmethod
    def empty(cls, size: int, rounds: int) -> Own:
        return cls(jnp.zeros(size), jnp.zeros(size))

    def told(self, t: Any, x: Any, z: Any, payoff: Any, space: Set) -> Own:
        return Own(self.plays.at[x].add(1.0), self.sums.at[x].add(payoff))

    def seen(self, t: Any, confidence: float) -> Seen:
        term = confidence * jnp.log(t + 1.0)
        return Seen(self.sums / jnp.maximum(self.plays, 1.0), self.plays, jnp.sqrt(term / self.plays))
