"""Who may do what over HTTP, and what is refused: it changes nothing."""

from __future__ import annotations

import socket
import time

import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.study.client import Client
from randomist.study.service import Tokens
from tests.problems import GAUSSIANS
from tests.study.helpers import query
from tests.study.serving import ADMIN, CAR, READ, SPACE, WORK, serving

pytestmark = pytest.mark.xdist_group("service")
ASK = {"worker": "w"}
NEW = {"name": "new", "learner": "ucb1", "space": SPACE}


def rows(service):
    return query(service.url, "select * from randomist_trials order by study, number")


def counters(service):
    return query(service.url, "select name, asked, closed, told, changes, learner from randomist_studies order by id")


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
        ("GET", "/api/v1/overview", None, READ),
        ("GET", f"{CAR}/dashboard", None, READ),
        ("GET", f"{CAR}/dashboard/news", None, READ),
        ("GET", f"{CAR}/dashboard/estimates", None, READ),
        ("GET", f"{CAR}/dashboard/trials", None, READ),
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
        ("PUT", CAR, None, 405),
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
