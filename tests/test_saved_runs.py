"""A run on disk: killed at any moment it goes on without losing a told round, and becomes what it would have been."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import randomist as rd
from randomist import errors
from tests.simulated import bowl, slow

ROOT = Path(__file__).parents[1]
SPACE = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b"))


class CutError(Exception):
    """The run ends here."""


def cut_at(n):
    """A callback that ends a run in its n-th round, after that was written."""

    def callback(outcome):
        if outcome.round == n:
            raise CutError

    return callback


def same(a, b):
    np.testing.assert_array_equal(a.mediators, b.mediators)
    np.testing.assert_array_equal(a.decisions, b.decisions)
    np.testing.assert_array_equal(a.payoffs, b.payoffs)
    np.testing.assert_array_equal(a.recommendation, b.recommendation)
    assert a.failures == b.failures
    assert a.failed.keys() == b.failed.keys()


def moody(kp, taps, mode):
    if taps == 7:
        raise ValueError("seven")
    return bowl(kp, taps, mode)


def test_a_run_that_was_cut_off_goes_on_as_if_nothing_had_happened(tmp_path):
    whole = rd.optimize(moody, parameters=SPACE, rounds=30, seed=4)
    assert whole.failures
    path = tmp_path / "deep" / "run.jsonl"
    for n in (1, 8, 21):
        with pytest.raises(CutError):
            rd.optimize(moody, parameters=SPACE, rounds=30, seed=4, save=path, callbacks=[cut_at(n)])
    calls = []
    run = rd.optimize(moody, parameters=SPACE, rounds=30, seed=4, save=path, callbacks=[calls.append])
    same(run, whole)
    assert [outcome.round for outcome in calls] == list(range(22, 31))
    content = path.read_bytes()
    same(rd.optimize(moody, parameters=SPACE, rounds=30, seed=4, save=path), whole)  # there is nothing left to do
    assert path.read_bytes() == content
    longer = rd.optimize(moody, parameters=SPACE, rounds=35, seed=4, save=path)
    same(longer, rd.optimize(moody, parameters=SPACE, rounds=35, seed=4))


def test_lines_are_plain_json(tmp_path):
    path = tmp_path / "run.jsonl"
    run = rd.optimize(bowl, parameters=SPACE, rounds=3, save=path)
    header, ask, tell, *_ = [json.loads(line) for line in path.read_text().splitlines()]
    assert header["run"]["task"] == "bowl"
    assert header["run"]["parameters"]["taps"] == "Integer(low=1, high=12, log=False)"
    assert ask["parameters"] == run.parameters[0]
    assert tell == {"tell": 0, "payoff": run.payoffs[0]}


@pytest.mark.parametrize("drop", range(1, 40, 7))
def test_a_line_that_was_being_written_is_cut_off(tmp_path, drop):
    path = tmp_path / "run.jsonl"
    whole = rd.optimize(bowl, parameters=SPACE, rounds=6, save=path)
    content = path.read_bytes()
    path.write_bytes(content[:-drop])
    same(rd.optimize(bowl, parameters=SPACE, rounds=6, save=path), whole)
    assert path.read_bytes() == content


def test_every_prefix_of_a_file_resumes(tmp_path):
    """Whatever the moment of a kill, the file is a prefix: 40 of them, at random."""
    path, draw = tmp_path / "run.jsonl", random.Random(0)
    whole = rd.optimize(moody, parameters=SPACE, rounds=12, seed=4, save=path)
    content = path.read_bytes()
    for length in [0, 1, 9, *(draw.randrange(len(content)) for _ in range(37))]:
        path.write_bytes(content[:length])
        same(rd.optimize(moody, parameters=SPACE, rounds=12, seed=4, save=path), whole)
        assert path.read_bytes() == content


def test_a_task_that_draws_goes_on_with_its_draws(tmp_path):
    path, task = tmp_path / "run.jsonl", rd.task("bernoulli")
    whole = rd.optimize(task, rd.UCB1, 30, seed=2)
    for n in (4, 17):
        with pytest.raises(CutError):
            rd.optimize(task, rd.UCB1, 30, seed=2, save=path, callbacks=[cut_at(n)])
    same(rd.optimize(task, rd.UCB1, 30, seed=2, save=path), whole)


def test_a_run_that_ended_early_stays_ended(tmp_path):
    path = tmp_path / "run.jsonl"
    first, second = (
        rd.optimize(lambda x: 1.0, low=0, high=1, rounds=50, patience=5, save=path, seed=None) for _ in range(2)
    )
    assert len(first.payoffs) == len(second.payoffs) == 10
    assert first.seed == second.seed  # from the file
    assert first.notes == second.notes


def test_trials_of_another_version_are_taken_as_they_are(tmp_path):
    path = tmp_path / "run.jsonl"
    rd.optimize(bowl, parameters=SPACE, rounds=5, save=path)
    lines = path.read_text().splitlines()
    ask = json.loads(lines[5])
    ask["mediator"][0] = 0.123
    lines[5] = json.dumps(ask)
    path.write_text("\n".join(lines) + "\n")
    run = rd.optimize(bowl, parameters=SPACE, rounds=8, save=path)
    assert run.mediators[2][0] == 0.123
    assert len(run.payoffs) == 8
    assert "those of the file were taken" in run.notes[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "another run: seed is 0 there and 1 here.*give another path"),
        ({"direction": "minimize"}, "direction is 'maximize' there"),
        ({"learner": "pgpe"}, "learner is 'Auto' there and 'PGPE' here"),
        ({"parameters": {"kp": (0, 2)}}, "parameters is"),
        ({"task": slow, "parameters": {"x": (0, 1)}}, "task is 'bowl' there and 'slow' here"),
        ({"payoff_range": (0, 1)}, "space and settings"),
    ],
)
def test_the_file_of_another_run_is_refused(tmp_path, change, words):
    path = tmp_path / "run.jsonl"
    given = {"task": bowl, "parameters": {"kp": (0, 1)}, "rounds": 2, "save": path}
    rd.optimize(**given)
    content = path.read_bytes()
    with pytest.raises(errors.SavedRunError, match=f"(?s){words}"):
        rd.optimize(**given | change)
    assert path.read_bytes() == content


def test_other_files_are_refused_and_left_alone(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("It was a dark and stormy night")
    with pytest.raises(errors.SavedRunError, match="not the file of a run"):
        rd.optimize(bowl, parameters={"kp": (0, 1)}, save=path)
    assert path.read_text() == "It was a dark and stormy night"
    rd.optimize(bowl, parameters={"kp": (0, 1)}, rounds=2, save=tmp_path / "run")
    lines = (tmp_path / "run").read_text().splitlines(keepends=True)
    for wrong, words in (("{nonsense\n", "damaged in line 2"), ('{"tell": 9, "payoff": 1}\n', "does not fit")):
        (tmp_path / "run").write_text("".join([lines[0], wrong, *lines[2:]]))
        with pytest.raises(errors.SavedRunError, match=words):
            rd.optimize(bowl, parameters={"kp": (0, 1)}, rounds=2, save=tmp_path / "run")


def test_two_runs_do_not_share_a_file(tmp_path):
    path = tmp_path / "run.jsonl"

    def nested(kp):
        rd.optimize(bowl, parameters={"kp": (0, 1)}, rounds=2, save=path)

    with pytest.raises(errors.SavedRunError, match="in use by another process"):
        rd.optimize(nested, parameters={"kp": (0, 1)}, rounds=2, save=path, catch=())


SCRIPT = """
import randomist as rd
from tests.test_saved_runs import SPACE, moody

run = rd.optimize(moody, parameters=SPACE, rounds=100, seed=4, save="run.jsonl")
"""


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_becomes_the_run_that_was_never_killed(tmp_path, kills):
    path, draw = tmp_path / "run.jsonl", random.Random(1)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}
    for _ in range(kills):
        before = path.read_bytes() if path.exists() else b""
        script = subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment)
        while script.poll() is None and (not path.exists() or path.stat().st_size < len(before) + 300):
            time.sleep(0.002)
        time.sleep(0.02 * draw.random())
        script.kill()
        script.wait()
        kept = before[: before.rfind(b"\n") + 1]
        assert path.read_bytes().startswith(kept)
        assert script.returncode == -9
    run = rd.optimize(moody, parameters=SPACE, rounds=100, seed=4, save=path)
    same(run, rd.optimize(moody, parameters=SPACE, rounds=100, seed=4))
