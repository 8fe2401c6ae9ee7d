"""A command that is forked answers as one of a fresh interpreter does, so that tests may fork it."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.command import COMMAND, SPACE, call


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["run", "illustrative", "--learner", "ucb1", "--rounds", "9", "--seeds", "2", "--json"],
        ["run", "illustrative", "--learner", "ucb1", "--rounds", "9", "--seeds", "2", "--jobs", "2"],
        ["run", "nowhere"],
        ["run", "illustrative", "--rounds", "0"],
        ["study", "create", "car", "--space", SPACE],
    ],
)
def test_a_forked_command_answers_as_a_fresh_one(arguments, tmp_path):
    fresh, forked = tmp_path / "fresh", tmp_path / "forked"
    fresh.mkdir(), forked.mkdir()
    given = {"RANDOMIST_STORAGE": "sqlite:///mine.db"}
    there = subprocess.run(
        [COMMAND, *arguments],
        cwd=fresh,
        env=os.environ | given,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    here = call(*arguments, cwd=forked, env=given)
    assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)
    assert [path.name for path in forked.iterdir()] == [path.name for path in fresh.iterdir()]


def test_a_traceback_is_an_exit_code_and_goes_to_stderr():
    done = call("run", "nowhere", "--debug")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Traceback")


def test_a_command_that_takes_too_long_is_ended(tmp_path):
    (tmp_path / "plant.py").write_text("import time\n\ndef wait(x):\n    time.sleep(60)\n    return x\n")
    with pytest.raises(subprocess.TimeoutExpired):
        call("tune", "plant:wait", "--parameter", "x=0..1", cwd=tmp_path, timeout=3)
    assert call("--version").returncode == 0, "the next one is answered"
