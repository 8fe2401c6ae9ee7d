"""What one client may ask of the service: so much at a time, and so often. Plain ASGI, before anything is parsed."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from randomist.study.service.auth import Holder, Tokens

MOST_CLIENTS = 4096  # whose rates are remembered


@dataclass(frozen=True)
class Limits:
    """What the service puts up with. Times are in seconds."""

    body: int = 65_536  # bytes of a request's body
    rate: float = 500.0  # requests per second of one token, or of one address without
    burst: float = 1000.0  # and how many of them at once
    guesses: float = 60.0  # requests with a wrong token in a minute, of one address
    requests: int = 512  # under way at once; those who watch are among them
    watchers: int = 256  # those who watch
    header_timeout: float = 10.0  # until a request's head is there
    body_timeout: float = 20.0  # until its body is there
    idle_timeout: float = 30.0  # between two requests of one connection


class Allowances:
    """So much per second for each client, and `burst` at once; those who were seen last are remembered."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # of each client: allowance, when

    def wait(self, who: str) -> float:
        """Seconds until a client may go on; 0 if now."""
        return max(0.0, (1 - self._now(who)) / self.rate)

    def take(self, who: str) -> None:
        """It went on."""
        self._left[who] = (max(self._now(who) - 1, 0.0), time.monotonic())
        self._left.move_to_end(who)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)

    def _now(self, who: str) -> float:
        now = time.monotonic()
        allowance, then = self._left.get(who, (self.burst, now))
        return min(self.burst, allowance + (now - then) * self.rate)


class LimitRequests:
    """Finds out who asks, for everything behind it (`scope["state"]["holder"]`), and refuses what is too much."""

    def __init__(self, app: ASGIApp, limits: Limits, tokens: Tokens) -> None:
        self.app, self.limits, self.tokens = app, limits, tokens
        self._open = 0
        self._requests = Allowances(limits.rate, limits.burst)
        self._guesses = Allowances(limits.guesses / 60, limits.guesses)
        self._welcome: OrderedDict[tuple[str, str], None] = OrderedDict()  # addresses with the tokens that they have

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("authorization")
        holder = self.tokens.holder(given)
        scope.setdefault("state", {})["holder"] = holder
        address = (scope.get("client") or ("?", 0))[0]
        free = scope["path"] == "/healthz"
        if not free and self._open >= self.limits.requests:
            await _answer(send, 503, "BusyError", f"{self._open} requests are under way; try again", 1)
            return
        if not free and (wait := self._wait(holder, given is not None, address)) > 0:
            await _answer(send, 429, "RateError", f"too many requests; try again in {wait:.2f} s", int(wait) + 1)
            return
        announced = headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self.limits.body:
            await self._too_large(send)
            return
        self._open += not free
        try:
            await self._serve(scope, receive, send)
        finally:
            self._open -= not free

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """No endpoint takes a stream, so the whole body is here before anything looks at it."""
        body, more = bytearray(), True
        with anyio.move_on_after(self.limits.body_timeout) as patience:
            while more and len(body) <= self.limits.body:
                message = await receive()
                if message["type"] != "http.request":
                    return
                body += message.get("body", b"")
                more = message.get("more_body", False)
        if patience.cancelled_caught:
            limit = f"a request's body must be there within {self.limits.body_timeout:g} s"
            await _answer(send, 408, "SlowError", limit)
            return
        if len(body) > self.limits.body:
            await self._too_large(send)
            return
        given_back = False

        async def again() -> Message:
            nonlocal given_back
            if given_back:
                return await receive()
            given_back = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, again, send)

    async def _too_large(self, send: Send) -> None:
        await _answer(send, 413, "SizeError", f"a request's body has at most {self.limits.body} bytes")

    def _wait(self, holder: Holder | None, has_token: bool, address: str) -> float:
        """Seconds until this client may ask again; 0 if now.

        An address that guessed too often gets no answer with any token but those that it has shown before: else a right
        guess would still be seen.
        """
        who = holder.name if has_token and holder else f"address {address}"
        if has_token and (address, who) not in self._welcome:
            if (wait := self._guesses.wait(address)) > 0:
                return wait
            if holder is None:
                self._guesses.take(address)
            else:
                self._welcome[address, who] = None
                if len(self._welcome) > MOST_CLIENTS:
                    self._welcome.popitem(last=False)
        wait = self._requests.wait(who)
        if wait == 0:
            self._requests.take(who)
        return wait


async def _answer(send: Send, status: int, error: str, message: str, retry: int | None = None) -> None:
    content = json.dumps({"error": error, "message": message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    if retry is not None:
        headers.append((b"retry-after", str(retry).encode()))
    if status in (408, 413):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
