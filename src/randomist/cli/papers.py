"""Experiments: reproduce the paper, run your own, report and plot what lies in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from randomist.cli.app import Jobs, app, err, out, progress
from randomist.experiments.paper import PARTS, QUICK

if TYPE_CHECKING:  # plotly, polars and matplotlib are loaded by the commands that need them
    from rich.table import Table

    from randomist.experiments.claims import Claim
    from randomist.experiments.runner import Engine
    from randomist.experiments.specs import Cell

Out = Annotated[Path, typer.Option("--out", help="Folder of results, figures and the report.")]
EngineName = Annotated[str, typer.Option("--engine", help="loky (processes of this machine), ray or dask (a cluster).")]
Retry = Annotated[bool, typer.Option("--retry/--no-retry", help="Try runs again that failed before.")]


@app.command(name="reproduce")
def reproduce_paper(
    part: Annotated[str, typer.Argument(help=f"{', '.join(PARTS)}, or all.")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds and runs: minutes, for a first look.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder of results; out/paper, or out/paper-quick with --quick.")
    ] = None,
    jobs: Jobs = 2,
    engine: EngineName = "loky",
    retry: Retry = True,
) -> None:
    """Run the paper's experiments, draw its figures, and say of each claim whether it held.

    What is finished already is not run again; a killed run continues where it stopped.
    """

    from randomist.experiments.reproduce import reproduce, stores_for

    folder = folder or Path("out/paper-quick" if quick else "out/paper")
    parts = PARTS if part == "all" else (part,)
    missing = sum(len(store.missing(retry)) for store in stores_for(parts, folder, quick))
    with progress(missing, "runs") as advance:
        came_out = reproduce(
            parts,
            folder,
            quick=quick,
            jobs=jobs,
            engine=_engine(engine),
            retry=retry,
            progress=lambda _: advance(),
        )
    out.print(claims_table(came_out.claims))
    if quick:
        out.print(f"[yellow]{QUICK}[/]", soft_wrap=True)
    out.print(f"report: {came_out.report}")
    out.print(f"figures: {folder / 'figures'}")
    _end(came_out.failures)


@app.command()
def experiment(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Tasks, learners, rounds and seeds.")],
    folder: Out = Path("out"),
    jobs: Jobs = 2,
    engine: EngineName = "loky",
    retry: Retry = True,
) -> None:
    """Run an experiment of your own from a TOML file, draw it, and write a report."""
    from randomist.experiments.report import write_report
    from randomist.experiments.reproduce import draw
    from randomist.experiments.runner import run_experiment
    from randomist.experiments.specs import read_experiment
    from randomist.experiments.store import Store

    store = Store(folder, read_experiment(file))
    with progress(len(store.missing(retry)), "runs") as advance:
        failures = run_experiment(store, jobs=jobs, engine=_engine(engine), retry=retry, progress=lambda _: advance())
    for path in draw([store], store.folder):
        out.print(f"figure: {path}")
    page, _ = write_report(store.folder, [store], [])
    out.print(f"report: {page}")
    out.print(f"runs: {store.runs}")
    _end(failures)


@app.command()
def report(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that --out wrote.")]) -> None:
    """Write the report of the finished experiments in a folder anew."""
    from randomist.experiments.reproduce import conclude, find_stores

    _, page = conclude(find_stores(folder), folder)
    out.print(f"report: {page}")


@app.command()
def plot(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that --out wrote.")]) -> None:
    """Draw the figures of the finished experiments in a folder anew."""
    from randomist.experiments.reproduce import draw, find_stores

    for path in draw(find_stores(folder), folder / "figures"):
        out.print(f"figure: {path}")


def claims_table(claims: list[Claim]) -> Table:
    """Every claim and its verdict, with the checks that decided it."""
    from rich.table import Table

    table = Table(title="What the paper claims", title_justify="left", title_style="bold")
    table.add_column("claim")
    table.add_column("verdict", no_wrap=True)
    colours = {"held": "green", "did not hold": "red", "unclear": "yellow"}
    for claim in sorted(claims, key=lambda claim: claim.number):
        table.add_row(
            f"{claim.number}. {claim.text}", f"[{colours[claim.verdict]}]{claim.verdict}[/]", end_section=False
        )
        for check in claim.checks:
            if check.verdict != "held":
                table.add_row(f"   {check.text}: {check.statistic}", f"[{colours[check.verdict]}]{check.verdict}[/]")
    return table


def _engine(name: str) -> Engine:
    if name not in ("loky", "ray", "dask"):
        raise typer.BadParameter(f"engine must be loky, ray or dask, got {name!r}")
    return name  # type: ignore[return-value]


def _end(failures: dict[Cell, str]) -> None:
    """List failed runs; a run that failed makes the exit code non-zero."""
    if not failures:
        return
    for cell, reason in failures.items():
        err.print(f"failed: {cell.key}: {reason}", markup=False)
    raise typer.Exit(1)
