"""Calls that come at once are written together; reads are answered apart from them."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ClosedTrialError, MediatorError, PayoffError, ServiceError, ShapeError, UnknownTrialError
from randomist.study.client import Client
from randomist.study.service import reading
from tests.problems import GAUSSIANS
from tests.study.serving import ADMIN, CAR, serving
from tests.study.test_resume import equal, state

pytestmark = pytest.mark.xdist_group("service")
TWO = rd.Finite.likelihoods(2, names=["old", "new"])


def slow(monkeypatch, storage, name, seconds=0.2):
    """Each call of a storage's method takes a while; what it was called with."""
    real, calls = getattr(storage, name), []

    def later(study, given):
        calls.append(given)
        time.sleep(seconds)
        return real(study, given)

    monkeypatch.setattr(storage, name, later)
    return calls


def test_asks_that_come_at_once_share_a_transaction(url, monkeypatch):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    with serving(url) as service, ThreadPoolExecutor(24) as pool:
        calls = slow(monkeypatch, service.app.state.studies.storage, "ask_all")
        sizes = [1 + i % 3 for i in range(24)]
        answers = list(pool.map(lambda n: service.request("POST", f"{CAR}/ask", {"batch": n}), sizes))
    assert [len(said["trials"]) for _, said, _ in answers] == sizes
    ids = [trial["id"] for _, said, _ in answers for trial in said["trials"]]
    assert sorted(ids) == list(range(sum(sizes)))
    assert len(calls) <= 6, "24 requests, one at a time, would be 24 transactions"
    study = rd.load_study("car", storage=url)
    told = {trial.id: (trial.decision, trial.mediator) for trial in study.trials()}
    for _, said, _ in answers:
        assert all(told[t["id"]] == (t["decision"], t["mediator"]) for t in said["trials"])


