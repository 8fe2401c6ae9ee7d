"""Scouts: points away from the best so far, played while one of them may still find a better place."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array, Flags

SCALE = 0.03  # of scouts and of the points that fill the box, in its widths; no search has it, so it marks them
GOOD = 0.15  # of the samples are the good ones, which a scout is to resemble
BANDWIDTH = 0.3  # of the kernels around n samples, in widths of the box, times n^(-1/5)
PROPOSALS = 24
EXTREMES = 5  # payoffs that show the upper tail
RECENT = 10  # scouts that show what the next one will earn, and other rounds that show the noise


def is_scout(scales: ArrayLike) -> Flags:
    """Which decisions are scouts' or fill the box, by their scales."""
    return np.asarray(np.asarray(scales) == SCALE)


def scout(points: Array, payoffs: Array, rng: np.random.Generator) -> Array:
    """A point of the unit cube that resembles the good samples more than the others.  (t, d), (t,) -> (d,)

    Proposals are drawn coordinate by coordinate around good samples; the one with the largest ratio of densities, good
    to others, is taken: the tree-structured Parzen estimator of Bergstra et al. (2011).
    """
    d = points.shape[1]
    inside, order = np.clip(points, 0.0, 1.0), np.argsort(-payoffs, kind="stable")
    n = math.ceil(GOOD * len(points))
    good, others = inside[order[:n]], inside[order[n:]]
    kernel = rng.integers(n + 1, size=(PROPOSALS, d))  # kernel n is uniform
    near = good[np.minimum(kernel, n - 1), np.arange(d)] + _bandwidth(n) * rng.standard_normal((PROPOSALS, d))
    reflected = 1 - np.abs(1 - np.abs(near))
    proposals = np.where(kernel < n, np.clip(reflected, 0.0, 1.0), rng.random((PROPOSALS, d)))
    ratio = _log_density(proposals, good) - _log_density(proposals, others)
    best: Array = proposals[int(np.argmax(ratio))]
    return best


def scouting_pays(payoffs: Array, scouted: Flags, value: float) -> bool:
    """Whether one more scout is worth its price, if what it finds pays for as long again as the run has lasted.

    The best of n + 1 draws exceeds that of n by θ/(n + 1) on average, if the upper tail is exponential with mean θ. It
    is measured among the scouts (with the value of the best point) and among all payoffs, since a ceiling shows in the
    latter first. What other rounds scatter is noise, and counts off.  (t,), (t,)
    """
    scouts, others = payoffs[scouted], payoffs[~scouted]
    if len(payoffs) < 2:
        return True
    tail = math.sqrt(_mean_excess(payoffs) * _mean_excess(np.append(scouts, value)))
    noise = float(others[-RECENT:].var(ddof=1)) if len(others) > 1 else 0.0
    signal = max(0.0, 1 - noise / max(float(scouts.var()), 1e-12))
    price = value - float(scouts[-RECENT:].mean())
    return len(payoffs) * signal * tail / (len(scouts) + 1) > price


def _mean_excess(payoffs: Array) -> float:
    """By how much the largest exceed the next one."""
    n = min(EXTREMES, len(payoffs) - 1)
    largest = np.partition(payoffs, -n - 1)[-n - 1 :]
    return float(largest.mean() - largest.min()) * (n + 1) / n


def _log_density(points: Array, centres: Array) -> Array:
    """Of a product over coordinates: each has a kernel per centre and a uniform one.  (n, d), (k, d) -> (n,)"""
    h = _bandwidth(len(centres))
    kernels = np.exp(-0.5 * ((points[:, None, :] - centres) / h) ** 2) / (h * math.sqrt(2 * math.pi))
    density: Array = np.log((kernels.sum(axis=1) + 1) / (len(centres) + 1)).sum(axis=1)
    return density


def _bandwidth(samples: int) -> float:
    return BANDWIDTH * math.pow(max(samples, 1), -0.2)
