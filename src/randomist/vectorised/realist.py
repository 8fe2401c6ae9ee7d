"""REALIST in JAX: minus η K_inf + log η of every decision.

K_inf(F, μ) is the largest E log(1 - λ u) over stakes λ in [0, 1], u = (y - μ)/(1 - μ) (Honda and Takemura 2015). For
sets of up to `EXACT` decisions payoffs are binned and the stakes computed as `learners.finite.realist` does. A million
decisions keep their stakes from one round to the next: a round is one pass over all samples, which has E log(1 - λ u)
and the Newton step to the next stakes. There payoffs are not binned, which is nearer to the definition. As η K_inf +
log η is much the same for all decisions that are in the running, bounds would spare nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from randomist.importance.passes.jax import k_inf
from randomist.vectorised.history import Seen, Shared

EXACT = 2**12
HIGHEST = 0.999  # of the stakes that are kept
EARLY, STEPS = 64, 3  # in the first rounds stakes change fast: so many steps in each


def beginning(known: Shared) -> Shared:
    """With stakes to keep, where there are many decisions."""
    size = len(known.plays)
    return known if size <= EXACT else known._replace(stakes=jnp.full(size, 0.5))


def index(known: Shared, t: Any, seen: Seen) -> tuple[Any, Shared]:
    """Minus η K_inf + log η, and the history with the stakes of this round.  (K,)"""
    informed = seen.effective > 0
    eta = jnp.maximum(seen.effective, 1e-300)
    best = jnp.where(informed, seen.value, -jnp.inf).max()  # μ*
    if known.stakes is None:
        divergence = k_inf(*known.distributions(t, seen.cut), best)
    else:
        divergence, known = _by_stakes(known, t, seen, jnp.clip(best, 0.0, 1.0 - 1e-6))
    return jnp.where(informed, -(eta * divergence + jnp.log(eta)), -jnp.inf), known


def _by_stakes(known: Shared, t: Any, seen: Seen, level: Any) -> tuple[Any, Shared]:
    def step(_: Any, state: Any) -> Any:
        stakes, _ = state
        found, slope, curvature = known.wagered(t, seen, level, stakes)
        newton = stakes - slope / jnp.maximum(curvature, 1e-300)
        return jnp.where(jnp.isfinite(newton), jnp.clip(newton, 0.0, HIGHEST), 0.5), found

    begin = known.stakes, jnp.zeros(len(known.stakes))
    stakes, found = jax.lax.fori_loop(0, jnp.where(t < EARLY, STEPS, 1), step, begin)
    return jnp.where(seen.value < level, jnp.maximum(found, 0.0), 0.0), known._replace(stakes=stakes)
