"""Where BBOB 2009 puts the optimum of an ellipsoid, how it turns it, and the value at the optimum of any function.

N. Hansen, S. Finck, R. Ros and A. Auger, Real-Parameter Black-Box Optimization Benchmarking 2009: Noiseless Functions
Definitions, INRIA RR-6829; the random numbers are those of its reference code, which COCO keeps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MULTIPLIER, MODULUS = 16807, 2**31 - 1  # Park and Miller's generator
SHUFFLED = 32  # numbers between which Bays and Durham choose


def uniform(n: int, seed: int) -> Array:
    """(n,)"""
    state, table = max(abs(seed), 1), list[int]()
    for _ in range(SHUFFLED + 8):
        state = MULTIPLIER * state % MODULUS
        table.append(state)
    table = table[: -SHUFFLED - 1 : -1]  # the last first
    drawn, numbers = table[0], []
    for _ in range(n):
        state = MULTIPLIER * state % MODULUS
        k = drawn // 67108865
        drawn, table[k] = table[k], state
        numbers.append(drawn / MODULUS or 1e-99)
    return np.array(numbers)


def gauss(n: int, seed: int) -> Array:
    """(n,)"""
    first, second = uniform(2 * n, seed).reshape(2, n)
    numbers: Array = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
    return np.where(numbers == 0, 1e-99, numbers)


def best_value(twin: int, instance: int) -> float:
    """f at the optimum, of a function of the noiseless suite."""
    seed = twin + 10_000 * instance
    ratio = float(gauss(1, seed)[0] / gauss(1, seed + 1)[0])
    return min(1000.0, max(-1000.0, math.floor(100 * 100 * ratio + 0.5) / 100))


def ellipsoid(points: Array, instance: int, conditioning: float) -> Array:
    """The rotated ellipsoid: f10 of the noiseless suite at 1e6, f116 to f118 at 1e4.  (n, d) -> (n,)"""
    d, seed = points.shape[-1], 10 + 10_000 * instance
    place = 8 * np.floor(1e4 * uniform(d, seed)) / 1e4 - 4
    place = np.where(place == 0, -1e-5, place)
    q, r = np.linalg.qr(gauss(d * d, seed + 1_000_000).reshape(d, d, order="F"))
    rotation = q * np.sign(np.diag(r))  # Gram and Schmidt's, column after column
    z = _oscillated((points - place) @ rotation.T)
    weights = conditioning ** np.linspace(0.0, 1.0, d)
    return z**2 @ weights + best_value(10, instance)


def _oscillated(x: Array) -> Array:
    """T_osz: smooth local irregularities, coordinate by coordinate."""
    with np.errstate(divide="ignore"):
        log = np.where(x == 0, 0.0, np.log(np.abs(x))) / 0.1
    up, down = np.where(x > 0, 1.0, 0.55), np.where(x > 0, 0.79, 0.31)
    oscillated: Array = np.sign(x) * np.exp(log + 0.49 * (np.sin(up * log) + np.sin(down * log))) ** 0.1
    return oscillated
