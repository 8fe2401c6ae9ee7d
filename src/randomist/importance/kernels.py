"""The hot passes, compiled. Everything here is the fast twin of a function in `weights`, `divergences` or `estimators`.

A sample i is stored by its ratios r_k = p_k(z_i) / p_{x_i}(z_i), relative to the density of the decision that drew
it. With D_i = Σ_k T_k r_k the weight of the balance heuristic is ω_x(z_i) / m = r_x / D_i, so the pass over (K, t) that
makes an estimate needs neither exp nor log, and D_i >= 1 never underflows. `fastmath` is safe there: ratios, mixtures
and thresholds are finite by construction (see `HUGE` and `WILD`).
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from randomist._types import Array

Counts: TypeAlias = NDArray[np.int64]

LOG_HUGE = 690.0
HUGE = math.exp(
    LOG_HUGE
)  # stands for numbers beyond float64's range; an index as large is ordered by effective samples
WILD = 600.0  # a sample with a log-ratio above this keeps its column in log space
SMALL = 1e-250  # effective samples below this are summed in log space
MANY = 2**17  # coins beyond this are not flipped one by one: their sum is drawn
TRIES = 24  # of a draw that is accepted with probability 0.87 or more; two random words each


# Rows of the table that an estimate is made in, one column per decision.
VALUE, EFFECTIVE, THRESHOLD, WIDTH, COVERAGE, LOG_EFFECTIVE, CUT = range(7)


@numba.njit(cache=True)
def begin_estimate(effective: Array, log_effective: Array, term: float, told: int, table: Array) -> None:
    """Everything but the sums: M = sqrt(m d2 / term) with d2 = m/η, its m-th part CUT, and sqrt(term / η).

    `term` is α log t. The cut is capped where nothing is known, so that it is finite; the threshold and the width are
    infinite there.
    """
    log_term = math.log(term) if told else -math.inf
    for k in range(table.shape[1]):
        table[VALUE, k] = table[COVERAGE, k] = 0.0
        table[EFFECTIVE, k] = effective[k]
        table[LOG_EFFECTIVE, k] = log_effective[k]
        if log_effective[k] == -math.inf or told == 0:
            table[CUT, k], table[THRESHOLD, k], table[WIDTH, k] = HUGE, math.inf, math.inf
        else:
            table[CUT, k] = math.exp(min(-0.5 * (log_effective[k] + log_term), LOG_HUGE))
            table[THRESHOLD, k] = told * table[CUT, k]
            table[WIDTH, k] = math.exp(min(0.5 * (log_term - log_effective[k]), LOG_HUGE))


@numba.njit(cache=True, fastmath=True)
def add_truncated_sums(ratios: Array, inverse_mixture: Array, payoffs: Array, used: int, table: Array) -> None:
    """One block's part of COVERAGE = Σ_i min(M, ω)/m and VALUE = Σ_i min(M, ω) y / m.

    Four decisions at a time share the loads of a sample, which brings the pass to the speed of memory.
    """
    K = ratios.shape[0]
    for k in range(0, K - 3, 4):
        c0, c1, c2, c3 = table[CUT, k], table[CUT, k + 1], table[CUT, k + 2], table[CUT, k + 3]
        w0 = w1 = w2 = w3 = 0.0
        y0 = y1 = y2 = y3 = 0.0
        for i in range(used):
            inverse, y = inverse_mixture[i], payoffs[i]
            w = min(c0, ratios[k, i] * inverse)
            w0 += w
            y0 += w * y
            w = min(c1, ratios[k + 1, i] * inverse)
            w1 += w
            y1 += w * y
            w = min(c2, ratios[k + 2, i] * inverse)
            w2 += w
            y2 += w * y
            w = min(c3, ratios[k + 3, i] * inverse)
            w3 += w
            y3 += w * y
        table[COVERAGE, k] += w0
        table[COVERAGE, k + 1] += w1
        table[COVERAGE, k + 2] += w2
        table[COVERAGE, k + 3] += w3
        table[VALUE, k] += y0
        table[VALUE, k + 1] += y1
        table[VALUE, k + 2] += y2
        table[VALUE, k + 3] += y3
    for k in range(K - K % 4, K):
        c0 = table[CUT, k]
        w0 = y0 = 0.0
        for i in range(used):
            w = min(c0, ratios[k, i] * inverse_mixture[i])
            w0 += w
            y0 += w * payoffs[i]
        table[COVERAGE, k] += w0
        table[VALUE, k] += y0


@numba.njit(cache=True, fastmath=True)
def add_moments(ratios: Array, inverse_mixture: Array, payoffs: Array, used: int, cut: Array, moments: Array) -> None:
    """One block's part of Σ_i w², Σ_i w² y and Σ_i w² y² with w = min(M, ω)/m, the rows of `moments`.  (3, K)"""
    for k in range(ratios.shape[0]):
        ww = wwy = wwyy = 0.0
        for i in range(used):
            w = min(cut[k], ratios[k, i] * inverse_mixture[i])
            w *= w
            ww += w
            w *= payoffs[i]
            wwy += w
            wwyy += w * payoffs[i]
        moments[0, k] += ww
        moments[1, k] += wwy
        moments[2, k] += wwyy


