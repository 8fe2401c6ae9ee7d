"""A service in a thread, requests to it, and what they send."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from randomist.study.service import Tokens, create_app
from randomist.study.service.limits import Limits
from randomist.study.service.server import make_server

READ, WORK, ADMIN = "r" * 20, "w" * 20, "a" * 20
STUDIES = "/api/v1/studies"
CAR = f"{STUDIES}/car"
SPACE = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2, 2.95, 3], "std": [2, 2, 2, 0.1, 2]}}
BOX = {"kind": "Box", "family": {"kind": "Gaussian", "std": [0.15, 3.0]}, "low": [-1, 0], "high": [1, 20]}
TOKENS = {READ: "read", WORK: "work", ADMIN: "admin"}


class Service:
    """Where it listens, and how to ask it."""

    def __init__(
        self,
        url: str,
        public_read: bool = False,
        trusted_proxies: Sequence[str] = (),
        tokens: Tokens | None = None,
        **limits: float,
    ) -> None:
        self.url = url
        known = Tokens(TOKENS, public_read=public_read) if tokens is None else tokens
        self.app = create_app(url, known, limits=Limits(**limits))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.server = make_server(self.app, port=self.port, quiet=True, trusted_proxies=trusted_proxies)
        self.thread = threading.Thread(target=self.server.run, daemon=True)

    def request(
        self, method: str, path: str, body: Any = None, token: str | None = ADMIN, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON (or text), headers. A body of bytes is sent as it is."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = ({"Authorization": f"Bearer {token}"} if token else {}) | (headers or {})
        if content is not None:
            given.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, content, given)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        found = {key.lower(): value for key, value in answer.getheaders()}
        return answer.status, json.loads(text) if found.get("content-type") == "application/json" else text, found


@contextlib.contextmanager
def serving(url: str, **options: Any) -> Iterator[Service]:
    service = Service(url, **options)
    service.thread.start()
    while not service.server.started:
        time.sleep(0.01)
        assert service.thread.is_alive()
    try:
        yield service
    finally:
        service.server.handle_exit(15, None)
        service.thread.join(20)
        service.app.state.studies.storage.disconnect()
    assert not service.thread.is_alive()
