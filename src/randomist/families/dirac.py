"""Point masses: the mediator is known before it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._checks import finite_array
from randomist._types import Array
from randomist.errors import EmptySpaceError, ShapeError
from randomist.families.base import Family, check_order


@dataclass(frozen=True, eq=False)
class Dirac(Family):
    """All mass at one point: density 1 (with respect to counting) exactly there, 0 elsewhere.

    Parameters
    ----------
    at
        Where: shape (K,) gives K scalar members, (K, d) gives K members of dimension d, and a number gives one member.
    """

    discrete: ClassVar[bool] = True

    at: Array
    members: int = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _at: Array = field(init=False, repr=False)  # (K, d)

    if TYPE_CHECKING:  # the fields are arrays; what may be given is anything that becomes one

        def __init__(self, at: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        at = finite_array(self.at, "at")
        if at.ndim > 2:
            raise ShapeError(f"at must have shape (K,) or (K, d), got {at.shape}")
        if at.size == 0:
            raise EmptySpaceError(f"at of shape {at.shape} has no members; give at least one")
        members, shape = (1, ()) if at.ndim == 0 else (at.shape[0], at.shape[1:])
        for name, value in (("at", at), ("members", members), ("shape", shape), ("_at", at.reshape(members, -1))):
            object.__setattr__(self, name, value)

    @property
    def atoms(self) -> Array:
        """The points that carry mass.  (K, d)"""
        return self._at

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Array:
        return self._points(decisions).reshape(-1, *self.shape).copy()

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        return np.where(_equal(self._points(decisions), self.mediator_rows(mediators)), 0.0, -np.inf)

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        check_order(order)
        return np.where(_equal(self._points(decisions), self._points(others)), 0.0, np.inf)

    def nodes(self) -> tuple[Array, Array]:
        return self._at.reshape(-1, 1, *self.shape), np.ones((len(self._at), 1))

    def _points(self, decisions: ArrayLike | None) -> Array:
        """Where the decisions lie.  (n, d)"""
        return self._at if decisions is None else self._at[self.indices(decisions)]


def _equal(points: Array, others: Array) -> NDArray[np.bool_]:
    """Which rows are the same, to the last bit.  (n, d), (m, d) -> (n, m)"""
    equal: NDArray[np.bool_] = points[:, None, 0] == others[None, :, 0]
    for d in range(1, points.shape[1]):
        equal &= points[:, None, d] == others[None, :, d]
    return equal
