"""What bets earn, row by row, compiled: sums that do not depend on how the rows come in chunks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array

BLOCK = 32  # factors that are multiplied before a logarithm is taken


class Growth:
    """Σ_i log(1 + λ min(X_i, cap)) of every stake λ on every variable, over the rows so far."""

    def __init__(self, stakes: Array, caps: Array) -> None:
        self._stakes, self._caps = stakes, caps.tolist()  # (F, S), (F,)
        self._products, self._growth = np.ones_like(stakes), np.zeros_like(stakes)
        self._position = 0  # how many rows of the current block have been seen

    def add(self, variables: Sequence[Array]) -> None:
        """Some more rows of every variable.  F arrays of (n,)"""
        for f, (values, cap) in enumerate(zip(variables, self._caps, strict=True)):
            _add(values, self._stakes[f], cap, self._products[f], self._growth[f], self._position)
        self._position = (self._position + len(variables[0])) % BLOCK

    def take(self, growth: Array) -> None:
        """What rows have earned that were added up elsewhere, from a block's beginning to a block's end.  (F, S)"""
        self._growth = self._growth + growth

    def total(self) -> Array:
        """(F, S)"""
        return np.asarray(self._growth + np.log(self._products))


@compiled
def _add(values: Array, stakes: Array, cap: float, products: Array, growth: Array, position: int) -> None:
    """growth[j] += Σ_i log(1 + λ_j min(x_i, cap)): factors are multiplied, and one logarithm is taken every BLOCK rows.

    `position` is how many rows of the current block were seen before, so blocks begin where they begin in any chunks.
    """
    for i in range(len(values)):
        x = min(values[i], cap)
        for j in range(len(stakes)):
            products[j] *= 1.0 + stakes[j] * x
        position += 1
        if position == BLOCK:
            for j in range(len(stakes)):
                growth[j] += math.log(products[j])
                products[j] = 1.0
            position = 0


@compiled(nogil=True)
def grow(values: Array, rows: int, stakes: Array, cap: float, products: Array, growth: Array) -> None:
    """growth[j] += Σ_i log(1 + λ_j min(x_i, cap)) over the first rows, eight at a time; `products` is room to work in.

    A logarithm is taken where the next 32 factors might leave float64, and at the end: what comes out depends on the
    values alone.
    """
    for j in range(len(stakes)):
        products[j] = 1.0
    for i in range(0, rows - 7, 8):
        a, b, c, d = min(values[i], cap), min(values[i + 1], cap), min(values[i + 2], cap), min(values[i + 3], cap)
        e, f, g, h = min(values[i + 4], cap), min(values[i + 5], cap), min(values[i + 6], cap), min(values[i + 7], cap)
        for j in range(len(stakes)):
            s = stakes[j]
            first = ((1.0 + s * a) * (1.0 + s * b)) * ((1.0 + s * c) * (1.0 + s * d))
            products[j] *= first * (((1.0 + s * e) * (1.0 + s * f)) * ((1.0 + s * g) * (1.0 + s * h)))
        if i % BLOCK == BLOCK - 8:
            least, most = 1.0, 1.0
            for j in range(len(stakes)):
                least, most = min(least, products[j]), max(most, products[j])
            if most > 1e15 or least < 1e-200:
                for j in range(len(stakes)):
                    growth[j] += math.log(products[j])
                    products[j] = 1.0
    for i in range(rows - rows % 8, rows):
        a = min(values[i], cap)
        for j in range(len(stakes)):
            products[j] *= 1.0 + stakes[j] * a
    for j in range(len(stakes)):
        growth[j] += math.log(products[j])
