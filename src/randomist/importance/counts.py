"""The passes over samples that are counted: columns of ratios with how many samples they stand for, Σ y and Σ y².

The twins of `kernels.add_truncated_sums`, `kernels.add_moments` and `kernels.append` for columns that repeat.
"""

from __future__ import annotations

import math

import numba

from randomist._types import Array
from randomist.importance.kernels import COVERAGE, CUT, VALUE, Counts, add_effective, add_play, count_play


@numba.njit(cache=True, fastmath=True)
def add_counted_sums(
    ratios: Array, inverse_mixture: Array, payoffs: Array, counts: Array, used: int, table: Array
) -> None:
    """One block's part of COVERAGE = Σ_i n_i min(M, ω)/m and VALUE = Σ_i min(M, ω) Σy_i / m."""
    for k in range(ratios.shape[0]):
        cut = table[CUT, k]
        coverage = value = 0.0
        for i in range(used):
            w = min(cut, ratios[k, i] * inverse_mixture[i])
            coverage += w * counts[i]
            value += w * payoffs[i]
        table[COVERAGE, k] += coverage
        table[VALUE, k] += value


@numba.njit(cache=True, fastmath=True)
def add_counted_moments(
    ratios: Array,
    inverse_mixture: Array,
    payoffs: Array,
    counts: Array,
    squares: Array,
    used: int,
    cut: Array,
    moments: Array,
) -> None:
    """One block's part of Σ_i n w², Σ_i w² Σy and Σ_i w² Σy² with w = min(M, ω)/m, the rows of `moments`.  (3, K)"""
    for k in range(ratios.shape[0]):
        ww = wwy = wwyy = 0.0
        for i in range(used):
            w = min(cut[k], ratios[k, i] * inverse_mixture[i])
            w *= w
            ww += w * counts[i]
            wwy += w * payoffs[i]
            wwyy += w * squares[i]
        moments[0, k] += ww
        moments[1, k] += wwy
        moments[2, k] += wwyy


@numba.njit(cache=True)
def count_sample(
    ratios: Array,
    mixture: Array,
    inverse_mixture: Array,
    used: int,
    payoffs: Array,
    counts: Array,
    squares: Array,
    column: int,
    plays: Counts,
    effective: Array,
    log_effective: Array,
    log_divergence: Array,
    source: int,
    payoff: float,
) -> None:
    """A play of `source` reaches the last block, and its sample is one more of `column`, which may be in another."""
    add_play(ratios, mixture, inverse_mixture, used, source)
    count_play(plays, effective, log_effective, log_divergence, source)
    payoffs[column] += payoff
    counts[column] += 1.0
    squares[column] += payoff * payoff


@numba.njit(cache=True)
def add_plays(ratios: Array, mixture: Array, inverse_mixture: Array, used: int, source: int, times: float) -> None:
    """Several more plays of `source`: D_i += n r_source for every sample of a block."""
    for i in range(used):
        mixture[i] += times * ratios[source, i]
        inverse_mixture[i] = 1.0 / mixture[i]


@numba.njit(cache=True)
def count_plays(
    plays: Counts, effective: Array, log_effective: Array, log_divergence: Array, source: int, times: int
) -> None:
    """T(source) += n and η(x) += n/d2(p_x || p_source), in place."""
    plays[source] += times
    for k in range(effective.shape[0]):
        if log_divergence[k] < math.inf:
            add_effective(effective, log_effective, k, times, log_divergence[k])
