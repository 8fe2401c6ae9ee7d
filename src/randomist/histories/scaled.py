"""Told samples of a box whose decisions carry their own scale, and weighted means at any point and scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from randomist._types import Array
from randomist.histories.box import Growing
from randomist.importance import scales


class ScaledHistory:
    """Everything in coordinates where the box is the unit cube. Telling costs O(t d), a mean O(t d) per point."""

    def __init__(self, dimension: int) -> None:
        self.points = Growing(dimension)  # of every play
        self.scales = Growing()
        self.mediators = Growing(dimension)
        self.payoffs = Growing()  # in [0, 1]
        self.log_mixture = Growing()  # log Σ_j p_j(z_i)

    def __len__(self) -> int:
        return self.payoffs.used

    def append(self, point: Array, scale: float, mediator: Array, payoff: float) -> None:
        """One more sample, payoff in [0, 1]."""
        told = len(self)
        self.points.append(point)
        self.scales.append(scale)
        plays = self.points.array, self.scales.array
        scales.add_play(self.mediators.array, self.log_mixture.array, told, *plays, told)
        self.mediators.append(mediator)
        self.payoffs.append(payoff)
        self.log_mixture.append(scales.mixture_at(self.mediators.array, told, *plays, told + 1))

    def append_again(self, point: Array, scale: float, mediator: Array, payoff: float, log_mixture: float) -> None:
        """A sample of a saved history, with what was known of it in the end: O(d)."""
        for column, entry in (
            *((self.points, point), (self.scales, scale), (self.mediators, mediator)),
            *((self.payoffs, payoff), (self.log_mixture, log_mixture)),
        ):
            column.append(entry)

    def weighted_means(self, points: Array, scale: float, payoffs: Array | None = None) -> tuple[Array, Array, Array]:
        """The self-normalised estimate at points of one scale, the samples that share it, and log coverage.  (n,) each

        `payoffs` may be another function of the samples than what was told.
        """
        means: tuple[Array, Array, Array] = scales.weighted_means(
            np.ascontiguousarray(points),
            scale,
            self.mediators.array,
            self.log_mixture.array,
            self.payoffs.array if payoffs is None else payoffs,
            len(self),
        )
        return means

    def drawn_means(self, points: Array, scale: float, wider: float, neighbours: float) -> Array:
        """The self-normalised estimate at a scale, drawn towards a wider one by as many `neighbours`.  (n,)"""
        value: Array = scales.drawn_means(
            np.ascontiguousarray(points),
            scale,
            wider,
            neighbours,
            self.mediators.array,
            self.log_mixture.array,
            self.payoffs.array,
            len(self),
        )
        return value

    def state(self) -> dict[str, Any]:
        """The one cache that depends on the order of additions; the rest follows from the record."""
        return {"log_mixture": self.log_mixture.rows.copy()}
