"""Where a learner searches: a finite set of decisions, or a box of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist.errors import EmptySpaceError, ParameterError, ShapeError, StateError
from randomist.families import Family, Gaussian, Mixed, family_from_state
from randomist.families.base import Array, Indices, finite_array


@dataclass(frozen=True, eq=False)
class Finite:
    """K decisions 0..K-1: the members of one family, or of a list of families, one after the other.

    >>> Finite(Gaussian(mean=[0, 1, 2], std=0.5)).size
    3
    """

    family: Family
    size: int = field(init=False)

    def __init__(self, family: Family | Sequence[Family]) -> None:
        if not isinstance(family, Family):
            if not isinstance(family, Sequence) or not all(isinstance(part, Family) for part in family):
                raise ParameterError(f"a Finite space is made of a family or a list of families, got {family!r}")
            if not len(family):
                raise EmptySpaceError("a Finite space needs at least one decision, got an empty list of families")
            family = Mixed(tuple(family))
        if family.members is None:
            raise ParameterError(
                f"{family!r} has no members; give it a mean, lay a grid with Finite.grid(family, low, high, points), "
                "or search a continuum with Box(family, low, high)"
            )
        object.__setattr__(self, "family", family)
        object.__setattr__(self, "size", family.members)

    @classmethod
    def grid(cls, family: Gaussian, low: ArrayLike, high: ArrayLike, points: int | Sequence[int]) -> Finite:
        """`points` decisions per dimension, evenly spaced from `low` to `high`, ends included."""
        box = Box(family, low, high)
        lows, highs = np.atleast_1d(box.low), np.atleast_1d(box.high)
        if np.shape(points) not in ((), lows.shape):
            raise ShapeError(f"points must be one number, or one per dimension ({lows.size}), got {points}")
        counts = np.broadcast_to(np.asarray(points), lows.shape)
        if not np.issubdtype(counts.dtype, np.integer) or (counts < 1).any():
            raise EmptySpaceError(f"points must be whole numbers >= 1, got {points}")
        axes = [np.linspace(lo, hi, n) for lo, hi, n in zip(lows, highs, counts, strict=True)]
        mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)  # (K, d)
        return cls(family.at(mesh.reshape(-1, *family.shape)))

    @property
    def points(self) -> Array | None:
        """Where each decision lies, where the family says it.  (K, d)"""
        return self.family.points

    def log_divergences_to(self, other: int) -> Array:
        """D_2(p_x || p_other) for every decision x.  (K,)"""
        return self.family.log_renyi(None, [other])[:, 0]

    def uninformed(self) -> Indices:
        """Decisions x with v(x) = max_x' d2(p_x || p_x') = inf (Remark 1), in index order."""
        block = max(1, 2**20 // self.size)  # never more than a few MiB at a time, however large K is
        starts = range(0, self.size, block)
        rows = (self.family.log_renyi(np.arange(s, min(s + block, self.size)), None) for s in starts)
        return np.flatnonzero(np.concatenate([np.isinf(row).any(axis=1) for row in rows]))

    def state(self) -> dict[str, Any]:
        return {"kind": "Finite", "family": self.family.state()}


@dataclass(frozen=True, eq=False)
class Box:
    """Every point between `low` and `high`: the decision is the location of a location family.

    >>> Box(Gaussian(std=[0.15, 3.0]), low=[-1, 0], high=[1, 20]).dimension
    2
    """

    family: Gaussian
    low: Array
    high: Array

    def __init__(self, family: Gaussian, low: ArrayLike, high: ArrayLike) -> None:
        if family.members is not None:
            raise ParameterError("a Box is searched by a family without a mean, such as Gaussian(std=0.15)")
        low, high = _bound(low, "low", family.shape), _bound(high, "high", family.shape)
        if not (low < high).all():
            raise EmptySpaceError(f"low must be below high in every dimension, got low={low} and high={high}")
        for name, value in (("family", family), ("low", low), ("high", high)):
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        return max(1, self.low.size)

    def contains(self, decisions: ArrayLike) -> np.typing.NDArray[np.bool_]:
        """Which decisions lie in the box.  (n,)"""
        rows = self.family._rows(decisions, "decisions")
        outside = (rows < self.low.reshape(-1)) | (rows > self.high.reshape(-1))
        inside: np.typing.NDArray[np.bool_] = outside.sum(axis=1) == 0
        return inside

    def state(self) -> dict[str, Any]:
        return {"kind": "Box", "family": self.family.state(), "low": self.low, "high": self.high}


def _bound(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    """One side of a box, spread over its dimensions."""
    array = finite_array(value, name)
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise ShapeError(f"{name} must be a number or have the family's shape {shape}, got {array.shape}") from None


Space = Finite | Box


def space_from_state(state: dict[str, Any]) -> Space:
    """Undo `Finite.state` and `Box.state`."""
    try:
        kind, family = state["kind"], family_from_state(state["family"])
        if kind == "Finite":
            return Finite(family)
        if kind == "Box" and isinstance(family, Gaussian):
            return Box(family, state["low"], state["high"])
    except (KeyError, TypeError) as error:
        raise StateError(f"no space can be read from {state!r} ({error!r})") from error
    raise StateError(f"no {kind!r} of a {type(family).__name__} is known; spaces are Finite, and Box of a Gaussian")
