"""A function of the user's own, tuned from the shell."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist._json import for_json
from randomist.cli.app import app, out, progress
from randomist.cli.options import AsJson, Parameter, parameters_of
from randomist.errors import ParameterError
from randomist.experiments.contenders import parse_settings

if TYPE_CHECKING:  # what takes its time to import is imported by the commands that need it
    from collections.abc import Callable

    from randomist.simulation import Run


@app.command()
def tune(
    function: Annotated[str, typer.Argument(help="module:function; the module is in this folder, or installed.")],
    parameter: Parameter,
    rounds: Annotated[int, typer.Option(min=1, help="How often to call the function.")] = 100,
    minimize: Annotated[bool, typer.Option("--minimize", help="It returns costs: less is better.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that call it; a free one gets the next trial.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds for one call; a longer one is killed.")] = None,
    patience: Annotated[
        int | None, typer.Option(min=2, help="End when so many payoffs are no better than as many before.")
    ] = None,
    confirm: Annotated[
        int | None, typer.Option(min=1, help="Then play the best so many times more, for an interval on these alone.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="A file with every call as it happens; the same command goes on with it.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw payoffs and parameters: .png, .pdf, .svg or .html.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 0,
    learner: Annotated[str | None, typer.Option(help="A learner in a box; auto by default.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting of the learner, key=value.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the parameters for which a function of yours returns most.

    A parameter is kp=0.1..100 (a number), kp=0.1..100:log (on a log scale), taps=1..12:int (a whole number), or
    mode=a,b,c (one of these). The function is called with them by name.

    Example: randomist tune plant:simulate --parameter kp=0.1..100:log --parameter taps=1..12:int --rounds 200
    """
    from randomist._lookup import imported, is_foreign
    from randomist.simulation import optimize

    if not is_foreign(function):
        raise ParameterError(f"a function is named module:function, such as plant:simulate, got {function!r}")
    found = imported(function.replace(".py:", ":"))
    if not callable(found):
        raise ParameterError(f"{function} is {found!r:.80}, which cannot be called")
    space = parameters_of(parameter)
    if figure is not None:
        _check_figure(figure)
    with progress(rounds + (confirm or 0), "rounds") as advance:
        run = optimize(
            *(found, learner, rounds, seed),
            parameters=space,
            direction="minimize" if minimize else "maximize",
            jobs=jobs,
            timeout=timeout,
            patience=patience,
            confirm=confirm,
            save=save,
            callbacks=[_live(advance, minimize)],
            **parse_settings(settings or []),
        )
    if figure is not None:
        _draw(run, figure)
    if as_json:
        print(json.dumps(_as_data(run)))
        return
    out.print(run.summary(), markup=False, soft_wrap=True)
    for name, path in (("saved", save), ("figure", figure)):
        if path is not None:
            out.print(f"  {name}: {path}", markup=False, soft_wrap=True)
    if run.interrupted:
        raise typer.Exit(130)


def _live(advance: Callable[..., None], minimize: bool) -> Callable[[Any], None]:
    """Average and best so far, behind the bar."""
    told, total, best = 0, 0.0, math.inf if minimize else -math.inf

    def seen(outcome: Any) -> None:
        nonlocal told, total, best
        if outcome.payoff is not None:
            told, total = told + 1, total + outcome.payoff
            best = (min if minimize else max)(best, outcome.payoff)
        advance(words=f"average {total / told:.4g}, best {best:.4g}" if told else "no payoff yet")

    return seen


def _as_data(run: Run) -> dict[str, Any]:
    interval = None if run.best_payoff is None or not run.best_payoff.supported else run.best_payoff._asdict()
    return {
        "best": for_json(run.best),
        "best_payoff": interval,
        "average_payoff": float(run.average_payoff[-1]) if len(run.payoffs) else None,
        "rounds": len(run.payoffs),
        "failed": len(run.failures),
        "seed": run.seed,
        "notes": list(run.notes),
    }


def _check_figure(path: Path) -> None:
    if path.suffix.lower() not in (".png", ".pdf", ".svg", ".html"):
        raise ParameterError(f"--figure must end in .png, .pdf, .svg or .html, got {str(path)!r}")


def _draw(run: Run, path: Path) -> None:
    from randomist import plots

    plots.slices(run, path=path)
