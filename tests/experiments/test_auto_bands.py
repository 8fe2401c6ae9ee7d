"""Auto on small tasks, beside what it did when this was recorded: a changed constant passes, a defect does not.

`python -m tests.experiments.test_auto_bands` records it anew.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks.auto.__main__ import play  # noqa: E402
from benchmarks.auto.problems import PROBLEMS  # noqa: E402

RECORDED = Path(__file__).with_suffix(".json")
NAMES = ("smooth-2", "smooth-10", "corner-8", "options", "failing-third", "good-start", "heavy-4")
ROUNDS, SEEDS = 80, range(50, 54)
MARGIN = 0.08  # of the range, or three standard errors


def shares(name: str) -> list[list[float]]:
    """Average and recommendation, of each seed."""
    rows = [play(PROBLEMS[name](seed), "auto", ROUNDS, seed) for seed in SEEDS]
    return [[round(row["average"], 3), round(row["rec"], 3)] for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_it_earns_and_recommends_no_less_than_before(name: str) -> None:
    gaps = np.array(shares(name)) - json.loads(RECORDED.read_text())[name]  # (seeds, 2)
    errors = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
    assert (gaps.mean(axis=0) > -np.maximum(MARGIN, 3 * errors)).all(), gaps.mean(axis=0)


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: shares(name) for name in NAMES}, indent=0) + "\n")
