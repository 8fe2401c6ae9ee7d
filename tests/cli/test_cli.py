"""The command line as a user meets it: output, exit codes, errors without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("randomist")


def call(*arguments, cwd=None):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=120)


def test_run_prints_regret_with_an_interval_and_is_quiet_on_stderr():
    done = call("run", "illustrative", "--sigma", "2", "--lambda", "0.1", "--learner", "randomist",
                "--rounds", "100", "--seeds", "3", "--set", "perturbation_scale=8.1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "RANDOMIST a=8.1 on illustrative: 100 rounds, 3 run(s)" in done.stdout
    assert "regret" in done.stdout
    assert "(95%)" in done.stdout


def test_run_as_json_equals_the_library():
    import numpy as np

    import randomist as rd

    done = call(
        "run", "illustrative", "--sigma=2", "--lambda=2", "--learner", "ucb1", "--rounds", 60, "--seeds", 4, "--json"
    )
    printed = json.loads(done.stdout)
    runs = rd.optimize_many(rd.task("illustrative", sigma=2, lambda_=2), rd.UCB1, 60, 4)
    assert printed["regret"]["mean"] == pytest.approx(np.mean([run.regret[-1] for run in runs]))
    assert printed["average_payoff"]["mean"] == pytest.approx(np.mean([run.payoffs.mean() for run in runs]))


def test_compare_prints_a_table_and_draws_a_figure(tmp_path):
    learners = ["--learner", "ucb1:payoff_range=(0,1)", "--learner", "randomist:perturbation_scale=1.1"]
    size = ["--rounds", 50, "--seeds", 3]
    done = call("compare", "illustrative", *learners, *size, "--figure", "new/f.pdf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "UCB1 payoff_range=(0, 1)" in done.stdout
    assert "RANDOMIST a=1.1" in done.stdout
    assert "±" in done.stdout
    assert (tmp_path / "new" / "f.pdf").read_bytes().startswith(b"%PDF")


def test_demo_draws_both_figures(tmp_path):
    done = call("demo", "--rounds", 30, "--seeds", 2, "--jobs", 1, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "illustrative.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "illustrative.pdf").exists()
    for learner in ("RANDOMIST a=8.1", "OPTIMIST", "FTL", "UCB1", "PHE", "TS", "GP-UCB"):
        assert learner in done.stdout
    assert done.stdout.count("*") >= 4  # the best of each column


def test_list_names_every_task_and_learner():
    import randomist as rd

    words = call("list").stdout.split()
    assert set(rd.LEARNERS) <= set(words)
    assert set(rd.task_ids()) <= set(words)


def test_a_saved_run_can_be_played_and_filmed(tmp_path):
    done = call("run", "mountain-car", "--rounds", 12, "--save", "car.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Auto on mountain-car" in done.stdout
    played = call("play", "car.json", "--out", "car.gif", "--seed", 3, cwd=tmp_path)
    assert played.returncode == 0, played.stderr
    assert "mountain-car: payoff" in played.stdout
    assert (tmp_path / "car.gif").read_bytes().startswith(b"GIF8")
    assert call("run", "illustrative", "--rounds", 5, "--save", "x.json", cwd=tmp_path).returncode == 1
    assert call("play", "nowhere.json", cwd=tmp_path).returncode == 1


def test_any_gymnasium_environment_can_be_run():
    done = call("run", "gym:Pendulum-v1", "--low", "-2", "--high", "2", "--std", "0.3", "--rounds", 6, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["learner"] == "auto"
    assert len(printed["recommendations"][0]) == 3
    assert call("run", "gym:Nowhere-v0", "--low", "-2", "--high", "2", "--std", "1").returncode == 1


def test_an_environment_needs_no_more_than_its_name():
    done = call("run", "gym:CartPole-v1", "--rounds", 6)
    assert done.returncode == 0, done.stderr
    assert "Auto on gym:CartPole-v1: 6 rounds" in done.stdout


def test_the_bar_of_one_run_counts_its_rounds(monkeypatch):
    from contextlib import contextmanager

    from randomist.cli import runs

    seen = []

    @contextmanager
    def bar(total, unit):
        seen.append((total, unit))
        yield lambda by=1: seen.append(by)

    monkeypatch.setattr(runs, "progress", bar)
    made, interrupted = runs._runs([("illustrative", "ucb1", 7, seed, {}) for seed in range(2)], 1)
    assert len(made) == 2
    assert not interrupted
    assert seen[0] == (14, "rounds")
    assert sum(seen[1:]) == 14


def test_ctrl_c_leaves_what_there_is(monkeypatch):
    import numpy as np

    import randomist as rd
    from randomist.cli import runs

    class Long(rd.Task):
        id, space, calls = "long", rd.Finite(rd.Gaussian([0, 1], 1.0)), 0

        def payoff(self, mediators, rng):
            self.calls += 1
            if self.calls == 15:
                raise KeyboardInterrupt
            return np.zeros(len(mediators))

    made, interrupted = runs._runs([(Long(), "ucb1", 10, 0, {})] * 3, 1)
    assert interrupted
    assert [len(run.payoffs) for run in made] == [10, 4]
    assert made[1].notes == ("interrupted after 4 of 10 rounds",)


def test_help_helps():
    for arguments in (["--help"], ["run", "--help"], ["compare", "--help"], ["demo", "--help"]):
        done = call(*arguments)
        assert done.returncode == 0
        assert "Usage" in done.stdout
    assert "Example" in call("run", "--help").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nowhere"], "unknown task 'nowhere'"),
        (["run", "illustrative", "--colour", "1"], "colour"),
        (["run", "illustrative", "--sigma"], "--sigma has no value"),
        (["run", "illustrative", "stray"], "unexpected argument 'stray'"),
        (["run", "illustrative", "--sigma", "-1"], "sigma"),
        (["run", "illustrative", "--learner", "nobody"], "unknown learner 'nobody'"),
        (["run", "illustrative", "--set", "perturbation_scale"], "key=value"),
        (["run", "illustrative", "--set", "confidence=0.5"], "confidence must be a number > 1"),
        (["run", "illustrative", "--set", "nonsense=1"], "nonsense"),
        (["compare", "illustrative", "--figure", "f.bmp"], ".png, .pdf or .svg"),
        (["compare", "illustrative", "--rounds", "5", "--seeds", "1", "--figure", "/proc/nowhere/f.png"], "nowhere"),
    ],
)
def test_errors_are_one_line_and_a_failing_exit_code(arguments, words):
    done = call(*arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_usage_errors_exit_with_2_and_debug_shows_the_traceback():
    assert call("run", "illustrative", "--rounds", "0").returncode == 2
    done = call("run", "nowhere", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
