"""Logged data: evaluate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from randomist.cli.app import app, err, out
from randomist.errors import ParameterError

if TYPE_CHECKING:  # polars is loaded by the command that needs it
    from rich.table import Table

    from randomist.logs import Evaluation

SUFFIXES = (".png", ".pdf", ".svg")


@app.command()
def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Parquet or CSV file, or a folder of Parquet files.")],
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            help="A candidate, repeatable. Default: every policy with a likelihood column.", show_default=False
        ),
    ] = None,
    payoff_range: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="The least and the most that a payoff can be.")
    ] = (0.0, 1.0),
    level: Annotated[float, typer.Option(help="Probability with which all statements hold together.")] = 0.95,
    weights: Annotated[
        str | None,
        typer.Option(help="`balance`: against the mixture of all loggers; `own`: against the policy that acted."),
    ] = None,
    weight_bound: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]BOUND",
            help="What no weight can exceed, where you know it (repeatable): tightens the intervals.",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Where truncated estimates cut weights. Default: the root of the rows.")
    ] = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Policies were chosen by looking at earlier payoffs.")
    ] = False,
    skip_bad_rows: Annotated[
        bool, typer.Option("--skip-bad-rows", help="Leave bad rows out instead of refusing the log.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Leave bad rows out even where their payoffs are unlike the others'.")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="Where to draw (.png, .pdf or .svg). Default: out/evaluate.png; with --json: nowhere."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
) -> None:
    """Estimate what each candidate policy is worth from a log of other policies, and say which is best.

    LOG has a row per decision and these columns: `payoff`; `log_likelihood:NAME`, the log-likelihood under policy NAME
    of what was done, one column per candidate; and `logger`, the name of the policy that acted (which has a likelihood
    column too), or `log_propensity`, the logarithm of the probability with which it acted. `id`, if there, must not
    repeat.

    Intervals are finite-sample and hold for all candidates together.

    Example: randomist evaluate shop.parquet --figure shop.png

    Example: randomist evaluate shop.csv --candidate new --candidate old --payoff-range 0 5 --json
    """
    from rich.markup import escape

    from randomist.logs import Log

    if figure is None and not as_json:
        figure = Path("out/evaluate.png")
    if figure is not None and figure.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"--figure must end in .png, .pdf or .svg, got {figure}")
    data = Log(
        log,
        candidates=candidate,
        payoff_range=payoff_range,
        weights=weights,
        adaptive=adaptive,
        skip_bad_rows=skip_bad_rows,
        force=force,
    )
    evaluation = data.evaluate(level=level, threshold=threshold, weight_bounds=_bounds(weight_bound))
    if figure is not None:
        from randomist.logs.figure import draw  # matplotlib takes its time

        draw(evaluation, figure)
    if as_json:
        print(json.dumps(evaluation.to_dict() | ({"figure": str(figure)} if figure else {}), allow_nan=False))
        return
    _print_whole(_table(evaluation))
    out.print(f"[bold]{escape(evaluation.verdict())}[/]", soft_wrap=True)
    out.print(escape(evaluation.assumptions()), soft_wrap=True)
    for problem in evaluation.problems:
        err.print(f"[yellow]left out: {escape(str(problem))}[/]", soft_wrap=True)
    for warning in evaluation.warnings:
        err.print(f"[yellow]warning: {escape(warning)}[/]", soft_wrap=True)
    out.print(f"figure: {figure}", soft_wrap=True)


def _table(evaluation: Evaluation) -> Table:
    from rich.markup import escape
    from rich.table import Table

    low, high = evaluation.payoff_range
    digits = max(0, 4 - math.floor(math.log10(high - low)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("candidate", no_wrap=True)
    for title in ("MIS", "TMIS", "optim.", "self-n.", "eff. n", "missing", f"{evaluation.level * 100:.4g}% interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for k, name in enumerate(evaluation.candidates):
        values = (evaluation.mis, evaluation.tmis, evaluation.optimistic, evaluation.self_normalised)
        numbers = [f"{value[k]:.{digits}f}" if math.isfinite(value[k]) else "–" for value in values]
        numbers += [f"{evaluation.effective_samples[k]:,.0f}", f"{round(evaluation.missing_mass[k], 3) + 0.0:.3f}"]
        interval = f"{evaluation.low[k]:.{digits}f} to {evaluation.high[k]:.{digits}f}"
        style = "bold green" if name == evaluation.best else "" if name in evaluation.contenders else "dim"
        table.add_row(escape(name), *numbers, interval, style=style)
    return table


def _print_whole(table: Table) -> None:
    """A table is never cut, also where the terminal is narrow or there is none."""
    from rich.measure import Measurement

    needed = Measurement.get(out, out.options.update(max_width=10_000), table).maximum
    out.print(table, width=max(needed, out.width), crop=False)


def _bounds(words: list[str] | None) -> float | dict[str, float] | None:
    """`["50"]` as 50.0, `["a=50", "b=20"]` as a dictionary."""
    if not words:
        return None
    try:
        if len(words) == 1 and "=" not in words[0]:
            return float(words[0])
        return {name: float(bound) for name, bound in (word.rsplit("=", 1) for word in words)}
    except ValueError:
        raise ParameterError(f"--weight-bound takes a number, or NAME=NUMBER for one candidate, got {words}") from None
