"""Decisions that come and go in a running study: durable, and replayed bit for bit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.study import replay, replica
from randomist.study.storages import open_storage
from tests.problems import GAUSSIANS, payoff
from tests.study.helpers import SIX, SIXTH, edit, make, play, query, same
from tests.study.test_resume import equal, state

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


# Checkpoints.


def checkpointed(study: rd.Study) -> int:
    """A checkpoint of this moment; how many closings it covers."""
    study.look(
        lambda learner, known: study.storage.save(
            study.record.id,
            replay.checkpoint_of(study.record.learner, learner, known.closed, study._asker.replica._changes),
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
