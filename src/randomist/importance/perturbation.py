"""Perturbed indices of a finite set, and the choice of the largest, compiled."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from randomist._compiled import compiled
from randomist._types import Array
from randomist.importance.passes.layout import HUGE

MANY = 2**12  # coins beyond this are not flipped one by one: their sum is drawn
TRIES = 24  # of a draw that is accepted with probability 0.87 or more; two random words each


@compiled
def coin_words(effective: Array, scale: float) -> int:
    """How many random 64-bit words `perturb` needs for ⌈a η⌉ coins per decision."""
    total = 0
    for k in range(effective.shape[0]):
        flips = math.ceil(scale * effective[k])
        total += (math.ceil(flips / 64.0) if flips <= MANY else 2 * TRIES) + 1
    return total


@compiled
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


@compiled
def _heads(words: NDArray[np.uint64], flips: int) -> int:
    """Bits set among the first `flips` bits of the words."""
    total = np.uint64(0)
    for i in range(flips // 64):
        total += _bits(words[i])
    if flips % 64:
        total += _bits(words[flips // 64] >> np.uint64(64 - flips % 64))
    return int(total)


@compiled
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


@compiled
def _bits(word: np.uint64) -> np.uint64:
    """How many bits are set: pairs, then nibbles, then bytes are summed side by side."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled
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


@compiled
def _rank(index: float, log_effective: float) -> tuple[float, float]:
    value = HUGE if log_effective == -math.inf else min(index, HUGE)
    return value, (-log_effective if value == HUGE else 0.0)
