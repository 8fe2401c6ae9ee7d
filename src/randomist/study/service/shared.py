"""One question to the database serves all who want to know."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import cached_property
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

from randomist.errors import RandomistError

T = TypeVar("T")


class Shared(Generic[T]):
    """What a slow function says, or the error that it raises, asked again when that is `seconds` old.

    It runs in a thread of its own, one at a time: those who wait for it take no thread from others.
    """

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._turn = asyncio.Lock()
        self._asked_at = -float("inf")
        self._said: T | RandomistError = RandomistError("nothing was asked yet")

    async def get(self) -> T:
        async with self._turn:
            if time.monotonic() - self._asked_at >= self._seconds:
                self._said = await anyio.to_thread.run_sync(self._answer, limiter=self._thread)
                self._asked_at = time.monotonic()
        if isinstance(self._said, RandomistError):
            raise self._said
        return self._said

    @cached_property
    def _thread(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(1)

    def _answer(self) -> T | RandomistError:
        try:
            return self._ask()
        except RandomistError as error:
            return error