@numba.njit(cache=True)
def add_play(ratios: Array, mixture: Array, inverse_mixture: Array, used: int, decision: int) -> None:
    """One more play of `decision`: D_i += r_decision for every stored sample of a block."""
    for i in range(used):
        total = mixture[i] + ratios[decision, i]
        mixture[i] = total
        inverse_mixture[i] = 1.0 / total


@numba.njit(cache=True)
def count_play(plays: Counts, effective: Array, log_effective: Array, log_divergence: Array, decision: int) -> None:
    """T(decision) += 1 and η(x) += 1/d2(p_x || p_decision), in place.

    Sums are plain while they can be, so that η(x) >= T(x) holds exactly: rounding is monotone.
    """
    plays[decision] += 1
    for k in range(effective.shape[0]):
        if log_divergence[k] == math.inf:
            continue
        add_effective(effective, log_effective, k, 1.0, log_divergence[k])


@numba.njit(cache=True)
def add_effective(effective: Array, log_effective: Array, k: int, plays: float, log_divergence: float) -> None:
    """η_k += T/d2, for a finite divergence: as a plain sum while it can be, else in log space."""
    effective[k] += plays * math.exp(-log_divergence)
    if effective[k] > SMALL:
        log_effective[k] = math.log(effective[k])
    else:
        term = math.log(plays) - log_divergence
        high, low = max(log_effective[k], term), min(log_effective[k], term)
        log_effective[k] = high + math.log1p(math.exp(low - high))


@numba.njit(cache=True)
def write_sample(
    ratios: Array,
    mixture: Array,
    inverse_mixture: Array,
    payoffs: Array,
    i: int,
    log_density: Array,
    plays: Counts,
    decision: int,
    payoff: float,
) -> bool:
    """Store a sample in column i of a block; False, and nothing of use stored, where a ratio leaves float64's range."""
    total = 0.0
    for k in range(ratios.shape[0]):
        log_ratio = log_density[k] - log_density[decision]
        if log_ratio > WILD:
            return False
        ratios[k, i] = math.exp(log_ratio)
        total += plays[k] * ratios[k, i]
    mixture[i] = total  # D_i = Σ_k T_k r_k
    inverse_mixture[i] = 1.0 / total
    payoffs[i] = payoff
    return True


# A round on a history of one block is one call of each of these two: calling is what a small round spends its time on.


@numba.njit(cache=True)
def estimate(
    effective: Array,
    log_effective: Array,
    term: float,
    told: int,
    ratios: Array,
    inverse_mixture: Array,
    payoffs: Array,
    used: int,
) -> Array:
    """A new table with the sums over one block; the other blocks' are added by `add_truncated_sums`.  (7, K)"""
    table = np.empty((7, effective.shape[0]))
    begin_estimate(effective, log_effective, term, told, table)
    add_truncated_sums(ratios, inverse_mixture, payoffs, used, table)
    return table


@numba.njit(cache=True)
def append(
    ratios: Array,
    mixture: Array,
    inverse_mixture: Array,
    payoffs: Array,
    used: int,
    plays: Counts,
    effective: Array,
    log_effective: Array,
    log_divergence: Array,
    log_density: Array,
    decision: int,
    payoff: float,
) -> bool:
    """`add_play`, `count_play` and `write_sample` on the last block."""
    add_play(ratios, mixture, inverse_mixture, used, decision)
    count_play(plays, effective, log_effective, log_divergence, decision)
    return write_sample(ratios, mixture, inverse_mixture, payoffs, used, log_density, plays, decision, payoff)


