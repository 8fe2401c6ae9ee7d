"""Gaussians truncated to an interval, one dimension at a time, compiled.

In units of the interval, from 0 to 1, minus the log-density is a quadratic E with the derivatives g0 and g1 at the ends
and the curvature k = g1 - g0. All that is needed are integrals of exp(-E), of p²/q too: there k may have either sign,
and the integral is one of erf or erfcx, of exp, or of Dawson's function. Each is taken relative to the smallest E, so
that nothing overflows, and none is a difference of nearly equal numbers: where E varies by less than 1, so that it
would be one, quadrature takes its place.

SciPy has erfcx and Dawson's function, but not for compiled code.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array

_ROOTS, _SHARES = np.polynomial.legendre.leggauss(12)  # exact to 1e-16 while the exponent varies by less than 1
_AT, _WEIGHT = 0.5 + 0.5 * _ROOTS, 0.5 * _SHARES  # on [0, 1]


@compiled
def erfcx(x: float) -> float:
    """exp(x²) erfc(x) for x >= 0; from 5 on by its continued fraction (DLMF 7.9.1)."""
    if x < 5.0:
        return math.exp(x * x) * math.erfc(x)
    fraction = x
    for n in range(16, 0, -1):
        fraction = x + 0.5 * n / fraction
    return 1.0 / (fraction * math.sqrt(math.pi))


@compiled
def dawson(x: float) -> float:
    """exp(-x²) ∫_0^x exp(t²) dt: terms of one sign, and from 6.5 on the asymptotic series (DLMF 7.5.1, 7.12)."""
    square, total, k = x * x, 0.0, 0
    if square < 42.25:
        power = x  # x^(2k+1) / k!
        while abs(power) > 1e-18 * abs(total):
            total += power / (2 * k + 1)
            k += 1
            power *= square / k
        return math.exp(-square) * total
    term = 0.5 / x
    while term != 0.0 and abs(term) > 1e-18 * abs(total):
        total += term
        k += 1
        term *= (k - 0.5) / square
    return total


@compiled
def _flat(slope: float, curvature: float) -> float:
    """∫_0^1 exp(-slope u - curvature u²/2) du where the exponent varies by less than 1."""
    total = 0.0
    for i in range(_AT.size):
        total += _WEIGHT[i] * math.exp(-_AT[i] * (slope + 0.5 * curvature * _AT[i]))
    return total


@compiled
def falling(slope: float, curvature: float) -> float:
    """∫_0^1 exp(-slope u - curvature u²/2) du, where the exponent is largest at 0: slope >= 0 and slope + k/2 >= 0."""
    root = math.sqrt(2.0 * abs(curvature))
    if slope == 0.0 and curvature > 0.0:
        return math.sqrt(math.pi) / root * math.erf(0.5 * root)
    if slope + 0.5 * abs(curvature) < 1.0:
        return _flat(slope, curvature)
    last = math.exp(-(slope + 0.5 * curvature))
    if abs(curvature) < min(1e-17 * slope * slope, 0.5 * slope):
        return (1.0 - last) / slope
    near, far = slope / root, (slope + curvature) / root
    if curvature > 0:
        return math.sqrt(math.pi) / root * (erfcx(near) - last * erfcx(far))
    return 2.0 / root * (dawson(near) - last * dawson(far))


@compiled
def log_integral(g0: float, g1: float, k: float, before: float, after: float, g: float) -> float:
    """log ∫_0^1 exp(E(c) - E(u)) du, with c that far from 0 and from 1, and the derivative g of E at c."""
    if abs(g0) + 0.5 * abs(k) < 1.0:
        return math.log(_flat(g0, k)) + 0.5 * before * (g0 + g)
    if g0 < 0.0 < g1:  # the smallest E is inside
        root = math.sqrt(2.0 * k)
        return math.log(math.sqrt(math.pi) / root * (math.erf(g1 / root) + math.erf(-g0 / root))) + (g / root) ** 2
    if g0 + g1 >= 0.0:  # it is at 0
        return math.log(falling(max(g0, 0.0), k)) + 0.5 * before * (g0 + g)
    return math.log(falling(max(-g1, 0.0), k)) - 0.5 * after * (g1 + g)


@compiled
def nearest(mean: float, low: float, high: float) -> tuple[float, float, float]:
    """How far the point of the interval that is nearest to the mean lies above low, below high, and above the mean.

    In units of the width, without the rounding of means far away.
    """
    width = high - low
    if mean < low:
        return 0.0, 1.0, (low - mean) / width
    if mean > high:
        return 1.0, 0.0, (high - mean) / width
    return (mean - low) / width, (high - mean) / width, 0.0


@compiled
def log_mass(mean: float, std: float, low: float, high: float) -> float:
    """log of the mean of p over the interval, in units of its largest value."""
    width = high - low
    before, after, beyond = nearest(mean, low, high)
    sigma = std / width
    k = 1.0 / (sigma * sigma)
    g0, g1 = k * ((low - mean) / width), k * ((high - mean) / width)
    return log_integral(g0, g1, k, before, after, k * beyond)


@compiled
def log_masses(mean: Array, std: Array, low: Array, high: Array) -> Array:
    """Σ_d log of the mean of p over its box, in units of its largest value.  (n, d), (n or 1, d), (d,), (d,) -> (n,)"""
    out = np.zeros(mean.shape[0])
    for i in range(mean.shape[0]):
        s = i if std.shape[0] > 1 else 0
        for d in range(mean.shape[1]):
            out[i] += log_mass(mean[i, d], std[s, d], low[d], high[d])
    return out


@compiled
def means(mean: Array, std: Array, low: Array, high: Array) -> Array:
    """What truncated Gaussians draw on average: m + σ² ∇_m log Z.  (n, d), (n or 1, d), (d,), (d,) -> (n, d)"""
    out = np.empty(mean.shape)
    for d in range(low.size):
        width = high[d] - low[d]
        for i in range(len(mean)):
            s = i if std.shape[0] > 1 else 0
            before, after, beyond = nearest(mean[i, d], low[d], high[d])
            k = (width / std[s, d]) ** 2
            ends = math.exp(-k * before * (0.5 * before - beyond)) - math.exp(-k * after * (0.5 * after + beyond))
            mass = math.exp(log_mass(mean[i, d], std[s, d], low[d], high[d]))
            out[i, d] = min(max(mean[i, d] + width * ends / (k * mass), low[d]), high[d])
    return out


@compiled
def log_density(mean: Array, std: Array, low: Array, high: Array, log_peak: Array, mediators: Array) -> Array:
    """Of densities with the largest value e^log_peak.  (n, d), (n or 1, d), (d,), (d,), (n,), (m, d) -> (n, m)"""
    out = np.empty((len(mean), len(mediators)))
    for i in range(len(mean)):
        s = i if std.shape[0] > 1 else 0
        for j in range(len(mediators)):
            total = 0.0
            for d in range(low.size):
                z = mediators[j, d]
                if not low[d] <= z <= high[d]:  # a NaN is not, either
                    total = math.inf
                    break
                near = min(max(mean[i, d], low[d]), high[d])
                u = (z - near) / std[s, d]
                total += u * (0.5 * u + (near - mean[i, d]) / std[s, d])
            out[i, j] = log_peak[i] - total
    return out


@compiled
def _reach(area: float, slope: float, curvature: float, limit: float) -> float:
    """x with ∫_0^x exp(-slope u - curvature u²/2) du = area, by Newton's method from 0, which never steps too far."""
    x = 0.0
    for _ in range(200):
        step = (area - x * falling(slope * x, curvature * x * x)) * math.exp(x * (slope + 0.5 * curvature * x))
        x += step
        if not (x < limit and step > 1e-15 * x):
            break
    return min(x, limit)


