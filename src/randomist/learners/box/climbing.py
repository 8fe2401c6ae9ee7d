"""From a point to a better one on a surface, and how far around it nothing is lost."""

from __future__ import annotations

import math

import numpy as np

from randomist._types import Array
from randomist.learners.box.samples import Samples
from randomist.learners.box.surface import Surface

LARGEST, SMALLEST = 0.2, 0.01  # scale, in widths of the box
STEP = 0.8  # from one scale to the next
REFINEMENTS = 4  # of the candidates, around the best so far
LOCAL, TOWARDS, LEADING, PAST, ANYWHERE = 5, 3, 2, 2, 2  # candidates of each kind in a refinement
REACHES = 0.3, 1.0, 3.0  # scales of the local ones
STEPS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])  # uphill, in diagonals of the cloud
CLIMBS = 4
LEADERS = 5  # best payoffs, towards whose points candidates lie
CAUTION = 5  # dimensions in which a cloud may lose half of a deviation
FEASIBLE = 0.9  # of a cloud must be allowed


def searched(found: Surface, start: Array, scale: float, samples: Samples, rng: np.random.Generator) -> Array:
    """The best of the candidates, refined.  (d,)"""
    best, value = start, found.safe(start[None])[0]
    for _ in range(REFINEMENTS):
        points = candidates(found, best, scale, samples, rng)
        values = found.safe(points)
        k = int(np.argmax(values))
        if values[k] > value:
            best, value = points[k], values[k]
    return best


def candidates(found: Surface, best: Array, scale: float, samples: Samples, rng: np.random.Generator) -> Array:
    """Near the best, between it and the best samples, at these, near all samples, anywhere, and uphill.  (n, d)"""
    d, leaders = best.size, samples.points[samples.leaders(LEADERS)]
    local = best + scale * rng.choice(REACHES, (LOCAL, 1)) * rng.standard_normal((LOCAL, d))
    towards = best + rng.random((TOWARDS, 1)) * (leaders[rng.integers(len(leaders), size=TOWARDS)] - best)
    leading = leaders[rng.integers(len(leaders), size=LEADING)]
    past = samples.points[rng.integers(len(samples.points), size=PAST)] + scale * rng.standard_normal((PAST, d))
    anywhere = rng.random((ANYWHERE, d))
    found_there: Array = np.concatenate([local, towards, leading, past, anywhere, uphill(found, best, scale)])
    return np.clip(found_there, 0.0, 1.0)


def uphill(found: Surface, point: Array, scale: float) -> Array:
    """The best points along the gradient, each from the one before.  (CLIMBS at most, d)"""
    steps, path = STEPS[:, None] * scale * math.sqrt(point.size), []
    for _ in range(CLIMBS):
        slope = found.slope(point)
        slope[((point <= 0) & (slope < 0)) | ((point >= 1) & (slope > 0))] = 0.0
        steepness = math.sqrt(float(slope @ slope))
        if steepness < 1e-12:
            break
        line = np.clip(point + steps * slope / steepness, 0.0, 1.0)
        point = line[int(np.argmax(found.means(line)))]
        path.append(point)
    return np.array(path).reshape(-1, point.size)


def scale_at(found: Surface, best: Array, scale: float, cloud: Array) -> float:
    """The largest scale, of those a factor apart, at which a cloud cannot be told apart from its centre."""
    share, top = best.size / (best.size + CAUTION), found.means(best[None])[0]

    def alike(scale: float) -> bool:
        points = np.clip(best + scale * cloud, 0.0, 1.0)
        lost = top - found.means(points).mean()
        return bool(lost <= share * found.deviations(points).mean() and found.allowed(points).mean() >= FEASIBLE)

    if alike(scale):
        while scale < LARGEST and alike(min(scale / STEP, LARGEST)):
            scale = min(scale / STEP, LARGEST)
        return scale
    while scale > SMALLEST and not alike(scale):
        scale = max(scale * STEP, SMALLEST)
    return scale
