"""Connections over which nothing comes are closed: they cost a file each, and whoever holds many keeps others out."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """One client's connection. A whole head of a request must come within `header_timeout` seconds, or 0.7 of that.

    The body has a limit of its own (`LimitRequests`), and between requests uvicorn waits for `timeout_keep_alive`.
    """

    header_timeout = 10.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()  # a request is under way
        elif self._deadline is None:
            seconds = self.header_timeout * random.uniform(0.7, 1.0)  # thousands that came at once do not go at once
            self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def patient(header_timeout: float) -> type[Any]:
    """Connections that wait so long for a head."""
    return type("Connection", (Connection,), {"header_timeout": header_timeout})
