"""`randomist study verify` names every row that is wrong."""

from __future__ import annotations

import json

import pytest

import randomist as rd
from randomist.study import open_storage, replica
from randomist.study.verifying import verify
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.helpers import SIXTH, edit, play
from tests.study.test_cli_studies import call
from tests.study.test_likelihoods import learner, live


@pytest.fixture
def busy(sqlite, monkeypatch):
    """A study with all that there can be."""
    monkeypatch.setattr(replica, "CHECKPOINT", 5)
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    play(study, 8)
    study.add(SIXTH, name="wide")
    play(study, 8)
    study.retire(0)
    study.fail(study.ask(), "lost")
    study.ask()
    study.retract(5, "no")
    play(study, 9)
    assert study.counters.checkpointed
    return sqlite


def problems(url, name="car"):
    return verify(open_storage(url), name).problems


def test_nothing_is_wrong(busy):
    found = verify(open_storage(busy), "car")
    assert found == ("car", 27, 24, [])
    play(rd.create_study("box", rd.MCMCRandomist(RECTANGLE, seed=0, density="one-step"), storage=busy), 5)
    live(rd.create_study("ads", learner(), storage=busy), 5)
    rd.create_study("empty", rd.Auto(low=[0], high=[1]), storage=busy)
    assert [problems(busy, name) for name in rd.study_names(busy)] == [[]] * 4


def test_every_row_that_is_wrong_is_named(busy):
    for number, change in (
        *((1, "decision = 'x'"), (3, "mediator = '[]'"), (7, "payoff = 'much'"), (9, "decision = '99'")),
        *((11, "asked_at = 1e999"), (12, "extra = '{}'"), (14, "closing = -3"), (16, "payoff = 0.5")),
    ):
        edit(busy, f"update randomist_trials set {change} where number = {number}")
    edit(busy, "delete from randomist_trials where number = 20")
    said = problems(busy)
    for number in (1, 3, 7, 9, 11, 12, 14, 16, 20):
        assert any(line.startswith(f"trial {number} of study 'car'") for line in said), (number, said)
    assert not any(line.startswith("trial 2 of") for line in said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("update randomist_studies set learner = '{}'", "does not describe a learner"),
        ("update randomist_studies set told = 3", "counts 3 told"),
        ("update randomist_studies set asked = 1000000000000000000", "is missing"),
        ("update randomist_studies set lease = 'x'", "lease='x'"),
        ("update randomist_changes set data = 'x' where place = 1", "change 1 of study 'car'"),
        ("update randomist_audit set detail = 'x'", "randomist_audit"),
        ("update randomist_trials set payoff = 7 where number = 3", "outside payoff_range"),
    ],
)
def test_what_is_wrong_elsewhere(change, said, busy):
    edit(busy, change)
    assert any(said in line for line in problems(busy))


def test_a_checkpoint_that_does_not_fit_is_left_aside(busy):
    edit(busy, "update randomist_checkpoints set caches = replace(caches, '1', '2')")
    assert problems(busy) == []  # it is not used


def test_from_the_shell(busy, tmp_path):
    assert call("verify", "--storage", busy, cwd=tmp_path) == [
        {"study": "car", "trials": 27, "told": 24, "problems": []}
    ]
    edit(busy, "update randomist_trials set decision = 'x' where number = 4")
    done = call("verify", "car", "--storage", busy, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "trial 4" in json.loads(done.stdout)[0]["problems"][0]
