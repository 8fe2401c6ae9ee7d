"""What one client may ask of the service: so much at a time, and so often. Plain ASGI, before anything is parsed."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from randomist.study.service.auth import Holder, Tokens

MOST_CLIENTS = 4096  # whose rates are remembered


@dataclass(frozen=True)
class Limits:
    """Bytes of a request's body; requests per second of one token or address, and how many of them at once; how many
    requests with a wrong token an address may send in a minute.
    """

    body: int = 65_536
    rate: float = 500.0
    burst: float = 1000.0
    guesses: float = 60.0


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
    """Finds out who asks, for everything behind it (`scope["state"]["holder"]`), and answers 413 and 429 by itself."""

    def __init__(self, app: ASGIApp, limits: Limits, tokens: Tokens) -> None:
        self.app, self.limits, self.tokens = app, limits, tokens
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
        if scope["path"] != "/healthz" and (wait := self._wait(holder, given is not None, address)) > 0:
            await _answer(send, 429, "RateError", f"too many requests; try again in {wait:.2f} s", int(wait) + 1)
            return
        announced = headers.get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self.limits.body:
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
    if status == 413:
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
