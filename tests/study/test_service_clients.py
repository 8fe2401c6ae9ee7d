"""Clients of the service: many at once, and over a network that loses what was said."""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

import randomist as rd
from randomist.errors import ParameterError, ServiceError
from randomist.study.client import Client
from tests.problems import payoff
from tests.study.helpers import at_once
from tests.study.serving import ADMIN, SPACE, WORK, serving

pytestmark = pytest.mark.xdist_group("service")


def message(peer: socket.socket) -> bytes:
    """One whole request or answer; nothing where the peer has gone."""
    text = b""
    while b"\r\n\r\n" not in text:
        if not (more := peer.recv(65536)):
            return b""
        text += more
    head, body = text.split(b"\r\n\r\n", 1)
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while len(body) < int(length[1] if length else 0):
        body += peer.recv(65536)
    return head + b"\r\n\r\n" + body


class Flaky:
    """Between a client and a service: it loses requests, and answers."""

    def __init__(self, port: int, seed: int) -> None:
        self.rng, self.target, self.lost = random.Random(seed), port, [0, 0]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            while data := message(client):
                if self.rng.random() < 0.15:
                    self.lost[0] += 1
                    return  # the request is lost
                server.sendall(data)
                answer = message(server)
                if self.rng.random() < 0.15:
                    self.lost[1] += 1
                    return  # it was done, and nobody knows
                client.sendall(answer)


def test_the_client_cannot_ask_or_tell_twice(service):
    flaky = Flaky(service.port, seed=5)
    with Client(service.address, ADMIN) as direct:
        direct.create("flaky", "randomist", SPACE, seed=1)
    with Client(f"http://127.0.0.1:{flaky.port}", WORK, patience=30) as client:
        study = client.study("flaky")
        for _ in range(60):
            trial = study.ask(worker="far")
            study.tell(trial, payoff(trial))
    flaky.listener.close()
    assert min(flaky.lost) > 5
    local = rd.load_study("flaky", storage=service.url)
    assert local.counters[:3] == (60, 60, 60)
    assert all(t.payoff == payoff(t) for t in local.trials())


def test_a_client_gives_up_in_the_end():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", patience=0.3) as client:
        started = time.monotonic()
        with pytest.raises(ServiceError, match="is away"):
            client.studies()
        assert time.monotonic() - started < 5
    for address in ("ftp://x", "127.0.0.1:80", ""):
        with pytest.raises(ParameterError, match="a service's address"):
            Client(address)


def test_thirty_two_clients(service):
    with Client(service.address, ADMIN) as direct:
        direct.create("many", "randomist", SPACE, seed=1)

    def work(i):
        with Client(service.address, WORK) as client:
            study = client.study("many")
            for n in range(6):
                trial = study.ask(worker=f"c{i}")
                if n == 5:
                    study.fail(trial, "enough")
                else:
                    study.tell(trial, payoff(trial))
            study.estimates()

    at_once(work, range(32))
    assert rd.load_study("many", storage=service.url).counters[:3] == (192, 192, 160)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_recipes_with_curl_work(sqlite, tmp_path):
    page = (Path(__file__).parents[2] / "docs/studies/production.md").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"```bash\n(api\(\).*?)```", page, re.DOTALL)
    with serving(sqlite) as service:
        given = {"ADDRESS": service.address, "TOKEN": ADMIN, "PATH": os.environ["PATH"]}
        done = subprocess.run(["bash", "-ec", recipe], env=given, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    study = rd.load_study("banners", storage=sqlite)
    assert [trial.payoff for trial in study.trials()] == [1, 0, 1]
    assert study.names == ("old", "new", "bold")
    assert '{"told":2,"refused":[]}' in done.stdout
    assert done.stdout.rstrip().splitlines()[-3].startswith("0,told"), done.stdout
