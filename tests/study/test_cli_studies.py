"""`randomist study` and `randomist serve`: JSON out, exit codes, and a shell script as a worker."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time

import pytest

import randomist as rd
from tests import command
from tests.command import COMMAND

SPACE = '{"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2], "std": 2}}'


def call(*arguments, cwd, check=True, env=None):
    done = command.call("study", *arguments, cwd=cwd, env=env)
    if check:
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return done


def test_a_shell_script_as_a_worker(tmp_path):
    storage = {"RANDOMIST_STORAGE": "sqlite:///mine.db"}
    made = call("create", "car", "--space", SPACE, "--set", "seed=3", cwd=tmp_path, env=storage)
    assert made == {"name": "car", "learner": "Randomist", "storage": "sqlite:///mine.db"}
    twin = rd.create_study("twin", rd.Randomist(rd.Finite(rd.Gaussian([0, 1, 2], 2)), seed=3),
                           storage=f"sqlite:///{tmp_path}/mine.db")  # fmt: skip
    first = call("ask", "car", "--worker", "rig", cwd=tmp_path, env=storage)
    assert first == dict(zip(("id", "decision", "mediator"), twin.ask()[:3], strict=True))
    assert call("ask", "car", "--worker", "rig", "--resume", cwd=tmp_path, env=storage) == first, "after a crash"
    for _ in range(2):
        assert call("tell", "car", 0, 0.5, cwd=tmp_path, env=storage) == {"id": 0, "state": "told"}
    two = call("ask", "car", "--batch", 2, cwd=tmp_path, env=storage)
    assert [trial["id"] for trial in two] == [1, 2]
    assert call("tell", "car", 1, "--fail", "hot", cwd=tmp_path, env=storage) == {"id": 1, "state": "failed"}
    shown = call("show", "car", cwd=tmp_path, env=storage)
    assert (shown["asked"], shown["told"], shown["failed"], len(shown["pending"])) == (3, 1, 1, 1)
    assert shown["average_payoff"] == 0.5
    assert len(shown["estimates"]["value"]) == 3
    assert call("show", cwd=tmp_path, env=storage) == {"studies": ["car", "twin"]}
    files = ["--html", "a/car.html", "--csv", "car.csv", "--jsonl", "car.jsonl"]
    call("export", "car", *files, cwd=tmp_path, env=storage)
    assert (tmp_path / "a/car.html").read_text().startswith("<!DOCTYPE html>")
    assert len((tmp_path / "car.csv").read_text().splitlines()) == 4
    assert json.loads((tmp_path / "car.jsonl").read_text().splitlines()[1])["reason"] == "hot"
    assert call("upgrade", cwd=tmp_path, env=storage) == {"from": 3, "to": 3}


def test_a_payoff_may_be_negative(tmp_path):
    call("create", "car", "--space", SPACE, "--set", "payoff_range=(-20,0)", cwd=tmp_path)
    call("ask", "car", "--batch", 2, cwd=tmp_path)
    assert call("tell", "car", 0, "-12.5", cwd=tmp_path) == {"id": 0, "state": "told"}
    assert call("tell", "car", "1", "-1e-3", cwd=tmp_path) == {"id": 1, "state": "told"}
    assert call("show", "car", cwd=tmp_path)["average_payoff"] == (-12.5 - 1e-3) / 2


def test_constraints_and_confirmation(tmp_path):
    box = '{"kind": "Box", "family": {"kind": "Gaussian", "std": [0.15, 3]}, "low": [-1, 0], "high": [1, 20]}'
    call("create", "car", "--learner", "auto", "--space", box, "--set", "seed=3", cwd=tmp_path)
    study = rd.load_study("car", storage=f"sqlite:///{tmp_path}/studies.db")
    for i, trial in enumerate(study.ask(batch=12)[2:]):
        study.tell(trial, -float(i % 4))
    for _ in range(2):
        said = call("tell", "car", 0, "--infeasible", cwd=tmp_path)
        assert said == {"id": 0, "state": "failed", "feasible": False}
    assert call("tell", "car", 1, "-2.5", "--infeasible", cwd=tmp_path) == said | {"id": 1}
    assert [(t.state, t.feasible, t.payoff) for t in study.trials(limit=2)] == [
        ("failed", False, None), ("failed", False, -2.5)
    ]  # fmt: skip
    for arguments, words in ((["0", "0.5"], "cannot be told 0.5"), (["0", "--infeasible", "--fail", "x"], "--fail")):
        refused = call("tell", "car", *arguments, cwd=tmp_path, check=False)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert words in refused.stderr
    best = study.recommend().tolist()
    plays = call("confirm", "car", 3, "--worker", "rig", cwd=tmp_path)
    assert [(trial["id"], trial["mediator"]) for trial in plays] == [(i, best) for i in (12, 13, 14)]
    shown = call("interval", "car", cwd=tmp_path)
    assert (set(shown), shown["confirmed"]) == ({"mean", "low", "high", "level", "basis", "confirmed"}, None)
    for trial, payoff in zip(plays, (1.0, 2.0, 3.0), strict=True):
        call("tell", "car", trial["id"], payoff, cwd=tmp_path)
    confirmed = call("interval", "car", "--level", 0.9, cwd=tmp_path)["confirmed"]
    assert (confirmed["point"], confirmed["plays"], confirmed["mean"]["mean"]) == (best, 3, 2.0)
    assert confirmed["median"]["low"] is None
    assert "confirmed" not in call("interval", "car", "--point", "[-0.1, 5]", cwd=tmp_path)
    call("create", "other", "--space", SPACE, cwd=tmp_path)
    call("ask", "other", cwd=tmp_path)
    for arguments in (["tell", "other", 0, "--infeasible"], ["confirm", "other", 2], ["interval", "other"]):
        refused = call(*arguments, cwd=tmp_path, check=False)
        assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
        assert "only Auto" in refused.stderr


def test_decisions_come_and_go(tmp_path):
    call("create", "car", "--space", SPACE, "--set", "seed=3", cwd=tmp_path)
    call("tell", "car", call("ask", "car", cwd=tmp_path)["id"], 0.5, cwd=tmp_path)
    added = call("add", "car", "--member", '{"mean": 0.3, "std": 1.0}', "--name", "bold", cwd=tmp_path)
    assert added == {"decision": 3, "name": "bold"}
    assert call("retire", "car", "0", cwd=tmp_path) == {"decision": 0, "name": "0", "active": False}
    assert call("retire", "car", "bold", cwd=tmp_path) == {"decision": 3, "name": "bold", "active": False}
    shown = call("show", "car", cwd=tmp_path)
    assert (shown["names"], shown["retired"]) == (["0", "1", "2", "bold"], [0, 3])
    assert len(shown["estimates"]["value"]) == 4
    trial = call("ask", "car", cwd=tmp_path)
    assert trial["name"] == str(trial["decision"])
    refused = call("retire", "car", "7", cwd=tmp_path, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "0..3, got 7" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask", "car"], "does not exist"),
        (["create", "../x", "--space", SPACE], "a study's name"),
        (["create", "car"], "--space or --task"),
        (["create", "car", "--space", "{"], "--space must be JSON"),
        (["create", "car", "--space", '{"kind": "Ball"}'], "a kind, one of Finite, Box, Grid"),
        (["create", "car", "--space", SPACE, "--storage", "redis://x"], "no storage is known"),
    ],
)
def test_errors_are_one_line(arguments, words, tmp_path):
    done = call(*arguments, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_serve_starts_prints_tokens_and_ends_politely(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call("create", "car", "--task", "mountain-car", "--learner", "pgpe", cwd=tmp_path)
    service = subprocess.Popen(
        [COMMAND, "serve", "--storage", "sqlite:///studies.db", "--port", str(port)],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        tokens = {}
        for line in service.stderr:
            if line.startswith("token for "):
                scope, _, token = line.removeprefix("token for ").partition(": ")
                tokens[scope] = token.strip()
            if "Uvicorn running on http://127.0.0.1" in line:
                break
        from randomist.study.client import Client

        with Client(f"http://127.0.0.1:{port}", tokens["work"]) as client:
            study = client.study("car")
            study.tell(study.ask(), 50.0)
        service.send_signal(signal.SIGTERM)
        started = time.monotonic()
        assert service.wait(30) in (0, -signal.SIGTERM)
        assert time.monotonic() - started < 15
    finally:
        service.kill()
        service.stderr.close()
        service.wait()
    assert rd.load_study("car", storage=f"sqlite:///{tmp_path}/studies.db").told == 1


def test_help_helps(tmp_path):
    for words in (["study", "--help"], ["study", "ask", "--help"], ["serve", "--help"]):
        done = command.call(*words)
        assert done.returncode == 0
        assert "Usage" in done.stdout
    assert "Example" in done.stdout
