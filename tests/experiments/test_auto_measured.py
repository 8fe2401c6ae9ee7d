"""The command of the design set of Auto runs, goes on where it stopped, and compares two files."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks import cells  # noqa: E402
from benchmarks.auto import __main__ as command  # noqa: E402
from benchmarks.auto.problems import JUDGED, PROBLEMS  # noqa: E402


def test_the_command_keeps_what_is_done_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--problems", "smooth-2,failing-third", "--rounds", "30", "--seeds", "2", "--jobs", "1"]
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    command.main([*few, "--learners", "random", "--save", str(one)])
    command.main([*few, "--learners", "random,random:again", "--save", str(two), "--against", str(one)])
    command.main([*few, "--learners", "random", "--save", str(two)])
    assert len(cells.finished(two)) == 8
    assert "random less random:again" in (said := capsys.readouterr().out)
    assert "+0.000±0.000" in said


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_point_is_better_than_the_best_that_is_known(name: str) -> None:
    for seed in (0, JUDGED):
        problem = PROBLEMS[name](seed)
        points = np.random.default_rng(1).uniform(problem.low, problem.high, (500, len(problem.low)))
        means = problem.means(points)
        assert np.nanmax(means) <= problem.best + 0.3 * (name == "inventory")  # which is itself an estimate
        assert problem.typical < problem.best
