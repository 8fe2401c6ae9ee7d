"""A service under attack: nobody gets around its limits, and nobody keeps others from it."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time

import pytest

import randomist as rd
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.serving import ADMIN, READ, STUDIES, WORK, Service, serving

pytestmark = pytest.mark.xdist_group("service")


def raw(service: Service, text: str) -> bytes:
    """What the service says to these bytes, until it closes the connection or has said all."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as peer:
        peer.sendall(text.encode("latin-1"))
        return peer.recv(65536)


def status_of(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


def test_every_answer_says_that_it_is_what_it_says(sqlite):
    with serving(sqlite, rate=1e3, burst=9) as service:
        asks = [("GET", "/healthz", None), ("GET", STUDIES, READ), ("GET", STUDIES, None), ("GET", "/nowhere", READ),
                ("POST", STUDIES, ADMIN), ("GET", "/", None), ("GET", "/static/base.js", None)]  # fmt: skip
        for method, path, token in asks:
            assert service.request(method, path, token=token)[2]["x-content-type-options"] == "nosniff", path
        large = service.request("POST", STUDIES, b"x" * 70_000)
        assert (large[0], large[2]["x-content-type-options"]) == (413, "nosniff")


def test_a_second_token_buys_no_requests(sqlite):
    """The limit counts the token that authentication looks at."""
    with serving(sqlite, rate=0.01, burst=3) as service:
        head = f"GET {STUDIES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READ}\r\n"
        others = ["", "", "", "", *(f"Authorization: Bearer {other}\r\n" for other in (WORK, ADMIN, "nobody"))]
        assert [status_of(raw(service, f"{head}{other}\r\n")) for other in others] == [200] * 3 + [429] * 4


@pytest.mark.parametrize(("trusted", "passed"), [((), 3), (("127.0.0.1",), 12)])
def test_an_address_is_believed_of_trusted_proxies_only(trusted, passed, sqlite):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite, rate=0.01, burst=3, trusted_proxies=trusted) as service:
        forwarded = [{"X-Forwarded-For": f"10.0.0.{i}"} for i in range(12)]
        answers = [service.request("GET", STUDIES, token=None, headers=header)[0] for header in forwarded]
        assert answers == [401] * passed + [429] * (12 - passed)
        service.request("POST", f"{STUDIES}/car/ask", {}, WORK, forwarded[1])
    assert study.trials()[0].worker == ("http 10.0.0.1" if trusted else "http 127.0.0.1")


def test_guessing_tokens_is_limited(sqlite):
    """Wrong ones are; a right one never is, also one that was not seen before: after a restart none was."""
    with serving(sqlite, rate=1e6, burst=1e6, guesses=5) as service:
        assert service.request("GET", STUDIES, token=READ)[0] == 200
        guesses = [service.request("GET", STUDIES, token=f"{i:020d}")[0] for i in range(20)]
        assert guesses == [401] * 5 + [429] * 15
        refused = service.request("GET", STUDIES, token="x" * 20)
        assert (refused[0], refused[2]["retry-after"].isdigit()) == (429, True)
        assert [service.request("GET", STUDIES, token=token)[0] for token in (WORK, READ)] == [200] * 2
        assert service.request("GET", STUDIES, token=None)[0] == 401, "nor who has none"
        assert service.request("GET", "/healthz", token=None)[0] == 200


def test_a_body_that_ends_early_is_no_failure_of_the_service(sqlite):
    with serving(sqlite) as service:
        with socket.create_connection(("127.0.0.1", service.port)) as peer:
            head = f"POST {STUDIES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\nContent-Length: 500\r\n\r\n"
            peer.sendall(f'{head}{{"name":'.encode())
            time.sleep(0.1)
        for _ in range(100):
            text = service.request("GET", "/metrics", token=READ)[1]
            if found := re.search(r'randomist_requests_total\{method="POST",route="other",status="(\d+)"\} 1', text):
                break
            time.sleep(0.02)
        assert found is not None
        assert found[1] == "499"
        assert 'status="500"' not in text


def is_closed(peer: socket.socket) -> bool:
    """Whether the other side hangs up, after what it still has to say."""
    peer.settimeout(10)
    try:
        while peer.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_idle_connections_keep_nobody_out(sqlite):
    with serving(sqlite, header_timeout=2.0) as service:
        idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(600)]
        assert service.request("GET", "/healthz", token=None)[0] == 200
        assert service.request("GET", STUDIES, token=READ)[0] == 200
        assert all(map(is_closed, idle))
        for peer in idle:
            peer.close()


def test_slow_heads_and_bodies_are_not_waited_for(sqlite):
    head = f"POST {STUDIES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\nContent-Length: 500\r\n"
    with serving(sqlite, header_timeout=0.6, body_timeout=0.3, idle_timeout=1.0) as service:
        with socket.create_connection(("127.0.0.1", service.port)) as slow:
            for byte in head[:20]:  # a byte now and then does not help
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    slow.sendall(byte.encode())
                time.sleep(0.05)
            assert is_closed(slow)
        assert status_of(raw(service, f'{head}\r\n{{"name":')) == 408
        with socket.create_connection(("127.0.0.1", service.port)) as peer:
            peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status_of(peer.recv(65536)) == 200
            assert is_closed(peer), "after a request, too"


