"""A line for every request, with its id; nothing that should stay secret is in it."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.study.service.records import LOGGER, JsonLines, TextLines
from randomist.study.service.server import make_server
from tests.problems import GAUSSIANS
from tests.study.serving import CAR, WORK, serving

COMMAND = Path(sys.executable).with_name("randomist")


@pytest.fixture
def service(sqlite):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite) as running:
        yield running


def test_every_answer_has_an_id(service):
    ids = [service.request("GET", CAR)[2]["x-request-id"] for _ in range(3)]
    assert len(set(ids)) == 3
    assert service.request("GET", CAR, headers={"X-Request-Id": "mine-7"})[2]["x-request-id"] == "mine-7"
    for path, token in (("/nowhere", WORK), (CAR, None), ("/healthz", None)):
        assert service.request("GET", path, token=token)[2]["x-request-id"]
    for odd in ("x" * 65, "a b", "<script>", ""):
        assert service.request("GET", CAR, headers={"X-Request-Id": odd})[2]["x-request-id"] != odd


def test_a_line_for_every_request(service, caplog):
    with caplog.at_level(logging.INFO, LOGGER):
        service.request("POST", f"{CAR}/ask?secret=1", {}, WORK, headers={"X-Request-Id": "one"})
        service.request("GET", "/healthz")
        service.request("GET", "/nowhere%0a{}", token=None)
        deadline = time.monotonic() + 5
        while len([r for r in caplog.records if r.name == LOGGER]) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    lines = [record for record in caplog.records if record.name == LOGGER]
    assert [(r.said["method"], r.said["path"], r.said["status"]) for r in lines] == [
        *(("POST", f"{CAR}/ask", 200), ("GET", "/nowhere\n{}", 404))
    ]
    for record in lines:
        shown = JsonLines().format(record)
        assert "\n" not in shown
        assert "\n" not in TextLines().format(record)
        assert WORK not in shown
        assert "secret" not in shown
        assert json.loads(shown)["seconds"] >= 0
    assert json.loads(JsonLines().format(lines[0]))["token"]
    assert json.loads(JsonLines().format(lines[1]))["token"] is None


def test_what_goes_wrong_has_its_trace():
    try:
        raise ValueError("no")
    except ValueError:
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 1, "it %s", ("failed",), sys.exc_info())
    line = json.loads(JsonLines().format(record))
    assert (line["message"], line["level"], "ValueError: no" in line["exception"]) == ("it failed", "error", True)
    assert "ValueError: no" in TextLines().format(record)


def test_formats_that_are_none(service):
    with pytest.raises(ParameterError, match="log_format must be one of 'text', 'json'"):
        make_server(service.app, log_format="xml")


def test_the_command_writes_json(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ["--storage", f"sqlite:///{tmp_path}/x.db", "--port", str(port)]
    tokens = {"RANDOMIST_TOKENS": f"read:{'r' * 16}"}
    running = subprocess.Popen(
        [COMMAND, "serve", *where, "--log-format", "json"], stderr=subprocess.PIPE, text=True, env=os.environ | tokens
    )
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/studies",
            headers={"Authorization": f"Bearer {'r' * 16}", "X-Request-Id": "me"},
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                assert urllib.request.urlopen(request, timeout=10).headers["X-Request-Id"] == "me"
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
    finally:
        running.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in running.communicate(timeout=30)[1].splitlines()]
    (mine,) = [line for line in lines if line.get("path") == "/api/v1/studies"]
    assert (mine["request"], mine["status"], mine["method"]) == ("me", 200, "GET")
    assert any("running" in line.get("message", "") for line in lines)
