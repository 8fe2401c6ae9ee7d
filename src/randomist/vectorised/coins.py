"""Sums of fair coins on a device: Binomial(n, 1/2) from one uniform number each, by its distribution function.

The Cornish-Fisher expansion of the quantile is never more than `REACH` from the truth, and the tables of
`importance.coins`, which are exact, say where that is. More coins than are tabulated are rounded from the expansion,
whose distribution function is then right to within 1e-6.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax.scipy.special import ndtri

from randomist.importance.coins import MOST, TABLE

REACH = 2  # how far off the expansion may be


class Coins(NamedTuple):
    """log G_n(k) = log P(B <= k) of each n, one row after the other."""

    log_cdf: Any
    offsets: Any  # where row n begins
    first: Any  # the k that it begins with

    def heads(self, flips: Any, uniform: Any) -> Any:
        """The least k with G_n(k) >= u, for u in (0, 1).  (K,), (K,) -> (K,)"""
        n = jnp.maximum(flips, 1.0)
        variance = 0.25 * n - 1.0 / 12.0  # of a smooth law that agrees with that of B at k + 1/2 (Sheppard)
        z = jnp.clip(ndtri(uniform), -2.0 * jnp.sqrt(n), 2.0 * jnp.sqrt(n))  # beyond, the expansion turns around
        near = 0.5 * n + jnp.sqrt(variance) * (z - (z * z * z - 3.0 * z) * n / (192.0 * variance**2))
        guess = jnp.clip(jnp.ceil(near - 0.5), 0.0, n)
        row = jnp.minimum(n, len(self.first) - 1).astype(jnp.int32)
        begin, first = self.offsets[row], self.first[row]
        length, log_u = self.offsets[row + 1] - begin, jnp.log(uniform)
        found = guess - REACH
        for step in range(-REACH, REACH):
            place = (guess + step).astype(jnp.int32) - first
            tabulated = self.log_cdf[begin + jnp.clip(place, 0, length - 1)]
            log_cdf = jnp.where(place < 0, -jnp.inf, jnp.where(place >= length, 0.0, tabulated))
            found += log_cdf < log_u
        found = jnp.where(n < len(self.first), found, guess)
        return jnp.where(flips > 0, jnp.clip(found, 0.0, n), 0.0)


def coins_upto(flips: float) -> Coins:
    """Tables for so many coins, or for as many as are tabulated."""
    _, log_cdf, offsets, first = TABLE.upto(min(math.ceil(flips), MOST))
    return Coins(jnp.asarray(log_cdf), jnp.asarray(offsets, jnp.int32), jnp.asarray(first, jnp.int32))
