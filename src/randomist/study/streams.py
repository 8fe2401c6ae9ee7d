"""Which random numbers a trial of a study draws from.

Trial n draws from `SeedSequence(seed, spawn_key=(2, n))`, so nothing but its number has to be kept. Where many workers
ask at once, two of them would draw the same for the same n, and the slower one would have to draw again. So a worker
that lost a race draws from streams of its own for a while, `(3, *salt, i)`, whatever number its trial gets.
"""

from __future__ import annotations

import itertools
import os
import secrets
from typing import NamedTuple

CROWDED = 64  # asks from streams of its own after a race was lost


class Stream(NamedTuple):
    """Where one trial draws from."""

    key: tuple[int, ...]  # of the seed sequence
    text: str | None  # as it is stored, None where it follows from the trial's number


class Streams:
    """The streams of one worker."""

    def __init__(self) -> None:
        self._crowded = 0
        self._salt: tuple[int, tuple[int, ...]] = (0, ())  # the process, and four words of its own
        self._numbers = itertools.count()

    @property
    def own(self) -> bool:
        """Whether the worker draws from streams of its own at the moment."""
        return self._crowded > 0

    def take(self, first: int, n: int) -> list[Stream]:
        """Streams of `n` trials, the first of which should get the number `first`."""
        if not self.own:
            return [Stream((2, first + i), None) for i in range(n)]
        salt = self._own_salt()
        words = "".join(f"{word:08x}" for word in salt)
        return [Stream((3, *salt, i), f"{words}:{i}") for i in itertools.islice(self._numbers, n)]

    def lost_race(self) -> None:
        """Another worker was faster."""
        self._crowded = CROWDED

    def asked(self, n: int) -> None:
        """The trials of the last `take` were written."""
        self._crowded = max(0, self._crowded - n)

    def _own_salt(self) -> tuple[int, ...]:
        if self._salt[0] != os.getpid():  # a forked worker must not repeat its parent
            self._salt = os.getpid(), tuple(secrets.randbits(32) for _ in range(4))
        return self._salt[1]
