"""Decisions that come and go while several workers ask: all see them, and none is lost or there twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.study.storages.base import Raced
from tests.problems import GAUSSIANS
from tests.study.helpers import SIX, SIXTH, at_once, play, query, same
from tests.study.test_resume import equal, state


def test_others_see_a_change_with_their_next_ask(place):
    ours = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=place, worker="a")
    theirs = rd.load_study("car", storage=place, worker="b")
    play(ours, 6)
    play(theirs, 6)
    mine, yours = ours.ask(), theirs.ask()
    new = ours.add(SIXTH, name="new")
    assert theirs.ask().decision == new, "nothing is known of it"
    theirs.tell(mine, 0.5)
    ours.tell(yours, 0.25)
    theirs.retire("new")
    assert ours.active.tolist() == [True] * 5 + [False]
    for study in (ours, theirs):
        play(study, 4)
    loaded = rd.load_study("car", storage=place)
    for study in (ours, theirs):
        assert equal(state(study), state(loaded))
    assert [t.decision for t in loaded.trials()].count(new) >= 1


def test_what_a_worker_did_before_it_knew(place, monkeypatch):
    """It told, or asked, after a change was written and before it has read that: the trial stays valid."""
    ours = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place, worker="a")
    theirs = rd.load_study("car", storage=place, worker="b")
    play(theirs, 5)
    trial = theirs.ask()
    ours.retire(trial.decision)
    theirs.tell(trial, 0.5)
    real = theirs.storage.ask_all

    def raced(study, asks):
        monkeypatch.setattr(theirs.storage, "ask_all", real)
        decision = int(asks[0].trials[0].decision)
        if ours.active[decision] and ours.active.sum() > 1:
            ours.retire(decision)
        ours.add(SIXTH)
        return real(study, asks)

    monkeypatch.setattr(theirs.storage, "ask_all", raced)
    asked = theirs.ask()
    assert not ours.active[asked.decision], "it was decided before the other one retired it"
    theirs.tell(asked, 0.75)
    play(theirs, 3)
    loaded = rd.load_study("car", storage=place)
    assert equal(state(theirs), state(loaded))
    assert equal(state(ours), state(loaded))
    assert loaded.learner.arrivals[5] == asked.id


def test_of_contradictory_retires_one_wins(place):
    rd.create_study("car", rd.Randomist(rd.Finite(rd.Gaussian([0, 1], 1)), seed=0), storage=place)
    studies = [rd.load_study("car", storage=place) for _ in range(4)]
    for study in studies:
        assert study.active.all()
    gate, refused = threading.Barrier(4), []

    def work(k):
        gate.wait()
        try:
            studies[k].retire(k % 2)
        except ParameterError as error:
            refused.append(str(error))

    at_once(work, range(4))
    assert len(refused) == 3
    assert all("was retired before" in said or "is the last one" in said for said in refused)
    loaded = rd.load_study("car", storage=place)
    assert loaded.counters.changes == 1
    assert loaded.active.sum() == 1
    assert {trial.decision for trial in play(loaded, 5)} == set(np.flatnonzero(loaded.active).tolist())


def test_adds_at_once(place):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    numbers = []

    def work(k):
        study = rd.load_study("car", storage=place, worker=f"w{k}")
        for i in range(3):
            numbers.append((study.add(rd.Gaussian([0.1 * k], [1 + 0.1 * i]), name=f"{k} {i}"), f"{k} {i}"))
            play(study, 2)

    at_once(work, range(4))
    study = rd.load_study("car", storage=place)
    assert sorted(number for number, _ in numbers) == list(range(5, 17))
    assert all(study.names[number] == name for number, name in numbers)
    assert study.told == 24


def test_a_commit_whose_outcome_nobody_knows(url, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    play(study, 3)
    database, real = study.storage.database, study.storage.database.write

    def doubted(work):
        real(lambda connection, _: work(connection, 0))  # it was written, and the connection died
        return real(lambda connection, _: work(connection, 1))

    monkeypatch.setattr(database, "write", doubted)
    assert study.add(SIXTH) == 5
    monkeypatch.setattr(database, "write", real)
    assert query(url, "select count(*) from randomist_changes") == [(1,)]
    assert study.counters.changes == 1
    study.retire(5)
    assert rd.load_study("car", storage=url).active.tolist() == [True] * 5 + [False]


KILLED = """
import os, signal, sys
import randomist as rd
from randomist.study.storages.sql.storage import SQLStorage
from randomist.study.storages.sql import writing as module

study = rd.load_study("car", storage=sys.argv[1])
study.tell(study.ask(), 0.5)
if sys.argv[2] == "before":
    real = module.count
    def count(connection, *a, changes=0, **more):
        found = real(connection, *a, changes=changes, **more)
        if changes:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    module.count = count
else:
    real = SQLStorage.change
    def change(*a):
        real(*a)
        os.kill(os.getpid(), signal.SIGKILL)
    SQLStorage.change = change
study.add(rd.Gaussian([1.4], [0.7]), name="new")
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_a_decision_comes(moment, url, tmp_path):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=3), storage=url)
    play(study, 12)
    killed = subprocess.run([sys.executable, "-c", KILLED, url, moment], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    twin = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=3), storage=f"sqlite:///{tmp_path}/twin.db")
    play(twin, 12)
    twin.tell(twin.ask(), 0.5)
    assert study.counters.changes == (moment == "after")
    if moment == "after":
        twin.add(SIXTH, name="new")
    else:
        for one in (study, twin):
            assert one.add(SIXTH, name="new") == 5
    for one in (study, rd.load_study("car", storage=url)):
        assert equal(state(one), state(twin))
    assert same(play(rd.load_study("car", storage=url), 10), play(twin, 10))


def test_trials_of_decisions_that_others_added(sqlite):
    """Reading trials and names needs no learner, and finds out about newcomers."""
    ours, theirs = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=sqlite), rd.load_study("car", storage=sqlite)
    play(ours, 5)
    ours.add(SIXTH, name="new")
    assert ours.ask(ticket="mine").decision == 5
    assert theirs.trials()[-1].decision == 5
    assert theirs.ask(ticket="mine").decision == 5
    assert theirs.names[5] == "new"
    assert theirs.space.size == 6
    with pytest.raises(rd.errors.StudyExistsError):
        rd.create_study("car", rd.UCB1(SIX), storage=sqlite, exist_ok=True)
    again = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=sqlite, exist_ok=True)
    assert again.names == ours.names


def test_the_storage_refuses_what_was_not_expected(url):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url)
    change = rd.study.changes.retiring(study.learner, 1, "w")
    assert study.storage.change(study.record.id, change, 0).place == 1
    with pytest.raises(Raced):
        study.storage.change(study.record.id, change, 0)
