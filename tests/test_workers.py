"""Calls in processes that can be killed: hangs, deaths, errors, Ctrl-C; and the record that replays."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import randomist as rd
from randomist import errors
from tests import simulated

ROOT = Path(__file__).parents[1]


def replayed(path, learner):
    """The decisions of a fresh learner that is asked and told in the order of a file."""
    lines = [json.loads(line) for line in path.read_text().splitlines()][1:]
    for line in lines:
        if "ask" in line:
            assert np.array_equal(learner.ask().mediator, line["mediator"])
        elif "tell" in line:
            learner.tell(line["tell"], line["payoff"])
        else:
            learner.fail(line["fail"], line["reason"])
    return learner


def check_failures(function, space, rounds, path):
    """All rounds are answered, all kinds of failures are there, and the record replays to the same decisions."""
    before = set(multiprocessing.active_children())  # another test's
    run = rd.optimize(function, parameters=space, rounds=rounds, jobs=2, timeout=1, seed=3, save=path)
    assert len(run.payoffs) + len(run.failures) == rounds
    reasons = " ".join(run.failures.values())
    for words in ("is unlucky", "no answer within 1 s", "returned nan", "its process ended (exit code 3)"):
        assert words in reasons, words
    twin = replayed(path, rd.Auto(space, seed=3))
    np.testing.assert_array_equal(twin.record.mediators, run.mediators)
    assert twin.failures == run.failures
    np.testing.assert_array_equal(twin.recommend(), run.recommendation)
    frame = run.to_frame()
    assert frame["trial"].to_list() == list(range(rounds))
    assert frame["x"].null_count() == 0
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.slow
def test_300_rounds_of_a_function_that_fails_in_every_way(tmp_path):
    check_failures(simulated.unreliable, rd.Parameters(x=(0, 1)), 300, tmp_path / "run.jsonl")


def test_a_function_that_fails_in_every_way(tmp_path):
    ways = rd.Choice("no", "raise", "hang", "nan", "die")  # all of them are among the points that fill the box at first
    check_failures(simulated.at_once, rd.Parameters(x=(0, 1), way=ways), 14, tmp_path / "run.jsonl")


def test_a_free_worker_is_given_the_next_trial(tmp_path):
    path = tmp_path / "run.jsonl"
    run = rd.optimize(simulated.slow, parameters={"x": (0, 1)}, rounds=20, jobs=2, save=path)
    assert len(run.payoffs) == 20
    replayed(path, rd.Auto(rd.Parameters(x=(0, 1)), seed=0))
    events = [next(iter(json.loads(line))) for line in path.read_text().splitlines()][1:]
    assert events[:2] == ["ask", "ask"]
    pending = np.cumsum([1 if event == "ask" else -1 for event in events])
    assert pending.max() == 2


def test_other_processes_return_the_same_as_this_one():
    here = rd.optimize(simulated.bowl, parameters={"kp": (0, 9)}, rounds=8)
    there = rd.optimize(simulated.bowl, parameters={"kp": (0, 9)}, rounds=8, timeout=60)
    np.testing.assert_array_equal(here.payoffs, there.payoffs)


def test_a_timeout_ends_what_the_call_has_started(tmp_path):
    late = tmp_path / "late"
    with pytest.raises(errors.NoDataError, match=r"no answer within 0\.3 s"):
        rd.optimize(
            simulated.with_a_child,
            parameters={"x": (0, 1), "file": rd.Choice(str(late), f"{late}2")},
            rounds=1,
            timeout=0.3,
        )
    time.sleep(2)
    assert not list(tmp_path.iterdir())


def test_an_error_that_is_not_caught_crosses_processes():
    with pytest.raises(ValueError, match="unlucky") as caught:
        rd.optimize(simulated.unreliable, parameters={"x": (0, 1)}, rounds=60, timeout=0.5, catch=(KeyError,))
    assert caught.value.run.learner == "Auto"
    with pytest.raises(RuntimeError, match="OddError: this"):  # cannot be sent as it is
        rd.optimize(simulated.odd, parameters={"x": (0, 1)}, rounds=2, timeout=30, catch=(KeyError,))


def test_tasks_in_workers_draw_from_streams_of_their_own():
    task = rd.task("illustrative")
    a, b = (rd.optimize(task, rd.UCB1, 6, timeout=60, seed=5) for _ in range(2))
    np.testing.assert_array_equal(a.payoffs, b.payoffs)


class Unsendable:
    def __call__(self, x):
        return x

    def __reduce__(self):
        raise TypeError("not this one")


def test_what_cannot_be_sent_is_refused_before_the_first_round():
    with pytest.raises(errors.ParameterError, match=r"not this one.*top of a module.*jobs=1"):
        rd.optimize(Unsendable(), parameters={"x": (0, 1)}, jobs=2)


SCRIPT = """
import time, randomist as rd

def simulate(x):
    time.sleep(0.01)
    return x

{guard}
    print("begun", flush=True)
    run = rd.optimize(simulate, parameters={{"x": (0, 1)}}, rounds=100_000, jobs={jobs}, save="run.jsonl")
    print(run.interrupted, run.notes[0], len(run.payoffs) > 0, flush=True)
"""


def start(folder, **names):
    (folder / "script.py").write_text(SCRIPT.format(**names))
    return subprocess.Popen(
        [sys.executable, "script.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
    )  # fmt: skip


def told(folder):
    path = folder / "run.jsonl"
    return path.read_text().count('"tell"') if path.exists() else 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_returns_the_run_so_far(tmp_path, jobs):
    script = start(tmp_path, jobs=jobs, guard='if __name__ == "__main__":')
    while told(tmp_path) < 5:
        assert script.poll() is None, script.stderr.read()
        time.sleep(0.05)
    os.killpg(script.pid, 2)
    out, err = script.communicate(timeout=60)
    assert "True interrupted after" in out, err
    assert "the same call goes on with run.jsonl True" in out
    assert err == ""


def test_a_script_without_its_guard_is_told_so(tmp_path):
    script = start(tmp_path, jobs=2, guard="if True:")
    _, err = script.communicate(timeout=100)
    assert "TaskError: a worker process ended before it began" in err
    assert 'under `if __name__ == "__main__":`' in err


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    script = start(tmp_path, jobs=2, guard='if __name__ == "__main__":')
    while told(tmp_path) < 3:
        assert script.poll() is None, script.stderr.read()
        time.sleep(0.05)
    script.kill()
    script.communicate(timeout=60)  # returns when nobody holds its output open any more
