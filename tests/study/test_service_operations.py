"""The service as machines see it: health, metrics, events, a database that is away, an end in order."""

from __future__ import annotations

import re
import socket
import threading
import time

import pytest

import randomist as rd
from randomist.study.client import Client
from tests.problems import GAUSSIANS
from tests.study.serving import ADMIN, CAR, READ, SPACE, WORK, serving

pytestmark = pytest.mark.xdist_group("service")


def test_health_and_metrics(service):
    status, said, _ = service.request("GET", "/healthz", token=None)
    assert (status, said["status"]) == (200, "ok")
    service.request("GET", CAR)
    status, text, headers = service.request("GET", "/metrics", token=READ)
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'^[a-z_]+(\{([a-z]+="[^"\\]*",?)+\})? -?[0-9.e+]+$')
    for line in text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.match(line), line
    assert re.search(
        r'^randomist_requests_total\{method="GET",route="[^"]*/studies/\{name\}",status="200"\} \d+$', text, re.M
    )
    assert re.search(r'^randomist_trials_total\{study="car",event="told"\} \d+$', text, re.M)
    counts = [int(n) for n in re.findall(r'seconds_bucket\{route="/healthz",le="[^"]*"\} (\d+)', text)]
    assert counts == sorted(counts)
    assert counts[-1] >= 1


@pytest.mark.xdist_group("postgresql")
def test_a_database_that_is_away_is_said_to_be(postgres):
    url = postgres.database()
    with serving(url, rate=1e6, burst=1e6) as service, Client(service.address, ADMIN) as client:
        study = client.create("car", "ucb1", SPACE)
        postgres.kill()
        status, said, _ = service.request("GET", "/healthz", token=None)
        assert (status, said["status"]) == (503, "away")
        threading.Timer(0.5, postgres.start).start()
        trial = study.ask()  # waits
        study.tell(trial, 0.5)
        assert service.request("GET", "/healthz", token=None)[0] == 200


def test_events_follow_a_study_and_end_with_the_service(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url)
    with serving(url) as service:
        raw = socket.create_connection(("127.0.0.1", service.port))
        raw.settimeout(10)
        raw.sendall(f"GET {CAR}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READ}\r\n\r\n".encode())
        said = b""
        while b'"told": 0' not in said:
            said += raw.recv(4096)
        assert b"text/event-stream" in said
        started = time.monotonic()
        study.tell(study.ask(), 0.5)
        while b'"told": 1' not in said:
            said += raw.recv(4096)
        assert time.monotonic() - started < 2
        assert said.count(b"event: change") <= 3
    # the service has ended although somebody watched
    assert raw.recv(4096).endswith(b"0\r\n\r\n") or raw.recv(4096) == b""
    raw.close()


def test_a_request_under_way_is_finished(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url)
    trial = study.ask()
    engine = study.storage.database._engine
    answers = []
    with engine.connect() as blocker, serving(url) as service:
        blocker.exec_driver_sql("BEGIN IMMEDIATE")
        request = (f"{CAR}/trials/{trial.id}/tell", {"payoff": 0.5}, WORK)
        thread = threading.Thread(target=lambda: answers.append(service.request("POST", *request)))
        thread.start()
        time.sleep(0.5)
        service.server.handle_exit(15, None)
        time.sleep(0.2)
        blocker.exec_driver_sql("ROLLBACK")
        thread.join(20)
    assert answers[0][0] == 200
    assert study.told == 1