def test_one_proposal_for_several_calls_is_that_of_one_batch(sqlite, memory):
    """So a record of grouped asks says all: a twin that asks in one batch is the same, bit for bit."""
    ours, twin = (rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place) for place in (sqlite, memory))
    grouped = ours.ask_all([ours.as_wish(n) for n in (1, 3, 2)])
    together = twin.ask(6)
    assert [t for trials in grouped for t in trials] == together
    for study in (ours, twin):
        study.tell_all(together, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert equal(state(ours), state(twin))
    assert equal(state(rd.load_study("car", storage=sqlite)), state(ours))
    assert ours.ask() == twin.ask()


def test_a_ticket_used_twice_at_once_gives_the_same_trials(url, monkeypatch):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    with serving(url) as service, ThreadPoolExecutor(8) as pool:
        slow(monkeypatch, service.app.state.studies.storage, "ask_all")
        body = {"batch": 2, "ticket": "mine"}
        answers = list(pool.map(lambda _: service.request("POST", f"{CAR}/ask", body), range(8)))
    assert [status for status, _, _ in answers] == [200] * 8
    assert all(said == answers[0][1] for _, said, _ in answers)
    assert rd.load_study("car", storage=url).counters.asked == 2


def test_tells_that_come_at_once_share_a_transaction(url, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    study.ask(20)
    study.tell(3, 0.75)
    with serving(url) as service, ThreadPoolExecutor(24) as pool:
        calls = slow(monkeypatch, service.app.state.studies.storage, "close_all")
        paths = [f"{CAR}/trials/{i}/tell" for i in range(22)]
        answers = list(pool.map(lambda path: service.request("POST", path, {"payoff": 0.5})[0], paths))
    assert answers == [200] * 3 + [409] + [200] * 16 + [404] * 2, "whoever is refused keeps nobody from telling"
    assert len(calls) <= 6
    closings = sorted(trial.closing for trial in study.trials("told"))
    assert closings == list(range(1, 21))
    assert equal(state(study), state(rd.load_study("car", storage=url)))


def test_a_tell_does_not_wait_for_an_ask_that_computes(sqlite, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    study.ask(2)
    go, computing, real = threading.Event(), threading.Event(), rd.Randomist.propose

    def propose(*arguments, **options):
        computing.set()
        assert go.wait(20)
        return real(*arguments, **options)

    monkeypatch.setattr(rd.Randomist, "propose", propose)
    with serving(sqlite) as service, ThreadPoolExecutor(60) as pool:
        asks = [pool.submit(service.request, "POST", f"{CAR}/ask", {}) for _ in range(50)]
        assert computing.wait(20)
        assert service.request("POST", f"{CAR}/trials/0/tell", {"payoff": 0.5})[0] == 200
        assert service.request("GET", "/healthz", token=None)[0] == 200
        assert not any(ask.done() for ask in asks)
        go.set()
        assert {ask.result()[0] for ask in asks} == {200}


def test_several_tells_of_one_call(place):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    trials = study.ask(4)
    with pytest.raises(PayoffError, match=r"trial 2: .*nan"):
        study.tell_all(trials, [0.1, 0.2, float("nan"), 0.4])
    with pytest.raises(ShapeError, match="4 trials, 3 payoffs"):
        study.tell_all(trials, [0.1, 0.2, 0.3])
    assert study.counters.told == 0, "nothing is written where a payoff cannot be one"
    study.tell(trials[1], 0.9)
    with pytest.raises(ClosedTrialError, match=r"trial 1 was told 0\.9"):
        study.tell_all(trials, [0.1, 0.2, 0.3, 0.4])
    assert study.counters.told == 4, "the others are told"
    study.tell_all(trials, [0.1, 0.9, 0.3, 0.4])  # again changes nothing
    with pytest.raises(UnknownTrialError):
        study.tell_all([9], [0.1])
    assert [trial.payoff for trial in study.trials()] == [0.1, 0.9, 0.3, 0.4]
    assert equal(state(study), state(rd.load_study("car", storage=place)))


def test_several_tells_of_one_request(sqlite):
    study = rd.create_study("ads", rd.Realist(TWO, payoff_range=(0, 1), seed=0), storage=sqlite)
    with serving(sqlite) as service, Client(service.address, ADMIN) as client:
        remote = client.study("ads")
        trials = remote.ask(5)
        said = [{"old": -0.5, "new": -1.0}] * 4
        remote.tell_all(trials[:4], [0.0, 1.0, 0.0, 1.0], log_likelihoods=said)
        with pytest.raises(ClosedTrialError, match="trial 0"):
            remote.tell_all([0, 4], [1.0, 1.0], log_likelihoods=[[-0.5, -1.0]] * 2)
        with pytest.raises(PayoffError, match="trial 4"):
            remote.tell_all([4], [7.0], log_likelihoods=said[:1])
        assert service.request("POST", "/api/v1/studies/ads/tells", {"tells": []})[0] == 422
    assert [trial.payoff for trial in study.trials()] == [0.0, 1.0, 0.0, 1.0, 1.0]
    assert study.trials()[4].log_likelihoods == {"old": -0.5, "new": -1.0}


def test_more_tells_than_a_transaction_or_a_request_takes(sqlite, monkeypatch):
    study = rd.create_study("ads", rd.Randomist(TWO, payoff_range=(0, 1), seed=0), storage=sqlite)
    calls = slow(monkeypatch, study.storage, "close_all", 0.0)
    trials = [trial for _ in range(3) for trial in study.ask(1000)]
    done = [{"old": -0.5, "new": -1.0}] * 1500
    study.tell_all(trials[:1500], [0.5] * 1500, log_likelihoods=done)
    assert [len(tells) for tells in calls] == [1000, 500]
    study.tell_all([], [])
    with serving(sqlite, body=20_000) as service, Client(service.address, ADMIN) as client:
        remote = client.study("ads")
        remote.tell_all(trials[1500:], [1.0] * 1500, log_likelihoods=done)
        remote.tell_all([], [])
        with pytest.raises(ServiceError, match="20000 bytes"):
            remote.tell(0, 0.5, log_likelihoods={f"p{k}": -1.0 for k in range(2000)})
    assert study.counters.told == 3000


def test_what_a_policy_cannot_have_done_is_refused_alone(sqlite):
    study = rd.create_study("ads", rd.Randomist(TWO, payoff_range=(0, 1), seed=0), storage=sqlite)
    trials = study.ask(3)
    never = {name: -np.inf if name == trials[1].name else -1.0 for name in ("old", "new")}
    with pytest.raises(MediatorError, match="must be finite"):
        study.tell_all(
            trials, [0.5] * 3, log_likelihoods=[{"old": -1.0, "new": -1.0}, never, {"old": -1.0, "new": -1.0}]
        )
    assert [trial.state for trial in study.trials()] == ["told", "asked", "told"]


def test_reads_are_answered_by_another_process(url, monkeypatch):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    with serving(url) as service:
        reads = service.app.state.reads
        monkeypatch.setattr(rd.study.Study, "estimates", lambda self: 1 / 0)  # here, and nowhere else
        before = service.request("GET", f"{CAR}/estimates")
        assert (before[0], sum(before[1]["plays"])) == (200, 0)
        process, _ = reads._apart._running
        trial = service.request("POST", f"{CAR}/ask", {})[1]["trials"][0]["id"]
        service.request("POST", f"{CAR}/trials/{trial}/tell", {"payoff": 0.5})
        assert sum(service.request("GET", f"{CAR}/estimates")[1]["plays"]) == 1, "it hears of what happens"
        process.kill()
        process.wait()
        assert service.request("GET", f"{CAR}/recommendation")[0] == 200, "and is started again"
        again, _ = reads._apart._running
        assert again.pid != process.pid
    assert again.poll() is not None, "it ends with the service"


def wait(study, seconds):
    time.sleep(seconds)
    return "done"


def test_a_read_has_a_limit(sqlite, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    apart = reading.Apart(study.storage.database.url, 30.0)
    try:
        assert apart.get(study, partial(wait, seconds=0.0)) == b'"done"'
        monkeypatch.setattr(apart, "_seconds", 0.5)
        with pytest.raises(ServiceError, match=r"longer than 0\.5 s") as error:
            apart.get(study, partial(wait, seconds=60.0))
        assert error.value.status == 503
        monkeypatch.undo()
        assert apart.get(study, partial(wait, seconds=0.0)) == b'"done"'
    finally:
        apart.close()


def test_reads_of_what_is_in_this_process_alone(memory):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=memory)
    study.tell(study.ask(), 0.5)
    with serving(study.storage) as service:
        assert sum(service.request("GET", f"{CAR}/estimates")[1]["plays"]) == 1
        assert service.app.state.reads._apart is None
