"""Finite sets in JAX: what a decision draws, how likely each would have drawn it, and what a play of one is worth."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from randomist.errors import ParameterError
from randomist.families.in_jax import Categories, TruncatedGaussians, in_jax
from randomist.spaces import Finite

TABULATED = 2048  # decisions whose divergences from each other are computed before; beyond, by their closed form


class Set(NamedTuple):
    """Arrays of one finite set, which compiled functions are given."""

    members: Any  # see `families.in_jax`
    rows: Any = None  # 1/d2(p_x || p_j) in row j and column x, where it is tabulated  (K, K)
    nodes: Any = None  # for integrals, where a learner needs them

    @property
    def size(self) -> int:
        return len(self.members[0])

    def log_densities(self, z: Any) -> Any:
        """Of every decision at one mediator.  (K,)"""
        return self.members.log_density(jnp.reshape(z, (1, -1)))[:, 0]

    def log_divergences_to(self, j: Any) -> Any:
        """(K,)"""
        return self.members.log_divergences_to(j) if self.rows is None else -jnp.log(self.rows[j])

    def worth(self, j: Any) -> Any:
        """1/d2(p_x || p_j): what a play of j is worth in samples of every x.  (K,)"""
        return jnp.exp(-self.members.log_divergences_to(j)) if self.rows is None else self.rows[j]

    def draw(self, x: Any, key: Any) -> Any:
        """A mediator of decision x.  (d,)"""
        if isinstance(self.members, Categories):
            return jax.random.categorical(key, self.members.log_mass[x])[None]
        mean, std = self.members.mean[x], self.members.std[x]
        if isinstance(self.members, TruncatedGaussians):
            low, high = self.members.low, self.members.high
            unit = jax.random.truncated_normal(key, (low - mean) / std, (high - mean) / std, dtype=jnp.float64)
            return jnp.clip(mean + std * unit, low, high)
        return mean + std * jax.random.normal(key, mean.shape, dtype=jnp.float64)


def set_of(space: Finite) -> Set:
    """A set of Gaussians, truncated or not, of any size, or of categorical policies; others have no equal in JAX."""
    family, members = space.family, None if space.loggers else in_jax(space.family)
    if members is None:
        raise ParameterError(
            f"runs on a device are of Gaussians, truncated Gaussians or categorical policies, got "
            f"{type(family).__name__}; leave device= out"
        )
    if isinstance(members, TruncatedGaussians):
        mean = np.asarray(members.mean)
        if ((mean < np.asarray(members.low)) | (mean > np.asarray(members.high))).any():
            raise ParameterError("truncated Gaussians are drawn on a device where their means lie in the box")
    if space.size > TABULATED:
        return Set(members)
    with np.errstate(over="ignore"):
        return Set(members, jnp.asarray(np.exp(-family.log_renyi(None, None)).T))
