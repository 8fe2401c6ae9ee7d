"""The service: who may do what, what is refused, and a client that cannot tell twice."""

from __future__ import annotations

import json
import random
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import randomist as rd
from randomist.errors import (
    ClosedTrialError,
    NoDataError,
    ParameterError,
    PayoffOutOfRangeError,
    ServiceError,
    SpaceError,
    StudyExistsError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study.client import Client
from randomist.study.service import Tokens
from tests.problems import GAUSSIANS, RECTANGLE, payoff
from tests.study.helpers import at_once, play, query
from tests.study.serving import ADMIN, READ, WORK, serving

pytestmark = pytest.mark.xdist_group("service")
SPACE = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2, 2.95, 3], "std": [2, 2, 2, 0.1, 2]}}
BOX = {"kind": "Box", "family": {"kind": "Gaussian", "std": [0.15, 3.0]}, "low": [-1, 0], "high": [1, 20]}
CAR = "/api/v1/studies/car"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('service')}/study.db"
    with serving(url, rate=1e6, burst=1e6, guesses=1e6) as running:
        play(rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url), 3)
        play(rd.create_study("box", rd.PGPE(RECTANGLE, seed=0), storage=url), 3)
        yield running


def rows(service):
    return query(service.url, "select * from randomist_trials order by study, number")


def counters(service):
    return query(service.url, "select name, asked, closed, told, changes, learner from randomist_studies order by id")


def test_the_life_of_a_study_over_http(service):
    with Client(service.address, ADMIN) as client:
        study = client.create("life", "randomist", SPACE, seed=0)
        with pytest.raises(NoDataError):
            study.recommend()
        local = rd.create_study("local", rd.Randomist(GAUSSIANS, seed=0), storage=service.url)
        for _ in range(20):
            ours, theirs = study.ask(worker="me"), local.ask()
            assert (ours.decision, ours.mediator) == theirs[1:], "the service decides as the library does"
            study.tell(ours, payoff(ours))
            local.tell(theirs, payoff(theirs))
        first, second = study.ask(batch=2)
        study.fail(second, "lost")
        assert all(map(np.array_equal, study.estimates()[:6], local.estimates()[:6]))
        assert study.recommend() == local.recommend()
        assert study.info()[:2] == ("life", "Randomist")
        assert study.info()[4:] == (22, 20, 1)
        assert "life" in client.studies()
        with pytest.raises(StudyExistsError):
            client.create("life", "randomist", SPACE)
        study.tell(first.id, 0.5)
        study.tell(first.id, 0.5)
        for error, call in (
            (ClosedTrialError, lambda: study.tell(first, 0.75)),
            (UnknownTrialError, lambda: study.tell(10**6, 0.5)),
            (PayoffOutOfRangeError, lambda: study.tell(study.ask(), 7.0)),
            (UnknownStudyError, lambda: client.study("nobody")),
            (SpaceError, lambda: study.estimate([[0.1, 2.0]])),
            (ParameterError, lambda: study.ask(batch=0)),
            (ParameterError, lambda: client.create("bad", "randomist", {"kind": "Sphere"})),
            (ParameterError, lambda: client.create("bad", "nobody", SPACE)),
            (ParameterError, lambda: client.create("bad", "randomist", SPACE, confidence="much")),
        ):
            with pytest.raises(error):
                call()


def test_decisions_come_and_go_over_http(service):
    with Client(service.address, ADMIN) as admin, Client(service.address, WORK) as client:
        admin.create("going", "randomist", SPACE, seed=0)
        study = client.study("going")
        local = rd.create_study("going-too", rd.Randomist(GAUSSIANS, seed=0), storage=service.url)
        play(local, 10)
        for _ in range(10):
            trial = study.ask()
            study.tell(trial, payoff(trial))
        assert study.add(rd.Gaussian([1.4], [0.7]), name="wide") == local.add(rd.Gaussian([1.4], [0.7]), name="wide")
        assert study.add({"mean": 0.3, "std": 1.0}) == 6
        local.add(rd.Gaussian([0.3], 1.0))
        study.retire("wide")
        study.retire(0)
        local.retire(5)
        local.retire("0")
        assert study.names == local.names == ("0", "1", "2", "3", "4", "wide", "6")
        assert study.active.tolist() == local.active.tolist() == [False, True, True, True, True, False, True]
        assert all(map(np.array_equal, study.estimates()[:6], local.estimates()[:6]))
        assert [(t.decision, t.mediator) for t in play(study, 5)] == [t[1:] for t in play(local, 5)]
        with pytest.raises(ParameterError, match="was retired before"):
            study.retire(0)
        line = service.request("GET", "/api/v1/studies/going/export?format=csv", token=READ)[1].splitlines()[1]
        assert line.endswith(f",{local.names[local.trials()[0].decision]}")
        shown = service.request("GET", "/api/v1/studies/going/dashboard", token=READ)[1]
        assert shown["finite"]["name"][5] == "wide (retired)"
        assert shown["study"]["space"]["size"] == 7
    assert {row[0] for row in query(service.url, "select worker from randomist_changes")} >= {"http 127.0.0.1"}


