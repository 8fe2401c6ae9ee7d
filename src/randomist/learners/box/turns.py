"""What a round of a search in a box is for, by its number: to begin, to see, to go ahead, or to play a point again."""

from __future__ import annotations

import math
from typing import Any

OPENING = 3, 16  # points that fill the box at first: one more than dimensions, between these bounds
LOOKS = 4  # times as many rounds from one look to the next
REPLAY = 8  # one of so many rounds plays the last point once more: what differs is noise, and nothing else
EARLY = 64  # rounds, of which it is half as many: all that was seen counts more than how well
EVERY, LONG = 4, 256  # one of so many rounds may be a stride, and half as many after so many rounds
REST = 8  # fruitless scouts that double the wait for the next one
LONGEST = 16.0  # rounds between two scouts, at most, as long as all may be noise
LOST = 24  # fruitless scouts after which, as long as all may be noise, every other round is played anywhere


def opening(dimension: int) -> int:
    """How many points fill the box at first."""
    return min(max(dimension + 1, OPENING[0]), OPENING[1])


def looks(id_: int, opening: int, scouted: int) -> bool:
    """Whether a trial goes where least was seen: the 16th, the 64th, the 256th and so on, if no scout went of late.

    With an opening of three points, in one and two dimensions, the 4th is the first of them. All that was seen may be
    one poor basin whose ceiling looks like the best there is.
    """
    power = LOOKS ** round(math.log(max(id_, 1), LOOKS))
    return id_ == power > opening and scouted < id_ // LOOKS


def replays(ids: Any, opening: int) -> Any:
    """Which trials play a point once more."""
    return (ids >= opening) & (ids % REPLAY == 0) & ((ids >= EARLY) | (ids % (2 * REPLAY) == 0))


def strides(id_: int) -> bool:
    """Whether a trial may be a stride."""
    return id_ % (EVERY if id_ < LONG else 2 * EVERY) == EVERY // 2


def scouts(since: int, fruitless: int, noise: bool) -> bool:
    """Whether so many rounds after the last scout the next may go: the more of them found nothing, the later.

    As long as all that was seen may be noise, it does not wait longer and longer: there is nothing to lose.
    """
    wait: float = 2.0 ** min(fruitless / REST, 64)  # as good as never, and no overflow
    return since >= (min(wait, LONGEST) if noise else wait)


def wanders(id_: int, fruitless: int, noise: bool) -> bool:
    """Whether a trial plays anywhere: every other one where many scouts found nothing, and all may be noise still."""
    return noise and fruitless >= LOST and id_ % 2 == 1
