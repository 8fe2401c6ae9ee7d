"""Finite sets in JAX: what a decision draws, how likely each would have drawn it, and what a play of one is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from randomist.errors import ParameterError
from randomist.families import Categorical, Gaussian
from randomist.spaces import Finite

TABULATED = 2048  # decisions whose divergences from each other are computed before; beyond, by their closed form


class Set(NamedTuple):
    """Of one finite set: functions of arrays on the device."""

    size: int
    shape: tuple[int, ...]  # of a mediator
    draw: Callable[[Any, Any], Any]  # decision, key -> mediator
    log_densities: Callable[[Any], Any]  # mediator -> (K,)
    worth: Callable[[Any], Any]  # j -> 1/d2(p_x || p_j): what a play of j is worth in samples of every x  (K,)


def set_of(space: Finite) -> Set:
    """A set of Gaussians, of any size, or of categorical policies; others have no equal in JAX yet."""
    family = space.family
    if space.loggers or not isinstance(family, Gaussian | Categorical):
        raise ParameterError(
            f"runs on a device are of Gaussians or categorical policies, got {type(family).__name__}; leave device= out"
        )
    if isinstance(family, Categorical):
        table = jnp.log(jnp.asarray(family.probabilities))  # (K, m)
        draw = _of_table(table)
        return Set(space.size, (), draw, lambda z: table[:, z], _tabulated(family))
    centres: Any = family.mean
    sides = (centres, np.broadcast_to(family.std, np.shape(centres)))
    mean, std = (jnp.asarray(np.reshape(side, (space.size, -1))) for side in sides)  # (K, d)
    constant = -jnp.log(std).sum(axis=1) - 0.5 * mean.shape[1] * math.log(2 * math.pi)

    def log_densities(z: Any) -> Any:
        return constant - 0.5 * (((z.reshape(-1) - mean) / std) ** 2).sum(axis=1)

    def draw_gaussian(x: Any, key: Any) -> Any:
        drawn = mean[x] + std[x] * jax.random.normal(key, mean.shape[1:], dtype=jnp.float64)
        return drawn.reshape(family.shape)

    def worth(j: Any) -> Any:
        """With s² = 2σ_j² - σ_x² > 0: d2 = Π σ_j² / (σ_x s) exp((μ_x - μ_j)² / s²); infinite otherwise."""
        between = 2 * std[j] ** 2 - std**2
        safe = jnp.where(between > 0, between, 1.0)
        log_d2 = 2 * jnp.log(std[j]) - jnp.log(std) - 0.5 * jnp.log(safe) + (mean - mean[j]) ** 2 / safe
        return jnp.where((between > 0).all(axis=1), jnp.exp(-log_d2.sum(axis=1)), 0.0)

    small = space.size <= TABULATED
    return Set(space.size, family.shape, draw_gaussian, log_densities, _tabulated(family) if small else worth)


def _of_table(table: Any) -> Callable[[Any, Any], Any]:
    return lambda x, key: jax.random.categorical(key, table[x])


def _tabulated(family: Any) -> Callable[[Any], Any]:
    with np.errstate(over="ignore"):
        rows = jnp.asarray(np.exp(-family.log_renyi(None, None)).T)  # row j: of all x to the played j
    return lambda j: rows[j]