def test_a_box_over_http(service):
    with Client(service.address, ADMIN) as client:
        study = client.create("box-life", "mcmc-randomist", BOX, seed=3, payoff_range=[-1, 1])
        local = rd.create_study(
            "box-local", rd.MCMCRandomist(RECTANGLE, seed=3, payoff_range=(-1, 1)), storage=service.url
        )
        for _ in range(4):
            ours, theirs = study.ask(), local.ask()
            assert np.array_equal(ours.mediator, theirs.mediator)
            study.tell(ours, payoff(ours))
            local.tell(theirs, payoff(theirs))
        points = [[0.0, 3.0], [0.5, 11.0]]
        assert all(map(np.array_equal, study.estimate(points)[:6], local.estimate(points)[:6]))
        assert np.array_equal(study.recommend(), local.recommend())
        with pytest.raises(ParameterError, match=r"outside .*the box"):
            study.estimate([[5.0, 5.0]])
        with pytest.raises(SpaceError):
            study.estimates()


ASK = {"worker": "w"}
NEW = {"name": "new", "learner": "ucb1", "space": SPACE}


@pytest.mark.parametrize(
    ("method", "path", "body", "least"),
    [
        ("GET", "/metrics", None, READ),
        ("GET", "/api/v1/whoami", None, READ),
        ("GET", "/api/v1/studies", None, READ),
        ("GET", CAR, None, READ),
        ("GET", f"{CAR}/estimates", None, READ),
        ("GET", f"{CAR}/recommendation", None, READ),
        ("GET", f"{CAR}/trials", None, READ),
        ("GET", f"{CAR}/export", None, READ),
        ("GET", f"{CAR}/dashboard", None, READ),
        ("GET", f"{CAR}/events?most=1", None, READ),
        ("POST", "/api/v1/studies/box/estimates", {"decisions": [[0.0, 1.0]]}, READ),
        ("POST", f"{CAR}/ask", ASK, WORK),
        ("GET", f"{CAR}/decisions", None, READ),
        ("POST", "/api/v1/studies/box/decisions", {"member": {"mean": [0.0, 1.0]}}, WORK),
        ("POST", "/api/v1/studies/box/decisions/retire", {"decision": 0}, WORK),
        ("POST", f"{CAR}/trials/0/tell", {"payoff": 0.5}, WORK),
        ("POST", f"{CAR}/trials/0/fail", {"reason": ""}, WORK),
        ("POST", "/api/v1/studies", NEW, ADMIN),
    ],
)
def test_scopes(method, path, body, least, service):
    order = [None, READ, WORK, ADMIN]
    before = rows(service), counters(service)
    for token in order[: order.index(least)]:
        status, said, headers = service.request(method, path, body, token)
        assert status == (401 if token is None else 403)
        assert set(said) == {"error", "message"}
        assert ("www-authenticate" in headers) == (token is None)
    for header in ("Bearer", "Bearer  ", f"Basic {ADMIN}", f"Bearer {ADMIN}x", "Bearer \xff", ADMIN):
        assert service.request(method, path, body, None, {"Authorization": header})[0] == 401
    assert (rows(service), counters(service)) == before
    for token in order[order.index(least) :]:
        assert service.request(method, path, body, token)[0] in (200, 201, 409)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", f"{CAR}/ask", b"x" * 10_000_000, 413),
        ("POST", f"{CAR}/trials/3/tell", b'{"payoff": NaN}', 422),
        ("POST", f"{CAR}/trials/3/tell", b'{"payoff": Infinity}', 422),
        ("POST", f"{CAR}/trials/3/tell", b'{"payoff": 1e999}', 422),
        ("POST", f"{CAR}/trials/3/tell", {"payoff": "0.5"}, 422),
        ("POST", f"{CAR}/trials/3/tell", {"payoff": True}, 422),
        ("POST", f"{CAR}/trials/3/tell", {"payoff": None}, 422),
        ("POST", f"{CAR}/trials/3/tell", {"payoff": 0.5, "more": 1}, 422),
        ("POST", f"{CAR}/trials/3/tell", {"payoff": 2.0}, 422),
        ("POST", f"{CAR}/trials/3/tell", b"", 422),
        ("POST", f"{CAR}/trials/3/tell", b"\xff\xfe", 422),
        ("POST", f"{CAR}/trials/3/tell", b"[" * 50_000, 422),
        ("POST", f"{CAR}/trials/999999/tell", {"payoff": 0.5}, 404),
        ("POST", f"{CAR}/trials/99999999999999999999/tell", {"payoff": 0.5}, 422),
        ("POST", f"{CAR}/trials/-1/tell", {"payoff": 0.5}, 422),
        ("POST", f"{CAR}/trials/999999/fail", {}, 404),
        ("POST", "/api/v1/studies/nobody/ask", {}, 404),
        ("POST", "/api/v1/studies/..%2F..%2Fx/ask", {}, 404),
        ("POST", "/api/v1/studies/../../x/ask", {}, 404),
        ("POST", "/api/v1/studies/%3Cscript%3E/ask", {}, 422),
        ("POST", "/api/v1/studies/a%00b/ask", {}, 422),
        ("POST", "/api/v1/studies/car%0A/ask", {}, 422),
        ("POST", f"{CAR}/ask", {"batch": 10**9}, 422),
        ("POST", f"{CAR}/ask", {"lease": -1}, 422),
        ("POST", f"{CAR}/ask", {"ticket": "a/b"}, 422),
        ("POST", f"{CAR}/ask", {"worker": "\u0000"}, 422),
        ("POST", "/api/v1/studies", NEW | {"name": "../../x"}, 422),
        ("POST", "/api/v1/studies", NEW | {"name": "<script>"}, 422),
        ("POST", "/api/v1/studies", NEW | {"name": "car"}, 409),
        ("POST", "/api/v1/studies", NEW | {"learner": "exec"}, 422),
        ("POST", "/api/v1/studies", NEW | {"space": {"kind": "Finite", "family": {"kind": "os.system"}}}, 422),
        ("POST", "/api/v1/studies", NEW | {"space": {"kind": "Finite", "family": [[1]]}}, 422),
        ("POST", "/api/v1/studies", NEW | {"settings": {"first": [1]}}, 422),
        ("POST", "/api/v1/studies", NEW | {"settings": {"nonsense": 1}}, 422),
        ("POST", "/api/v1/studies", NEW | {"settings": {"seed": "x"}}, 422),
        ("POST", "/api/v1/studies", NEW | {"space": {"kind": "Grid", "family": {"kind": "Gaussian", "std": 1.0},
                                                     "low": 0, "high": 1, "points": 10**9}}, 422),
        ("POST", f"{CAR}/decisions", {}, 422),
        ("POST", f"{CAR}/decisions", {"member": {}}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"mean": 1.0, "std": -1.0}}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"mean": [1.0, 2.0], "std": 1.0}}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"mean": "x", "std": 1.0}}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"kind": "Categorical", "probabilities": []}}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"kind": "os:system"}}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"mean": 1.0, "std": 1.0}, "name": "<script>"}, 422),
        ("POST", f"{CAR}/decisions", {"member": {"mean": 1.0, "std": 1.0}, "name": "4"}, 422),
        ("POST", f"{CAR}/decisions/retire", {"decision": 5}, 422),
        ("POST", f"{CAR}/decisions/retire", {"decision": -1}, 422),
        ("POST", f"{CAR}/decisions/retire", {"decision": True}, 422),
        ("POST", f"{CAR}/decisions/retire", {"decision": "five"}, 422),
        ("GET", "/api/v1/studies/box/decisions", None, 409),
        ("GET", f"{CAR}/trials?limit=0", None, 422),
        ("GET", f"{CAR}/trials?state=lost", None, 422),
        ("GET", f"{CAR}/dashboard?dimensions=x", None, 422),
        ("GET", "/nowhere", None, 404),
        ("GET", "/static/../page.html", None, 404),
        ("GET", "/static/page.py", None, 404),
        ("DELETE", CAR, None, 405),
    ],
)  # fmt: skip
def test_what_is_refused(method, path, body, status, service):
    before = rows(service), counters(service)
    try:
        got, said, _ = service.request(method, path, body)
    except (BrokenPipeError, ConnectionResetError):  # it did not wait for all of the 10 MB
        assert status == 413
    else:
        assert got == status, said
        assert "<script>" not in str(said)
    assert (rows(service), counters(service)) == before


