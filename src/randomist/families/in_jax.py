"""Finite families in JAX: log-densities and divergences by their closed forms, for as many members as there are.

Each is a tuple of arrays, which goes through compiled functions as an argument; nothing is K x K. Sums over dimensions
are written out, so that they become one loop with what is made of them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, erfc

from randomist.families.base import Family
from randomist.families.categorical import Categorical
from randomist.families.gaussian import Gaussian
from randomist.families.truncated_gaussian import TruncatedGaussian

ROOTS, SHARES = np.polynomial.legendre.leggauss(12)  # as in `_truncated`


class Gaussians(NamedTuple):
    """N(mean, diag(std²))."""

    mean: Any  # (K, d)
    std: Any  # (K, d)
    log_peak: Any  # (K,)

    def some(self, members: Any) -> Gaussians:
        """Those of these numbers, in their order."""
        return Gaussians(self.mean[members], self.std[members], self.log_peak[members])

    def log_density(self, z: Any) -> Any:
        """(n, d) -> (K, n)"""
        total: Any = 0.0
        for d in range(self.mean.shape[1]):
            unit = (z[None, :, d] - self.mean[:, d, None]) / self.std[:, d, None]
            total += unit * unit
        return self.log_peak[:, None] - 0.5 * total

    def log_divergences_to(self, other: Any) -> Any:
        """D_2(p_x || p_other) of every x: with e = σ_x²/σ² - 1 it is Σ_d δ²/(σ² (1 - e)) - log(1 - e²)/2.  (K,)"""
        total: Any = 0.0
        for d in range(self.mean.shape[1]):
            std, mean = self.std[other, d], self.mean[other, d]
            excess = (self.std[:, d] - std) / std
            excess = excess * (2.0 + excess)
            left = 1.0 - excess
            safe = jnp.where(left > 0, left, 1.0)
            shift = ((self.mean[:, d] - mean) / std) ** 2 / safe
            spread = -0.5 * jnp.log1p(-jnp.minimum(excess * excess, 1.0))
            total += jnp.where(left > 0, jnp.where(excess == 0.0, 0.0, spread) + shift, jnp.inf)
        return total


class TruncatedGaussians(NamedTuple):
    """N(mean, diag(std²)) in a box; see `_truncated` for the integrals."""

    mean: Any  # (K, d)
    std: Any  # (K, d)
    log_mass: Any  # (K,)
    low: Any  # (d,)
    high: Any  # (d,)

    def some(self, members: Any) -> TruncatedGaussians:
        """Those of these numbers, in their order."""
        return self._replace(mean=self.mean[members], std=self.std[members], log_mass=self.log_mass[members])

    def log_density(self, z: Any) -> Any:
        """(n, d) -> (K, n)"""
        total: Any = 0.0
        inside: Any = True
        for d in range(self.mean.shape[1]):
            low, high, std = self.low[d], self.high[d], self.std[:, d, None]
            near = jnp.clip(self.mean[:, d, None], low, high)
            unit = (z[None, :, d] - near) / std
            total += unit * (0.5 * unit + (near - self.mean[:, d, None]) / std)
            inside &= (z[None, :, d] >= low) & (z[None, :, d] <= high)
        log_peak = -self.log_mass - jnp.log(self.high - self.low).sum()
        return jnp.where(inside, log_peak[:, None] - total, -jnp.inf)

    def log_divergences_to(self, other: Any) -> Any:
        """D_2(p_x || p_other) of every x.  (K,)"""
        pairs = self.mean, self.std, self.mean[other], self.std[other]
        moments = _log_second_moment(*pairs, self.low, self.high).sum(axis=1)
        return jnp.maximum(moments - 2.0 * self.log_mass + self.log_mass[other], 0.0)


class Categories(NamedTuple):
    """Category c with probability e^log_mass[k, c]."""

    log_mass: Any  # (K, C)

    def some(self, members: Any) -> Categories:
        """Those of these numbers, in their order."""
        return Categories(self.log_mass[members])

    def log_density(self, z: Any) -> Any:
        """(n, 1) -> (K, n)"""
        return self.log_mass[:, z[:, 0].astype(jnp.int32)]

    def log_divergences_to(self, other: Any) -> Any:
        """D_2(p_x || p_other) = log(1 + Σ (p - q)²/q) of every x.  (K,)"""
        p, q = jnp.exp(self.log_mass), jnp.exp(self.log_mass[other])
        squares = jnp.where(q > 0, (p - q) ** 2 / jnp.where(q > 0, q, 1.0), jnp.where(p > 0, jnp.inf, 0.0))
        return jnp.log1p(squares.sum(axis=1))


Members = Gaussians | TruncatedGaussians | Categories


def in_jax(family: Family) -> Members | None:
    """The members of a family on the device; None where it is not known there."""
    if type(family) is Gaussian and family.members is not None:
        return Gaussians(*_members(family))
    if type(family) is TruncatedGaussian and family.members is not None:
        low, high = family.corners
        return TruncatedGaussians(*_members(family), *map(jnp.asarray, (low, high)))
    if type(family) is Categorical:
        with np.errstate(divide="ignore"):
            return Categories(jnp.log(jnp.asarray(np.atleast_2d(family.probabilities))))
    return None


def _members(family: Any) -> tuple[Any, Any, Any]:
    mean, std, rest = family.parameters(None)
    return jnp.asarray(mean), jnp.asarray(np.broadcast_to(std, mean.shape)), jnp.asarray(rest)


def _log_second_moment(mean_p: Any, std_p: Any, mean_q: Any, std_q: Any, low: Any, high: Any) -> Any:
    """log ∫ p²/q over the interval, densities in units of their largest values; see `_truncated`."""
    width = high - low
    before, after, beyond = _nearest(mean_p, low, high)
    sigma_p, sigma_q, shift = std_p / width, std_q / width, (mean_q - mean_p) / width
    k = (std_q + (std_q - std_p) * (1.0 + std_p / std_q)) / std_q / (sigma_p * sigma_p)  # (2σ_q² - σ_p²)/(σ_p σ_q)²
    pull = shift / (sigma_q * sigma_q)
    g0, g1 = k * ((low - mean_p) / width) + pull, k * ((high - mean_p) / width) + pull
    away = jnp.where(
        mean_q < low,
        before * (beyond - shift + (low - mean_q) / width),
        jnp.where(mean_q > high, -after * (beyond - shift + (high - mean_q) / width), (beyond - shift) ** 2),
    )
    return _log_integral(g0, g1, k, before, after, k * beyond + pull) + 0.5 * away / (sigma_q * sigma_q)


def _nearest(mean: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    width = high - low
    before = jnp.where(mean < low, 0.0, jnp.where(mean > high, 1.0, (mean - low) / width))
    after = jnp.where(mean < low, 1.0, jnp.where(mean > high, 0.0, (high - mean) / width))
    beyond = jnp.where(mean < low, (low - mean) / width, jnp.where(mean > high, (high - mean) / width, 0.0))
    return before, after, beyond


def _log_integral(g0: Any, g1: Any, k: Any, before: Any, after: Any, g: Any) -> Any:
    root = jnp.sqrt(2.0 * jnp.maximum(jnp.abs(k), 1e-300))
    inside = jnp.log(math.sqrt(math.pi) / root * (erf(g1 / root) + erf(-g0 / root))) + (g / root) ** 2
    at_low = jnp.log(_falling(jnp.maximum(g0, 0.0), k)) + 0.5 * before * (g0 + g)
    at_high = jnp.log(_falling(jnp.maximum(-g1, 0.0), k)) - 0.5 * after * (g1 + g)
    flat = jnp.log(_flat(g0, k)) + 0.5 * before * (g0 + g)
    outside = jnp.where(g0 + g1 >= 0.0, at_low, at_high)
    steep = jnp.where((g0 < 0.0) & (g1 > 0.0), inside, outside)
    return jnp.where(jnp.abs(g0) + 0.5 * jnp.abs(k) < 1.0, flat, steep)


def _flat(slope: Any, curvature: Any) -> Any:
    total: Any = 0.0
    for at, weight in zip((0.5 + 0.5 * ROOTS).tolist(), (0.5 * SHARES).tolist(), strict=True):
        total += weight * jnp.exp(jnp.minimum(-at * (slope + 0.5 * curvature * at), 1.0))
    return total


def _falling(slope: Any, curvature: Any) -> Any:
    """∫_0^1 exp(-slope u - curvature u²/2) du, where the exponent is largest at 0."""
    bend = jnp.abs(curvature)
    root = jnp.sqrt(2.0 * jnp.maximum(bend, 1e-300))
    last = jnp.exp(-jnp.maximum(slope + 0.5 * curvature, 0.0))
    near, far = slope / root, (slope + curvature) / root
    convex = math.sqrt(math.pi) / root * (_erfcx(near) - last * _erfcx(jnp.maximum(far, 0.0)))
    concave = 2.0 / root * (_dawson(near) - last * _dawson(far))
    straight = (1.0 - last) / jnp.maximum(slope, 1e-300)
    level = math.sqrt(math.pi) / root * erf(0.5 * root)
    bent = jnp.where(curvature > 0.0, convex, concave)
    found = jnp.where(bend < jnp.minimum(1e-17 * slope * slope, 0.5 * slope), straight, bent)
    found = jnp.where(slope + 0.5 * bend < 1.0, _flat(slope, curvature), found)
    return jnp.where((slope == 0.0) & (curvature > 0.0), level, found)


def _erfcx(x: Any) -> Any:
    """exp(x²) erfc(x) for x >= 0."""
    small = jnp.minimum(x, 5.0)
    fraction = large = jnp.maximum(x, 5.0)
    for n in range(16, 0, -1):
        fraction = large + 0.5 * n / fraction
    return jnp.where(x < 5.0, jnp.exp(small * small) * erfc(small), 1.0 / (fraction * math.sqrt(math.pi)))


def _dawson(x: Any) -> Any:
    """exp(-x²) ∫_0^x exp(t²) dt: the series of `_truncated` with as many terms as the largest x needs."""
    size = jnp.abs(x)
    small = jnp.minimum(size, 6.5)
    square = small * small

    def add(k: Any, sums: Any) -> Any:
        series, power = sums  # power is x^(2k+1) / k!
        return series + power / (2 * k + 1), power * square / (k + 1)

    series, _ = jax.lax.fori_loop(0, 160, add, (jnp.zeros_like(small), small))
    large = jnp.maximum(size, 6.5)

    def add_far(k: Any, sums: Any) -> Any:
        asymptotic, term = sums
        return asymptotic + term, term * (k + 0.5) / (large * large)

    asymptotic, _ = jax.lax.fori_loop(0, 29, add_far, (jnp.zeros_like(large), 0.5 / large))
    return jnp.sign(x) * jnp.where(size < 6.5, jnp.exp(-square) * series, asymptotic)
