"""Studies keep what they were told, in SQLite and in PostgreSQL, and refuse what they should."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import randomist as rd
from randomist.errors import (
    ClosedTrialError,
    NoDataError,
    ParameterError,
    PayoffError,
    PayoffOutOfRangeError,
    SpaceError,
    StorageError,
    StudyExistsError,
    TicketError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study import open_storage, study_names
from tests.problems import CATEGORIES, GAUSSIANS, LINE, payoff
from tests.study.helpers import at_once, play, query, same


def test_the_whole_life_of_a_trial(url):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url, worker="bench")
    with pytest.raises(NoDataError):
        study.recommend()
    first, second, third = study.ask(), *study.ask(batch=2)
    assert [t.id for t in (first, second, third)] == [0, 1, 2]
    study.tell(second, 0.25)
    study.fail(third.id, "the motor was hot")
    there = rd.load_study("car", storage=url)
    zero, one, two = there.trials()
    assert [t.state for t in (zero, one, two)] == ["asked", "told", "failed"]
    assert (zero.id, zero.decision, zero.mediator, zero.payoff) == (*first[:3], None)
    assert (one.payoff, one.closing, two.reason, two.closing) == (0.25, 1, "the motor was hot", 2)
    assert {t.worker for t in there.trials()} == {"bench"}
    assert zero.lease_until == pytest.approx(zero.asked_at + 3600)
    assert abs(zero.asked_at - time.time()) < 60
    assert zero.asked_at <= one.closed_at <= two.closed_at
    assert there.pending() == [first]
    assert there.pending(worker="bench") == [first]
    assert there.pending(worker="another") == []
    assert [t.id for t in there.trials("told")] == [1]
    assert [t.id for t in there.trials(("asked", "failed"), first=1)] == [2]
    assert [t.id for t in there.trials(limit=2)] == [0, 1]
    assert there.counters[:3] == (3, 2, 1)
    assert there.told == 1
    assert there.recommend() == study.recommend()
    assert "car" in repr(there)
    assert study_names(url) == ["car"]


def test_tell_is_idempotent(url):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url)
    trial, failed = study.ask(batch=2)
    for _ in range(3):
        study.tell(trial, 0.5)
        rd.load_study("car", storage=url).tell(trial.id, 0.5)
        study.fail(failed, "lost")
    assert study.counters[:3] == (2, 2, 1)
    assert study.learner.told == 1
    for change in (
        lambda: study.tell(trial, 0.75),
        lambda: study.fail(trial, "no"),
        lambda: study.tell(failed, 0.5),
    ):
        with pytest.raises(ClosedTrialError, match=r"was (told 0.5|failed) before"):
            change()
    assert study.counters[:3] == (2, 2, 1)
    assert study.trials()[0].payoff == 0.5


def test_a_stale_trial_can_be_told_late_and_blocks_nobody(url):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url, lease=0.01)
    lost, kept = study.ask(), study.ask(lease=100)
    time.sleep(0.05)
    assert [t.state for t in study.trials()] == ["stale", "asked"]
    assert [t.id for t in study.trials("stale")] == [0]
    assert [t.id for t in study.trials("asked")] == [1]
    for trial in play(study, 12):
        assert trial.id > 1
    study.tell(lost, 0.5)
    study.tell(kept, 0.5)
    assert {t.state for t in study.trials()} == {"told"}
    assert study.trials()[0].closing == 13


def test_what_is_refused_changes_nothing(url):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    play(study, 5)
    trial = study.ask()
    before, decided = query(url, "select * from randomist_trials order by number"), study.learner.state()["record"]
    refused = [
        (PayoffError, lambda: study.tell(trial, float("nan"))),
        (PayoffError, lambda: study.tell(trial, "much")),
        (PayoffOutOfRangeError, lambda: study.tell(trial, 1.5)),
        (UnknownTrialError, lambda: study.tell(6, 0.5)),
        (UnknownTrialError, lambda: study.tell(-1, 0.5)),
        (UnknownTrialError, lambda: study.tell(2**70, 0.5)),
        (UnknownTrialError, lambda: study.tell(True, 0.5)),
        (UnknownTrialError, lambda: study.tell(None, 0.5)),
        (UnknownTrialError, lambda: study.tell(trial._replace(mediator=trial.mediator + 1), 0.5)),
        (UnknownTrialError, lambda: study.tell(trial._replace(decision="x"), 0.5)),
        (UnknownTrialError, lambda: study.fail(77)),
        (ParameterError, lambda: study.ask(batch=0)),
        (ParameterError, lambda: study.ask(batch=10**6)),
        (ParameterError, lambda: study.ask(lease=-1)),
        (ParameterError, lambda: study.ask(lease=float("inf"))),
        (ParameterError, lambda: study.ask(ticket="a b")),
        (ParameterError, lambda: study.ask(worker="\x00")),
        (ParameterError, lambda: study.trials("lost")),
        (ParameterError, lambda: study.trials(first=-1)),
        (SpaceError, lambda: study.estimate([0.0])),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    assert query(url, "select * from randomist_trials order by number") == before
    assert all(map(np.array_equal, decided.values(), study.learner.state()["record"].values()))
    study.tell(trial, 0.5)


def test_a_ticket_gives_the_same_trial_again(url):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    one, other = study.ask(ticket="mon:1"), study.ask(ticket="mon:2")
    assert one != other
    assert study.ask(ticket="mon:1") == one
    assert rd.load_study("car", storage=url).ask(ticket="mon:2") == other
    several = study.ask(batch=3, ticket="tue")
    assert study.ask(batch=3, ticket="tue") == several
    for n in (2, 4):
        with pytest.raises(TicketError, match="another size"):
            study.ask(batch=n, ticket="tue")
    assert study.counters.asked == 5
    uninterrupted = rd.create_study("twin", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    assert same(uninterrupted.ask(batch=6), [one, other, *several, study.ask()])


def test_two_who_use_a_ticket_at_once_get_one_trial(url):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    gate = threading.Barrier(6)

    def worker(_):
        study = rd.load_study("car", storage=url)
        gate.wait()
        return study.ask(ticket="the-same")

    got = at_once(worker, range(6))
    assert got == [got[0]] * 6
    assert rd.load_study("car", storage=url).counters.asked == 1


def test_create_and_load(url):
    learner = rd.Randomist(GAUSSIANS, payoff_range=(-np.inf, np.inf), first=2, seed=None)
    study = rd.create_study("car", learner, storage=url)
    with pytest.raises(StudyExistsError, match="a study 'car' exists"):
        rd.create_study("car", learner, storage=url)
    again = rd.create_study("car", learner, storage=url, exist_ok=True)
    assert again.learner.entropy == study.learner.entropy == learner.entropy
    assert learner.seed is None
    assert again.learner.payoff_range == (-np.inf, np.inf)
    with pytest.raises(StudyExistsError, match="another learner"):
        rd.create_study("car", rd.Randomist(GAUSSIANS, seed=1), storage=url, exist_ok=True)
    with pytest.raises(UnknownStudyError, match=r"no study 'bus'.*it has: car"):
        rd.load_study("bus", storage=url)
    for name in ("", "../../x", "<script>", "a b", "ä", "x" * 65, None, ".hidden", "a\n"):
        with pytest.raises(ParameterError, match="a study's name"):
            rd.create_study(name, learner, storage=url)
        with pytest.raises(ParameterError, match="a study's name"):
            rd.load_study(name, storage=url)
    play(learner, 1)
    with pytest.raises(ParameterError, match="a fresh learner"):
        rd.create_study("bus", learner, storage=url)
    with pytest.raises(ParameterError, match="a study keeps what"):
        rd.create_study("bus", rd.Realist(CATEGORIES, keep_record=False), storage=url)
    with pytest.raises(ParameterError, match="made of a learner"):
        rd.create_study("bus", GAUSSIANS, storage=url)


@pytest.mark.parametrize(
    "storage",
    ["", "sqlite://", "sqlite:///:memory:", "mysql://x:secret@y/z", "nonsense", None, "sqlite:///file:x?uri=true"],
)
def test_storage_that_is_none(storage):
    with pytest.raises(StorageError) as refused:
        rd.create_study("car", rd.UCB1(GAUSSIANS), storage=storage)
    assert "secret" not in str(refused.value)


def test_databases_that_are_not_there(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        rd.load_study("car", storage=f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="unable to open"):
        rd.create_study("car", rd.UCB1(GAUSSIANS), storage=f"sqlite:///{tmp_path}/none/none.db")
    (tmp_path / "text.db").write_text("a diary, not a database " * 100)
    with pytest.raises(StorageError, match="not a database"):
        rd.load_study("car", storage=f"sqlite:///{tmp_path}/text.db")


@pytest.mark.parametrize(
    "secret",
    ["me:secret@127.0.0.1:9/none", "127.0.0.1:9/none?user=me&password=secret", "127.0.0.1:9/none?nonsense=secret"],
)
def test_no_message_has_a_password(secret):
    with pytest.raises(StorageError) as refused:
        rd.load_study("car", storage=f"postgresql://{secret}", patience=0.2)
    assert "127.0.0.1:9/none" in str(refused.value)
    assert "secret" not in str(refused.value)
    assert "secret" not in str(open_storage(f"postgresql://{secret}").name)


def test_sqlite_is_durable(sqlite):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=sqlite)
    pragmas = study.storage.database.read(
        lambda c: [c.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
    )
    assert pragmas == ["wal", 2]


def test_a_locked_database_is_waited_for_and_then_named(sqlite):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=sqlite, patience=0.3)
    trial = study.ask()
    engine = study.storage.database._engine
    with engine.connect() as blocker:
        blocker.exec_driver_sql("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(StorageError, match="busy or away"):
            study.tell(trial, 0.5)
        assert time.monotonic() - started >= 0.3
        assert study.trials()[0].state == "asked"  # reading is not blocked
        threading.Timer(0.15, lambda: blocker.exec_driver_sql("ROLLBACK")).start()
        study.tell(trial, 0.5)
    assert study.told == 1


def test_texts_that_databases_dislike(url):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url)
    for reason in ("nul \x00", "half \ud800", "long " * 1000, "'; drop table randomist_trials; --"):
        study.fail(study.ask(), reason)
    reasons = [t.reason for t in study.trials()]
    assert reasons[0] == "nul \ufffd"
    assert reasons[1] == "half ?"
    assert len(reasons[2]) == 1000
    assert reasons[3].endswith("--")


def test_scalar_boxes_and_whole_mediators(url):
    line = rd.create_study("line", rd.MCMCRandomist(LINE, seed=1, density="one-step"), storage=url)
    trial = play(line, 4)[-1]
    assert type(trial.decision) is type(trial.mediator) is float
    shown = line.trials()[-1]
    assert (shown.decision, shown.mediator) == trial[1:3]
    classes = rd.create_study("classes", rd.Randomist(CATEGORIES, seed=1), storage=url)
    trial = play(classes, 4)[-1]
    assert type(trial.mediator) is int
    assert type(classes.trials()[-1].mediator) is int
    again = rd.load_study("classes", storage=url)
    again.tell(again.ask(), 0.5)


@dataclass(eq=False, kw_only=True)
class Slow(rd.UCB1):
    """Thinks for a while."""

    def index(self, estimates, rng):
        time.sleep(0.6)
        return super().index(estimates, rng)


def test_workers_think_at_the_same_time(url):
    study = rd.create_study("car", Slow(rd.Finite(rd.Gaussian([0.0, 1.0], 1.0))), storage=url)
    play(study, 2)  # the opening
    workers = [rd.load_study("car", storage=url) for _ in range(5)]
    for worker in workers:
        worker.learner  # noqa: B018 (loaded)
    got: list[rd.Trial] = []
    threads = [threading.Thread(target=lambda w=w: got.append(w.ask())) for w in workers]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    late = study.trials()[0]
    study.tell(late.id, late.payoff)  # and a tell does not wait for them
    assert time.monotonic() - started < 0.55
    for thread in threads:
        thread.join()
    assert time.monotonic() - started < 2.2  # one race lost at most; one after the other: 3
    assert sorted(trial.id for trial in got) == list(range(2, 7))
    assert len({trial.mediator for trial in got}) == 5


def test_workers_draw_apart_and_agree_on_the_history(url):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=3), storage=url)
    workers = [rd.load_study("car", storage=url, worker=f"w{i}") for i in range(3)]
    for _ in range(20):
        trials = [worker.ask() for worker in workers]
        for worker, trial in zip(reversed(workers), trials, strict=True):
            worker.tell(trial, payoff(trial))
    records = [worker.learner.record for worker in [*workers, study]]
    for record in records:
        assert np.array_equal(record.mediators, records[0].mediators)
        assert np.array_equal(record.payoffs, records[0].payoffs)
    assert len(set(records[0].mediators.tolist())) == 60
    estimates = [worker.estimates() for worker in [*workers, study, rd.load_study("car", storage=url)]]
    for other in estimates:
        assert all(map(np.array_equal, other, estimates[0]))
    assert {t.worker for t in study.trials()} == {"w0", "w1", "w2"}


def test_a_lost_race_draws_anew(url, monkeypatch):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=3), storage=url)
    play(study, 5)
    other = rd.load_study("car", storage=url)
    ask, interlopers = study.storage.ask_all, []

    def late(*arguments):
        if not interlopers:
            interlopers.append(other.ask())  # another worker is faster, with the same numbers drawn
        return ask(*arguments)

    monkeypatch.setattr(study.storage, "ask_all", late)
    trial = study.ask()
    assert (interlopers[0].id, trial.id) == (5, 6)
    assert trial.mediator != interlopers[0].mediator
    streams = query(url, "select stream from randomist_trials where number >= 5 order by number")
    assert streams[0] == (None,)
    assert streams[1][0] is not None
    assert [t.id for t in study.learner.pending] == [5, 6]


def test_a_forked_process_has_connections_and_numbers_of_its_own(url):
    code = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.study.helpers import *
study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage={url!r})
play(study, 3)
study._asker.streams.lost_race()
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        play(study, 10)
        os._exit(0)
    children.append(pid)
play(study, 10)
assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
mediators = [t.mediator for t in study.trials("told")]
assert len(set(mediators)) == 43, len(set(mediators))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_ask_that_was_not_written_leaves_no_mark(url, monkeypatch):
    learner = rd.MCMCRandomist(LINE, seed=1, density="one-step")
    study, twin = (rd.create_study(name, learner, storage=url) for name in ("car", "twin"))
    play(study, 3), play(twin, 3)
    ask = study.storage.ask_all

    def down(*_):
        raise StorageError("the network is gone")

    monkeypatch.setattr(study.storage, "ask_all", down)
    with pytest.raises(StorageError, match="gone"):
        study.ask()
    monkeypatch.setattr(study.storage, "ask_all", ask)
    assert same(play(study, 5), play(twin, 5))


def test_nothing_is_unpickled(url, monkeypatch):
    import pickle

    study = rd.create_study("car", rd.GPUCB(GAUSSIANS, seed=0), storage=url)
    play(study, 3)

    def refuse(*_, **__):
        raise AssertionError("pickle")

    for name in ("loads", "load", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    again = rd.load_study("car", storage=url)
    play(again, 2)
    assert again.told == 5
