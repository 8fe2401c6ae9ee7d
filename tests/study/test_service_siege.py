"""A service beside those who take all that they can: the small of `python -m benchmarks.siege`."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import randomist as rd
from randomist.errors import ServiceError
from randomist.study.service import Tokens, connections
from randomist.study.service.limits import Places
from tests.problems import GAUSSIANS
from tests.study.serving import ADMIN, CAR, READ, STUDIES, WORK, Service, serving

pytestmark = pytest.mark.xdist_group("service")
EXPORT = f"{CAR}/export"


def begun(service: Service, request: str, token: str | None, more: str = "", receive: int | None = None):
    """A connection with the head of a request; `receive` is how much its client's system takes on its own."""
    peer = socket.socket()
    if receive is not None:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    peer.settimeout(20)
    peer.connect(("127.0.0.1", service.port))
    given = "" if token is None else f"Authorization: Bearer {token}\r\n"
    peer.sendall(f"{request} HTTP/1.1\r\nHost: x\r\n{given}{more}\r\n".encode())
    return peer


def all_of(peer: socket.socket) -> bytes:
    """What comes until the service hangs up."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := peer.recv(65536):
            said += piece
    return said


def until(peer: socket.socket, words: bytes) -> None:
    said = b""
    while words not in said:
        piece = peer.recv(4096)
        assert piece, said
        said += piece


def large(url: str, trials: int = 5000) -> rd.Study:
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url)
    for _ in range(trials // 1000):
        study.ask(1000)
    return study


# Places.


@pytest.mark.parametrize("length", ["Content-Length: 500\r\n", "Transfer-Encoding: chunked\r\n"])
@pytest.mark.parametrize("path", [f"{CAR}/ask", "/", "/nowhere", "/metrics"])
def test_a_body_without_a_token_is_refused_before_it_comes(path, length, sqlite):
    with serving(sqlite, requests=4) as service:
        slow = [begun(service, f"POST {path}", None, length) for _ in range(12)]
        assert service.request("GET", STUDIES, token=READ)[0] == 200, "they hold no place"
        for peer in slow:
            head, _, body = all_of(peer).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401 ")
            assert b"www-authenticate: bearer" in head.lower()
            assert json.loads(body)["error"] == "TokenError"
            peer.close()


def test_a_refusal_reaches_who_still_sends(sqlite):
    """A body that comes after the answer must not take that with it."""
    with serving(sqlite) as service, begun(service, f"POST {CAR}/ask", None, "Content-Length: 20000\r\n") as peer:
        time.sleep(0.3)
        for _ in range(20):
            peer.sendall(b" " * 1000)
        assert all_of(peer).startswith(b"HTTP/1.1 401 ")


def test_a_token_leaves_as_many_places_as_it_takes():
    places, held = Places(512), contextlib.ExitStack()

    def fill(who):
        n = 0
        with contextlib.suppress(ServiceError):
            while True:
                held.enter_context(places.taken(who))
                n += 1
        return n

    assert fill("one") == 256
    assert fill("two") == 128, "a team's workers"
    assert fill("three") == 64
    with pytest.raises(ServiceError, match=r"448 of 512 .* 64 of them yours"), places.taken("three"):
        pass
    held.close()
    assert fill("four") == 256
    assert list(places._taken) == ["four"], "who is gone takes no memory"
    with Places(1).taken("alone"):
        pass


def test_slow_bodies_of_one_token_keep_no_other_out(sqlite):
    rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite, requests=64) as service, ThreadPoolExecutor(16) as pool:
        slow = [begun(service, f"POST {CAR}/ask", READ, "Content-Length: 500\r\n") for _ in range(80)]
        time.sleep(0.3)
        asked = list(pool.map(lambda _: service.request("POST", f"{CAR}/ask", {}, WORK)[0], range(48)))
        assert asked == [200] * 48
        for peer in slow:
            peer.close()


# Exports.


def test_rows_are_read_apart_from_asks(sqlite, monkeypatch):
    """Pages of them take long to make: this process, which asks, makes none."""
    study = large(sqlite, 2000)
    expected = study.trials()
    monkeypatch.setattr(rd.Study, "trials", None)
    monkeypatch.setattr(rd.Study, "latest", None)
    with serving(sqlite) as service:
        found = [json.loads(line) for line in service.request("GET", EXPORT, token=READ)[1].splitlines()]
        assert [row["id"] for row in found] == [trial.id for trial in expected]
        assert service.request("GET", f"{CAR}/trials?first=1500", token=READ)[1]["trials"] == found[1500:1600]
        assert service.request("GET", f"{CAR}/dashboard/trials", token=READ)[1]["trials"][0]["id"] == 1999
        table = service.request("GET", f"{EXPORT}?format=csv", token=READ)[1].splitlines()
        assert (len(table), table[0].split(",")[0], table[2000].split(",")[0]) == (2001, "id", "1999")
        assert service.request("GET", f"{STUDIES}/bus/export", token=READ)[0] == 404


def test_exports_are_few_at_once_and_wait_for_their_readers(sqlite, monkeypatch):
    large(sqlite)
    with serving(sqlite) as service:
        service.app.state.exports, pages = Places(4), []
        rows = service.app.state.rows
        monkeypatch.setattr(rows, "_once", lambda *a, real=rows._once: pages.append(1) or real(*a))
        untaken = [begun(service, f"GET {EXPORT}", READ, receive=4096) for _ in range(6)]
        refused = [peer for peer in untaken if b" 503 " in peer.recv(32)]
        assert len(refused) == 4, "two are for others"
        status, _, headers = service.request("GET", EXPORT, token=READ)
        assert (status, headers["retry-after"]) == (503, "1")
        assert service.request("GET", EXPORT, token=WORK)[1].count("\n") == 5000
        time.sleep(0.3)
        assert len(pages) <= 6 + 2 * 2, "of one that is not taken there are two at most"
        for peer in untaken:
            peer.close()


def test_who_takes_nothing_is_cut_off_and_who_is_slow_is_not(sqlite, monkeypatch):
    monkeypatch.setattr(connections, "STALL", 0.6)
    large(sqlite)
    with serving(sqlite) as service:
        stalled, slow = (begun(service, f"GET {EXPORT}", token, receive=4096) for token in (READ, WORK))
        said = b""
        while not said.endswith(b"0\r\n\r\n"):
            said += slow.recv(16384)
            time.sleep(0.02)
        assert said.count(b'"id"') == 5000
        for _ in range(200):
            if not service.app.state.exports._taken:
                break
            time.sleep(0.05)
        assert not service.app.state.exports._taken
        rest = all_of(stalled)
        assert not rest.endswith(b"0\r\n\r\n")
        assert rest.count(b'"id"') < 5000
        for peer in (stalled, slow):
            peer.close()


# Tokens that end while something goes on.


def test_streams_end_with_their_token(sqlite, tmp_path):
    study = large(sqlite)
    file = tmp_path / "tokens"
    file.write_text(f"read {READ}\nwork {WORK} studies=car\nadmin {ADMIN}\n")
    with serving(sqlite, tokens=Tokens.read(file)) as service:
        watchers = [
            begun(service, f"GET {CAR}/events", token, "Connection: close\r\n") for token in (READ, WORK, ADMIN)
        ]
        reader = begun(service, f"GET {EXPORT}", READ, receive=4096)
        for peer in watchers:
            until(peer, b'"asked": 5000')
        file.write_text(f"work {WORK} studies=bus\nadmin {ADMIN}\n")
        assert [all_of(peer).endswith(b"0\r\n\r\n") for peer in watchers[:2]] == [True] * 2
        assert not all_of(reader).endswith(b"0\r\n\r\n"), "a part must not look like all of it"
        study.ask()
        until(watchers[2], b'"asked": 5001')  # others go on
        for peer in (*watchers, reader):
            peer.close()


def test_an_export_that_breaks_off_is_seen_to(sqlite, monkeypatch):
    large(sqlite)
    with serving(sqlite) as service:
        rows, pages = service.app.state.rows, []

        def failing(*given, real=rows._once):
            pages.append(1)
            if len(pages) == 3:
                raise rd.errors.StorageError("the database went")
            return real(*given)

        monkeypatch.setattr(rows, "_once", failing)
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
        connection.request("GET", EXPORT, headers={"Authorization": f"Bearer {READ}"})
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            connection.getresponse().read()
        connection.close()


# What answers tell.


def test_answers_are_not_kept_and_exports_have_names(sqlite):
    large(sqlite, 1000)
    with serving(sqlite) as service:
        for path, token in ((STUDIES, READ), (STUDIES, None), ("/metrics", READ), (CAR, READ), (f"{CAR}/trials", READ),
                            (f"{CAR}/events?most=1", READ), (f"{STUDIES}/bus", READ), (f"{CAR}/dashboard", READ),
                            (EXPORT, READ), ("/api/v1/nothing", None), ("/metrics", "x" * 20)):  # fmt: skip
            assert service.request("GET", path, token=token)[2]["cache-control"] == "no-store", path
        assert service.request("GET", "/static/base.js", token=None)[2]["cache-control"] == "max-age=3600"
        for form in ("csv", "jsonl"):
            headers = service.request("GET", f"{EXPORT}?format={form}", token=READ)[2]
            assert headers["content-disposition"] == f'attachment; filename="car.{form}"'


MINE = "m" * 20


@pytest.fixture
def shy(tmp_path, caplog):
    """A service of studies `mine-1` and `secret`, and a token for `mine-*`."""
    url = f"sqlite:///{tmp_path}/hidden/study.db"
    (tmp_path / "hidden").mkdir()
    for name in ("mine-1", "secret"):
        rd.create_study(name, rd.UCB1(GAUSSIANS, seed=0), storage=url)
    tokens = Tokens({MINE: "admin studies=mine-*", ADMIN: "admin"})
    with serving(url, tokens=tokens) as service:
        yield service


def tells_nothing(said) -> bool:
    return not any(word in json.dumps(said) for word in ("secret", "hidden", "sqlite", "study.db", "randomist_"))


def test_a_404_names_no_other_study_and_no_place(shy):
    document = shy.request("GET", "/openapi.json", token=None)[1]
    bodies = {"interval": {}, "estimates": {"decisions": [0.0]}, "rename": {"name": "mine-3"},
              "tells": {"tells": [{"id": 0, "payoff": 0.5}]}, "tell": {"payoff": 0.5}, "episode": None,
              "decisions": {"member": {"mean": 0.3, "std": 1.0}}, "retire": {"decision": 0},
              "confirm": {"n": 1}}  # fmt: skip
    seen = set()
    for path, operations in document["paths"].items():
        if "{name}" not in path:
            continue
        for method in operations:
            last = path.rpartition("/")[2]
            body = bodies.get(last, {}) if method == "post" else None
            where = path.format(name="mine-2", number=0)
            status, said, _ = shy.request(method.upper(), where, body, MINE)
            assert status in (404, 422), (path, said)
            assert tells_nothing(said), said
            seen.add(status == 404 and path)
            status, said, _ = shy.request(method.upper(), path.format(name="secret", number=0), body, MINE)
            nothing = shy.request(method.upper(), path.format(name="secrex", number=0), body, MINE)
            assert (status, said["error"]) == (403, "ScopeError")
            assert (status, json.dumps(said).replace("secret", "secrex")) == (403, json.dumps(nothing[1])), path
    assert len(seen) > 20


def test_a_409_names_no_place(shy):
    space = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1], "std": 1}}
    new = {"name": "mine-1", "learner": "ucb1", "space": space}
    status, said, _ = shy.request("POST", STUDIES, new, MINE)
    assert (status, tells_nothing(said)) == (409, True), said
    shy.request("POST", STUDIES, new | {"name": "mine-2"}, MINE)
    status, said, _ = shy.request("POST", f"{STUDIES}/mine-2/rename", {"name": "mine-1"}, MINE)
    assert (status, tells_nothing(said)) == (409, True), said


@pytest.mark.parametrize("error", [
    rd.errors.StorageError, rd.errors.SchemaVersionError, rd.errors.StudyDataError, rd.errors.ReadOnlyStorageError,
])  # fmt: skip
def test_what_is_wrong_with_the_database_is_for_the_log(error, shy, monkeypatch, caplog):
    def failing(*_, **__):
        raise error("postgresql://user@hidden/secret was away: connection to server at 10.0.0.7 failed")

    storage = shy.app.state.studies.storage
    for name in ("totals", "names", "find", "counters", "ask_all", "close_all"):
        monkeypatch.setattr(storage, name, failing)
    monkeypatch.setattr(shy.app.state.counters, "_ask", failing)
    shy.app.state.studies.forget("mine-1")
    for method, path, body in (("GET", "/metrics", None), ("GET", STUDIES, None), ("GET", f"{STUDIES}/mine-1", None),
                               ("POST", f"{STUDIES}/mine-1/ask", {}), ("GET", f"{STUDIES}/mine-1/export", None),
                               ("GET", f"{STUDIES}/mine-1/events", None)):  # fmt: skip
        status, said, _ = shy.request(method, path, body, MINE)
        assert status == (500 if error is rd.errors.StudyDataError else 503)
        assert said["error"] == error.__name__
        assert tells_nothing(said), said
        assert "10.0.0.7" not in said["message"]
    assert "10.0.0.7" in caplog.text


def test_what_a_tell_is_refused_for_is_said_without_the_place(shy, monkeypatch):
    asked = shy.request("POST", f"{STUDIES}/mine-1/ask", {}, MINE)[1]["trials"][0]["id"]
    storage, error = shy.app.state.studies.storage, rd.errors.StorageError("sqlite:///hidden/study.db refused")
    monkeypatch.setattr(storage, "close_all", lambda study, tells: [error for _ in tells])
    tells = {"tells": [{"id": asked, "payoff": 0.5}]}
    _, said, _ = shy.request("POST", f"{STUDIES}/mine-1/tells", tells, MINE)
    assert said["refused"][0]["error"] == "StorageError"
    assert tells_nothing(said), said


def test_asks_of_a_team_pass_at_once(sqlite):
    rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite) as service, ThreadPoolExecutor(128) as pool:
        ready = threading.Barrier(128, timeout=30)
        asks = pool.map(lambda _: (ready.wait(), service.request("POST", f"{CAR}/ask", {}, WORK)[0])[1], range(128))
        assert list(asks) == [200] * 128


def test_an_answer_that_nobody_takes_keeps_its_place(sqlite):
    """So what is in memory for those who take nothing is bounded, too."""
    large(sqlite, 1000)
    with serving(sqlite, requests=8) as service:
        page = f"GET {CAR}/trials?limit=1000"
        untaken = [begun(service, page, READ, receive=4096) for _ in range(4)]
        assert [peer.recv(12).split()[1] for peer in untaken] == [b"200"] * 4
        assert service.request("GET", CAR, token=READ)[0] == 503
        assert service.request("GET", CAR, token=WORK)[0] == 200
        for peer in untaken:
            peer.close()