def test_so_many_requests_at_once(sqlite):
    with serving(sqlite, requests=3) as service:
        begun = f"POST {STUDIES} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\nContent-Length: 5\r\n\r\n"
        slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(3)]
        for peer in slow:
            peer.sendall(begun.encode())
        time.sleep(0.3)
        refused = service.request("GET", STUDIES, token=ADMIN)
        assert (refused[0], refused[1]["error"], refused[2]["retry-after"]) == (503, "BusyError", "1")
        assert service.request("GET", STUDIES, token=READ)[0] == 200, "one token leaves places to others"
        assert service.request("GET", "/healthz", token=None)[0] == 200
        for peer in slow:
            peer.close()


def test_one_query_serves_all_who_watch(sqlite, monkeypatch):
    rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite, watchers=60) as service:
        shared, asked = service.app.state.counters, []
        monkeypatch.setattr(shared, "_ask", lambda real=shared._ask: asked.append(1) or real())
        head = f"GET {STUDIES}/car/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READ}\r\n\r\n"
        watchers = [socket.create_connection(("127.0.0.1", service.port), timeout=10) for _ in range(30)]
        for peer in watchers:
            peer.sendall(head.encode())
        assert all(b"200 OK" in peer.recv(65536) for peer in watchers)
        asked.clear()
        started = time.monotonic()
        time.sleep(1.0)
        assert 1 <= len(asked) <= 4 * (time.monotonic() - started) + 2
        assert status_of(raw(service, head)) == 503, "one watcher too many: half of them are for other tokens"
        assert status_of(raw(service, head.replace(READ, WORK))) == 200
        assert status_of(raw(service, head.replace("car", "bus"))) == 404
        for peer in watchers:
            peer.close()


def test_health_is_said_while_watchers_wait_for_a_database_that_is_away(sqlite, monkeypatch):
    rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite) as service:
        there = threading.Event()
        monkeypatch.setattr(service.app.state.counters, "_ask", lambda: there.wait(20) and {})
        head = f"GET {STUDIES}/car/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {READ}\r\n\r\n"
        watchers = [socket.create_connection(("127.0.0.1", service.port), timeout=10) for _ in range(60)]
        for peer in watchers:
            peer.sendall(head.encode())
        assert service.request("GET", "/healthz", token=None)[0] == 200
        assert service.request("POST", f"{STUDIES}/car/ask", {}, WORK)[0] == 200
        for peer in watchers:
            peer.close()
        there.set()


def test_reads_hold_no_lock_and_no_thread_that_an_ask_needs(memory, monkeypatch):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=memory)
    with serving(memory, rate=1e6, burst=1e6) as service:
        begun, done, real = threading.Event(), threading.Event(), rd.Study.estimates

        def slowly(study):
            return study.look(lambda *_: (begun.set(), done.wait(20), real(study))[-1])

        monkeypatch.setattr(rd.Study, "estimates", slowly)
        answers = []
        readers = [
            threading.Thread(target=lambda: answers.append(service.request("GET", f"{STUDIES}/car/estimates")[0]))
            for _ in range(45)
        ]
        for reader in readers:
            reader.start()
        assert begun.wait(20)
        trial = service.request("POST", f"{STUDIES}/car/ask", {}, WORK)[1]["trials"][0]["id"]
        assert service.request("POST", f"{STUDIES}/car/trials/{trial}/tell", {"payoff": 0.5}, WORK)[0] == 200
        assert service.request("GET", "/healthz", token=None)[0] == 200
        assert answers == []
        done.set()
        for reader in readers:
            reader.join()
        assert answers == [200] * 45


def test_reads_are_computed_again_when_something_happened(memory, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=memory)
    box = rd.create_study("box", rd.PGPE(RECTANGLE, seed=0), storage=memory)
    for one in (study, box):
        one.tell(one.ask(), 0.5)
    computed = []
    real = rd.Study.look
    monkeypatch.setattr(rd.Study, "look", lambda *a: computed.append(a[0].name) or real(*a))
    with serving(memory) as service:
        asks = [("GET", "car/estimates", None), ("GET", "car/recommendation", None), ("GET", "car/dashboard", None),
                ("POST", "box/estimates", {"decisions": [[0.0, 3.0]]})]  # fmt: skip

        def look():
            computed.clear()
            answers = [service.request(method, f"{STUDIES}/{path}", body, READ)[1] for method, path, body in asks]
            return answers, sorted(computed)

        first, work = look()
        assert work == ["box", "car", "car", "car"]
        assert look() == (first, [])
        study.tell(study.ask(), 1.0)
        second, work = look()
        assert work == ["car", "car", "car"]
        assert second[0]["plays"] != first[0]["plays"]
        assert second[1]["told"] == 2
        other = service.request("POST", f"{STUDIES}/box/estimates", {"decisions": [[0.5, 3.0]]}, READ)[1]
        assert other != second[3]