def test_a_body_without_a_length_is_limited_too(service):
    with socket.create_connection(("127.0.0.1", service.port)) as raw:
        head = (
            f"POST {CAR}/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {WORK}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        raw.sendall(head.encode())
        try:
            for _ in range(200):
                raw.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass
        raw.settimeout(5)
        said = b""
        try:
            said = raw.recv(1000)
        except ConnectionResetError:
            return
    assert b"413" in said.split(b"\r\n")[0]


def test_too_many_requests(tmp_path):
    with serving(f"sqlite:///{tmp_path}/study.db", rate=5.0, burst=4.0) as service:
        answers = [service.request("GET", "/api/v1/studies", token=READ) for _ in range(12)]
        statuses = [status for status, _, _ in answers]
        assert statuses[:4] == [200] * 4
        assert 429 in statuses
        refused = next(answer for answer in answers if answer[0] == 429)
        assert refused[2]["retry-after"] == "1"
        assert service.request("GET", "/healthz", token=None)[0] == 200
        assert service.request("GET", "/api/v1/studies", token=WORK)[0] == 200, "another token has its own allowance"
        with Client(service.address, READ) as client:  # and the client waits
            started = time.monotonic()
            for _ in range(4):
                client.studies()
            assert time.monotonic() - started > 0.2


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


def test_pages_of_trials_and_exports(service):
    study = rd.load_study("car", storage=service.url)
    play(study, 7)
    total = study.counters.asked
    got, first = [], 0
    while first is not None:
        _, said, _ = service.request("GET", f"{CAR}/trials?first={first}&limit=4", token=READ)
        got += said["trials"]
        first = said["next"]
    assert [t["id"] for t in got] == list(range(total))
    _, text, headers = service.request("GET", f"{CAR}/export", token=READ)
    assert headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in text.splitlines()] == got
    _, table, _ = service.request("GET", f"{CAR}/export?format=csv", token=READ)
    assert len(table.splitlines()) == total + 1
    _, said, _ = service.request("GET", f"{CAR}/trials?state=asked&state=stale", token=READ)
    assert {t["state"] for t in said["trials"]} <= {"asked", "stale"}


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


