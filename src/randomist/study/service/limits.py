"""What one client may ask of the service: so much at a time, and so often. Plain ASGI, before anything is parsed."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from randomist.study.service.auth import Tokens

MOST_CLIENTS = 4096  # whose rates are remembered


@dataclass(frozen=True)
class Limits:
    """Bytes of a request's body; requests per second of one token or address, and how many of them at once."""

    body: int = 65_536
    rate: float = 500.0
    burst: float = 1000.0


class LimitRequests:
    """Answers 413 and 429 by itself."""

    def __init__(self, app: ASGIApp, limits: Limits, tokens: Tokens) -> None:
        self.app, self.limits, self.tokens = app, limits, tokens
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # of each client: allowance, when

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if scope["path"] != "/healthz" and (wait := self._wait(scope, headers)) > 0:
            await _answer(send, 429, "RateError", f"too many requests; try again in {wait:.2f} s", int(wait) + 1)
            return
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > self.limits.body:
            await self._too_large(send)
            return
        body, more = bytearray(), True
        while more:  # no endpoint takes a stream, so the whole body is here before anything looks at it
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.limits.body:
                await self._too_large(send)
                return
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, again, send)

    async def _too_large(self, send: Send) -> None:
        await _answer(send, 413, "SizeError", f"a request's body has at most {self.limits.body} bytes")

    def _wait(self, scope: Scope, headers: dict[bytes, bytes]) -> float:
        """Seconds until this client may ask again; 0 if now."""
        holder = self.tokens.holder(
            headers[b"authorization"].decode("latin-1") if b"authorization" in headers else None
        )
        address = (scope.get("client") or ("?", 0))[0]
        who = f"address {address}" if holder is None or holder.name == "public" else holder.name
        now = time.monotonic()
        allowance, then = self._left.pop(who, (self.limits.burst, now))
        allowance = min(self.limits.burst, allowance + (now - then) * self.limits.rate)
        self._left[who] = (max(allowance - 1, 0.0) if allowance >= 1 else allowance, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowance >= 1 else (1 - allowance) / self.limits.rate


async def _answer(send: Send, status: int, error: str, message: str, retry: int | None = None) -> None:
    content = json.dumps({"error": error, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if retry is not None:
        headers.append((b"retry-after", str(retry).encode()))
    if status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
