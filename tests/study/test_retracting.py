"""Tells that are taken back, studies that are archived, renamed and deleted, and who did it."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist import _json
from randomist.errors import (
    ArchivedStudyError,
    ParameterError,
    RetractionError,
    StorageError,
    StudyDataError,
    StudyExistsError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study import open_storage, replica
from randomist.study.storages.sql import keeping
from tests.problems import GAUSSIANS, RECTANGLE, payoff
from tests.study.helpers import SIXTH, at_once, edit, make, play, query
from tests.study.test_likelihoods import NAMES, four, learner, live


def car(place, **settings):
    return rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0, **settings), storage=place, worker="w")


def state(one):
    found = one.state()
    return _json.dumps({name: value for name, value in found.items() if name not in ("generators", "failures")})


def without(study, gone, fresh):
    """A learner that was asked the same, and never told what was taken back."""
    for trial in study.trials():
        fresh.adopt(rd.Trial(trial.id, trial.decision, trial.mediator))
    for trial in sorted((t for t in study.trials() if t.closing is not None), key=lambda t: t.closing):
        if trial.id in gone or trial.state == "failed":
            fresh.fail(trial.id)
        else:
            fresh.tell(trial.id, trial.payoff)
    return fresh


def test_estimates_are_as_if_it_had_never_been_told(place):
    study, other = car(place), rd.load_study("car", storage=place)
    play(study, 12)
    other.learner  # noqa: B018 (it knows all of them)
    study.retract(4, "the wrong units")
    study.retract(study.trials()[7], "and this one")
    fresh = without(study, {4, 7}, rd.Randomist(GAUSSIANS, seed=0))
    for one in (study, other, rd.load_study("car", storage=place)):
        assert state(one.learner) == state(fresh)
        assert np.array_equal(one.estimates().value, fresh.estimates().value)
        assert one.learner.failures[4] == "retracted: the wrong units"
    assert (study.told, study.counters.retracted, study.counters.failed) == (10, 2, 0)
    assert study.ask().id == 12  # it goes on
    play(other, 3)
    assert state(rd.load_study("car", storage=place).learner) == state(other.learner)


def test_what_is_seen_of_it(place):
    study = car(place)
    play(study, 5)
    study.retract(3, "the wrong units", worker="ann")
    trial = study.trials()[3]
    assert (trial.state, trial.reason, trial.payoff) == ("retracted", "the wrong units", payoff(trial))
    assert [t.id for t in study.trials("retracted")] == [3]
    assert [t.id for t in study.trials("told")] == [0, 1, 2, 4]
    assert [t.id for t in study.trials(("told", "retracted"))] == [0, 1, 2, 3, 4]
    study.retract(3, "again")
    assert study.trials()[3].reason == "the wrong units", "the same again changes nothing"
    assert {(row.state, row.trials) for row in study.workers()} == {("told", 4), ("retracted", 1)}
    assert len(study.log()) == 4
    assert 3 not in study.log().column("id").__next__().to_list()
    assert [t.closed_by for t in study.trials()] == ["w"] * 5
    study.tell(study.ask(), 0.5, worker="bob")
    assert study.trials()[5].closed_by == "bob"


@pytest.mark.parametrize("name", rd.LEARNERS)
def test_every_learner_goes_on_without_it(name, sqlite):
    study = rd.create_study("car", make(name), storage=sqlite)
    play(study, 14)
    study.retract(2, "no")
    study.retract(13, "no")
    play(study, 3)
    play(rd.load_study("car", storage=sqlite), 3)
    assert study.told == 18


def test_there_must_be_something_to_take_back(place):
    study = car(place)
    play(study, 2)
    study.fail(study.ask(), "lost")
    study.ask()
    for number, said in ((2, "failed, and counts for nothing"), (3, "was not answered yet")):
        with pytest.raises(RetractionError, match=said):
            study.retract(number, "no")
    for number in (9, -1, "x", True, 2**70):
        with pytest.raises(UnknownTrialError):
            study.retract(number, "no")
    assert study.counters[:3] == (4, 3, 2)
    study.retract(0)
    study.retract(1)
    assert study.told == 0
    with pytest.raises(rd.errors.NoDataError):
        study.recommend()
    study.ask()


def test_one_that_was_not_feasible(sqlite):
    study = rd.create_study("car", rd.Auto(low=[-1, 0], high=[1, 20], seed=0), storage=sqlite)
    play(study, 4)
    trial = study.ask()
    study.tell(trial, feasible=False)
    study.retract(trial, "the sensor was loose")
    assert not rd.load_study("car", storage=sqlite).learner.infeasible
    assert study.told == 4
    assert study.trials()[-1].state == "retracted"


def test_checkpoints_do_not_bring_it_back(url, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 5)
    study = car(url)
    play(study, 20)
    assert study.counters.checkpointed > 0
    study.retract(3, "no")
    assert study.counters.checkpointed == 0
    fresh = without(study, {3}, rd.Randomist(GAUSSIANS, seed=0))
    assert state(rd.load_study("car", storage=url).learner) == state(fresh)
    play(study, 12)
    assert study.counters.checkpointed > 20
    assert state(rd.load_study("car", storage=url).learner) == state(study.learner)


def test_before_and_after_decisions_come(place):
    study = car(place)
    play(study, 6)
    study.retract(1, "no")
    study.add(SIXTH, name="wide")
    play(study, 6)
    study.retract(2, "no")
    study.retract(8, "no")
    assert state(rd.load_study("car", storage=place).learner) == state(study.learner)
    assert study.learner.told == 9
    ads = rd.create_study("ads", learner(), storage=place)
    live(ads, 6)
    ads.retract(1, "no")
    ads.add(name="calm", log_likelihoods={i: -1.0 for i in range(6) if i != 1})
    ads.retract(2, "no")
    live(ads, 4, *four())
    assert rd.load_study("ads", storage=place).learner.record.mediators[:4, 3].tolist() == [-1.0] * 4
    other = rd.create_study("scratch", learner(), storage=place)
    live(other, 1)
    other.add(name="calm")
    live(other, 4, *four())
    other.retract(0, "no")  # what made the new policy begin from scratch
    assert rd.load_study("scratch", storage=place).learner.state()["decisions"]["alone"].tolist() == [3]


def test_intervals_count_it_as_lost(sqlite):
    study = car(sqlite)
    for _ in range(200):
        study.tell(study.ask(), 1.0)
    before = study.intervals()
    for number in range(50):
        study.retract(number, "too good")
    after = study.intervals()
    assert (after.low <= before.low).all()
    assert (after.low < before.low).any()


def test_many_take_back_at_once(url):
    study = car(url)
    play(study, 12)

    def work(number):
        mine = rd.load_study("car", storage=url)
        for trial in range(6):
            mine.retract(trial, f"worker {number}")
            play(mine, 1)

    at_once(work, range(3))
    assert study.counters.retracted == 6
    assert study.told == 12 + 18 - 6
    assert state(rd.load_study("car", storage=url).learner) == state(study.learner)
    assert [entry.detail["trial"] for entry in study.audit() if entry.what == "retract"] == sorted(range(6))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("update randomist_studies set retracted = 2", "counts 2 retracted trials, and has 1"),
        ("update randomist_studies set retracted = 0", "counts 0 retracted trials, and has 1"),
        ("update randomist_studies set retracted = 'x'", "counters"),
        ("update randomist_trials set retracted = x'00ff' where number = 1", "retracted must be"),
        ("update randomist_trials set retracted = null where number = 1", "counts 1 retracted trials, and has 0"),
    ],
)
def test_marks_that_were_edited(change, said, sqlite):
    study = car(sqlite)
    play(study, 4)
    study.retract(1, "no")
    edit(sqlite, change)
    with pytest.raises(StudyDataError, match=said):
        rd.load_study("car", storage=sqlite).ask()


# Studies as a whole.


def test_an_archived_study_may_only_be_read(place):
    study, other = car(place), rd.load_study("car", storage=place)
    play(study, 3)
    trial = study.ask()
    assert not study.archived
    study.archive(worker="ann")
    study.archive()
    assert other.archived
    for refused in (
        lambda: other.ask(),
        lambda: other.tell(trial, 0.5),
        lambda: other.fail(trial),
        lambda: other.add(SIXTH),
        lambda: other.retire(0),
        lambda: other.retract(0, "no"),
    ):
        with pytest.raises(ArchivedStudyError, match="unarchive it"):
            refused()
    assert other.counters[:3] == (4, 3, 3)
    assert len(other.trials()) == 4
    assert other.recommend() == study.recommend()
    assert rd.study_names(place) == ["car"]
    other.unarchive()
    study.tell(trial, 0.5)
    assert [entry.what for entry in study.audit()] == ["create", "archive", "unarchive"]


def test_a_study_gets_another_name(place):
    study, other = car(place), rd.load_study("car", storage=place)
    rd.create_study("bus", rd.UCB1(GAUSSIANS), storage=place)
    play(study, 3)
    with pytest.raises(StudyExistsError):
        study.rename("bus")
    with pytest.raises(ParameterError):
        study.rename("../x")
    study.rename("truck")
    study.rename("truck")
    assert study.name == "truck"
    assert rd.study_names(place) == ["truck", "bus"]
    play(other, 2)  # who has it goes on
    assert rd.load_study("truck", storage=place).told == 5
    with pytest.raises(UnknownStudyError):
        rd.load_study("car", storage=place)
    car(place)
    assert study.audit()[-1].detail == {"from": "car", "to": "truck"}


def test_a_study_is_deleted(place, monkeypatch):
    monkeypatch.setattr(keeping, "SWEPT", 3)
    study, other = car(place), rd.create_study("bus", rd.UCB1(GAUSSIANS, seed=3), storage=place)
    play(study, 8)
    study.add(SIXTH)
    play(other, 4)
    trial = study.ask()
    rd.delete_study("car", storage=place, worker="ann")
    assert rd.study_names(place) == ["bus"]
    with pytest.raises(UnknownStudyError):
        rd.delete_study("car", storage=place)
    for refused in (
        lambda: study.ask(),
        lambda: study.tell(trial, 0.5),
        lambda: study.counters,
        lambda: study.archive(),
    ):
        with pytest.raises(UnknownStudyError):
            refused()
    again = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=4), storage=place)
    play(again, 2)
    with pytest.raises(UnknownStudyError):  # it does not write into the new one
        study.ask()
    assert again.counters[:3] == (2, 2, 2)
    assert other.told == 4
    if not place.startswith("memory"):
        assert query(place, "select count(*) from randomist_trials") == [(6,)]
        assert query(place, "select count(*) from randomist_changes") == [(0,)]
        assert query(place, "select who, what from randomist_audit where what = 'delete'") == [("ann", "delete")]


def test_what_a_killed_deletion_left_goes_with_the_next(url, monkeypatch):
    study = car(url)
    play(study, 5)
    with monkeypatch.context() as patched:
        patched.setattr(keeping.Keeping, "sweep", lambda self: None)  # killed after the first step
        rd.delete_study("car", storage=url)
    assert query(url, "select count(*) from randomist_trials") == [(5,)]
    car(url)
    rd.delete_study("car", storage=url)
    assert query(url, "select count(*) from randomist_trials") == [(0,)]


def test_who_did_what(place):
    study = car(place)
    play(study, 3)
    study.add(SIXTH, name="wide", worker="ann")
    study.retire("wide", worker="bob")
    study.retract(0, "no", worker="eve")
    found = study.audit()
    assert [(entry.who, entry.what) for entry in found] == [
        *(("w", "create"), ("ann", "add"), ("bob", "retire"), ("eve", "retract"))
    ]
    assert found[-1].detail == {"trial": 0, "reason": "no"}
    assert [entry.at for entry in found] == sorted(entry.at for entry in found)


@pytest.mark.parametrize("change", ["detail = 'x'", "detail = '[]'", "at = 'x'", "at = 1e999", "who = x'00ff'"])
def test_a_record_that_was_edited(change, sqlite):
    study = car(sqlite)
    edit(sqlite, f"update randomist_audit set {change}")
    with pytest.raises(StudyDataError, match="randomist_audit"):
        study.audit()


def test_a_storage_that_cannot_says_so(memory, monkeypatch):
    from randomist.study.storages.base import Storage
    from randomist.study.storages.memory import MemoryStorage

    study = car(memory)
    play(study, 1)
    for name, call in (
        ("retract", lambda: study.retract(0, "no")),
        ("archive", study.archive),
        ("rename", lambda: study.rename("bus")),
        ("delete", lambda: rd.delete_study("car", storage=memory)),
    ):
        monkeypatch.setattr(MemoryStorage, name, getattr(Storage, name))
        with pytest.raises(StorageError, match="does not say how"):
            call()
    assert open_storage(memory).names() == ["car"]


def test_names_of_likelihood_studies_are_kept(sqlite):
    study = rd.create_study("ads", learner(), storage=sqlite)
    live(study, 5)
    study.retract(2, "no")
    assert study.names == NAMES
    assert rd.create_study("box", rd.PGPE(RECTANGLE, seed=0), storage=sqlite).told == 0
