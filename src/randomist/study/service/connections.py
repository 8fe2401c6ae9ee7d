"""Connections over which nothing goes are closed: they cost a file and what is not sent, and whoever holds many keeps
others out.
"""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

STALL = 10.0  # seconds in which a client must take something of its answer


class Connection(H11Protocol):
    """One client's connection. A whole head of a request must come within `header_timeout` seconds, or 0.7 of that.
    A client that takes nothing of its answer for some seconds is cut off.

    The body has a limit of its own (`LimitRequests`), and between requests uvicorn waits for `timeout_keep_alive`.
    """

    header_timeout = 10.0
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # nothing more is made before the last piece was taken
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # else some MB may lie in the kernel, and who is slow seems to stall
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 2**16)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._flows()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._flows()
        super().resume_writing()

    def _wait_for(self, left: int) -> None:
        """Look again whether less is left to send by then."""

        def look() -> None:
            now = self.transport.get_write_buffer_size()
            if now < left:
                self._wait_for(now)
            else:
                self.transport.abort()  # `close` would wait for what is not taken

        self._stalled = self.loop.call_later(STALL, look)

    def _flows(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

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
