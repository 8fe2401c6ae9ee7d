"""A line for every request, as text or as JSON, and an id by which a client's report finds it.

The id is the request's `X-Request-Id` where it has a sane one (a proxy may give it), else a new one; every answer has
it. Bodies, tokens and queries are never written.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from contextvars import ContextVar
from typing import Any, Literal

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Format = Literal["text", "json"]
FORMATS: tuple[Format, ...] = ("text", "json")
LOGGER = "randomist.service"
QUIET = ("/healthz", "/metrics")  # asked all the time: a line only where something was wrong
ABORTED = 499  # the client went before it had an answer
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str | None] = ContextVar("request", default=None)


class RecordRequests:
    """Gives every request an id, and writes a line when it was answered."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._log = logging.getLogger(LOGGER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given, started, status = Headers(scope=scope).get("x-request-id", ""), time.perf_counter(), ABORTED
        id_ = given if _ID.fullmatch(given) else uuid.uuid4().hex
        _current.set(id_)

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = id_
            await send(message)

        try:
            await self.app(scope, receive, named)
        except BaseException:
            status = 500
            raise
        finally:
            self._write(scope, status, time.perf_counter() - started)

    def _write(self, scope: Scope, status: int, seconds: float) -> None:
        if scope["path"] in QUIET and status < 400:
            return
        holder = scope.get("state", {}).get("holder")
        said = {
            "method": scope["method"],
            "path": scope["path"][:200],
            "status": status,
            "seconds": round(seconds, 6),
            "client": (scope.get("client") or ("?", 0))[0],
            "token": None if holder is None else holder.name,
        }
        level = logging.ERROR if status == 500 else logging.INFO
        line = f"{said['method']} {ascii(said['path'])[1:-1]} {status} {seconds * 1000:.1f} ms {said['client']}"
        self._log.log(level, "%s", line, extra={"said": said})


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "request": _current.get(),
        }
        line |= getattr(record, "said", None) or {"message": record.getMessage()}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """The time, the request's id, and what there is to say."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        said = record.getMessage() + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")
        return f"{moment} {record.levelname.lower()} {_current.get() or '-'} {said}"


def logging_config(format_: Format, level: str) -> dict[str, Any]:
    """What `logging.config.dictConfig` takes: the server's lines and ours on stderr, in one format."""
    kind = JsonLines if format_ == "json" else TextLines
    mine = {"handlers": ["stderr"], "level": level.upper(), "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": kind}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "loggers": dict.fromkeys(("uvicorn", LOGGER), mine),
    }
