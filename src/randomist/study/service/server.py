"""Running the service: bound to this machine unless told otherwise, and ending politely."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.config import LOGGING_CONFIG

from randomist._checks import choice
from randomist.study.service.connections import patient
from randomist.study.service.limits import Limits
from randomist.study.service.records import FORMATS, Format, logging_config

HOST, PORT = "127.0.0.1", 8431
GRACE = 10  # seconds for requests that are under way when the service is told to stop


class Server(uvicorn.Server):
    """Lets those who watch go as soon as it is told to stop; requests under way are finished."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._app.state.stopping.set()
        super().handle_exit(sig, frame)


def make_server(
    app: FastAPI,
    *,
    host: str = HOST,
    port: int = PORT,
    quiet: bool = False,
    trusted_proxies: Sequence[str] = (),
    log_format: Format | None = None,
) -> Server:
    """The server of an application. From `trusted_proxies` (addresses or networks), and from nobody else,
    X-Forwarded-For is believed: it says whose requests are counted, and under which name they ask.

    With a `log_format` there is a line for every request on stderr, "text" or "json".
    """
    level = "warning" if quiet else "info"
    if log_format is not None:
        choice(log_format, FORMATS, "log_format")
    limits: Limits = app.state.limits
    config = uvicorn.Config(
        app,
        http=patient(limits.header_timeout),
        host=host,
        port=port,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=math.ceil(limits.idle_timeout),
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        log_level=level,
        log_config=LOGGING_CONFIG if log_format is None else logging_config(log_format, level),
        access_log=False,
    )
    return Server(config, app)
