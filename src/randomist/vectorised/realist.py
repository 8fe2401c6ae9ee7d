"""REALIST in JAX: the smallest η K_inf + log η, of which only the decisions that may have it are computed.

By Pinsker's inequality η K_inf is at least 2 η gap². Decisions lie in blocks of neighbours: the block with the smallest
bound is computed first, then the next one, until no bound is below what was found. So a round costs K_inf of one or two
blocks, not of all decisions, and the choice is that of `learners.finite.realist`.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from randomist.importance.passes.jax import k_inf
from randomist.vectorised.history import Seen, Shared

BLOCK = 1024  # decisions whose K_inf is computed at once


def index(known: Shared, t: Any, seen: Seen) -> Any:
    """Minus η K_inf + log η, or minus a bound on it where that cannot be the smallest.  (K,)"""
    informed = seen.effective > 0
    eta = jnp.maximum(seen.effective, 1e-300)
    log_eta = jnp.log(eta)
    best = jnp.where(informed, seen.value, -jnp.inf).max()  # μ*
    gap = jnp.maximum(best - seen.value, 0.0)
    bound = jnp.where(informed, eta * 2.0 * gap**2 + log_eta, jnp.inf)
    leading = jnp.where(informed & (gap == 0.0), log_eta, jnp.inf).min()
    K = len(bound)
    size = min(BLOCK, K)
    blocks = -(-K // size)
    of_blocks = jnp.pad(bound, (0, blocks * size - K), constant_values=jnp.inf).reshape(blocks, size).min(axis=1)

    def unsettled(state: Any) -> Any:
        _, left, least = state
        return left.min() <= least

    def compute(state: Any) -> Any:
        against, left, least = state
        block = jnp.argmin(left)
        first = jnp.minimum(block * size, K - size)
        weight, sums = known.distributions(t, first, size, seen.cut)
        some_eta, some_log, some_known = (
            jax.lax.dynamic_slice_in_dim(side, first, size) for side in (eta, log_eta, informed)
        )
        exact = jnp.where(some_known, some_eta * k_inf(weight, sums, best) + some_log, jnp.inf)
        against = jax.lax.dynamic_update_slice_in_dim(against, exact, first, axis=0)
        return against, left.at[block].set(jnp.inf), jnp.minimum(least, exact.min())

    least = jnp.where(jnp.isfinite(leading), leading, 1e300)  # no block is left where all that is left is infinite
    return -jax.lax.while_loop(unsettled, compute, (bound, of_blocks, least))[0]
