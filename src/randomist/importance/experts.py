"""Sums and divergences of D-UCB (Sen, Shanmugam and Shakkottai 2018): every sample weighted by p_x/p_j alone.

A sample of j counts 1/M_xj for x, where M_xj says how unlike x is to j. With clipping, M = 1 + log(1 + D_f) for
f(u) = u exp(u - 1) - 1, which is log E_{p_x} exp(p_x/p_j); with the median of means it is sqrt(d2(p_x || p_j)).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices

if TYPE_CHECKING:
    from randomist.families import Family

MASS, SEEN, EARNED = range(3)  # rows of the sums: Σ 1/M, Σ r/M and Σ r y/M, r = p_x/p_j where it is not clipped
LOG_MOST = 600.0  # of a ratio: its sums stay in float64


def exponential_divergences(family: Family, other: int) -> Array:
    """log E_{p_x} exp(p_x/p_other) for every member x; inf where p_x/p_other has no bound.  (S,)

    A sum over the family's nodes: exact for discrete families, kept between E_{p_x}[p_x/p_other] = d2 and the largest
    ratio elsewhere, as the integral itself is.
    """
    points, weights = family.nodes()  # (S, L, *shape), (S, L)
    S, L = weights.shape
    log_other = family.log_density([other], points.reshape(S * L, *family.shape)).reshape(S, L)
    log_own = np.array([family.log_density([k], points[k])[0] for k in range(S)])
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    some = weights > 0
    log_ratio = np.where(some, log_own, 0.0) - np.where(some, log_other, 0.0)
    moment = np.logaddexp.reduce(np.where(some, log_weights + np.exp(np.minimum(log_ratio, LOG_MOST)), -np.inf), axis=1)
    least, most = (
        np.exp(np.minimum(family.log_renyi(None, [other], order)[:, 0], LOG_MOST)) for order in (2, math.inf)
    )
    bounded = family.log_renyi(None, [other], math.inf)[:, 0] < np.inf
    return np.where(bounded, np.clip(moment, least, most), np.inf)


@compiled
def add_samples(
    sums: Array,
    groups: Indices,
    log_density: Array,
    sources: Indices,
    weights: Array,
    rows: Indices,
    levels: Array,
    payoffs: Array,
) -> None:
    """Add samples to the sums of their groups, one after the other; `weights[rows[i]]` is 1/M to the source of i.

    (3, G, K), (n,), (n, S), (n,), (P, K), (n,), (K,), (n,)
    """
    for i in range(groups.shape[0]):
        g, own = groups[i], log_density[i, sources[i]]
        for k in range(sums.shape[2]):
            weight = weights[rows[i], k]
            if weight > 0.0:
                share = weight * math.exp(min(log_density[i, k] - own, LOG_MOST))  # r/M
                sums[MASS, g, k] += weight
                if share <= levels[k]:
                    sums[SEEN, g, k] += share
                    sums[EARNED, g, k] += share * payoffs[i]


@compiled
def median_of_means(sums: Array) -> Array:
    """The median over the groups that know of a decision of Σ r y/M / Σ 1/M, 0 where none does.  (3, G, K) -> (K,)"""
    out = np.zeros(sums.shape[2])
    means = np.empty(sums.shape[1])
    for k in range(sums.shape[2]):
        known = 0
        for g in range(sums.shape[1]):
            if sums[MASS, g, k] > 0.0:
                means[known] = sums[EARNED, g, k] / sums[MASS, g, k]
                known += 1
        if known:
            out[k] = np.median(means[:known])
    return out


def epoch(told: int) -> int:
    """The last round at which the sums were made anew: the first eight, then whenever the history has grown by 1/4."""
    last, following = 0, 1
    while following <= told:
        last, following = following, following + max(1, following // 4)
    return last
