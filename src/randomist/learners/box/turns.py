"""What a round of a search in a box is for, by its number: to begin, to see, to go ahead, or to play a point again."""

from __future__ import annotations

from typing import Any

OPENING = 3, 16  # points that fill the box at first: one more than dimensions, between these bounds
LOOKS, FIRST = 2, 4  # places that are seen, at least, for each time that rounds double, and the first such time
REPLAY = 8  # one of so many rounds plays the last point once more: what differs is noise, and nothing else
EARLY = 64  # rounds, of which it is half as many: all that was seen counts more than how well
EVERY, LONG = 4, 256  # one of so many rounds may be a stride, and half as many after so many rounds
REST = 8  # fruitless scouts that double the wait for the next one
LONGEST = 16.0  # rounds between two scouts, at most, as long as all may be noise
LOST = 24  # fruitless scouts after which, as long as all may be noise, every other round is played anywhere


def opening(dimension: int) -> int:
    """How many points fill the box at first."""
    return min(max(dimension + 1, OPENING[0]), OPENING[1])


def places(id_: int) -> int:
    """How many places should have been seen before the 16th trial, the 32nd, the 64th and so on; 0 for all others."""
    doublings = id_.bit_length() - 1
    return LOOKS * doublings if doublings >= FIRST and id_ == 2**doublings else 0


def replays(ids: Any, opening: int) -> Any:
    """Which trials play a point once more; looks and strides have other numbers."""
    due = (ids % REPLAY == REPLAY // 2) & ((ids >= EARLY) | (ids % (2 * REPLAY) == REPLAY // 2))
    return due & (ids >= opening) & (ids > REPLAY)


def strides(ids: Any) -> Any:
    """Which trials may be strides."""
    return (ids % EVERY == EVERY // 2) & ((ids < LONG) | (ids % (2 * EVERY) == EVERY // 2))


def scouts(since: int, fruitless: int, noise: bool) -> bool:
    """Whether so many rounds after the last scout the next may go: the more of them found nothing, the later.

    As long as all that was seen may be noise, it does not wait longer and longer: there is nothing to lose.
    """
    wait: float = 2.0 ** min(fruitless / REST, 64)  # as good as never, and no overflow
    return since >= (min(wait, LONGEST) if noise else wait)


def wanders(id_: int, fruitless: int, noise: bool) -> bool:
    """Whether a trial plays anywhere: every other one where many scouts found nothing, and all may be noise still."""
    return noise and fruitless >= LOST and id_ % 2 == 1
