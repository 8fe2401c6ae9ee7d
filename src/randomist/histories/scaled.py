"""Told samples of a box whose decisions carry their own scale, and weighted means at any point and scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.histories.growing import Growing
from randomist.importance import bounds
from randomist.importance.passes import scales

if TYPE_CHECKING:
    from randomist.spaces import Box

CHUNK = 2**17  # pairs of decisions whose divergences are computed at once


class ScaledHistory:
    """Everything in coordinates where the box is the unit cube. Telling costs O(t d), a mean O(t d) per point."""

    def __init__(self, space: Box) -> None:
        d = space.dimension
        self.space = space
        self.decisions = Growing(d + 1)  # of every play, in the user's units
        self.points = Growing(d)
        self.scales = Growing()
        self.mediators = Growing(d)
        self.payoffs = Growing()  # in [0, 1]
        self.log_mixture = Growing()  # log Σ_j p_j(z_i)

    def __len__(self) -> int:
        return self.payoffs.used

    def append(self, decision: ArrayLike, mediator: ArrayLike, payoff: float) -> None:
        """One more sample, payoff in [0, 1]."""
        told = len(self)
        self._play(decision)
        plays = self.points.array, self.scales.array
        scales.add_play(self.mediators.array, self.log_mixture.array, told, *plays, told)
        self._sample(mediator, payoff)
        self.log_mixture.append(scales.mixture_at(self.mediators.array, told, *plays, told + 1))

    def append_again(self, decision: ArrayLike, mediator: ArrayLike, payoff: float, log_mixture: float) -> None:
        """A sample of a saved history, with what was known of it in the end: O(d)."""
        self._play(decision)
        self._sample(mediator, payoff)
        self.log_mixture.append(log_mixture)

    def _play(self, decision: ArrayLike) -> None:
        point, scale = self.space.family.split(decision)
        self.decisions.append(decision)
        self.points.append(self.space.to_unit(point))
        self.scales.append(scale)

    def _sample(self, mediator: ArrayLike, payoff: float) -> None:
        self.mediators.append(self.space.to_unit(np.ravel(mediator)))
        self.payoffs.append(payoff)

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs in [0, 1], in the order in which they were told."""
        self.payoffs.rows[:] = payoffs

    def estimate(self, decisions: Array, confidence: float) -> Estimates:
        """The self-normalised estimate at decisions (x, s), and the harmonic η; on the [0, 1] scale.  (n, d + 1)"""
        n, told = len(decisions), len(self)
        if not told:
            return Estimates.nothing(n)
        value, coverage = np.empty(n), np.empty(n)
        points, at_scales = self.space.family.split(decisions)
        for k, (point, scale) in enumerate(zip(self.space.to_unit(points), at_scales.tolist(), strict=True)):
            mean, _, log_coverage = self.weighted_means(point[None], scale)
            value[k], coverage[k] = mean[0], math.exp(min(log_coverage[0], 700.0))
        log_effective, plays = self._effective(decisions)
        with np.errstate(over="ignore"):
            threshold = np.exp(bounds.log_threshold(log_effective, told, confidence))
        width = bounds.width(log_effective, told, confidence)
        effective = np.maximum(np.exp(log_effective), plays)
        return Estimates(value, effective, threshold, width, plays, coverage, log_effective)

    def _effective(self, decisions: Array) -> tuple[Array, Any]:
        """log η and plays of decisions, a few at a time.  (n, d + 1) -> (n,), (n,)"""
        played = self.decisions.rows
        log_effective, plays = np.empty(len(decisions)), np.empty(len(decisions), np.int64)
        size = max(1, CHUNK // len(played))
        for start in range(0, len(decisions), size):
            rows = slice(start, start + size)
            divergence = self.space.family.log_renyi(decisions[rows], played)
            log_effective[rows] = np.logaddexp.reduce(-divergence, axis=1)
            plays[rows] = [(row == played).all(axis=1).sum() for row in decisions[rows]]
        return log_effective, plays

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
