"""The largest optimistic estimate in a box: candidates, then a line along the gradient.

Everything is in units of the std, as in `passes.points`. value⁺(x) = 1 - Σ_i min(c(x), w_i(x)) (1 - y_i) with
w_i = p_x(z_i)/Σ_j p_{x_j}(z_i) and the cut c = 1/sqrt(η α log t) is smooth but where a weight reaches the cut: there
∇w_i = w_i (z_i - x), ∇c = -c ∇(log η)/2 and ∇(log η) = -2 Σ_j T_j e^{-|x - x_j|²} (x - x_j) / η.

Distances are one compiled pass; the exponentials are NumPy's, which are several times faster here than compiled ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from randomist._types import Array
from randomist.importance.passes.layout import LOG_HUGE
from randomist.importance.passes.points import Samples, exponents


class Surface(NamedTuple):
    """value⁺ at n points, and what its gradient is made of."""

    value: Array  # (n,)
    cut: Array  # c  (n,)
    weights: Array  # min(c, w)  (n, t)
    shares: Array  # of each distinct decision in η  (n, used)


def cut_surface(shares: Array, weights: Array, term: float, payoffs: Array) -> Surface:
    """value⁺ from T_j/d2(p_x || p_{x_j}) and from weights that are not cut yet, both overwritten.  (n, used), (n, t)"""
    effective = np.maximum(shares.sum(axis=1), 1e-300)  # where all decisions are far, no weight reaches the cut
    shares /= effective[:, None]
    cut = np.exp(np.minimum(-0.5 * (np.log(effective) + math.log(term)), LOG_HUGE))
    np.minimum(weights, cut[:, None], out=weights)
    return Surface(1.0 - weights @ (1.0 - payoffs), cut, weights, shares)


def losses(surface: Surface, k: int, payoffs: Array) -> tuple[Array, float]:
    """What the samples whose weights are not cut lose at point k, and the others in sum.  (t,), number"""
    cut, weight, loss = surface.cut[k], surface.weights[k], 1.0 - payoffs
    return np.where(weight < cut, weight * loss, 0.0), float(cut * float(np.sum(loss[weight >= cut])))


def optimistic_at(points: Array, term: float, samples: Samples) -> Surface:
    """value⁺ at n points: O(n t d).  (n, d)"""
    mediators, log_mixture, payoffs, told, decisions, plays, used = samples
    shares = np.exp(exponents(points, decisions, used, 1.0, np.zeros(used))) * plays[:used]
    weights = np.exp(exponents(points, mediators, told, 0.5, log_mixture))
    return cut_surface(shares, weights, term, payoffs[:told])


def gradient_at(points: Array, surface: Surface, k: int, samples: Samples) -> Array:
    """∇value⁺ at point k.  (d,)"""
    mediators, _, payoffs, told, decisions, _, used = samples
    x, (uncut, cut_loss) = points[k], losses(surface, k, payoffs[:told])
    towards = uncut @ mediators[:told] - uncut.sum() * x  # Σ_uncut w_i (1 - y_i) (z_i - x)
    away = surface.shares[k].sum() * x - surface.shares[k] @ decisions[:used]  # Σ_j share_j (x - x_j)
    gradient: Array = -towards - cut_loss * away
    return gradient


def climb(
    candidates: Array,
    lengths: Array,
    low: Array,
    high: Array,
    term: float,
    samples: Any,
    surface_at: Callable[[Array, float, Any], Surface] = optimistic_at,
    slope_at: Callable[[Array, Surface, int, Any], Array] = gradient_at,
) -> Array:
    """The best candidate, the first of equals, or the best point uphill of it in the box.  (n, d), (m,) -> (d,)

    The samples are of Gaussians; of any others with their own `surface_at` and `slope_at`.
    """
    surface = surface_at(candidates, term, samples)
    best = int(np.argmax(surface.value))
    gradient = slope_at(candidates, surface, best, samples)
    norm = float(np.linalg.norm(gradient))
    if norm > 0 and len(lengths):
        line = np.clip(candidates[best] + lengths[:, None] * (gradient / norm), low, high)
        values = surface_at(line, term, samples).value
        k = int(np.argmax(values))
        if values[k] > surface.value[best]:
            return np.asarray(line[k])
    return np.asarray(candidates[best])
