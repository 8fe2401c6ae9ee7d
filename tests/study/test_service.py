"""Studies over HTTP: the service decides as the library does, and shows all that is there."""

from __future__ import annotations

import json

import numpy as np
import pytest

import randomist as rd
from randomist.errors import (
    ClosedTrialError,
    NoDataError,
    ParameterError,
    PayoffOutOfRangeError,
    SpaceError,
    StudyExistsError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study.client import Client
from tests.problems import GAUSSIANS, RECTANGLE, payoff
from tests.study.helpers import play, query
from tests.study.serving import ADMIN, BOX, CAR, READ, SPACE, WORK

pytestmark = pytest.mark.xdist_group("service")


def test_the_life_of_a_study_over_http(service):
    with Client(service.address, ADMIN) as client:
        study = client.create("life", "randomist", SPACE, seed=0)
        with pytest.raises(NoDataError):
            study.recommend()
        local = rd.create_study("local", rd.Randomist(GAUSSIANS, seed=0), storage=service.url)
        for _ in range(20):
            ours, theirs = study.ask(worker="me"), local.ask()
            assert (ours.decision, ours.mediator) == theirs[1:3], "the service decides as the library does"
            study.tell(ours, payoff(ours))
            local.tell(theirs, payoff(theirs))
        first, second = study.ask(batch=2)
        study.fail(second, "lost")
        assert all(map(np.array_equal, study.estimates()[:6], local.estimates()[:6]))
        assert study.recommend() == local.recommend()
        assert study.info()[:2] == ("life", "Randomist")
        assert study.info()[4:7] == (22, 20, 1)
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
        assert [(t.decision, t.mediator) for t in play(study, 5)] == [t[1:3] for t in play(local, 5)]
        with pytest.raises(ParameterError, match="was retired before"):
            study.retire(0)
        line = service.request("GET", "/api/v1/studies/going/export?format=csv", token=READ)[1].splitlines()[1]
        assert line.endswith(f",{local.names[local.trials()[0].decision]}")
        shown = service.request("GET", "/api/v1/studies/going/dashboard", token=READ)[1]
        assert shown["finite"]["name"][5] == "wide (retired)"
        assert shown["study"]["space"]["size"] == 7
    workers = {row[0] for row in query(service.url, "select worker from randomist_changes")}
    assert any(worker.startswith("token ") and worker.endswith(" at 127.0.0.1") for worker in workers)


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
