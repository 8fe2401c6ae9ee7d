"""Functions that lose no digits where their textbook form cancels, underflows or overflows."""

from __future__ import annotations

import math

import numpy as np

from randomist._types import Array

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # exact to 1e-16 while the exponent varies by less than 1
_SMALL = 0.3  # below it the series, above it the textbook form, which loses less than one digit there


def log1p_minus(x: Array) -> Array:
    """log(1 + x) - x, which is -x²/2 for small x.  Needs x > -1."""
    s = np.where(np.abs(x) < _SMALL, x / (2 + x), 0.0)  # log(1 + x) = 2 atanh(s)
    series = np.zeros_like(s)
    for k in range(23, 2, -2):
        series = series * (s * s) + 2.0 / k
    return np.where(np.abs(x) < _SMALL, s * (series * s * s - x), np.log1p(x) - x)


def expm1_minus(x: Array) -> Array:
    """exp(x) - 1 - x, which is x²/2 for small x."""
    small = np.where(np.abs(x) < _SMALL, x, 0.0)
    series = np.zeros_like(small)
    for k in range(13, 1, -1):
        series = (1 + series) * small / k
    return np.where(np.abs(x) < _SMALL, small * series, np.expm1(x) - x)


def mean_energy(low: Array, high: Array, middle: Array, half: Array, log_half: Array, rate: float) -> Array:
    """-log(E exp(-rate z²/2)) / rate with z uniform between low and high: E z²/2 at rate 0, max z²/2 at rate -inf.

    `middle` and `half` are the centre and half the width, given apart because high - low has lost the digits of a
    narrow box; `log_half` is finite where `half` has left float64's range. Infinite only where z²/2 itself is.
    """
    if rate == 0:
        return 0.5 * (middle**2 + half**2 / 3)
    far = np.maximum(np.abs(low), np.abs(high))
    if rate == -math.inf:
        return 0.5 * far**2
    k = math.sqrt(abs(rate))
    near = np.where((low <= 0) & (high >= 0), -1.0, 1.0) * np.minimum(np.abs(low), np.abs(high))  # < 0: 0 is inside
    drop = 2 * abs(rate) * np.abs(middle) * half  # rate (far² - near²)/2
    if rate > 0:
        log_integral = _log_integral_down(k * near, k * far, drop)
    else:
        log_integral = _log_integral_up(k * np.abs(near), k * far, np.sign(near), drop)
    wide = (math.log(2 * k) + log_half - log_integral) / rate
    if rate < 0:
        wide = np.where(np.isfinite(k * far * k * far), wide, 0.5 * far**2)  # so steep that the farthest end is all
    flat = drop + 0.5 * abs(rate) * half**2 < 1
    return np.where(flat, _mean_energy_flat(middle, half, rate), wide)


def _mean_energy_flat(middle: Array, half: Array, rate: float) -> Array:
    """The same by quadrature, for boxes so narrow that the difference of two integrals would cancel."""
    mean = np.zeros(np.broadcast_shapes(middle.shape, half.shape))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        s = node * half
        mean += 0.5 * weight * np.expm1(-rate * s * (middle + 0.5 * s))
    return 0.5 * middle**2 - np.log1p(mean) / rate


def _log_integral_down(near: Array, far: Array, drop: Array) -> Array:
    """log ∫ exp(-y²/2) dy from near to far; near < 0 means that 0 lies between."""
    from scipy.special import erf, erfcx  # slow to import, seldom needed

    a, b = near / math.sqrt(2), far / math.sqrt(2)
    tail = -0.5 * near**2 + np.log(erfcx(np.maximum(a, 0)) - np.exp(-drop) * erfcx(b))
    around: Array = np.log(erf(b) - erf(a))
    return np.where(near < 0, around, tail) + 0.5 * math.log(math.pi / 2)


def _log_integral_up(near: Array, far: Array, sign: Array, drop: Array) -> Array:
    """log ∫ exp(y²/2) dy from near to far, or from -near to far where `sign` is negative."""
    from scipy.special import dawsn

    a, b = near / math.sqrt(2), far / math.sqrt(2)
    sum_of_ends: Array = np.log(dawsn(b) - sign * np.exp(-drop) * dawsn(a))
    return 0.5 * far**2 + sum_of_ends + 0.5 * math.log(2)
