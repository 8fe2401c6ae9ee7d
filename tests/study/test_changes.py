"""Decisions that come and go in a running study: durable, seen by all workers, replayed bit for bit."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import uuid
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.errors import MediatorError, ParameterError, ShapeError, SpaceError
from randomist.study import replay, replica
from randomist.study.storages import open_storage
from randomist.study.storages.base import Raced
from tests.problems import CATEGORIES, GAUSSIANS, RECTANGLE, payoff
from tests.study.helpers import SIXTH, at_once, edit, make, play, query, same
from tests.study.test_resume import equal, state

SIX = rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3, 1.4], [2, 2, 2, 0.1, 2, 0.7]))
FINITE = [name for name, cls in rd.LEARNERS.items() if issubclass(cls, rd.FiniteLearner)]
LEARNERS = {name: partial(make, name) for name in FINITE} | {
    "refreshed": partial(rd.Randomist, GAUSSIANS, refresh=1.3, refresh_from=20),
    "window": partial(rd.Realist, GAUSSIANS, window=15),
    "discount": partial(rd.Optimist, GAUSSIANS, discount=0.95),
    "running": partial(rd.Randomist, GAUSSIANS, payoff_range="running"),
    "prior": partial(rd.Randomist, GAUSSIANS, prior=([0.1, 0.2, 0.3, 0.4, 0.5], 2)),
    "uninformed": partial(rd.Randomist, rd.Finite(rd.Uniform([0.0, 0.5], [1.0, 1.5]))),
}
MEMBERS = {"uninformed": rd.Uniform([7.0], [8.0])}


@pytest.fixture
def memory() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def place(request, tmp_path, memory):
    if request.param == "memory":
        return memory
    return f"sqlite:///{tmp_path}/a.db" if request.param == "sqlite" else request.getfixturevalue("postgres").database()


def test_a_sixth_after_a_thousand_rounds(place):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    for _ in range(20):
        for trial in study.ask(batch=50):
            study.tell(trial, payoff(trial))
    assert study.add(SIXTH, name="wide") == 5
    six = rd.Randomist(SIX, seed=0)
    for trial in study.trials():
        six.adopt(rd.Trial(trial.id, trial.decision, trial.mediator))
        six.tell(trial.id, trial.payoff)
    theirs = six.estimates()
    for ours in (study, rd.load_study("car", storage=place)):
        assert ours.space.size == 6
        assert ours.names == ("0", "1", "2", "3", "4", "wide")
        found = ours.estimates()
        np.testing.assert_allclose(found.value, theirs.value, rtol=1e-10)
        np.testing.assert_allclose(found.effective_samples, theirs.effective_samples, rtol=1e-10)
        assert found.plays.tolist() == theirs.plays.tolist()
    assert GAUSSIANS.size == 5


def lived(study: rd.Study, step: int, name: str) -> list[rd.Trial]:
    """A stretch of life in which decisions come and go while trials are open."""
    trials = play(study, 6)
    late = study.ask(batch=4)
    study.fail(late[0], "lost")
    if step == 1:
        study.add(MEMBERS.get(name, SIXTH), name="new")
    study.tell(late[2], payoff(late[2]))
    if step == 2:
        study.retire(late[1].decision if name not in ("safe", "uninformed") else 1)
        if name != "uninformed":
            study.add(rd.Gaussian([-1.0], [0.4]))
    study.tell(late[1], payoff(late[1]))
    return [*trials, *late, *play(study, 3)]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_loaded_study_is_the_one_that_never_stopped(name, checkpoint, memory, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9 if checkpoint else 10**9)
    straight = rd.create_study("straight", LEARNERS[name](seed=7), storage=memory)
    rd.create_study("broken", LEARNERS[name](seed=7), storage=memory)
    restored = []
    monkeypatch.setattr(
        replay, "_restored", lambda *a, real=replay._restored: restored.append(real(*a)) or restored[-1]
    )
    for step in range(4):
        broken = rd.load_study("broken", storage=memory)
        assert same(lived(straight, step, name), lived(broken, step, name))
    loaded = rd.load_study("broken", storage=memory)
    assert equal(state(straight), state(broken))
    assert equal(state(straight), state(loaded))
    assert equal(straight.learner.arrivals, loaded.learner.arrivals)
    assert equal(straight.active, loaded.active)
    assert straight.counters.changes == (2 if name == "uninformed" else 3)
    assert straight.learner.arrivals.tolist()[-1] > 0
    assert same(play(straight, 5), play(loaded, 5))
    assert (None not in restored) if checkpoint else restored == []
    assert len(restored) >= 2 * checkpoint


def test_in_databases_too(url):
    straight, broken = (
        rd.create_study(name, rd.Randomist(GAUSSIANS, seed=7), storage=url) for name in ("straight", "broken")
    )
    for step in range(4):
        broken = rd.load_study("broken", storage=url)
        assert same(lived(straight, step, ""), lived(broken, step, ""))
    assert equal(state(straight), state(rd.load_study("broken", storage=url)))
    rows = query(url, "select place, kind, worker, asked, closed from randomist_changes where study = 1 order by place")
    assert [row[:2] for row in rows] == [(1, "add"), (2, "retire"), (3, "add")]
    assert {row[2] for row in rows} == {straight.worker}


# Checkpoints.


def checkpointed(study: rd.Study) -> int:
    """A checkpoint of this moment; how many closings it covers."""
    study.look(
        lambda learner, known: study.storage.save(
            study.record.id, replay.checkpoint_of(study.record.learner, learner, known.closed, study._replica._changes)
        )
    )
    return study.counters.checkpointed


def test_a_checkpoint_from_before_a_change_is_used_for_what_it_covers(sqlite, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 20)
    late = study.ask()
    covered = checkpointed(study)
    play(study, 5)
    study.add(SIXTH)
    study.tell(late, 0.25)
    play(study, 5)
    study.retire(0)
    assert study.counters.checkpointed == covered == 20
    found = []
    monkeypatch.setattr(replay, "_restored", lambda *a, real=replay._restored: found.append(real(*a)) or found[-1])
    loaded = rd.load_study("car", storage=sqlite)
    assert equal(state(study), state(loaded))
    assert found[0] is not None
    assert loaded.learner.arrivals.tolist() == [0, 0, 0, 0, 0, 26]


@pytest.mark.parametrize(
    "change",
    [
        'update randomist_changes set data = replace(data, \'"name":null\', \'"name":"x"\')',
        "update randomist_changes set asked = asked - 1, closed = closed - 1",
        "update randomist_checkpoints set caches = replace(caches, '\"changes\":1', '\"changes\":0')",
        'update randomist_checkpoints set caches = replace(caches, \'"changes":1\', \'"changes":"a"\')',
        "update randomist_checkpoints set caches = replace(caches, '\"changes\":1', '\"change\":1')",
    ],
)
def test_a_checkpoint_of_other_changes_is_left_aside(change, sqlite, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 10)
    study.add(SIXTH)
    play(study, 10)
    checkpointed(study)
    play(study, 5)
    assert edit(sqlite, change) == 1
    found = []
    monkeypatch.setattr(replay, "_restored", lambda *a, real=replay._restored: found.append(real(*a)) or found[-1])
    loaded = rd.load_study("car", storage=sqlite)
    np.testing.assert_allclose(loaded.estimates().value, study.estimates().value, rtol=1e-12)
    assert found == [None]


# Several workers.


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
    real = theirs.storage.ask

    def raced(study, trials, request):
        monkeypatch.setattr(theirs.storage, "ask", real)
        decision = int(trials[0].decision)
        if ours.active[decision] and ours.active.sum() > 1:
            ours.retire(decision)
        ours.add(SIXTH)
        return real(study, trials, request)

    monkeypatch.setattr(theirs.storage, "ask", raced)
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
from randomist.study.storages.sql import storage as module

study = rd.load_study("car", storage=sys.argv[1])
study.tell(study.ask(), 0.5)
if sys.argv[2] == "before":
    real = module._count
    def count(connection, *a, changes=0, **more):
        found = real(connection, *a, changes=changes, **more)
        if changes:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    module._count = count
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


# What is refused changes nothing.

BAD = {
    "a member that is none": (lambda s: s.add(0.5), ParameterError, "a family of one member"),
    "two members": (lambda s: s.add(rd.Gaussian([0.0, 1.0], 1.0)), ParameterError, "one member"),
    "another shape": (lambda s: s.add(rd.Gaussian([[0.0, 1.0]], 1.0)), ShapeError, "shape"),
    "likelihoods": (lambda s: s.add(rd.Finite.likelihoods(1).family), ParameterError, "drawn"),
    "a name that is taken": (lambda s: s.add(SIXTH, name="2"), ParameterError, "'2' is there twice"),
    "a name that is a number": (lambda s: s.add(SIXTH, name=2), ParameterError, "name is a text"),
    "an unknown decision": (lambda s: s.retire(5), ParameterError, "0..4"),
    "an unknown name": (lambda s: s.retire("five"), ParameterError, "no decision is called 'five'"),
    "a truth value": (lambda s: s.retire(True), ParameterError, "0..4"),
    "twice": (lambda s: s.retire(1), ParameterError, "was retired before"),
    "an atom where a trial is open": (lambda s: s.add(rd.Dirac(s.pending()[0].mediator)), MediatorError, "point mass"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_changes_nothing(case, memory):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=memory)
    play(study, 5)
    study.retire(1)
    study.ask()
    before = state(study)
    call, error, said = BAD[case]
    with pytest.raises(error, match=said):
        call(study)
    assert equal(state(study), before)
    assert study.counters.changes == 1
    assert equal(state(rd.load_study("car", storage=memory)), before)


def test_mediators_stay_whole_numbers(memory):
    study = rd.create_study("car", rd.Randomist(CATEGORIES, seed=0), storage=memory)
    with pytest.raises(ParameterError, match="whole numbers"):
        study.add(rd.Dirac(2.0))
    assert study.add(rd.Categorical([[0.25] * 4])) == 3
    play(study, 5)
    assert equal(state(study), state(rd.load_study("car", storage=memory)))


def test_a_box_has_no_decisions(memory):
    study = rd.create_study("car", rd.PGPE(RECTANGLE, seed=0), storage=memory)
    for call in (lambda: study.add(SIXTH), lambda: study.retire(0), lambda: study.names, lambda: study.active):
        with pytest.raises(SpaceError, match="searches a box"):
            call()
    assert isinstance(study.space, rd.Box)


def test_a_learner_that_changed_before_goes_on_changing(memory):
    learner = rd.Safe(rd.Realist(rd.Finite(GAUSSIANS.family, names=list("abcde")), seed=0), fraction=0.5)
    learner.add(SIXTH, name="f")
    learner.retire(1)
    study = rd.create_study("car", learner, storage=memory)
    assert study.names == tuple("abcdef")
    play(study, 10)
    assert study.add(rd.Gaussian([0.3], [0.5]), name="g") == 6
    with pytest.raises(ParameterError, match="baseline"):
        study.retire("a")
    play(study, 10)
    loaded = rd.load_study("car", storage=memory)
    assert loaded.names == tuple("abcdefg")
    assert equal(state(study), state(loaded))
    assert loaded.active.tolist() == [True, False, *[True] * 5]


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


# Databases of 0.1.0.


def test_an_old_study_can_add_after_the_upgrade(old_database):
    open_storage(old_database).upgrade()
    name = next(
        name for name in rd.study.study_names(old_database)
        if isinstance(rd.load_study(name, storage=old_database).space, rd.Finite)
        and isinstance(rd.load_study(name, storage=old_database).space.family, rd.Gaussian)
    )  # fmt: skip
    study = rd.load_study(name, storage=old_database)
    size, before, told = study.space.size, study.estimates().value, study.told
    new = study.add(rd.Gaussian(study.space.family.mean[:1], study.space.family.std[:1] * 1.1), name="new")
    assert new == size
    loaded = rd.load_study(name, storage=old_database)
    assert loaded.told == told
    assert loaded.names[new] == "new"
    np.testing.assert_allclose(loaded.estimates().value[:size], before, rtol=1e-9)
    assert equal(state(study), state(loaded))
    play(loaded, 3)


def test_the_storage_refuses_what_was_not_expected(url):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url)
    change = rd.study.changes.retiring(study.learner, 1, "w")
    assert study.storage.change(study.record.id, change, 0).place == 1
    with pytest.raises(Raced):
        study.storage.change(study.record.id, change, 0)
