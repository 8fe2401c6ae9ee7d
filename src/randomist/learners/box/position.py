"""Where a search in a box is: what `Auto` keeps between two rounds, beside what was told."""

from __future__ import annotations

from dataclasses import dataclass

from randomist._types import Array, Flags, Indices
from randomist.learners.box.climbing import LARGEST
from randomist.learners.box.pool import FINEST
from randomist.learners.box.surface import USUAL


@dataclass(frozen=True, eq=False)
class Position:
    """Where the search is, in coordinates where the box is the unit cube."""

    best: Array  # the point with the largest value, as of the last search  (d,)
    firm: Array  # the point with the largest cautious mean payoff  (d,)
    scale: float = LARGEST  # s, the std of the next decision in widths of the box
    smoothness: int = USUAL[0]  # of the surface through scores: a number of its lengths
    noise: int = USUAL[1]
    payoff_smoothness: int = USUAL[0]  # of the surface through payoffs
    payoff_noise: int = USUAL[1]
    by_rank: int = 1  # whether scores are ranks, mostly, or payoffs
    all_noise: int = 0  # whether mere noise explains the samples as well as any surface
    heading: Array | float = 0.0  # where the best point goes in a round, by how it went of late  (d,)
    grain: float = FINEST  # the width of cells whose samples count as one, where there are many
    fitted: int = 0  # payoffs that these seven know
    scouted: int = 0  # the last scout's number
    judged: int = 0  # payoffs that were looked at for what scouts found
    fruitless: int = 0  # scouts that found nothing
    confirm: int = 0  # the first of the trials that play the best point to confirm it
    confirms: int = 0  # how many these are

    def confirms_with(self, ids: Indices) -> Flags:
        """Which trials are of the last confirmation, by their numbers."""
        return (ids >= self.confirm) & (ids < self.confirm + self.confirms)
