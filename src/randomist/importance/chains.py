"""Metropolis chains over the decisions of a box, compiled: what MCMC-RANDOMIST does between two rounds.

Everything is in units of the std. Normals and uniforms are drawn outside, so that a chain is a function of its
arguments. A proposal outside the box has density 0 and is refused.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance.coins import Coins
from randomist.importance.continuum import PAPER, Samples, combined, cut_at, log_effective_at, sums_at
from randomist.importance.kernels import LOG_HUGE
from randomist.importance.perturbed import (
    Perturbed,
    flips_of,
    log_at_most,
    log_direct_density,
    log_tabulated_density,
    tabulate,
)

Accepted: TypeAlias = NDArray[np.bool_]


@compiled
def perturbed_at(
    points: Array, n: int, scale: float, bias: float, term: float, samples: Samples, kind: int = PAPER
) -> Perturbed:
    """(c, log η, ⌈a η⌉) of a decision: c = J̌ + b, b the given multiple of sqrt(α log t / η)."""
    log_effective = log_effective_at(points, n, samples)
    value = combined(kind, *sums_at(points, n, cut_at(log_effective, term), samples))
    return shifted(value, log_effective, bias, term), log_effective, flips_of(log_effective, scale)


@compiled
def shifted(value: float, log_effective: float, bias: float, term: float) -> float:
    """J̌ + b."""
    if bias == 0.0:
        return value
    return value + bias * math.exp(min(0.5 * (math.log(term) - log_effective), LOG_HUGE))


@compiled
def _inside(points: Array, n: int, low: Array, high: Array) -> bool:
    outside = 0
    for d in range(low.shape[0]):
        outside += not low[d] <= points[n, d] <= high[d]
    return outside == 0


@compiled
def one_step_chain(
    start: Array,
    normals: Array,
    uniforms: Array,
    low: Array,
    high: Array,
    scale: float,
    bias: float,
    term: float,
    samples: Samples,
    kind: int,
    coins: Coins,
) -> tuple[Array, Accepted]:
    """Accept x_p at x_m with probability g(x_p | x_m) / g(x_m | x_p), g(x | x') = P(Y_x' <= Y_x).

    normals: (steps, d), already scaled by the proposal's std.  -> path (steps + 1, d), accepted (steps,)
    """
    steps, d = normals.shape
    path, proposal = np.empty((steps + 1, d)), np.empty((1, d))
    accepted = np.zeros(steps, np.bool_)
    path[0] = start
    here = perturbed_at(path, 0, scale, bias, term, samples, kind)
    for step in range(steps):
        proposal[0] = path[step] + normals[step]
        path[step + 1] = path[step]
        if not _inside(proposal, 0, low, high):
            continue
        there = perturbed_at(proposal, 0, scale, bias, term, samples, kind)
        forward = log_at_most(coins, here, there)
        backward = log_at_most(coins, there, here)
        if _accept(uniforms[step], forward, backward):
            accepted[step] = True
            path[step + 1] = proposal[0]
            here = there
    return path, accepted


@compiled
def full_chain(
    start: Array,
    normals: Array,
    uniforms: Array,
    low: Array,
    high: Array,
    scale: float,
    bias: float,
    term: float,
    samples: Samples,
    kind: int,
    values: Array,
    log_effectives: Array,
    exact: bool,
    coins: Coins,
) -> tuple[Array, Accepted]:
    """Accept x_p at x_m with probability g†(x_p) / g†(x_m), g† against all played decisions.

    values, log_effectives: (used,), J̌ and log η of the distinct played decisions.
    """
    steps, d = normals.shape
    plays, used = samples[5], samples[6]
    centers, flips = np.empty(used), np.empty(used, np.int64)
    for j in range(used):
        centers[j] = shifted(values[j], log_effectives[j], bias, term)
        flips[j] = flips_of(log_effectives[j], scale)
    rivals = (centers, log_effectives, flips, plays[:used])
    grid = (0.0, 1.0, np.empty(0), np.empty(0, np.int64)) if exact else tabulate(coins, rivals)
    path, proposal = np.empty((steps + 1, d)), np.empty((1, d))
    accepted = np.zeros(steps, np.bool_)
    path[0] = start
    density = math.nan
    for step in range(-1, steps):  # -1: the density where the chain starts
        if step < 0:
            proposal[0] = start
        else:
            proposal[0] = path[step] + normals[step]
            path[step + 1] = path[step]
            if not _inside(proposal, 0, low, high):
                continue
        x = perturbed_at(proposal, 0, scale, bias, term, samples, kind)
        there = log_direct_density(coins, x, rivals) if exact else log_tabulated_density(coins, x, rivals, grid)
        if step < 0:
            density = there
        elif _accept(uniforms[step], there, density):
            accepted[step] = True
            path[step + 1] = proposal[0]
            density = there
    return path, accepted


@compiled
def _accept(uniform: float, log_forward: float, log_backward: float) -> bool:
    """uniform < forward / backward; a chain that stands where the density is 0 moves on."""
    if log_backward == -math.inf:
        return True
    return math.log(uniform) < log_forward - log_backward if uniform > 0.0 else log_forward > -math.inf
