"""K_inf: how far a distribution of payoffs is from one whose mean is larger (Honda and Takemura 2010, 2015).

K_inf(F, μ) = inf { KL(F, G) : G on [0, 1] with mean at least μ }, which is the maximum over λ in [0, 1] of
E_F log(1 - λ (Y - μ)/(1 - μ)). For payoffs of 0 and 1 it is the binary divergence kl(mean, μ); it is never below
2 (μ - mean)², by Pinsker's inequality.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array

STEPS = 40  # of Newton's method, guarded by bisection; ten are enough but at the ends
CLOSE = 1e-10


@compiled
def k_inf(weight: Array, sums: Array, level: float) -> Array:
    """Of distributions by bins: the weight of each bin and its payoffs times weight.  (n, B), (n, B) -> (n,)

    0 where the mean is not below the level, infinite where the level is 1 and the mean is not.
    """
    n, bins = weight.shape
    out = np.zeros(n)
    gain = np.empty(bins)  # (y - μ)/(1 - μ)
    share = np.empty(bins)
    for k in range(n):
        total = mean = 0.0
        for b in range(bins):
            total += weight[k, b]
            mean += sums[k, b]
        if total <= 0.0 or mean >= level * total:
            continue
        if level >= 1.0:
            out[k] = math.inf
            continue
        used = 0
        for b in range(bins):
            if weight[k, b] > 0.0:
                gain[used] = (sums[k, b] / weight[k, b] - level) / (1.0 - level)
                share[used] = weight[k, b] / total
                used += 1
        stake = _best_stake(gain, share, used)
        for b in range(used):
            out[k] += share[b] * math.log(max(1.0 - stake * gain[b], 1e-300))
    return out


def k_gaussian(gap: Array, variance: Array) -> Array:
    """The same among normal distributions, for payoffs without a ceiling: log(1 + gap²/σ²)/2.  (n,), (n,) -> (n,)"""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap > 0, 0.5 * np.log1p(gap**2 / variance), 0.0)


@compiled
def _best_stake(gain: Array, share: Array, used: int) -> float:
    """λ in [0, 1] at which Σ share log(1 - λ gain), which is concave, is largest."""
    low, high, stake = 0.0, 1.0, 0.5
    for _ in range(STEPS):
        slope = curvature = 0.0
        for b in range(used):
            ratio = gain[b] / max(1.0 - stake * gain[b], 1e-300)
            slope -= share[b] * ratio
            curvature -= share[b] * ratio * ratio
        if slope > 0.0:
            low = stake
        else:
            high = stake
        step = stake - slope / curvature if curvature < 0.0 else high
        if not low < step < high:
            step = 0.5 * (low + high)
        if abs(step - stake) < CLOSE:
            return step
        stake = step
    return stake
