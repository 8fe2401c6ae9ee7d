"""Several learners beside each other: compare, demo."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from randomist.cli.app import Jobs, app, out, progress
from randomist.cli.options import OPEN, AsJson, Rounds, Seeds, TaskId, task_of, title_of
from randomist.errors import ParameterError
from randomist.experiments.contenders import BOX_CONTENDERS, FINITE_CONTENDERS, Contender


class Format(StrEnum):
    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


@app.command(context_settings=OPEN)
def compare(
    context: typer.Context,
    task: TaskId,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="A learner, repeatable: `optimist`, `randomist:perturbation_scale=8.1`. Default: ours and the paper's."
        ),
    ] = None,
    rounds: Rounds = 1000,
    seeds: Seeds = 10,
    jobs: Jobs = 1,
    figure: Annotated[Path, typer.Option(help="Where the figure goes; the ending chooses the format.")] = Path(
        "out/compare.png"
    ),
    format_: Annotated[Format, typer.Option("--format", help="How to print the table.")] = Format.TERMINAL,
    as_json: AsJson = False,
) -> None:
    """Run several learners on a task: a table with 95% intervals, and a figure.

    Example: randomist compare illustrative --sigma 0.1 --lambda 2 --learner ucb1 --learner optimist
    """
    from randomist.experiments.comparison import compare as run_comparison
    from randomist.experiments.figures import Panel, curves_figure
    from randomist.experiments.tables import comparison_table, comparison_text
    from randomist.spaces import Box

    if figure.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ParameterError(f"--figure must end in .png, .pdf or .svg, got {str(figure)!r}")
    problem = task_of(task, context)
    usual = BOX_CONTENDERS if isinstance(problem.space, Box) else FINITE_CONTENDERS
    contenders = [Contender.parse(text) for text in learner] if learner else list(usual)
    with progress(len(contenders) * seeds, "runs") as advance:
        comparisons = run_comparison(
            [(title_of(task, context.args), problem)],
            contenders,
            rounds=rounds,
            seeds=seeds,
            jobs=jobs,
            progress=lambda _: advance(),
        )
    curves_figure([Panel.of_comparison(comparisons[0])], [figure], f"{seeds} runs, mean and 95% t-interval")
    measure = comparisons[0].measure
    if as_json:
        finals = {
            c.title: dict(zip(("mean", "half_width_95"), comparisons[0].final(c), strict=True)) for c in contenders
        }
        print(json.dumps({"task": task, "rounds": rounds, "seeds": seeds, "measure": measure, "learners": finals}))
        return
    if format_ is not Format.TERMINAL:
        print(comparison_text(comparisons, format_.value))
        return
    out.print(comparison_table(comparisons, f"{measure} after {rounds} rounds, {seeds} runs, 95% intervals (* best)"))
    out.print(f"figure: {figure}")


@app.command()
def demo(
    jobs: Jobs = 2,
    rounds: Rounds = 2000,
    seeds: Seeds = 8,
    folder: Annotated[Path, typer.Option("--out", help="Folder of the figure.")] = Path("out/demo"),
) -> None:
    """All learners on the paper's four illustrative problems: a table of regret and a 2×2 figure."""
    from randomist.experiments import demo as demonstration
    from randomist.experiments.tables import comparison_table

    total = len(demonstration.problems()) * len(demonstration.CONTENDERS) * seeds
    with progress(total, "runs") as advance:
        comparisons, paths = demonstration.demo(
            folder, rounds=rounds, seeds=seeds, jobs=jobs, progress=lambda _: advance()
        )
    out.print(
        comparison_table(comparisons, f"cumulative regret after {rounds} rounds, {seeds} runs, 95% intervals (* best)")
    )
    out.print(
        "Left to right, decisions tell less about each other: at σ = λ = 2 every sample informs every policy, at\n"
        "σ = λ = 0.1 hardly any does. Sharing learners gain on the left; bandits are unmoved on the right.\n"
        f"figure: {paths[0]} and {paths[1]}"
    )
