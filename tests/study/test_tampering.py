"""A database that was changed by hand gives a typed error that names the row."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import randomist as rd
from randomist import _json
from randomist.errors import SchemaVersionError, StateError, StorageError, StudyDataError
from randomist.study import open_storage
from tests.problems import CATEGORIES, GAUSSIANS, RECTANGLE
from tests.study import fuzz
from tests.study.helpers import SIXTH, edit, play

TRIALS = {
    "a decision that is text": ("decision = 'x'", "decision must be a whole number"),
    "a decision that is a float": ("decision = '1.5'", "decision must be a whole number"),
    "a decision that is a truth value": ("decision = 'true'", "decision must be a whole number"),
    "two decisions": ("decision = '1,2'", "decision must be a whole number"),
    "a decision that is missing": ("decision = ''", "decision must be a whole number"),
    "an unknown decision": ("decision = '5'", "is not 0..4"),
    "a negative decision": ("decision = '-1'", "is not 0..4"),
    "a huge decision": ("decision = '1" + "0" * 30 + "'", "decision must be a whole number"),
    "a mediator of another shape": ("mediator = '[1.0]'", "mediator must be a finite number"),
    "a mediator that is text": ("mediator = '\"1\"'", "mediator must be a finite number"),
    "a mediator that is not a number": ("mediator = 'NaN'", "mediator must be a finite number"),
    "a mediator that is infinite": ("mediator = '1e999'", "mediator must be a finite number"),
    "a mediator deeply nested": ("mediator = '" + "[" * 5000 + "'", "mediator must be a finite number"),
    "a blob": ("mediator = x'00ff'", "mediator must be a finite number"),
    "a payoff that is text": ("payoff = 'much'", "told a finite payoff"),
    "a payoff out of range": ("payoff = 7.0", "outside payoff_range"),
    "a payoff that is infinite": ("payoff = 1e999", "told a finite payoff"),
    "a state that is unknown": ("state = 'lost'", "told a finite payoff"),
    "a state without its payoff": ("payoff = null", "told a finite payoff"),
    "a place in the order": ("closing = 100", "closing must be in 1..8"),
    "a place that is text": ("closing = 'first'", "closing must be"),
}


def refused(url: str, said: str) -> str:
    """Whoever loads the study and asks is refused: what is said."""
    with pytest.raises(StudyDataError, match=said) as error:
        rd.load_study("car", storage=url).ask()
    return str(error.value)


@pytest.mark.parametrize("case", TRIALS)
def test_a_trial_that_was_changed(case, sqlite):
    change, said = TRIALS[case]
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 8)
    running = rd.load_study("car", storage=sqlite)
    assert edit(sqlite, f"update randomist_trials set {change} where number = 3") == 1
    assert "trial 3 of study 'car'" in refused(sqlite, said)
    with pytest.raises(StudyDataError):
        running.ask()
    if "range" not in case and "place" not in case:
        with pytest.raises(StudyDataError, match="trial 3"):
            running.trials()


@pytest.mark.parametrize("change", [
    "decision = '[0.1]'", "decision = '[0.1, 30]'", "mediator = '[0.1, null]'", "mediator = '[0.1, 2, 3]'",
    "mediator = '0.5'", "decision = '{\"a\": 1}'",
])  # fmt: skip
def test_a_trial_of_a_box_that_was_changed(change, sqlite):
    study = rd.create_study("car", rd.PGPE(RECTANGLE, seed=0), storage=sqlite)
    play(study, 8)
    assert edit(sqlite, f"update randomist_trials set {change} where number = 5") == 1
    refused(sqlite, "trial 5 of study 'car'")


def test_rows_whose_texts_are_values_only_together(sqlite):
    study = rd.create_study("car", rd.PGPE(RECTANGLE, seed=0), storage=sqlite)
    play(study, 8)
    for number, text in ((3, "[0.3,4],[0.5,6]"), (4, "[0.1"), (5, "6]")):
        edit(sqlite, "update randomist_trials set mediator = :text where number = :n", text=text, n=number)
    refused(sqlite, r"trial 3 of study 'car'.*must be 2 finite numbers")


@pytest.mark.parametrize(
    "search", ["", "x", "{}", "[]", '{"current": 1.0, "seed": 1}', '{"current": {"$array": ["<f8", [9], "AAAA"]}}']
)
def test_a_search_that_was_changed(search, sqlite):
    study = rd.create_study("car", rd.MCMCRandomist(RECTANGLE, seed=0, density="one-step"), storage=sqlite)
    play(study, 8)
    edit(sqlite, "update randomist_trials set search = :search where number = 7", search=search)
    refused(sqlite, r"trial 7 of study 'car'.*its search")


def test_a_mediator_that_cannot_be(sqlite):
    study = rd.create_study("car", rd.Randomist(CATEGORIES, seed=0), storage=sqlite)
    play(study, 8)
    number = study.trials()[2].id
    edit(sqlite, "update randomist_trials set decision = '0', mediator = '3' where number = :n", n=number)
    refused(sqlite, f"trial {number} of study 'car'.*density 0")


@pytest.mark.parametrize("change", ["payoff = 'much'", "closing = 77", "mediator = '[]'"])
def test_a_worker_that_runs_notices(change, url):
    if url.startswith("postgresql") and "much" in change:
        change = "payoff = 'NaN'"
    study, other = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=url), rd.load_study("car", storage=url)
    play(study, 3)
    play(other, 3)
    edit(url, f"update randomist_trials set {change} where number = 5")
    with pytest.raises(StudyDataError, match="trial 5 of study 'car'"):
        study.ask()


def test_trials_that_are_gone(sqlite):
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 6)
    edit(sqlite, "delete from randomist_trials where number = 2")
    refused(sqlite, r"trial 2 of study 'car'.*missing; 6 trials were asked")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("learner = '{}'", "does not describe a learner"),
        ("learner = 'cos\nsystem\n.'", "does not describe a learner"),
        ("learner = replace(learner, 'Randomist', 'Nobody')", "unknown learner 'Nobody'"),
        ("learner = replace(learner, '\"confidence\":2.0', '\"confidence\":0.5')", "confidence must be"),
        ("learner = replace(learner, 'confidence', 'confidential')", "does not describe a learner"),
        ("learner = replace(learner, '<f8', '<f4')", "does not describe a learner"),
        ("learner = replace(learner, '\"format\":2', '\"format\":99')", "has format 99"),
        ("lease = 'long'", "lease='long'"),
        ("created_at = 'x'", "created_at='x'"),
        ("asked = 'many'", "counters"),
        ("closed = 4", "counts 4 closed trials, and has 6"),
        ("told = 4", "counts 4 told trials"),
        ("asked = 1000000000000000000", "trial 6 .*it is missing"),
        ("learner = replace(learner, '\"perturbation_scale\":1.1', '\"perturbation_scale\":1e308')", "cannot go on"),
    ],
)
def test_a_study_that_was_changed(change, said, sqlite):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 6)
    assert edit(sqlite, f"update randomist_studies set {change}") == 1
    refused(sqlite, said)


CHANGES = {
    "another kind": ("kind = 'swap'", 1, "its kind must be add or retire"),
    "no JSON": ("data = 'x'", 1, "it cannot be made"),
    "a blob": ("data = x'00ff'", 1, "it cannot be made"),
    "other entries": ("data = '{\"decision\":1}'", 1, "its data must have member and name"),
    "no family": ("data = replace(data, 'Gaussian', 'Nobody')", 1, "it cannot be made"),
    "no std": ("data = replace(data, '\"std\"', '\"spread\"')", 1, "it cannot be made"),
    "a name that is taken": ("data = replace(data, 'new', '4')", 1, "'4' is there twice"),
    "an unknown decision": ("data = '{\"decision\":17}'", 2, "0..5, got 17"),
    "no decision": ('data = \'{"decision":"a"}\'', 2, "0..5"),
    "a moment before the last": ("asked = 0", 2, "asked must be in 8..14, got 0"),
    "a moment that never came": ("asked = 99", 1, "asked must be in 0..14, got 99"),
    "a moment that is text": ("closed = 'soon'", 1, "closed must be in 0..14"),
    "before its trials were asked": ("asked = 5", 1, "after 5 asks, trial 7 cannot be among 8 closings"),
    "another place": ("place = 7", 2, "it is missing; 2 changes were made"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_that_was_edited(case, sqlite):
    change, place, said = CHANGES[case]
    study = rd.create_study("car", rd.UCB1(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 8)
    running = rd.load_study("car", storage=sqlite)
    running.learner  # noqa: B018 (loaded)
    study.add(SIXTH, name="new")
    play(study, 4)
    study.retire(2)
    play(study, 2)
    assert edit(sqlite, f"update randomist_changes set {change} where place = {place}") == 1
    assert f"change {place} of study 'car' (a row of randomist_changes)" in refused(sqlite, said)
    with pytest.raises(StudyDataError):
        running.ask()
    if case not in ("an unknown decision", "no decision", "before its trials were asked"):
        with pytest.raises(StudyDataError, match=f"change {place} of study 'car'"):
            rd.load_study("car", storage=sqlite).trials()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("delete from randomist_changes where place = 1", "change 1 of study 'car'.*is missing; 2 changes"),
        ("delete from randomist_changes where place = 2", "change 2 of study 'car'.*is missing; 2 changes"),
        ("update randomist_studies set changes = 0", "change 1 of study 'car'"),
        ("update randomist_studies set changes = 3", "change 3 of study 'car'.*is missing; 3 changes"),
        ("update randomist_studies set changes = 'many'", "counters"),
        ("update randomist_trials set decision = '5' where number = 3", "trial 3 of study 'car'.*'5' is not 0..4"),
        ("update randomist_trials set decision = '6' where number = 9", "trial 9 of study 'car'.*'6' is not 0..5"),
    ],
)
def test_changes_and_counters_that_disagree(change, said, sqlite):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 8)
    study.add(SIXTH, name="new")
    play(study, 4)
    study.retire(2)
    assert edit(sqlite, change) == 1
    refused(sqlite, said)


@pytest.mark.parametrize("column", ["asked_at", "lease_until", "closed_at"])
def test_a_moment_that_is_infinite(column, sqlite):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 6)
    edit(sqlite, f"update randomist_trials set {column} = 1e999 where number = 3")
    with pytest.raises(StudyDataError, match=r"trial 3 .*its times must be finite"):
        study.trials()


def test_tables_that_are_damaged(tmp_path):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=f"sqlite:///{tmp_path}/study.db").close()
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("PRAGMA writable_schema=ON")
        broken = "name = CAST(x'ff31' AS TEXT), sql = 'CREATE TABLE ('"
        connection.execute(f"update sqlite_master set {broken} where name = 'randomist_trials'")
    with pytest.raises(StorageError, match=r"is damaged .*restore a backup"):
        rd.load_study("car", storage=f"sqlite:///{tmp_path}/study.db")


def test_a_version_that_is_none(sqlite):
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    edit(sqlite, "update randomist_schema set version = 0")
    with pytest.raises(SchemaVersionError, match="must hold one version number"):
        open_storage(sqlite).upgrade()


@pytest.mark.parametrize(
    ("how", "times"),
    [
        (fuzz.edit_a_cell, 60),
        (fuzz.flip_a_bit, 40),
        pytest.param(fuzz.edit_a_cell, 4000, marks=pytest.mark.slow),
        pytest.param(fuzz.flip_a_bit, 300, marks=pytest.mark.slow),
    ],
)
def test_whatever_is_changed_the_error_is_typed(how, times, tmp_path):
    found, untyped = fuzz.attack(tmp_path, how, times, seed=times)
    print(dict(found))
    assert untyped == []
    assert found["typed"] > 0


def test_the_encoding_keeps_everything():
    state = {
        "numbers": [1, -2.5, 2**130, True, None, 1e-320],
        "infinite": (float("inf"), -float("inf")),
        "arrays": [np.arange(6.0).reshape(2, 3), np.array([], np.int64), np.array(True), np.array(2.5)],
        "scalars": [np.float64(0.1), np.int64(7), np.bool_(False)],
        "text": "ä $ \u2028 \\",
    }
    back = _json.loads(_json.dumps(state))
    assert back["numbers"] == state["numbers"]
    assert back["infinite"] == state["infinite"]
    assert back["text"] == state["text"]
    assert back["scalars"] == [0.1, 7, False]
    for ours, theirs in zip(back["arrays"], state["arrays"], strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert np.array_equal(ours, theirs)
    assert np.isnan(_json.loads(_json.dumps(float("nan"))))


@pytest.mark.parametrize(
    "value", [{"$x": 1}, {1: 2}, object(), {1, 2}, np.array(["a"]), np.array([1], np.float32), b"x"]
)
def test_the_encoding_refuses_to_write(value):
    with pytest.raises(StateError):
        _json.dumps(value)


@pytest.mark.parametrize("text", [
    "", "{", b"{}", None, '{"$array": 1}', '{"$array": ["<f8", [2], "AAAA"]}', '{"$array": ["|O", [1], ""]}',
    '{"$array": ["<f8", [-1], ""]}', '{"$array": ["<f8", [0], "*"]}', '{"$float": "1e9"}', '{"$tuple": 1}',
    '{"$new": 1}', '{"$array": ["<f8", ["0"], ""]}', "[" * 100_000,
])  # fmt: skip
def test_the_encoding_refuses_to_read(text):
    with pytest.raises(StateError):
        _json.loads(text)
