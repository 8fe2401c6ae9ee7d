"""The tutorial shows what its commands print, and a large log needs the memory that the page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks import logged_data  # noqa: E402


@pytest.mark.slow
def test_the_tutorial_shows_what_is_printed(tmp_path):
    page = (ROOT / "docs/tutorials/recommender-shop.md").read_text(encoding="utf-8")
    example = [sys.executable, "-W", "error", ROOT / "examples/recommender_shop.py"]
    written = page.replace(" \\\n", " ").splitlines()
    evaluate = next(line for line in written if line.startswith("randomist evaluate"))
    found = {"PYTHONPATH": os.pathsep.join([str(ROOT / "examples"), os.environ.get("PYTHONPATH", "")])}
    for command in (example, [Path(sys.executable).with_name("randomist"), *evaluate.split()[1:]]):
        where = {"cwd": tmp_path, "env": os.environ | found}
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, **where)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() in page
    assert (tmp_path / "out" / "recommender-shop.png").stat().st_size > 0


@pytest.mark.slow
def test_ten_million_rows_need_less_than_half_a_gibibyte(tmp_path):
    measured = logged_data.compare(tmp_path, 10_000_000)
    for threads in ("two threads", "one thread"):
        assert measured[f"randomist, {threads}"].memory < 512
    assert json.loads(measured["randomist, two threads"].printed)["verdict"].startswith("policy-9 is the best of 10")
