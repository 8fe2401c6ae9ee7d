"""Metropolis chains over the decisions of a box: what MCMC-RANDOMIST does between two rounds.

Normals and uniforms are drawn outside, so that a chain is a function of its arguments. A proposal outside the box has
density 0 and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Flags, Indices
from randomist.importance.passes.layout import LOG_HUGE
from randomist.importance.perturbed import Perturbed, flips_of

Look: TypeAlias = Callable[[Array], Any]  # what a chain must know of a point
Compare: TypeAlias = Callable[[Any, Any], tuple[float, float]]  # logs of how likely a move is, and the move back


def metropolis(
    start: Array, normals: Array, uniforms: Array, low: Array, high: Array, look: Look, compare: Compare
) -> tuple[Array, Flags]:
    """Accept moves by the ratio of `compare`; `normals` (steps, d) are already scaled.  -> (steps + 1, d), (steps,)"""
    steps = len(normals)
    path, accepted = np.empty((steps + 1, start.size)), np.zeros(steps, np.bool_)
    path[0] = start
    here = look(start)
    for step in range(steps):
        proposal = path[step] + normals[step]
        path[step + 1] = path[step]
        if (proposal < low).any() or (proposal > high).any():
            continue
        there = look(proposal)
        if _accept(uniforms[step], *compare(here, there)):
            accepted[step] = True
            path[step + 1] = proposal
            here = there
    return path, accepted


def _accept(uniform: float, log_forward: float, log_backward: float) -> bool:
    """uniform < forward / backward; a chain that stands where the density is 0 moves on."""
    if log_backward == -math.inf:
        return True
    return math.log(uniform) < log_forward - log_backward if uniform > 0.0 else log_forward > -math.inf


@compiled
def perturbed(value: float, log_effective: float, scale: float, bias: float, term: float) -> Perturbed:
    """(c, log η, ⌈a η⌉) of a decision: c = J̌ + b, b the given multiple of sqrt(α log t / η)."""
    return _shifted(value, log_effective, bias, term), log_effective, flips_of(log_effective, scale)


@compiled
def all_perturbed(values: Array, log_effective: Array, scale: float, bias: float, term: float) -> tuple[Array, Indices]:
    """c and ⌈a η⌉ of many decisions.  (n,), (n,)"""
    centers, flips = np.empty(values.size), np.empty(values.size, np.int64)
    for j in range(values.size):
        centers[j] = _shifted(values[j], log_effective[j], bias, term)
        flips[j] = flips_of(log_effective[j], scale)
    return centers, flips


@compiled
def _shifted(value: float, log_effective: float, bias: float, term: float) -> float:
    """J̌ + b."""
    if bias == 0.0:
        return value
    return value + bias * math.exp(min(0.5 * (math.log(term) - log_effective), LOG_HUGE))