def test_public_reading(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url)
    with serving(url, public_read=True) as service:
        assert service.request("GET", CAR, token=None)[0] == 200
        assert service.request("POST", f"{CAR}/ask", {}, token=None)[0] == 403
        assert service.request("POST", f"{CAR}/ask", {}, token=WORK)[0] == 200


def test_tokens(tmp_path):
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n\nread {READ}\nadmin {ADMIN}\n")
    tokens = Tokens.read(file)
    assert tokens.holder(f"bearer {READ}").scope == "read"
    assert tokens.holder(f"Bearer {WORK}") is None
    assert READ not in repr(vars(tokens)), "only hashes are kept"
    for text in ("read\n", "root aaaaaaaaaaaaaaaaaaaa\n", "read short\n", "", "read a b\n"):
        file.write_text(text)
        with pytest.raises(ParameterError):
            Tokens.read(file)
    made = Tokens.generate()
    assert sorted(made.values()) == ["admin", "read", "work"]
    Tokens(made)


def test_the_document_has_examples_and_says_who_may(service):
    document = service.request("GET", "/openapi.json", token=None)[1]
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert operation["summary"]
            assert path == "/healthz" or operation["security"]
    for name, model in document["components"]["schemas"].items():
        for field, described in model.get("properties", {}).items():
            nested = "$ref" in json.dumps(described) or name in ("Snapshot", "ValidationError", "HTTPValidationError")
            assert nested or "examples" in described, f"{name}.{field} has no example"


def test_schemathesis_finds_nothing(service, tmp_path):
    with Client(service.address, ADMIN) as client:
        study = client.create("fuzzed", "randomist", SPACE)
        study.ask(batch=3)
    config = tmp_path / "schemathesis.toml"
    # A space or a payoff can be of the right form and still make no sense: 422.
    config.write_text('[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", 401, 403, 404, 409, 422]\n')
    command = [Path(sys.executable).with_name("st"), "--config-file", config, "run", f"{service.address}/openapi.json"]
    options = ["-H", f"Authorization: Bearer {ADMIN}", "--max-examples", "12", "--seed", "7", "--suppress-health-check",
               "all", "--exclude-path", "/api/v1/studies/{name}/events"]  # fmt: skip
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:]
