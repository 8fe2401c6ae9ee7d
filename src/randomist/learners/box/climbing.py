"""From a point to a better one on a surface, and how far around it a play may teach more than it loses."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from randomist._types import Array
from randomist.learners.box.landscape import Landscape
from randomist.learners.box.samples import Samples
from randomist.learners.box.surface import Surface

LARGEST, SMALLEST = 0.2, 0.01  # scale, in widths of the box
CLOSEST = 0.002  # the smallest, where some of the box is infeasible
STEP = 0.8  # from one scale to the next
REFINEMENTS, FEWER = 4, 2  # of the candidates, around the best so far: of the point that is played, and of the firm one
LOCAL, TOWARDS, LEADING, PAST, ANYWHERE = 5, 3, 2, 2, 2  # candidates of each kind in a refinement
LAST, FINER = 30, 0.2  # refinements of a point that is recommended, then as many at a finer scale
REACHES = np.array([0.3, 1.0, 3.0])  # scales of the local ones
STEPS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])  # uphill, in diagonals of the cloud
CLIMBS = 4
LEADERS = 5  # best payoffs, towards whose points candidates lie
WORTH = 2.0  # what one play teaches, times this, is what a cloud may lose in a round
MANY = 16  # dimensions; with more of them it may lose more, as each play teaches less of the way
FEASIBLE = 0.9  # of a cloud must be allowed


def searched(
    values: Callable[[Array], Array],
    found: Surface,
    start: Array,
    scale: float,
    samples: Samples,
    rng: Generator,
    refinements: int,
) -> Array:
    """The best of the candidates, refined; some of them lie uphill on a surface.  (d,)"""
    best, value, leaders = start, values(start[None])[0], samples.points[samples.leaders(LEADERS)]
    for _ in range(refinements):
        points = candidates(found, best, scale, samples.points, leaders, rng)
        there = values(points)
        k = int(np.argmax(there))
        if there[k] > value:
            best, value = points[k], there[k]
    return best


def highest(found: Landscape, start: Array, scale: float, samples: Samples) -> Array:
    """The point with the largest value, searched longer than one that is only played; the same for the same samples.

    First from the best of a start and the samples, then near what was found.  (d,)
    """
    rng, points = np.random.default_rng(0), np.concatenate([start[None], np.clip(found.scores.samples, 0.0, 1.0)])
    best: Array = points[int(np.argmax(found.values(points)))]
    for reach in (scale, FINER * scale):
        best = searched(found.values, found.scores, best, reach, samples, rng, LAST)
    return best


def candidates(found: Surface, best: Array, scale: float, samples: Array, leaders: Array, rng: Generator) -> Array:
    """Near the best, between it and the best samples, at these, near all samples, anywhere, and uphill.  (n, d)"""
    d = best.size
    normal, uniform = rng.standard_normal((LOCAL + PAST, d)), rng.random((ANYWHERE, d))
    leading = leaders[rng.integers(len(leaders), size=TOWARDS + LEADING)]
    local = best + scale * REACHES[rng.integers(len(REACHES), size=LOCAL), None] * normal[:LOCAL]
    towards = best + rng.random((TOWARDS, 1)) * (leading[:TOWARDS] - best)
    past = samples[rng.integers(len(samples), size=PAST)] + scale * normal[LOCAL:]
    uphill = found.uphill(best, STEPS * scale * math.sqrt(d), CLIMBS)
    points: Array = np.clip(np.concatenate([local, towards, leading[TOWARDS:], past, uniform, uphill]), 0.0, 1.0)
    return points


def patience(dimension: int) -> float:
    """How much more a cloud may lose in many dimensions."""
    more: float = (dimension / MANY) ** 0.25
    return max(1.0, more)


def scale_at(found: Landscape, best: Array, scale: float, cloud: Array) -> float:
    """The largest scale, of those a factor apart, at which a cloud loses no more than its plays may teach.

    Nor more than there is to find. Both are (d/16)^¼ times as large in more than 16 dimensions, where narrow clouds see
    little but noise.
    """
    more = patience(best.size)
    worth, room = more * WORTH, more * found.room
    score, payoff = (surface.means(best[None])[0] for surface in (found.scores, found.payoffs))
    most = found.payoffs.ceiling + math.sqrt(found.payoffs.noise)  # where all pay that, neither

    def pays(scale: float) -> bool:
        points = np.clip(best + scale * cloud, 0.0, 1.0)
        mean, taught = found.scores.taught(points)
        if score - mean.mean() > worth * taught.mean():
            return False
        mean, taught = found.payoffs.taught(points)
        if payoff - mean.mean() > np.minimum(np.clip(most - mean, 0.0, worth * taught), room).mean():
            return False
        return bool(found.allowed(points).mean() >= FEASIBLE)

    if pays(scale):
        while scale < LARGEST and pays(min(scale / STEP, LARGEST)):
            scale = min(scale / STEP, LARGEST)
        return scale
    least = SMALLEST if found.border is None else CLOSEST
    while scale > least and not pays(scale):
        scale = max(scale * STEP, least)
    return scale
