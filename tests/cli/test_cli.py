"""The command line as a user meets it: output, exit codes, errors without a traceback."""

from __future__ import annotations

import csv
import json
import subprocess

import pytest

from tests.command import COMMAND, call


def test_run_prints_regret_with_an_interval_and_is_quiet_on_stderr():
    arguments = ["run", "illustrative", "--sigma", "2", "--lambda", "0.1", "--learner", "randomist",
                 "--rounds", "100", "--seeds", "3", "--set", "perturbation_scale=8.1"]  # fmt: skip
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, timeout=120)
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


def test_tables_for_papers_and_spreadsheets(tmp_path):
    def table(format_):
        done = call("compare", "illustrative", "--learner", "ucb1", "--learner", "realist", "--rounds", 60,
                    "--seeds", 3, "--figure", tmp_path / "f.png", "--format", format_)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().splitlines()

    rows = list(csv.DictReader(table("csv")))
    assert [row["learner"] for row in rows] == ["UCB1", "REALIST"]
    means = [float(row["mean"]) for row in rows]
    assert means[1] < means[0]
    cells = [f"{mean:,.1f} ± {float(row['half_width_95']):,.1f}" for mean, row in zip(means, rows, strict=True)]
    assert table("markdown")[2:] == [f"| UCB1 | {cells[0]} |", f"| REALIST | **{cells[1]}** |"]
    latex = "\n".join(table("latex"))
    assert latex.startswith("\\begin{tabular}{lr}")
    assert f"REALIST & $\\mathbf{{{cells[1].replace('±', chr(92) + 'pm')}}}$ \\\\" in latex


PLANT = """
def simulate(kp, taps, mode="a"):
    if taps == 3:
        raise ValueError("three taps oscillate")
    return -abs(kp - 2) - 0.1 * abs(taps - 5) + (mode == "b")

def cost(kp):
    return (kp - 2) ** 2
"""
KP, TAPS = ("--parameter", "kp=0.1..100:log"), ("--parameter", "taps=1..12:int")


def test_a_function_is_tuned(tmp_path):
    (tmp_path / "plant.py").write_text(PLANT)
    mode = ("--parameter", "mode=a,b")
    done = call("tune", "plant:simulate", *KP, *TAPS, *mode, "--rounds", 80, "--confirm", 3, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["best"]["mode"] == "b"
    assert abs(found["best"]["kp"] - 2) < 1
    assert found["best_payoff"]["basis"] == "asymptotic"
    assert found["rounds"] + found["failed"] == 83
    twice = [call("tune", "plant.py:cost", *KP, "--minimize", "--rounds", n, "--save", "run.json", cwd=tmp_path)
             for n in (8, 12)]  # fmt: skip
    assert [done.returncode for done in twice] == [0, 0]
    assert "Auto on cost, 12 rounds" in twice[1].stdout
    assert "smallest payoff" in twice[1].stdout
    assert len((tmp_path / "run.json").read_text().splitlines()) == 1 + 2 * 12


def test_doctor_says_what_works():
    done = call("doctor", "--json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["checks"]["a search in a box"]["works"]
    core = next(part for part in found["parts"] if part["name"] == "core")
    assert set(core["there"]) == {"numpy", "scipy", "numba", "gymnasium"}
    assert not core["missing"]
    assert "works" in call("doctor").stdout


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
        (["run", "illustrative", "--rouds", "5"], "did you mean --rounds?"),
        (["compare", "illustrative", "--figure", "f.bmp"], ".png, .pdf or .svg"),
        (["tune", "json:dumps", "--parameter", "obj"], "NAME=LOW..HIGH"),
        (["tune", "json:dumps", "--parameter", "obj=1..x"], "'obj=1..x'"),
        (["tune", "json:dumps", "--parameter", "obj=1..2:lag"], ":log and :int"),
        (["tune", "json:dumps", "--parameter", "obj=0..2:log"], "above 0"),
        (["tune", "json:dumps", "--parameter", "obj=a"], "at least two options"),
        (["tune", "json:dumps", "--parameter", "gain=1..2"], "no parameter is called obj"),
        (["tune", "json", "--parameter", "obj=1..2"], "module:function"),
        (["tune", "json:nothing", "--parameter", "obj=1..2"], "cannot be imported"),
        (["tune", "json:__doc__", "--parameter", "obj=1..2"], "cannot be called"),
        (["tune", "json:dumps", "--parameter", "obj=1..2", "--figure", "f.bmp"], ".png, .pdf, .svg or .html"),
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
