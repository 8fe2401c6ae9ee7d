"""`randomist evaluate` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import randomist as rd
from randomist.cli import main
from tests import command


def call(*arguments, cwd):
    return command.call("evaluate", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("logs")
    rng = np.random.default_rng(0)
    action = rng.integers(0, 3, 4000)
    good, poor = np.log([0.2, 0.2, 0.6]), np.log([0.6, 0.2, 0.2])
    frame = pl.DataFrame(
        {
            "payoff": (rng.random(4000) < np.array([0.1, 0.4, 0.8])[action]).astype(float),
            "log_likelihood:good": good[action],
            "log_likelihood:[poor]": poor[action],
            "log_likelihood:logger": np.full(4000, np.log(1 / 3)),
            "logger": ["logger"] * 4000,
        }
    )
    frame.write_parquet(path / "log.parquet")
    frame.with_columns(payoff=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("payoff")).write_csv(
        path / "bad.csv"
    )
    return path


def test_a_table_a_verdict_and_a_figure(folder):
    done = subprocess.run([command.COMMAND, "evaluate", "log.parquet"], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for name in ("good", "[poor]", "logger"):
        assert f"\n{name} " in done.stdout
    assert "good is the best of 3 at 95%" in done.stdout
    assert "…" not in done.stdout
    assert (folder / "out" / "evaluate.png").read_bytes().startswith(b"\x89PNG")
    found = rd.Log(folder / "log.parquet").evaluate()
    assert f"{found.low[0]:.4f} to {found.high[0]:.4f}" in done.stdout


def test_json_is_the_library_and_nothing_else(folder):
    done = call("log.parquet", "--json", "--candidate", "good", "--candidate", "logger", "--level", "0.9", cwd=folder)
    assert done.returncode == 0, done.stderr
    expected = rd.Log(folder / "log.parquet", candidates=["good", "logger"]).evaluate(level=0.9)
    assert json.loads(done.stdout) == json.loads(json.dumps(expected.to_dict()))
    assert json.loads(done.stdout)["best"] == "good"


def test_bounds_units_and_figures(folder):
    done = call("log.parquet", "--weight-bound", "1.8", "--figure", "new/f.pdf", "--json", cwd=folder)
    assert json.loads(done.stdout)["candidates"]["good"]["weight_bound"] == pytest.approx(1.8)
    assert (folder / "new" / "f.pdf").read_bytes().startswith(b"%PDF")
    done = call("log.parquet", "--weight-bound", "good=1.8", "--payoff-range", "-1", "3", "--json", cwd=folder)
    printed = json.loads(done.stdout)
    assert printed["payoff_range"] == [-1.0, 3.0]
    assert "figure" not in printed


def test_a_table_as_it_is_from_csv_to_verdict(folder):
    rng = np.random.default_rng(3)
    rows = 4000
    drawn = np.array([0.5, 0.3, 0.2])
    item = rng.choice(3, size=rows, p=drawn)
    table = pl.DataFrame(
        {
            "item": np.array(["cap", "hat", "tie"])[item],
            "pscore": drawn[item],
            "clicked": (rng.random(rows) < np.array([0.2, 0.4, 0.7])[item]).astype(int),
            "best": ["tie"] * rows,
            "country": np.array(["at", "ch"])[np.arange(rows) % 2],
            "user": np.arange(rows) // 4,
            "a": [0.1] * rows,
            "b": [0.2] * rows,
            "c": [0.7] * rows,
        }
    )
    table.write_csv(folder / "shop.csv")
    (folder / "mine.py").write_text(
        "import numpy as np\n\ndef third(frame):\n    return np.full((len(frame), 3), 1 / 3)\n"
    )
    named = ["--payoff", "clicked", "--action", "item", "--propensity", "pscore", "--propensity-floor", "0.2"]
    policies = ["now=logged", "best=best", "even=uniform", "mixed=a,b,c", "third=mine:third"]
    given = [word for policy in policies for word in ("--policy", policy)]
    done = call("shop.csv", *named, *given, "--baseline", "now", "--details", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "best is better than now, by 0." in done.stdout
    assert "…" not in done.stdout
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()[1:6]}
    assert lines["even"][1:] == lines["third"][1:]
    assert float(lines["now"][1]) == pytest.approx(table["clicked"].mean(), abs=1e-4)
    chosen = table.filter(item="tie")["clicked"].mean()
    assert float(lines["best"][1]) == pytest.approx(chosen, abs=1e-4)
    done = call("shop.csv", *named, *given[:4], "--by", "country", "--cluster", "user", "--json", cwd=folder)
    printed = json.loads(done.stdout)
    assert sorted(printed["segments"]) == ["at", "ch"]
    assert printed["clusters"] == 1000


def test_bad_rows_are_refused_or_left_out(folder):
    done = call("bad.csv", cwd=folder)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "payoff is not finite in 1 row (7)" in done.stderr
    assert "--skip-bad-rows" in done.stderr
    done = call("bad.csv", "--skip-bad-rows", cwd=folder)
    assert done.returncode == 0
    assert "3,999 rows" in done.stdout
    assert "left out: payoff is not finite in 1 row (7)" in done.stderr


def inside(monkeypatch, capsys, folder, *arguments):
    """The same without a process of its own: exit code, stdout, stderr."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["randomist", "evaluate", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return ended.value.code, printed.out, printed.err


def test_help_helps(folder, monkeypatch, capsys):
    code, printed, _ = inside(monkeypatch, capsys, folder, "--help")
    assert code == 0
    for word in ("Example", "log_likelihood:NAME", "--skip-bad-rows", "--json"):
        assert word in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.parquet"], "no such log"),
        (["log.parquet", "--max-rows", "9"], "max_rows=9 are read; raise it (--max-rows)"),
        (["log.parquet", "--max-bytes", "9"], "max_bytes=9; raise it (--max-bytes)"),
        (["log.parquet", "--figure", "f.bmp"], ".png, .pdf or .svg"),
        (["log.parquet", "--candidate", "nobody"], "no column log_likelihood:nobody"),
        (["log.parquet", "--weight-bound", "good=much"], "takes a number"),
        (["log.parquet", "--weight-bound", "1.2"], "above its weight_bounds"),
        (["log.parquet", "--weights", "none"], "'balance', 'own'"),
        (["log.parquet", "--level", "2"], "level must lie"),
        (["log.parquet", "--payoff", "reward"], "no column 'reward'"),
        (["log.parquet", "--policy", "new"], "NAME=POLICY"),
        (["log.parquet", "--policy", "new=nowhere:thing"], "cannot be imported"),
        (["log.parquet", "--compare", "all"], "'leader', 'pairs'"),
        (["log.parquet", "--baseline", "nobody"], "baseline must be one of"),
        (["log.parquet", "--payoff-range", "0", "0.5"], "--payoff-range 0 1"),
        (["log.parquet", "--payoff-range", "0", "0.5", "--skip-bad-rows"], "--force"),
    ],
)
def test_errors_are_one_line(folder, monkeypatch, capsys, arguments, words):
    code, _, error = inside(monkeypatch, capsys, folder, *arguments)
    assert code == 1
    assert words in error
    assert "Traceback" not in error
    assert error.count("\n") == 1
