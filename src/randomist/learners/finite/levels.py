"""How much each decision bets on the rows of another one: known before they are drawn.

A level q divides stakes by 2^q. Where divergences are known, stakes fall with d2(p_x || p_j), because the variance of a
weighted payoff grows with it; where they are not, rows of others have a level of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array, Flags
from randomist.importance.intervals.anytime import NONE, levels_of

if TYPE_CHECKING:
    from randomist.spaces import Finite

STEEP = (1.0, 8.0, math.inf)  # how fast stakes fall with d2 - 1, in every shape; the last bets on own rows alone
PAIR_STEEP = (2.0, 16.0)  # the same for the difference of two decisions
OTHERS, PAIR_OTHERS = (0, 3, NONE), (0, 3)  # the level of other policies' rows where divergences are not known


class Source(NamedTuple):
    """What the bets on a row depend on."""

    decision: int  # the one that was played
    known: int  # how many decisions there were when it was asked


class Levels:
    """How lightly each decision bets on the rows of another: known before they are drawn."""

    def __init__(self) -> None:
        self._excess: dict[int, Array] = {}  # d2(p_x || p_j) - 1 of every decision x, by source j

    def to(self, space: Finite, source: int, known: int) -> NDArray[np.int8]:
        """Of bets on means, for rows of `source`, if the first `known` decisions were there.  (C, K)"""
        if not space.family.divergences_known:
            return _of_known(_unless(np.arange(space.size) == source, OTHERS), known)
        excess = self._excess_to(space, source)
        return _of_known(np.stack([levels_of(excess, steep) for steep in STEEP]), known)

    def of_pairs(self, space: Finite, leader: int, source: int, known: int) -> NDArray[np.int8]:
        """Of bets on differences to the leader, with both decisions in one bet.  (C, K)"""
        known = known if leader < known else 0
        if not space.family.divergences_known:
            return _of_known(_unless((np.arange(space.size) == source) | (source == leader), PAIR_OTHERS), known)
        excess = self._excess_to(space, source)
        return _of_known(np.stack([levels_of(excess + excess[leader], steep) for steep in PAIR_STEEP]), known)

    def apart(self, space: Finite, leader: int, source: int, known: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Of bets on the leader's mean, one for each rival, and on the rivals': rows go to the one they are more like.

        (C, K), (C, K)
        """
        of_rivals = self.to(space, source, known if leader < known else 0)
        of_leader = _of_known(np.repeat(of_rivals[:, leader, None], space.size, axis=1), known)
        if space.family.divergences_known:
            excess = self._excess_to(space, source)
            to_leader = excess[leader] < excess
        else:
            to_leader = np.full(space.size, source == leader)
        never = np.int8(NONE)
        return np.where(to_leader, of_leader, never), np.where(to_leader, never, of_rivals)

    def _excess_to(self, space: Finite, source: int) -> Array:
        excess = self._excess.get(source)
        if excess is None or len(excess) < space.size:
            with np.errstate(over="ignore"):
                excess = np.expm1(space.log_divergences_to(source)[: space.size])
            excess[source] = 0.0
            self._excess[source] = excess
        return excess


def _unless(own: Flags, levels: Sequence[int]) -> NDArray[np.int8]:
    """Level 0 of own rows, and these of others.  (K,) -> (C, K)"""
    return np.stack([np.where(own, 0, level).astype(np.int8) for level in levels])


def _of_known(levels: NDArray[np.int8], known: int) -> NDArray[np.int8]:
    """No bets on decisions that came later: they may have been made with these rows in view."""
    levels[:, known:] = NONE
    return levels