@numba.njit(cache=True)
def coin_words(effective: Array, scale: float) -> int:
    """How many random 64-bit words `perturb` needs for ⌈a η⌉ coins per decision."""
    total = 0
    for k in range(effective.shape[0]):
        flips = math.ceil(scale * effective[k])
        total += (math.ceil(flips / 64.0) if flips <= MANY else 2 * TRIES) + 1
    return total


@numba.njit(cache=True)
def perturb(value: Array, effective: Array, scale: float, words: NDArray[np.uint64]) -> Array:
    """c(x) + (1/η) Binomial(⌈a η⌉, 1/2) (Algorithm 2, c = J̌ + b), coins being random bits, exactly fair.  (K,)"""
    index = np.empty(value.shape[0])
    position = 0
    for k in range(value.shape[0]):
        eta = max(effective[k], 1.0 / HUGE)
        flips = math.ceil(scale * eta)  # ⌈a η⌉
        if flips <= MANY:
            used = (flips + 63) // 64
            heads = _heads(words[position : position + used], flips)
        else:
            used = 2 * TRIES
            heads = _many_heads(words[position : position + used], flips)
        position += used
        index[k] = value[k] + heads / eta
    return index


@numba.njit(cache=True)
def _heads(words: NDArray[np.uint64], flips: int) -> int:
    """Bits set among the first `flips` bits of the words."""
    total = np.uint64(0)
    for i in range(flips // 64):
        total += _bits(words[i])
    if flips % 64:
        total += _bits(words[flips // 64] >> np.uint64(64 - flips % 64))
    return int(total)


@numba.njit(cache=True)
def _many_heads(words: NDArray[np.uint64], flips: int) -> int:
    """Binomial(flips, 1/2) by transformed rejection (Hörmann 1993, BTRS), exact, from two words per try.

    All tries fail once in 1e21 draws; then the middle is taken.
    """
    n = float(flips)
    deviation = 0.5 * math.sqrt(n)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.005
    center = 0.5 * n + 0.5
    v_r = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor(0.5 * (n + 1))
    at_mode = math.lgamma(mode + 1) + math.lgamma(n - mode + 1)
    for attempt in range(TRIES):
        u = (words[2 * attempt] >> np.uint64(11)) * 2.0**-53 - 0.5
        v = ((words[2 * attempt + 1] >> np.uint64(11)) + 0.5) * 2.0**-53  # never 0
        us = 0.5 - abs(u)
        if us <= 0.0:
            continue
        k = math.floor((2 * a / us + b) * u + center)
        if us >= 0.07 and v <= v_r:
            return int(k)
        if k < 0 or k > n:
            continue
        if math.log(v * alpha / (a / (us * us) + b)) <= at_mode - math.lgamma(k + 1) - math.lgamma(n - k + 1):
            return int(k)
    return flips // 2


@numba.njit(cache=True)
def _bits(word: np.uint64) -> np.uint64:
    """How many bits are set: pairs, then nibbles, then bytes are summed side by side."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@numba.njit(cache=True)
def choose(index: Array, log_effective: Array, uniform: float) -> int:
    """argmax of the index, ties broken by `uniform` in [0, 1); -1 if some index is NaN.

    Nothing known (η = 0) means an infinite index; indices beyond float64's range are ordered by 1/η, which rules them.
    """
    best_value, best_order, ties = -math.inf, 0.0, 0
    for k in range(index.shape[0]):
        if math.isnan(index[k]):
            return -1
        value, order = _rank(index[k], log_effective[k])
        if ties == 0 or value > best_value or (value == best_value and order > best_order):
            best_value, best_order, ties = value, order, 1
        elif value == best_value and order == best_order:
            ties += 1
    skip = int(uniform * ties)
    for k in range(index.shape[0]):
        value, order = _rank(index[k], log_effective[k])
        if value == best_value and order == best_order:
            if skip == 0:
                return k
            skip -= 1
    return -1


@numba.njit(cache=True)
def _rank(index: float, log_effective: float) -> tuple[float, float]:
    value = HUGE if log_effective == -math.inf else min(index, HUGE)
    return value, (-log_effective if value == HUGE else 0.0)
