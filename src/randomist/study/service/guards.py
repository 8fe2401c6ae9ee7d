"""What every answer says to a browser: it is what it says it is, is not kept, and does not go into another page."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

GUARDS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


class GuardAnswers:
    """Adds the headers to every answer, also to those that refuse."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(GUARDS)
                headers.setdefault("Cache-Control", "no-store")  # but the page's own files
            await send(message)

        await self.app(scope, receive, guarded)
