"""Policies that act elsewhere, over HTTP, by the client and from the shell."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import randomist as rd
import randomist.cli
from randomist.cli.app import app
from randomist.errors import MediatorError, ParameterError, ShapeError
from randomist.study.client import Client
from tests.study.serving import ADMIN, STUDIES, WORK, serving
from tests.study.test_likelihoods import NAMES, act, learner, live, walk, walkers

SPACE = {"kind": "Likelihoods", "names": list(NAMES)}
ADS = f"{STUDIES}/ads"


@pytest.fixture
def service(sqlite):
    with serving(sqlite, rate=1e6, burst=1e6) as running:
        yield running


@pytest.mark.filterwarnings("ignore::randomist.errors.CoverageWarning")  # after one payoff
def test_over_http(service):
    new = {"name": "ads", "learner": "randomist", "space": SPACE, "settings": {"seed": 0}}
    assert service.request("POST", STUDIES, new)[0] == 201
    status, said, _ = service.request("POST", f"{ADS}/ask", {}, WORK)
    (trial,) = said["trials"]
    assert (status, trial["mediator"], trial["name"]) == (200, None, NAMES[trial["decision"]])
    tell = f"{ADS}/trials/0/tell"
    named = {"old": -1.0, "new": -2.0, "bold": -0.5}
    for wrong in (
        {},
        {"log_likelihoods": {"old": -1}},
        {"log_likelihoods": named | {"odd": -1}},
        {"log_likelihoods": 7},
    ):
        status, said, _ = service.request("POST", tell, {"payoff": 0.5} | wrong, WORK)
        assert status == 422, said
    assert service.request("POST", tell, {"payoff": 0.5, "log_likelihoods": named}, WORK)[0] == 200
    assert service.request("POST", tell, {"payoff": 0.5, "log_likelihoods": named}, WORK)[0] == 200
    assert service.request("POST", tell, {"payoff": 0.5, "log_likelihoods": named | {"old": -3}}, WORK)[0] == 409
    assert service.request("POST", tell, b'{"payoff": 0.5, "log_likelihoods": {"old": NaN}}', WORK)[0] == 422
    page = service.request("GET", f"{ADS}/trials")[1]["trials"]
    assert page[0]["log_likelihoods"] == named
    status, said, _ = service.request("POST", f"{ADS}/decisions", {"name": "calm"}, WORK)
    assert (status, said) == (201, {"decision": 3, "name": "calm", "active": True})
    assert service.request("GET", f"{ADS}/dashboard")[0] == 200
    assert service.request("GET", f"{ADS}/estimates")[0] == 200
    exported = service.request("GET", f"{ADS}/export")[1]
    assert json.loads(exported.splitlines()[0])["log_likelihoods"] == named


def test_the_client_is_as_the_study(service, memory):
    with Client(service.address, token=ADMIN) as client:
        remote = client.create("ads", "randomist", SPACE, seed=0)
        study = rd.create_study("ads", learner(), storage=memory)
        ours = live(study, 12)
        trials = live(remote, 12)
        assert [t.decision for t in ours] == [t.decision for t in trials]
        assert [t.name for t in ours] == [t.name for t in trials]
        trial = remote.ask()
        remote.tell(trial, 0.5, log_likelihoods=[-1.0 if k == trial.decision else -math.inf for k in range(3)])
        trial = remote.ask()
        for odd in (["x", 0, 0], [math.nan, 0, 0], [math.inf, 0, 0]):
            with pytest.raises((MediatorError, rd.errors.PayoffError)):
                remote.tell(trial, 0.5, log_likelihoods=odd)
        with pytest.raises(ShapeError):
            remote.tell(trial, 0.5, log_likelihoods=[0, 0])
        with pytest.raises(MediatorError, match="is missing"):
            remote.tell(trial, 0.5, log_likelihoods={"old": 0.0})
        remote.fail(trial)
        told = dict.fromkeys(range(13), -1.0)
        assert remote.add(name="calm", log_likelihoods=told | {3: -math.inf}) == 3
        assert remote.names == (*NAMES, "calm")
        loaded = rd.load_study("ads", storage=service.url)
        assert loaded.learner.record.mediators[:, 3].tolist() == [-math.inf if i == 3 else -1.0 for i in range(13)]


def test_episodes_over_http(service):
    study = rd.create_study("walk", rd.Randomist(walkers(), seed=0), storage=service.url)
    with Client(service.address, token=WORK) as client:
        remote = client.study("walk")
        for _ in range(3):
            trial = remote.ask()
            remote.tell_episode(trial, walk(trial))
        with pytest.raises(rd.errors.RandomistError):
            remote.tell_episode(remote.ask(), rd.Episode(np.zeros((2, 5)), np.zeros(2, int), np.zeros(2)))
    told = study.trials("told")
    assert len(told) == 3
    alone = rd.Randomist(walkers(), seed=0)
    for trial in told:
        alone.adopt(rd.Trial(trial.id, trial.decision, None))
        alone.tell_episode(trial.id, walk(trial))
    assert np.array_equal(study.learner.record.mediators, alone.record.mediators)


@pytest.mark.parametrize(
    "space",
    [
        {"kind": "Likelihoods"},
        {"kind": "Likelihoods", "names": []},
        {"kind": "Likelihoods", "names": "ab"},
        {"kind": "Likelihoods", "names": ["a", "a"]},
        {"kind": "Likelihoods", "names": ["a", 1]},
        {"kind": "Likelihoods", "names": ["a"], "loggers": "x"},
        {"kind": "Likelihoods", "count": 3},
    ],
)
def test_spaces_that_are_none(space):
    from randomist.study.describe import learner_from

    with pytest.raises((ParameterError, rd.errors.EmptySpaceError)):
        learner_from("randomist", space)


def run(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_from_the_shell(sqlite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    where = ("--storage", sqlite)
    run("study", "create", "ads", "--space", json.dumps(SPACE), "--set", "seed=0", *where)
    for _ in range(6):
        trial = json.loads(run("study", "ask", "ads", *where))
        assert trial["name"] == NAMES[trial["decision"]]
        likelihoods, payoff = act(rd.Trial(trial["id"], trial["decision"], None))
        named = json.dumps(dict(zip(NAMES, likelihoods, strict=True)))
        run("study", "tell", "ads", trial["id"], payoff, "--log-likelihoods", named, *where)
    found = json.loads(run("evaluate", "study:ads", "--json", *where))
    assert found["candidates"] if isinstance(found["candidates"], list) else found
    assert "calm" in run("study", "add", "ads", "--name", "calm", *where)
    text = run("evaluate", "study:ads", "--candidate", "new", *where)
    assert "new" in text
    assert CliRunner().invoke(app, ["evaluate", "study:ads", "--weights", "balance", *where]).exit_code != 0
    assert CliRunner().invoke(app, ["evaluate", "study:ads", "--payoff", "x", *where]).exit_code != 0
    assert CliRunner().invoke(app, ["evaluate", "study:nobody", *where]).exit_code != 0