@compiled
def quantiles(mean: Array, std: Array, low: Array, high: Array, levels: Array) -> Array:
    """Where the distribution functions have these values.  (n, d), (n or 1, d), (d,), (d,), (n, d) -> (n, d)"""
    out = np.empty(mean.shape)
    for i in range(mean.shape[0]):
        s = i if std.shape[0] > 1 else 0
        for d in range(mean.shape[1]):
            width = high[d] - low[d]
            before, after, beyond = nearest(mean[i, d], low[d], high[d])
            sigma = std[s, d] / width
            k, slope = 1.0 / (sigma * sigma), abs(beyond) / (sigma * sigma)
            left = before * falling(slope * before, k * before * before)
            right = after * falling(slope * after, k * after * after)
            area = levels[i, d] * (left + right) - left  # from the peak
            peak = low[d] if beyond > 0.0 else high[d] if beyond < 0.0 else mean[i, d]
            if area < 0.0:
                z = peak - width * _reach(-area, slope, k, before)
            else:
                z = peak + width * _reach(area, slope, k, after)
            out[i, d] = min(max(z, low[d]), high[d])
    return out


@compiled
def _twice_less(q: float, p: float) -> float:
    """2 q² - p² with the digits that the squares lose by rounding (Dekker 1971)."""
    square_q, square_p = q * q, p * p
    return (2.0 * square_q - square_p) + (2.0 * _lost(q, square_q) - _lost(p, square_p))


@compiled
def _lost(x: float, square: float) -> float:
    """x² less its rounded value."""
    head = 134217729.0 * x
    head -= head - x
    tail = x - head
    return ((head * head - square) + 2.0 * head * tail) + tail * tail


@compiled
def log_second_moments(mean_p: Array, std_p: Array, mean_q: Array, std_q: Array, low: Array, high: Array) -> Array:
    """log ∫ (p²/q) with p and q in units of their largest values, and the box in its own: Σ_d of closed forms.

    (n, d), (n or 1, d), (m, d), (m or 1, d), (d,), (d,) -> (n, m)
    """
    n, m = mean_p.shape[0], mean_q.shape[0]
    out = np.zeros((n, m))
    for i in range(n):
        s = i if std_p.shape[0] > 1 else 0
        for j in range(m):
            t = j if std_q.shape[0] > 1 else 0
            for d in range(low.size):
                out[i, j] += _log_second_moment(mean_p[i, d], std_p[s, d], mean_q[j, d], std_q[t, d], low[d], high[d])
    return out


@compiled
def _log_second_moment(mean_p: float, std_p: float, mean_q: float, std_q: float, low: float, high: float) -> float:
    """2 E_p - E_q has the derivative k (x - mean_p) + pull, with k = (2 σ_q² - σ_p²)/(σ_p σ_q)² of any sign."""
    width = high - low
    before, after, beyond = nearest(mean_p, low, high)  # of c, where p is largest
    sigma_p, sigma_q, shift = std_p / width, std_q / width, (mean_q - mean_p) / width
    k = _twice_less(std_q, std_p) / (std_q * std_q) / (sigma_p * sigma_p)
    pull = shift / (sigma_q * sigma_q)
    g = k * beyond + pull
    g0, g1 = k * ((low - mean_p) / width) + pull, k * ((high - mean_p) / width) + pull
    if mean_q < low:
        away = before * (beyond - shift + (low - mean_q) / width)
    elif mean_q > high:
        away = -after * (beyond - shift + (high - mean_q) / width)
    else:
        away = (beyond - shift) ** 2
    return log_integral(g0, g1, k, before, after, g) + 0.5 * away / (sigma_q * sigma_q)  # E_q at c, above its smallest
