"""Many points of a box, estimated on a device: what `importance.rows.Rows` does on the CPU, for a million of them.

Ratios are made again in each pass, since a grid that grows is another one before they would pay. Arrays are filled up
to sizes of a few kinds, so that few programs serve all of them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from randomist._types import Array
from randomist.families.in_jax import Gaussians
from randomist.importance.passes import jax as passes
from randomist.importance.passes import layout
from randomist.importance.passes.devices import computing_on, device_named
from randomist.importance.passes.points import Samples

BLOCK = 1024  # samples of a pass
AT_ONCE = 64  # decisions that were played, of which points learn at once


class DeviceRows:
    """Points x in units of the std, and their effective samples."""

    def __init__(self, dimension: int, device: str, points: Array | None = None) -> None:
        self.dimension, self.device = dimension, device
        self.place = device_named(device)
        self.own = np.zeros(0)  # -|z_i - x_i|²/2
        points = np.zeros((0, dimension)) if points is None else points
        self.used = len(points)
        filled = np.zeros((_size(self.used), dimension))
        filled[: self.used] = points
        with computing_on(self.place):
            self.members = Gaussians(jnp.asarray(filled), jnp.ones(filled.shape), jnp.zeros(len(filled)))
            self.eta = jnp.stack([jnp.zeros(len(filled)), jnp.full(len(filled), -jnp.inf)])

    def add_sample(self, samples: Samples) -> None:
        """One more sample, the last one told, drawn from the last decision."""
        i, played = len(self.own), samples.decisions[samples.used - 1]
        self.own = np.append(self.own, -0.5 * float(np.sum((samples.mediators[i] - played) ** 2)))
        with computing_on(self.place):
            self.eta = _informed(self.eta, self.members.mean, played[None], np.ones(1))

    def replaced(self, points: Array, samples: Samples) -> DeviceRows:
        """Other points for the same samples."""
        rows = DeviceRows(self.dimension, self.device, points)
        rows.own = self.own
        with computing_on(self.place):
            for start in range(0, samples.used, AT_ONCE):
                stop = min(start + AT_ONCE, samples.used)
                decisions, plays = np.zeros((AT_ONCE, self.dimension)), np.zeros(AT_ONCE)
                decisions[: stop - start], plays[: stop - start] = (
                    samples.decisions[start:stop],
                    samples.plays[start:stop],
                )
                rows.eta = _informed(rows.eta, rows.members.mean, decisions, plays)
        return rows

    def estimate(self, term: float, samples: Samples) -> Array:
        """The table of `passes.numba.estimate`, one column per point.  (7, n)"""
        t = len(self.own)
        with computing_on(self.place):
            cut, threshold, width = passes.begin_estimate(self.eta, term, t)
            value = coverage = jnp.zeros(len(cut))
            for start in range(0, t, BLOCK):
                some = slice(start, min(start + BLOCK, t))
                n = some.stop - start
                points, own = np.zeros((BLOCK, self.dimension)), np.full(BLOCK, np.inf)
                mixture, payoffs, counts = np.ones(BLOCK), np.zeros(BLOCK), np.zeros(BLOCK)
                points[:n], own[:n] = samples.mediators[some], self.own[some]
                mixture[:n] = np.exp(np.minimum(samples.log_mixture[some] - self.own[some], layout.LOG_HUGE))
                payoffs[:n], counts[:n] = samples.payoffs[some], 1.0
                block = passes.Recomputed(self.members, points, own)
                gains, covered = passes.sums(block, mixture, payoffs, counts, cut, BLOCK)
                value, coverage = value + gains, coverage + covered
            effective, log_effective = self.eta
            rows = {
                layout.VALUE: value, layout.EFFECTIVE: effective, layout.THRESHOLD: threshold, layout.WIDTH: width,
                layout.COVERAGE: coverage, layout.LOG_EFFECTIVE: log_effective, layout.CUT: cut,
            }  # fmt: skip
            return np.array(jnp.stack([rows[i] for i in range(len(rows))]))[:, : self.used]


@partial(jax.jit, donate_argnums=0)
def _informed(eta: Any, points: Any, decisions: Any, plays: Any) -> Any:
    """η after so many more plays of some decisions, D_2 = |x - x'|².  (2, n), (n, d), (m, d), (m,)"""
    distance: Any = 0.0
    for d in range(points.shape[1]):
        distance += (points[:, d, None] - decisions[None, :, d]) ** 2
    terms = jnp.log(plays) - distance  # (n, m)
    effective = eta[layout.ETA] + jnp.exp(terms).sum(axis=1)
    in_logs = jnp.logaddexp(eta[layout.LOG_ETA], jax.scipy.special.logsumexp(terms, axis=1))
    return jnp.stack([effective, jnp.where(effective > layout.SMALL, jnp.log(effective), in_logs)])


def _size(count: int) -> int:
    """The least power of two that is not smaller, or three quarters of it."""
    whole: int = 2 ** max(6, math.ceil(math.log2(max(count, 1))))
    return whole * 3 // 4 if count <= whole * 3 // 4 else whole
