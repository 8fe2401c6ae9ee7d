"""Logged data: evaluate."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist._lookup import imported, is_foreign
from randomist.cli.app import app, err, out
from randomist.errors import ParameterError

if TYPE_CHECKING:  # polars is loaded by the command that needs it
    from rich.table import Table

    from randomist.logs import Evaluation, Log

STUDY = "study:"  # before the name of a study, in place of a file
SUFFIXES = (".png", ".pdf", ".svg")


@app.command()
def evaluate(
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="Parquet or CSV file, a folder of Parquet files, or study:NAME."),
    ],
    candidate: Annotated[
        list[str] | None,
        typer.Option(
            help="A candidate, repeatable. Default: every policy with a likelihood column.", show_default=False
        ),
    ] = None,
    payoff: Annotated[str | None, typer.Option(metavar="COLUMN", help="What a row earned, in a table.")] = None,
    action: Annotated[str | None, typer.Option(metavar="COLUMN", help="What was done, in a table.")] = None,
    propensity: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The probability with which it was done, in a table.")
    ] = None,
    logger: Annotated[str | None, typer.Option(metavar="COLUMN", help="Who did it, in a table.")] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=POLICY",
            help="A candidate for a table, repeatable: a column of actions, a column of probabilities for each action "
            "(A,B,C), a function or model (module:name), uniform, or logged.",
            show_default=False,
        ),
    ] = None,
    logged_by: Annotated[
        str | None, typer.Option(metavar="POLICY", help="The policy that acted, where it is known for all actions.")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="What policies see, in a table (repeatable).", show_default=False),
    ] = None,
    actions: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="All actions, in order. Default: those of the table, sorted.")
    ] = None,
    propensity_floor: Annotated[
        float | None, typer.Option(help="The least probability that the logger gave any action, always.")
    ] = None,
    propensity_model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Where no propensities were logged: `default` (logistic regression), or a classifier (module:name).",
        ),
    ] = None,
    propensity_factor: Annotated[
        float | None,
        typer.Option(help="By which factor propensities may be wrong in any row. Default: 1, or 1.2 if fitted."),
    ] = None,
    id_column: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="The id of a row of a table.")] = None,
    episode: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Rows of a table are steps of these episodes.")
    ] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="When a row of a table was.")] = None,
    observed_until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The last time whose payoffs are all in: later rows are left out."),
    ] = None,
    payoff_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="The least and the most that a payoff can be. Default: 0 1; of a study, its own.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Probability with which all statements hold together.")] = 0.95,
    compare: Annotated[
        str | None, typer.Option(help="`leader`: the leader with each of the others; `pairs`: all pairs.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="The status quo, which all others are compared with.")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="Segments to evaluate, too.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Rows that belong together, such as a user's.")
    ] = None,
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
    max_rows: Annotated[
        int | None,
        typer.Option(min=1, help="The most rows of a file. Default: 2e8; of a table, which is held in memory, 2e7."),
    ] = None,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            min=1, help="The most memory of a row group of Parquet, in bytes. Default: 2^30; of a whole table, 2^31."
        ),
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
    anytime: Annotated[
        bool, typer.Option("--anytime", help="Intervals that hold at every row at once; more rows may come.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="LOG is a folder: add each new file to the sums, as it comes. Ctrl-C ends.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the sums of --watch are kept (.npz). Default: LOG/randomist.npz."),
    ] = None,
    every: Annotated[float, typer.Option(help="Seconds between looks of --watch; 0 looks once.")] = 10.0,
    engine: Annotated[
        str, typer.Option(help="Who sums the rows: `threads`, or the workers of a `ray` or `dask` cluster.")
    ] = "threads",
    jobs: Annotated[
        int | None, typer.Option(help="How many do so. Default: one per processor. The result is the same.")
    ] = None,
    details: Annotated[bool, typer.Option("--details", help="Print every estimate, not only the best one.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(help="Where to draw (.png, .pdf or .svg). Default: out/evaluate.png; with --json: nowhere."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")] = False,
    storage: Annotated[
        str, typer.Option(envvar="RANDOMIST_STORAGE", help="The database of study:NAME.")
    ] = "sqlite:///studies.db",
) -> None:
    """Estimate what each candidate policy is worth from a log of other policies, and say which is best.

    LOG has a row per decision and these columns: `payoff`; `log_likelihood:NAME`, the log-likelihood under policy NAME
    of what was done, one column per candidate; and `logger`, the name of the policy that acted (which has a likelihood
    column too), or `log_propensity`, the logarithm of the probability with which it acted. `id`, if there, must not
    repeat. Or it is a table as it is, whose columns the options name, and candidates are given with --policy.

    Intervals are finite-sample and hold for all candidates together.

    LOG may also be study:NAME, a study of a finite set in --storage: its told trials are an adaptive log.

    Example: randomist evaluate shop.parquet --figure shop.png

    Example: randomist evaluate study:ads --storage sqlite:///studies.db --baseline old

    Example: randomist evaluate shop.csv --candidate new --candidate old --payoff-range 0 5 --json

    Example: randomist evaluate clicks.csv --payoff click --action item_id --propensity pscore --policy new=best_item
    --policy now=logged --baseline now
    """
    if figure is None and not as_json:
        figure = Path("out/evaluate.png")
    study = str(log).removeprefix(STUDY) if str(log).startswith(STUDY) else None
    if figure is not None and figure.suffix.lower() not in SUFFIXES:
        raise ParameterError(f"--figure must end in .png, .pdf or .svg, got {figure}")
    ends = payoff_range or (None if study else (0.0, 1.0))
    settings: dict[str, Any] = {"candidates": candidate, "payoff_range": ends, "weights": weights}
    settings |= {"adaptive": adaptive, "skip_bad_rows": skip_bad_rows, "force": force, "jobs": jobs}
    limits = {"max_rows": max_rows, "max_bytes": max_bytes}
    settings |= {name: most for name, most in limits.items() if most is not None}
    table: dict[str, Any] = {"payoff": payoff, "action": action, "propensity": propensity, "logger": logger}
    table |= {"logged_by": logged_by, "context": context, "propensity_floor": propensity_floor, "id": id_column}
    table |= {"episode": episode, "time": time, "observed_until": observed_until, "propensity_model": propensity_model}
    if study is not None and (watch or policy or actions or any((*table.values(), *limits.values()))):
        raise ParameterError(
            "a study says itself what was done: study:NAME takes no columns, --policy, --watch or limits of files"
        )
    if watch:
        from randomist.cli.watching import watch_folder

        shown = {key: value for key, value in table.items() if value}
        watch_folder(
            log,
            lambda path: _log(path, dict(shown), policy, actions, settings),
            level,
            state,
            every,
            figure,
            engine,
            jobs,
        )
        return
    if study is not None:
        data = _log_of_study(study, storage, settings)
    else:
        data = _log(log, {key: value for key, value in table.items() if value}, policy, actions, settings)
    evaluation = data.evaluate(
        level=level,
        compare=compare,
        baseline=baseline,
        by=by,
        cluster=cluster,
        threshold=threshold,
        weight_bounds=_bounds(weight_bound),
        anytime=anytime,
        propensity_factor=propensity_factor,
        engine=engine,
        jobs=jobs,
    )
    if figure is not None:
        from randomist.logs.figure import draw, draw_sequence  # matplotlib takes its time

        if evaluation.anytime is None:
            draw(evaluation, figure)
        else:
            draw_sequence(evaluation.anytime, evaluation.candidates, level, figure)
    if as_json:
        print(json.dumps(evaluation.to_dict() | ({"figure": str(figure)} if figure else {}), allow_nan=False))
        return
    _print(evaluation, details)
    if data.fitted is not None:
        _print_sensitivity(data.sensitivity(level=level, cluster=cluster, jobs=jobs))
    for name, segment in evaluation.segments.items():
        out.print(f"\n{by} = {name}", soft_wrap=True, markup=False)
        _print(segment, details)
    out.print(f"figure: {figure}", soft_wrap=True)


def _log(
    path: Path, table: dict[str, Any], policies: list[str] | None, actions: str | None, settings: dict[str, Any]
) -> Log:
    """The log of a file; of a table, if any of its columns is named."""
    from randomist.logs import Log

    if not (table or policies or actions):
        return Log(path, **settings)
    given = {}
    for word in policies or ():
        name, separator, policy = word.partition("=")
        if not separator:
            raise ParameterError(f"--policy takes NAME=POLICY, got {word!r}")
        given[name] = _policy(policy)
    if table.get("propensity_model", "default") != "default":
        table["propensity_model"] = imported(table["propensity_model"])
    if "logged_by" in table:
        table["logged_by"] = _policy(table["logged_by"])
    if actions is not None:
        table["actions"] = [int(word) if word.lstrip("-").isdigit() else word for word in actions.split(",")]
    return Log.from_table(path, policies=given, **table, **settings)


def _log_of_study(name: str, storage: str, settings: dict[str, Any]) -> Log:
    """The told trials of a study: adaptive, with own weights."""
    try:
        from randomist.study import load_study
    except ImportError as missing:
        raise ImportError(f"studies need the `study` extra ({missing}); pip install 'randomist[study]'") from missing
    given = {key: value for key, value in settings.items() if value}
    return load_study(name, storage=storage).log(given.pop("candidates", None), **given)


def _policy(word: str) -> Any:
    """`module:name` is a function or a model, `A,B,C` columns; anything else a column, or a word that needs none."""
    if is_foreign(word) and not word.startswith("log_likelihood:"):
        return imported(word)
    return word.split(",") if "," in word else word


def _print(evaluation: Evaluation, details: bool) -> None:
    from rich.markup import escape

    _print_whole(_table(evaluation, details))
    out.print(f"[bold]{escape(evaluation.verdict())}[/]", soft_wrap=True)
    if evaluation.compared == "pairs" or evaluation.baseline is not None:
        for difference in evaluation.differences():
            out.print(escape(f"{difference}."), soft_wrap=True)
    out.print(escape(evaluation.assumptions()), soft_wrap=True)
    for problem in evaluation.problems:
        err.print(f"[yellow]left out: {escape(str(problem))}[/]", soft_wrap=True)
    for warning in evaluation.warnings:
        err.print(f"[yellow]warning ({warning.name}): {escape(warning)}[/]", soft_wrap=True)


def _print_sensitivity(found: dict[float, Evaluation]) -> None:
    """Intervals for propensities that are wrong by up to some factors."""
    from rich.markup import escape
    from rich.table import Table

    first = next(iter(found.values()))
    low, high = first.payoff_range
    digits = max(0, 4 - math.floor(math.log10(high - low)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("if wrong by up to", no_wrap=True)
    for name in first.candidates:
        table.add_column(escape(name), justify="right", no_wrap=True)
    for factor, part in found.items():
        intervals = (f"{a:.{digits}f} to {b:.{digits}f}" for a, b in zip(part.low, part.high, strict=True))
        table.add_row(f"{factor:g}", *intervals)
    _print_whole(table)


def _table(evaluation: Evaluation, details: bool) -> Table:
    from rich.markup import escape
    from rich.table import Table

    low, high = evaluation.payoff_range
    digits = max(0, 4 - math.floor(math.log10(high - low)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("candidate", no_wrap=True)
    titles = ["estimate", f"{evaluation.level * 100:.4g}% interval", "effective rows"]
    for title in (*titles, *(("MIS", "TMIS", "optimistic", "missing", "naive interval") if details else ())):
        table.add_column(title, justify="right", no_wrap=True)

    def shown(value: float) -> str:
        return f"{value:.{digits}f}" if math.isfinite(value) else "–"

    for k, name in enumerate(evaluation.candidates):
        interval = f"{shown(evaluation.low[k])} to {shown(evaluation.high[k])}"
        cells = [shown(evaluation.self_normalised[k]), interval, f"{evaluation.effective_samples[k]:,.0f}"]
        if details:
            cells += [shown(values[k]) for values in (evaluation.mis, evaluation.tmis, evaluation.optimistic)]
            cells.append(f"{round(evaluation.missing_mass[k], 3) + 0.0:.3f}")
            cells.append(f"{shown(evaluation.naive_low[k])} to {shown(evaluation.naive_high[k])}")
        style = "bold green" if name == evaluation.best else "" if name in evaluation.contenders else "dim"
        table.add_row(escape(name), *cells, style=style)
    return table


def _print_whole(table: Table) -> None:
    """A table is never cut, also where the terminal is narrow or there is none."""
    from rich.console import Console
    from rich.measure import Measurement

    needed = Measurement.get(out, out.options.update(max_width=10_000), table).maximum
    whole = Console(file=out.file, width=max(needed, out.width), force_terminal=out.is_terminal, no_color=out.no_color)
    whole.print(table, crop=False)


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
