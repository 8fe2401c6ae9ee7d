"""Told samples of a box whose decisions carry their own scale, in coordinates where the box is the unit cube."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.histories.growing import Growing

if TYPE_CHECKING:
    from randomist.spaces import Box


class ScaledHistory:
    """Points, scales, mediators and payoffs of all that was told. Telling costs O(d)."""

    def __init__(self, space: Box) -> None:
        d = space.dimension
        self.space = space
        self.points = Growing(d)
        self.scales = Growing()
        self.mediators = Growing(d)
        self.payoffs = Growing()  # in [0, 1]

    def __len__(self) -> int:
        return self.payoffs.used

    def append(self, decision: ArrayLike, mediator: ArrayLike, payoff: float) -> None:
        """One more sample, payoff in [0, 1]."""
        point, scale = self.space.family.split(decision)
        self.points.append(self.space.to_unit(point))
        self.scales.append(scale)
        self.mediators.append(self.space.to_unit(mediator).reshape(-1))
        self.payoffs.append(payoff)

    def extend(self, decisions: NDArray[Any], mediators: NDArray[Any], payoffs: Array) -> None:
        """Many samples, in the order in which they were told.  (n, d + 1), (n, *shape), (n,)"""
        points, scales = self.space.family.split(decisions)
        self.points.extend(self.space.to_unit(points))
        self.scales.extend(scales)
        self.mediators.extend(self.space.to_unit(mediators.reshape(len(payoffs), -1)))
        self.payoffs.extend(payoffs)

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs in [0, 1], in the order in which they were told."""
        self.payoffs.rows[:] = payoffs

    def state(self) -> dict[str, Any]:
        """Nothing: all follows from the record."""
        return {}
