"""What a divergence is, computed another way: quadrature of the definition, closed forms in mpmath."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
from scipy.special import logsumexp


def nodes_on(low: float, high: float, panels: int = 400) -> tuple[Any, Any]:
    """Composite Gauss-Legendre nodes and log weights."""
    x, w = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, panels + 1)
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half) + half * x
    return nodes.ravel(), np.log(np.broadcast_to(half * w, nodes.shape)).ravel()


def renyi_by_quadrature(log_p: Any, log_q: Any, log_weights: Any, order: float) -> float:
    """The definition, on nodes that cover what matters of p^order q^(1-order)."""
    inside = log_p > -np.inf
    log_p, log_q, log_weights = log_p[inside], log_q[inside], log_weights[inside]
    if order == 1:
        return float(np.sum(np.exp(log_weights + log_p) * (log_p - log_q)))
    return float(logsumexp(log_weights + order * log_p + (1 - order) * log_q) / (order - 1))


def exact_gaussian(mean_p: float, std_p: float, mean_q: float, std_q: float, order: float) -> Any:
    """Gil et al. (2013), Table 2, at 60 digits."""
    a, b, s, t = (mp.mpf(float(v)) for v in (mean_p, mean_q, std_p, std_q))
    if order == math.inf:
        return mp.log(t / s) + (a - b) ** 2 / (2 * (t**2 - s**2)) if s < t else mp.inf
    order = mp.mpf(order)
    if order == 1:
        return mp.log(t / s) + (s**2 - t**2 + (a - b) ** 2) / (2 * t**2)
    mixed = order * t**2 + (1 - order) * s**2
    if mixed <= 0:
        return mp.inf
    return mp.log(t / s) + mp.log(t**2 / mixed) / (2 * (order - 1)) + order * (a - b) ** 2 / (2 * mixed)


def exact_uniform_gaussian(low: float, high: float, mean: float, std: float, order: Any) -> Any:
    """D_order(Uniform || Gaussian), by erf, erfc and erfi at 100 digits."""
    low, high, mean, std = (mp.mpf(float(v)) for v in (low, high, mean, std))
    a, b = (low - mean) / std, (high - mean) / std
    offset = mp.log(std * mp.sqrt(2 * mp.pi) / (high - low))
    if order == math.inf:
        return offset + max(a * a, b * b) / 2
    rate = 1 - mp.mpf(order)
    if rate == 0:
        return offset + (a * a + a * b + b * b) / 6
    k = mp.sqrt(abs(rate) / 2)
    with mp.workdps(100):  # a narrow box loses some of them
        if rate < 0:
            integral = mp.erfi(k * b) - mp.erfi(k * a)
        elif a * b > 0:  # in one tail
            integral = abs(mp.erfc(k * abs(a)) - mp.erfc(k * abs(b)))
        else:
            integral = mp.erf(k * b) - mp.erf(k * a)
        return offset - mp.log(integral * mp.sqrt(mp.pi) / (2 * k * (b - a))) / rate


def exact_truncated(
    mean_p: float, std_p: float, mean_q: float, std_q: float, low: float, high: float, order: float = 2.0
) -> Any:
    """D_order between Gaussians truncated to [low, high]: differences of log ∫ exp(-E), E quadratic, at 150 digits."""
    a, s, b, t, low, high = (mp.mpf(float(v)) for v in (mean_p, std_p, mean_q, std_q, low, high))
    with mp.workdps(150):
        p, q = ((m / sigma**2, 1 / sigma**2) for m, sigma in ((a, s), (b, t)))

        def log_integral(x: Any) -> Any:
            """log ∫ p^x q^(1-x), up to a term that is linear in x."""
            slope, k = (x * one + (1 - x) * other for one, other in zip(p, q, strict=True))
            if k == 0:
                return mp.log((mp.exp(slope * high) - mp.exp(slope * low)) / slope) if slope else mp.log(high - low)
            ends = [mp.sqrt(abs(k) / 2) * (end - slope / k) for end in (low, high)]
            if k < 0:
                area = mp.erfi(ends[1]) - mp.erfi(ends[0])
            elif ends[0] * ends[1] > 0:  # in one tail
                area = abs(mp.erfc(abs(ends[0])) - mp.erfc(abs(ends[1])))
            else:
                area = mp.erf(ends[1]) - mp.erf(ends[0])
            return mp.log(area * mp.sqrt(mp.pi / abs(k) / 2)) + slope**2 / (2 * k)

        x = mp.mpf(order)
        if order == 1:
            step = mp.mpf(10) ** -40
            slope = (log_integral(1 + step) - log_integral(1 - step)) / (2 * step)
            return slope - log_integral(mp.mpf(1)) + log_integral(mp.mpf(0))
        return (log_integral(x) - x * log_integral(mp.mpf(1)) - (1 - x) * log_integral(mp.mpf(0))) / (x - 1)


def exact_masses(p: Any, q: Any, order: float) -> Any:
    """The definition over atoms, of rows whose sum is 1 to all digits."""
    p, q = ([mp.mpf(float(mass)) / mp.fsum(row) for mass in row] for row in (p, q))
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    if order >= 1 and any(b == 0 for _, b in pairs):
        return mp.inf
    if order == math.inf:
        return max(mp.log(a / b) for a, b in pairs)
    if order == 1:
        return mp.fsum(a * mp.log(a / b) for a, b in pairs)
    order = mp.mpf(order)
    total = mp.fsum(a**order * b ** (1 - order) for a, b in pairs)
    return mp.log(total) / (order - 1) if total > 0 else mp.inf


def assert_relative(value: float, exact: Any, tolerance: float = 1e-10) -> None:
    if mp.isinf(exact):
        assert value == math.inf
    else:
        assert abs(mp.mpf(float(value)) - exact) <= tolerance * abs(exact), f"{value} is not {mp.nstr(exact, 17)}"
