"""What one client may ask of the service: so much at a time, and so often. Plain ASGI, before anything is parsed."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from randomist.errors import ServiceError
from randomist.study.service.auth import NEEDED, Tokens

MOST_CLIENTS = 4096  # whose rates are remembered
LINGER = 1.0  # seconds for the rest of a body that is not wanted


@dataclass(frozen=True)
class Limits:
    """What the service puts up with. Times are in seconds."""

    body: int = 65_536  # bytes of a request's body
    rate: float = 500.0  # requests per second of one token, or of one address without
    burst: float = 1000.0  # and how many of them at once
    guesses: float = 60.0  # requests with a wrong token in a minute, of one address
    requests: int = 512  # under way at once; those who watch are among them (see `Places`)
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


class Places:
    """So many things at once. A token may take as many as it leaves free: others always find some.

    One alone gets half of them; where two take all that they can, each gets a third.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, who: str) -> Iterator[None]:
        taken, mine = self._taken.total(), self._taken[who]
        if mine >= self.most - taken:
            raise ServiceError(
                f"{taken} of {self.most} such requests are under way, {mine} of them yours; try again", 503
            )
        self._taken[who] += 1
        try:
            yield
        finally:
            self._taken[who] -= 1
            if not self._taken[who]:
                del self._taken[who]


class LimitRequests:
    """Finds out who asks, for everything behind it (`scope["state"]["holder"]`), and refuses what is too much.

    Without a token there is nothing to do that takes a body, or long: such requests take no place, and their bodies
    are not waited for. `scope["state"]["places"]` is for what a request takes until its answer is over.
    """

    def __init__(self, app: ASGIApp, limits: Limits, tokens: Tokens) -> None:
        self.app, self.limits, self.tokens = app, limits, tokens
        self._places = Places(limits.requests)
        self._requests = Allowances(limits.rate, limits.burst)
        self._guesses = Allowances(limits.guesses / 60, limits.guesses)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers, state = Headers(scope=scope), scope.setdefault("state", {})
        given = headers.get("authorization")
        state["holder"] = holder = self.tokens.holder(given)
        if scope["path"] == "/healthz":
            await self.app(scope, receive, send)
            return
        address = f"address {(scope.get('client') or ('?', 0))[0]}"
        guessed = given is not None and holder is None
        who = holder.name if holder is not None and given is not None else address
        wait = max(self._requests.wait(who), self._guesses.wait(address) if guessed else 0.0)
        if wait > 0:
            said = f"too many requests{' with wrong tokens' * guessed}; try again in {wait:.2f} s"
            await _answer(send, 429, "RateError", said, retry=int(wait) + 1)
            return
        self._requests.take(who)
        if guessed:
            self._guesses.take(address)
        length = headers.get("content-length", "0")
        if holder is None:
            if length == "0" and "transfer-encoding" not in headers:
                await self.app(scope, receive, send)  # a page, or what says 401
            else:
                await self._turn_away(receive, send, 401, "TokenError", NEEDED)
            return
        if not length.isdecimal() or int(length) > self.limits.body:
            await self._too_large(receive, send)
            return
        with contextlib.ExitStack() as places:
            try:
                places.enter_context(self._places.taken(holder.name))
            except ServiceError as busy:
                await _answer(send, 503, "BusyError", str(busy), retry=1)
                return
            state["places"] = places
            await self._serve(scope, receive, send)

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
            await _answer(send, 408, "SlowError", limit, close=True)
            return
        if len(body) > self.limits.body:
            await self._too_large(receive, send)
            return
        given_back = False

        async def again() -> Message:
            nonlocal given_back
            if given_back:
                return await receive()
            given_back = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        async def taken(message: Message) -> None:
            """The end of an answer waits until its client took the rest: until then the answer is in memory."""
            if message["type"] == "http.response.body" and message.get("body") and not message.get("more_body"):
                await send({**message, "more_body": True})
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        await self.app(scope, again, taken)

    async def _too_large(self, receive: Receive, send: Send) -> None:
        said = f"a request's body has at most {self.limits.body} bytes"
        await self._turn_away(receive, send, 413, "SizeError", said)

    async def _turn_away(self, receive: Receive, send: Send, status: int, error: str, said: str) -> None:
        """Answer at once. A connection closed on a body that still comes could take the answer with it, so that is
        thrown away for a moment.
        """
        await _answer(send, status, error, said, close=True, more=True)
        left, more = self.limits.body, True
        with anyio.move_on_after(LINGER):
            while more and left > 0:
                message = await receive()
                left, more = left - len(message.get("body", b"")), message.get("more_body", False)
        await send({"type": "http.response.body", "body": b""})


async def _answer(
    send: Send, status: int, error: str, said: str, *, retry: int | None = None, close: bool = False, more: bool = False
) -> None:
    content = json.dumps({"error": error, "message": said}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    headers += [(b"retry-after", str(retry).encode())] if retry is not None else []
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    headers += [(b"connection", b"close")] if close else []
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": more})
