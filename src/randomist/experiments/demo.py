"""The main job on embedded defaults: the default learner beside the paper's, on its four illustrative problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from randomist.experiments.comparison import Comparison, compare
from randomist.experiments.contenders import FINITE_CONTENDERS, Contender
from randomist.experiments.figures import Panel, curves_figure
from randomist.experiments.paper import SPREADS
from randomist.simulation import Run
from randomist.tasks import Illustrative, Task

CONTENDERS = (*FINITE_CONTENDERS, Contender("gp-ucb"))


def problems() -> list[tuple[str, Task]]:
    """The four problems with their titles."""
    return [(f"σ = {sigma:g}, λ = {lambda_:g}", Illustrative(sigma, lambda_)) for sigma, lambda_ in SPREADS]


def demo(
    out: Path, *, rounds: int = 2000, seeds: int = 8, jobs: int = 2, progress: Callable[[Run], None] | None = None
) -> tuple[Sequence[Comparison], list[Path]]:
    """Run it, and draw the 2×2 figure as PNG and PDF."""
    comparisons = compare(problems(), CONTENDERS, rounds=rounds, seeds=seeds, jobs=jobs, progress=progress)
    paths = [out / "illustrative.png", out / "illustrative.pdf"]
    caption = f"{seeds} runs, mean and 95% t-interval; lower is better"
    curves_figure([Panel.of_comparison(comparison) for comparison in comparisons], paths, caption)
    return comparisons, paths
