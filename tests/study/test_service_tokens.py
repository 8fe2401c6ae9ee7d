"""Tokens that end, tokens for some studies, and files of tokens that change while the service runs."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.study.service import Tokens, auth
from tests.problems import GAUSSIANS
from tests.study.serving import ADMIN, CAR, READ, SPACE, STUDIES, TOKENS, WORK, serving

BOUND, BOSS, LATE, SOON = "b" * 20, "o" * 20, "l" * 20, "s" * 20


def header(token):
    return f"Bearer {token}"


def test_what_behind_a_scope_is_said():
    tokens = Tokens({BOUND: "work until=2099-01-31 studies=car,ads-* name=web"})
    holder = tokens.holder(header(BOUND))
    assert (holder.scope, holder.label, holder.studies) == ("work", "web", ("car", "ads-*"))
    assert holder.until == datetime(2099, 1, 31, tzinfo=UTC).timestamp()
    seen = [name for name in ("car", "ads-7", "cart", "ads", "Car") if holder.may_see(name)]
    assert seen == ["car", "ads-7"]


@pytest.mark.parametrize("words", [
    "", "boss", "work until=never", "work until=", "work studies=", "work studies=a,,b", "work studies=[a]",
    "work name=", "work name=a/b", "work forever", "work till=2099-01-01", "work studies=<script>",
])  # fmt: skip
def test_words_that_make_no_sense(words):
    with pytest.raises(ParameterError) as error:
        Tokens({BOUND: words})
    assert BOUND not in str(error.value)


def test_a_token_ends():
    moment = datetime.now(UTC) + timedelta(seconds=0.3)
    tokens = Tokens({SOON: f"read until={moment.isoformat()}", LATE: "read until=2020-01-01T00:00+02:00"})
    assert tokens.holder(header(LATE)) is None
    assert tokens.holder(header(SOON)) is not None
    time.sleep(0.35)
    assert tokens.holder(header(SOON)) is None


def test_tokens_for_some_studies(sqlite, monkeypatch):
    more = {BOUND: "work studies=car name=web", BOSS: "admin studies=bus*", LATE: "admin until=2020-01-01"}
    monkeypatch.setattr("tests.study.serving.TOKENS", TOKENS | more)
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    rd.create_study("bus", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    with serving(sqlite) as service:
        assert service.request("GET", CAR, token=LATE)[0] == 401
        assert service.request("GET", STUDIES, token=BOUND)[1] == {"studies": ["car"]}
        assert service.request("GET", STUDIES, token=READ)[1] == {"studies": ["car", "bus"]}
        assert service.request("POST", f"{CAR}/ask", {}, BOUND)[0] == 200
        for method, path, body in (
            *(("GET", "bus", None), ("GET", "bus/trials", None), ("GET", "bus/export", None)),
            *(("POST", "bus/ask", {}), ("GET", "bus/events?most=1", None), ("GET", "bus/dashboard", None)),
            *(("GET", "nothing", None), ("GET", "bus/audit", None)),
        ):
            status, said, _ = service.request(method, f"{STUDIES}/{path}", body, BOUND)
            assert (status, said["error"]) == (403, "ScopeError"), path
        assert service.request("POST", f"{STUDIES}/bus/rename", {"name": "train"}, BOSS)[0] == 403
        assert service.request("POST", f"{STUDIES}/bus/rename", {"name": "bus-2"}, BOSS)[0] == 200
        new = {"name": "train", "learner": "ucb1", "space": SPACE}
        assert service.request("POST", STUDIES, new, BOSS)[0] == 403
        assert service.request("POST", STUDIES, new | {"name": "bus-3"}, BOSS)[0] == 201
        assert service.request("DELETE", CAR, token=BOSS)[0] == 403
        metrics = service.request("GET", "/metrics", token=BOUND)[1]
        assert 'study="car"' in metrics
        assert 'study="bus' not in metrics
        service.request("POST", f"{CAR}/trials/0/tell", {"payoff": 0.5}, BOUND)
        assert rd.load_study("car", storage=sqlite).trials()[0].closed_by == "token web at 127.0.0.1"


def test_a_file_of_tokens_changes_while_the_service_runs(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(auth, "LOOK", 0.0)
    path = tmp_path / "tokens.txt"
    path.write_text(f"# who\n\nread {READ}\nwork {WORK} until=2099-01-01 studies=car\n")
    tokens = Tokens.read(path)
    assert [tokens.holder(header(token)) is None for token in (READ, WORK, ADMIN)] == [False, False, True]
    path.write_text(f"admin {ADMIN}\nwork {WORK}\n")
    found = [tokens.holder(header(token)) for token in (READ, WORK, ADMIN)]
    assert found[0] is None
    assert (found[1].studies, found[2].scope) == ((), "admin")
    for bad in ("nonsense\n", "boss " + "x" * 30, "", "work short", "work " + "ü" * 20):
        path.write_text(bad)
        assert tokens.holder(header(ADMIN)) is not None, "a file that makes no sense changes nothing"
    path.unlink()
    assert tokens.holder(header(ADMIN)) is not None
    assert sum("left aside" in record.getMessage() for record in caplog.records) >= 6
    path.write_text(f"read {READ}\n")
    assert tokens.holder(header(ADMIN)) is None
    assert tokens.holder(header(READ)) is not None


def test_a_file_is_not_read_for_every_request(tmp_path, monkeypatch):
    path = tmp_path / "tokens.txt"
    path.write_text(f"read {READ}\n")
    tokens, looks = Tokens.read(path), []
    real = auth._version
    monkeypatch.setattr(auth, "_version", lambda path: looks.append(1) or real(path))
    for _ in range(100):
        tokens.holder(header(READ))
    assert len(looks) == 1
