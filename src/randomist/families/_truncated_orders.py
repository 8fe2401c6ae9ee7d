"""Rényi divergences between truncated Gaussians of one box, of orders other than 2: no learner searches by them."""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array
from randomist.families._truncated import log_mass, nearest

_ROOTS, _SHARES = np.polynomial.legendre.leggauss(32)
_AT, _WEIGHT = 0.5 + 0.5 * _ROOTS, 0.5 * _SHARES  # on [0, 1]
DEPTH = 45.0  # nats below the largest value of a density: too little to matter


@compiled
def log_renyi(mean_p: Array, std_p: Array, mean_q: Array, std_q: Array, low: Array, high: Array, order: float) -> Array:
    """D_order of all pairs, infinity included.  (n, d), (n or 1, d), (m, d), (m or 1, d), (d,), (d,) -> (n, m)"""
    out = np.zeros((len(mean_p), len(mean_q)))
    for d in range(low.size):  # independent dimensions add
        for i in range(len(mean_p)):
            s = i if std_p.shape[0] > 1 else 0
            for j in range(len(mean_q)):
                t = j if std_q.shape[0] > 1 else 0
                p = _member(mean_p[i, d], std_p[s, d], low[d], high[d])
                q = _member(mean_q[j, d], std_q[t, d], low[d], high[d])
                if min(p[1] * p[2], q[1] * q[2]) < -max(p[1] * p[2], q[1] * q[2]):  # steeper at the end 1: mirrored,
                    p = _member(-mean_p[i, d], std_p[s, d], -high[d], -low[d])  # since floats are finer at 0
                    q = _member(-mean_q[j, d], std_q[t, d], -high[d], -low[d])
                out[i, j] += max(_largest_ratio(p, q) if order == math.inf else _by_quadrature(p, q, order - 1.0), 0.0)
    return out


@compiled
def _member(mean: float, std: float, low: float, high: float) -> tuple[float, float, float, float]:
    """-log p(u) = k v (v/2 + beyond) + log_mass with v = u - peak, u in [0, 1]: peak, beyond, k and log_mass."""
    before, _, beyond = nearest(mean, low, high)
    return before, beyond, (std / (high - low)) ** -2.0, log_mass(mean, std, low, high)


@compiled
def _minus_log(p: tuple[float, float, float, float], u: float) -> float:
    peak, beyond, k, mass = p
    v = u - peak
    return k * v * (0.5 * v + beyond) + mass


@compiled
def _largest_ratio(p: tuple[float, float, float, float], q: tuple[float, float, float, float]) -> float:
    """max log p/q: at an end, or where the derivative of a concave log p/q is 0."""
    largest = max(_minus_log(q, 0.0) - _minus_log(p, 0.0), _minus_log(q, 1.0) - _minus_log(p, 1.0))
    if q[2] < p[2]:
        u = (p[2] * (p[0] - p[1]) - q[2] * (q[0] - q[1])) / (p[2] - q[2])
        u = min(max(u, 0.0), 1.0)
        largest = max(largest, _minus_log(q, u) - _minus_log(p, u))
    return largest


@compiled
def _by_quadrature(p: tuple[float, float, float, float], q: tuple[float, float, float, float], excess: float) -> float:
    """log E_p[e^(excess r)] / excess with r = log p/q, and E_p[r] at excess 0.

    Gauss-Legendre on pieces between the points where p, or the integrand, is largest or has become negligible.
    """
    ends = np.zeros(8)
    ends[7] = 1.0
    start_p, start_q = p[2] * (p[1] - p[0]), q[2] * (q[1] - q[0])
    _mark(start_p, p[2], ends, 1)
    _mark(start_p + excess * (start_p - start_q), p[2] + excess * (p[2] - q[2]), ends, 4)
    ends.sort()
    mass = small = 0.0  # E_p[1], and E_p[e^(excess r) - 1] or E_p[r], where that is small
    total, top = 0.0, -math.inf  # e^top total is E_p[e^(excess r)]
    for piece in range(7):
        length = ends[piece + 1] - ends[piece]
        if length <= 0.0:
            continue
        for i in range(_AT.size):
            u = ends[piece] + length * _AT[i]
            log_p = -_minus_log(p, u)
            r = _minus_log(q, u) + log_p
            weight = length * _WEIGHT[i] * math.exp(log_p)
            mass += weight
            value = excess * r + log_p
            if excess == 0.0:
                small += weight * r
            elif excess * r < 1.0:
                small += weight * math.expm1(excess * r)
            else:
                small += length * _WEIGHT[i] * math.exp(min(value, 700.0)) - weight
            if value > top:
                total *= math.exp(top - value)
                top = value
            total += length * _WEIGHT[i] * math.exp(value - top)
    if excess == 0.0:
        return small / mass
    log_total = top + math.log(total)
    return (math.log1p(small / mass) if abs(log_total) < 0.5 else log_total) / excess


@compiled
def _mark(slope: float, curvature: float, ends: Array, first: int) -> None:
    """Where exp(-slope u - curvature u²/2) is largest inside of [0, 1], and where it has become negligible."""
    last = slope + curvature
    if slope < 0.0 < last:
        mode, reach = -slope / curvature, math.sqrt(2.0 * DEPTH / curvature)
        ends[first], ends[first + 1], ends[first + 2] = max(mode - reach, 0.0), mode, min(mode + reach, 1.0)
    else:
        ends[first], ends[first + 1] = _reach(slope, curvature), 1.0 - _reach(-last, curvature)


@compiled
def _reach(slope: float, curvature: float) -> float:
    """How far from an end the exponent has grown by DEPTH; 1 where it does not grow as much, or falls."""
    square = slope * slope + 2.0 * DEPTH * curvature
    return min(2.0 * DEPTH / (slope + math.sqrt(square)), 1.0) if slope >= 0.0 and square > 0.0 else 1.0
