"""Integrals over nodes of every member, on a device: the sums of `divergences.mixture`, by closed forms.

Nodes of a large set in several dimensions are made on the device: those around a member lie towards the members that
are nearest to it, which a tree finds without comparing all pairs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.families.base import NODES, low_discrepancy
from randomist.families.gaussian import NEIGHBOURS
from randomist.families.in_jax import Gaussians, Members
from randomist.importance.divergences.mixture import ACCURATE
from randomist.importance.passes import jax as passes
from randomist.importance.passes.layout import ERAS, FIRST, LAST_ERA, SINCE

if TYPE_CHECKING:
    from randomist.histories.columns import Columns
    from randomist.spaces import Finite

COMPARED = 4096  # members of which all pairs may be compared
AT_ONCE = 2**14  # members whose nodes are made at once


class DeviceNodes:
    """`divergences.mixture.Nodes` on a device."""

    def __init__(self, space: Finite, members: Members) -> None:
        self.members, self.discrete = members, space.family.discrete
        self.nodes = nodes_of(space, members)
        self._begin()
        self._era = 0
        self._as_of = np.zeros(space.sources)

    def _begin(self) -> None:
        self.sums, self._applied = passes.nothing_at_nodes(self.nodes, self.discrete), 0
        self._counts = np.zeros(len(self.nodes.weights))

    def follow(self, columns: Columns) -> None:
        """Bring the sums up to date with the plays: those of the last era anew, those since one by one."""
        recent = columns.recent
        if self._era != recent[ERAS]:
            counts = columns.plays[LAST_ERA]
            if self._applied or not np.array_equal(counts, self._as_of):
                self._begin()
                for source in np.flatnonzero(counts).tolist():
                    self._add(source, float(counts[source]))
            self._era, self._applied, self._as_of = int(recent[ERAS]), 0, counts.copy()
        for source in recent[FIRST + self._applied : FIRST + recent[SINCE]].tolist():
            self._add(source, 1.0)
        self._applied = int(recent[SINCE])

    def _add(self, source: int, times: float) -> None:
        self._counts[source] += times
        self.sums = _play(self.sums, self.nodes, self.members, source, times, self._counts[source])

    def effective_samples(self, harmonic: Any) -> Array:
        """m / d2(p_x || Φ_t).  (S,) -> (S,)"""
        dimension = self.nodes.points.shape[2]
        return np.array(passes.effective_at_nodes(self.sums, dimension, jnp.asarray(harmonic), ACCURATE))

    def truncated_mass(self, threshold: Array, columns: Columns, told: float) -> Array:
        """E_{p_x}[(1 - M Φ_t/p_x)_+].  (K,) -> (K,)"""
        self.follow(columns)
        return np.array(passes.truncated_mass(self.sums, self.nodes, jnp.asarray(threshold), told))


@partial(jax.jit, donate_argnums=0)
def _play(sums: Any, nodes: Any, members: Any, source: Any, times: Any, plays: Any) -> Any:
    source = jnp.asarray(source)
    return passes.play_at_nodes(sums, nodes, members, members.log_divergences_to(source), source, times, plays)


def nodes_of(space: Finite, members: Members) -> passes.Nodes:
    """The family's own nodes; those of more members than can be compared pair by pair are in float32."""
    family, K = space.family, space.sources
    dimension = int(np.prod(family.shape, dtype=int))
    if K <= COMPARED or dimension == 1 or family.discrete:
        points, weights = family.nodes()
        own = np.array([family.log_density([k], points[k])[0] for k in range(K)])
        points = np.asarray(points, np.float64).reshape(K, weights.shape[1], dimension)
        return passes.Nodes(*map(jnp.asarray, (points, weights, own)))
    if not isinstance(members, Gaussians) or np.ptp(np.asarray(members.std), axis=0).any():
        raise ParameterError(
            f"integrals under {K:,} members in {dimension} dimensions are there for Gaussians of one std; take "
            'divergence="harmonic"'
        )
    return _gaussian_nodes(members)


def _gaussian_nodes(members: Gaussians) -> passes.Nodes:
    """`Gaussian.nodes` of many members of one std, which are nearest to those of the smallest distance."""
    from scipy.spatial import cKDTree

    mean, std = np.asarray(members.mean), np.asarray(members.std[0])
    K, d = mean.shape
    near = cKDTree(mean / std).query(mean / std, NEIGHBOURS + 1, workers=-1)[1]  # each one itself comes first
    cube = jnp.asarray(low_discrepancy(d + 1, NODES))
    sides: list[Any] = [jnp.zeros((K, NODES, d), jnp.float32), *jnp.zeros((2, K, NODES), jnp.float32)]
    for start in range(0, K, AT_ONCE):
        first = min(start, max(K - AT_ONCE, 0))  # the last ones overlap: one program serves all
        some = _tilted(members.mean, members.std[0], jnp.asarray(near[first : first + AT_ONCE]), first, cube)
        for i, part in enumerate(some):
            sides[i] = _put(sides[i], part.astype(jnp.float32), first)
    return passes.Nodes(*sides)


@partial(jax.jit, donate_argnums=0)
def _put(whole: Any, part: Any, first: Any) -> Any:
    return jax.lax.dynamic_update_slice(whole, part, (first,) + (0,) * (whole.ndim - 1))


@jax.jit
def _tilted(mean: Any, std: Any, near: Any, first: Any, cube: Any) -> tuple[Any, Any, Any]:
    """Draws of the densities in proportion to p_k²/p_j, of all near j; weights under p_k, and log p_k there."""
    from jax.scipy.special import ndtri

    d = mean.shape[1]
    unit = ndtri(cube[:, 1:])  # (L, d)
    part = jnp.minimum((cube[:, 0] * near.shape[1]).astype(jnp.int32), near.shape[1] - 1)  # (L,)
    log_peak = -jnp.log(std).sum() - 0.5 * d * jnp.log(2 * jnp.pi)

    def around(k: Any, mine: Any) -> tuple[Any, Any, Any]:
        centre = 2 * mean[k] - mean[mine]  # of p_k²/p_j, whose std is that of both  (n, d)
        points = centre[part] + std * unit
        distance = (((points[None] - centre[:, None]) / std) ** 2).sum(axis=2)  # (n, L)
        own = -0.5 * (((points - mean[k]) / std) ** 2).sum(axis=1)
        log_weight = own - logsumexp(-0.5 * distance, axis=0) + jnp.log(near.shape[1])
        return points, jnp.exp(log_weight) / len(cube), own + log_peak

    return jax.vmap(around)(first + jnp.arange(len(near)), near)
