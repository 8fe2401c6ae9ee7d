"""Points that fill a box evenly, one after the other."""

from __future__ import annotations

import numpy as np

from randomist._types import Array
from randomist.importance.passes import surface as passes

PLACES = 64  # that are looked at


def filling_point(number: int, shift: Array) -> Array:
    """Point `number` of a sequence in the unit cube of low discrepancy, moved by `shift`.  (d,) -> (d,)

    A Kronecker sequence whose steps are powers of the root of x^(d+1) = x + 1 (Roberts 2018).
    """
    d = shift.size
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (d + 1))
    point: Array = np.mod(shift + number * root ** -np.arange(1.0, d + 1), 1.0)
    return point


def farthest_point(known: Array, rng: np.random.Generator) -> Array:
    """Of some random points of the unit cube, the one that is farthest from all that are known.  (n, d) -> (d,)"""
    places = rng.random((PLACES, known.shape[1]))
    point: Array = places[int(np.argmax(passes.nearest(places, known)))]
    return point
