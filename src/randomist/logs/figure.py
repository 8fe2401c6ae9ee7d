"""The figures of an evaluation: estimates and intervals, one line per candidate; intervals while rows come."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from randomist.logs.anytime import Sequence
from randomist.logs.report import Evaluation
from randomist.plots import estimates
from randomist.plots.drawing import draw as draw_picture
from randomist.plots.marks import Axis, Band, Line, Panel, Picture, ends


def draw_sequence(sequence: Sequence, candidates: tuple[str, ...], level: float, path: Path) -> None:
    """How intervals shrink while rows come; a line is the middle of its interval."""
    rows, middle = sequence.rows.astype(float), (sequence.low + sequence.high) / 2
    bands = [Band(rows, sequence.low[:, k], sequence.high[:, k], colour=k) for k in range(len(candidates))]
    lines = [Line(rows, middle[:, k], name, k, k) for k, name in enumerate(candidates)]
    first, last = (rows[0], rows[-1]) if rows[0] < rows[-1] else (rows[0] / 2, rows[0] * 2)
    x = Axis("rows", first, last, log=True)
    panel = Panel(x, Axis("expected payoff", *ends(sequence.low, sequence.high)), (*bands, *lines))
    title = f"{level:.0%} intervals that hold at every row at once"
    draw_picture(Picture((panel,), title, height=3.2), path=path)


def draw(evaluation: Evaluation, path: Path, truth: Mapping[str, float] | None = None) -> None:
    """Thick lines are the intervals that hold together, thin ones the naive, dots the estimates.

    A dashed line is the estimate of the baseline, a star the truth, if given.
    """
    estimates(evaluation, truth=truth, path=path)
