"""Studies from the shell: JSON in, JSON out, so that a script can be a worker; and the service."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist._checks import choice
from randomist._files import read_text
from randomist._json import for_json
from randomist.cli.app import app, err
from randomist.errors import ParameterError
from randomist.experiments.contenders import parse_settings
from randomist.learners.registry import TABLE

if TYPE_CHECKING:  # SQLAlchemy and FastAPI are loaded by the commands that need them
    from randomist.study import Study

study_app = typer.Typer(
    help="Studies: a learner in a database, for workers that come and go. Every command prints JSON.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(study_app, name="study")

Name = Annotated[str, typer.Argument(help="The study's name.")]
StorageUrl = Annotated[
    str,
    typer.Option("--storage", envvar="RANDOMIST_STORAGE", help="sqlite:///FILE or postgresql://USER@HOST/NAME."),
]
STORAGE = "sqlite:///studies.db"
Level = Annotated[float, typer.Option(help="With which probability intervals and survivors hold.")]
Worker = Annotated[str | None, typer.Option(help="Under which name to ask; by default machine and process.")]


@study_app.command()
def create(
    name: Name,
    learner: Annotated[str, typer.Option(help=f"One of {', '.join(TABLE)}, or module:Class.")] = "randomist",
    space: Annotated[
        str | None, typer.Option(help='The space as JSON, or a file with it: {"kind": "Finite", "family": ...}.')
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Take space, payoff range and first decision of a task (see `randomist list`).")
    ] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A setting of the learner, key=value.")] = None,
    lease: Annotated[float, typer.Option(help="Seconds until an unanswered trial counts as stale.")] = 3600.0,
    exist_ok: Annotated[
        bool, typer.Option("--exist-ok", help="Take the study that exists, if it is the same.")
    ] = False,
    storage: StorageUrl = STORAGE,
) -> None:
    """Create a study.

    Example: randomist study create car --task mountain-car --learner mcmc-randomist

    Example: randomist study create ads --learner randomist --space space.json --set perturbation_scale=1.1
    """
    from randomist.study.describe import on_trial, space_from
    from randomist.study.opening import create_study
    from randomist.tasks.base import task as find_task

    chosen = parse_settings(settings or [])
    if (space is None) == (task is None):
        raise ParameterError("a study needs --space or --task, one of them")
    place = find_task(task) if task is not None else space_from(_json(space or "", "--space"))
    made = on_trial(learner, place, chosen)
    study = create_study(name, made, storage=storage, lease=lease, exist_ok=exist_ok)
    say({"name": study.name, "learner": study.learner_name, "storage": study.storage.name})


@study_app.command()
def ask(
    name: Name,
    batch: Annotated[int | None, typer.Option(min=1, help="That many trials, as a list.")] = None,
    worker: Worker = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="First what --worker asked before and never told (after a crash).")
    ] = False,
    lease: Annotated[float | None, typer.Option(help="Seconds for this trial.")] = None,
    ticket: Annotated[str | None, typer.Option(help="Any text: the same text gives the same trial again.")] = None,
    until: Annotated[
        str | None, typer.Option(help='"sure": no trial once one decision is left that may be best.')
    ] = None,
    level: Level = 0.95,
    storage: StorageUrl = STORAGE,
) -> None:
    """Print the next trial: {"id": 0, "decision": 2, "mediator": 1.37}.

    With --until sure, {"sure": true, "recommendation": 2} once one decision of a finite set is left.

    Example: trial=$(randomist study ask car --worker bench --resume)
    """
    study = load(name, storage, worker)
    if until is not None:
        choice(until, ("sure",), "--until")
        if len(study.surviving(level)) == 1:
            say({"sure": True, "recommendation": for_json(study.recommend())})
            return
    if resume:
        if worker is None or batch is not None:
            raise ParameterError("--resume needs --worker NAME, and no --batch")
        unanswered = study.pending(worker=worker)
        if unanswered:
            say(_trial(unanswered[0]))
            return
    if batch is None:
        say(_trial(study.ask(lease=lease, ticket=ticket)))
    else:
        say([_trial(trial) for trial in study.ask(batch, lease=lease, ticket=ticket)])


@study_app.command(context_settings={"ignore_unknown_options": True})  # a payoff may be negative
def tell(
    name: Name,
    trial: Annotated[int, typer.Argument(help="The trial's id.")],
    payoff: Annotated[float | None, typer.Argument(help="Its payoff.")] = None,
    fail: Annotated[str | None, typer.Option(help="No payoff: why it failed.")] = None,
    infeasible: Annotated[
        bool, typer.Option("--infeasible", help="It broke a constraint: Auto keeps away from there. No payoff needed.")
    ] = False,
    log_likelihoods: Annotated[
        str | None,
        typer.Option(help='Of what was done under every policy, as JSON: {"old": -0.7, "new": -1.2}; null is -inf.'),
    ] = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Tell a payoff, or that there is none. What is printed is on disk; the same again changes nothing.

    Example: randomist study tell car 0 -12.5

    Example: randomist study tell ads 0 1 --log-likelihoods '{"old": -0.7, "new": -1.2}'

    Example: randomist study tell car 1 --fail "the motor was hot"

    Example: randomist study tell car 2 --infeasible
    """
    study = load(name, storage)
    if infeasible and fail is None:
        study.tell(trial, payoff, feasible=False)
        say({"id": trial, "state": "failed", "feasible": False})
        return
    if infeasible or (payoff is None) == (fail is None):
        raise ParameterError('tell a payoff, or --fail "why", or --infeasible')
    if payoff is None:
        study.fail(trial, fail or "")
    else:
        named = None if log_likelihoods is None else _json(log_likelihoods, "--log-likelihoods")
        study.tell(trial, payoff, log_likelihoods=named)
    say({"id": trial, "state": "failed" if payoff is None else "told"})


@study_app.command()
def confirm(
    name: Name,
    n: Annotated[int, typer.Argument(min=1, help="How often to play the recommended point.")],
    worker: Worker = None,
    lease: Annotated[float | None, typer.Option(help="Seconds for these trials.")] = None,
    ticket: Annotated[str | None, typer.Option(help="Any text: the same text gives the same trials again.")] = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Print trials that play the point that Auto recommends; tell them, and `interval` has what they say.

    Example: randomist study confirm car 20
    """
    study = load(name, storage, worker)
    say([_trial(trial) for trial in study.confirm(n, lease=lease, ticket=ticket)])


@study_app.command()
def interval(
    name: Name,
    point: Annotated[str | None, typer.Option(help="As JSON; by default the recommended one.")] = None,
    level: Level = 0.95,
    storage: StorageUrl = STORAGE,
) -> None:
    """Print an interval for the mean payoff at a point of Auto's box; null is infinite, or not known.

    Without a point also what the plays of the last `confirm` say, where some were told.

    Example: randomist study interval car --point '[0.3, 12]'
    """
    from randomist.errors import NoDataError

    study = load(name, storage)
    shown = _interval(study.interval(None if point is None else _json(point, "--point"), level))
    if point is None:
        try:
            found = study.confirmed(level)
        except NoDataError:
            shown["confirmed"] = None
        else:
            both = {"mean": _interval(found.mean), "median": _interval(found.median)}
            shown["confirmed"] = {"point": for_json(found.point), "plays": found.plays} | both
    say(shown)


@study_app.command()
def add(
    name: Name,
    member: Annotated[
        str | None,
        typer.Option(
            help='As JSON, or a file with it: {"mean": 0.3, "std": 1.0}. Policies that act elsewhere have none.'
        ),
    ] = None,
    called: Annotated[str | None, typer.Option("--name", help="What the decision is called.")] = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Add a decision to a finite set, for all workers: what was told so far informs it.

    Example: randomist study add ads --member '{"mean": 0.3, "std": 1.0}' --name bold
    """
    from randomist.study.describe import member_from

    study = load(name, storage)
    described = None if member is None else _json(member, "--member")
    number = study.add(member_from(described, study.space), called)
    say({"decision": number, "name": study.names[number]})


@study_app.command()
def retire(
    name: Name,
    decision: Annotated[str, typer.Argument(help="The decision's name, or its number.")],
    storage: StorageUrl = STORAGE,
) -> None:
    """Retire a decision of a finite set: it is not played any more. Its pending trials can still be told.

    Example: randomist study retire ads bold
    """
    study = load(name, storage)
    numbered = decision not in study.names and decision.isdecimal()
    study.retire(int(decision) if numbered else decision)
    number = int(decision) if numbered else study.names.index(decision)
    say({"decision": number, "name": study.names[number], "active": False})


@study_app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="The study's name; without it, all names.")] = None,
    level: Level = 0.95,
    storage: StorageUrl = STORAGE,
) -> None:
    """Print what is known: counters, pending trials, and the recommendation.

    Of a finite set also estimates, intervals of every mean payoff, which decisions may still be best, and roughly how
    many rounds it takes until one is left.
    """
    import numpy as np

    from randomist.learners.finite.base import FiniteLearner
    from randomist.study import study_names

    if name is None:
        say({"studies": study_names(storage)})
        return
    study = load(name, storage)
    learner, counters = study.learner, study.counters
    shown: dict[str, Any] = {
        "name": study.name,
        "learner": study.learner_name,
        "asked": counters.asked,
        "told": counters.told,
        "failed": counters.failed,
        "retracted": counters.retracted,
        "archived": study.archived,
        "pending": [_trial(trial) for trial in study.pending()],
        "average_payoff": float(np.mean(learner.record.payoffs)) if learner.told else None,
        "recommendation": for_json(learner.recommend()) if learner.told else None,
    }
    if isinstance(learner, FiniteLearner):
        if learner.space.names:
            shown["names"] = list(learner.names)
        if not learner.active.all():
            shown["retired"] = np.flatnonzero(~learner.active).tolist()
        estimates = study.estimates()._asdict()
        shown["estimates"] = {key: _finite(value) for key, value in estimates.items() if key != "log_effective_samples"}
        if learner.payoff_range != "running" and np.isfinite(learner.payoff_range).all():
            rounds = study.rounds_left(level)
            shown["intervals"] = {key: value.tolist() for key, value in study.intervals(level)._asdict().items()}
            shown["surviving"] = study.surviving(level).tolist()
            shown["rounds_left"] = rounds if math.isfinite(rounds) else None
    say(shown)


@study_app.command()
def export(
    name: Name,
    html: Annotated[Path | None, typer.Option(help="Write the dashboard as one file that needs nothing else.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write all trials as CSV.")] = None,
    jsonl: Annotated[Path | None, typer.Option(help="Write all trials as JSON, one a line.")] = None,
    storage: StorageUrl = STORAGE,
) -> None:
    """Write the history or the dashboard to a file; without a file, all trials as JSON lines to stdout."""
    from randomist.study.dashboard import snapshot, static_page
    from randomist.study.export import lines

    study = load(name, storage)
    if html is not None:
        _write(html, [static_page(snapshot(study))])
    if csv is not None:
        _write(csv, lines(study, "csv"))
    if jsonl is not None:
        _write(jsonl, lines(study, "jsonl"))
    if html is csv is jsonl is None:
        for piece in lines(study, "jsonl"):
            sys.stdout.write(piece)
        return
    say({"written": [str(path) for path in (html, csv, jsonl) if path is not None]})


@study_app.command()
def upgrade(storage: StorageUrl = STORAGE) -> None:
    """Bring a database of an earlier version to this one. Stop the workers and make a backup first."""
    from randomist.study.storages import open_storage

    before, after = open_storage(storage).upgrade()
    say({"from": before, "to": after})


def serve(
    storage: StorageUrl = STORAGE,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 is every one of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8431,
    tokens: Annotated[
        Path | None,
        typer.Option(
            help="A file of lines SCOPE TOKEN [until=DAY] [studies=A,B] [name=WHO]; read again when it changes."
        ),
    ] = None,
    public_read: Annotated[
        bool, typer.Option("--public-read", help="Reading, the dashboard too, needs no token.")
    ] = False,
    rate: Annotated[float, typer.Option(min=0.1, help="Requests per second of one token.")] = 500.0,
    body: Annotated[int, typer.Option(min=256, help="Bytes of a request at most.")] = 65_536,
    guesses: Annotated[float, typer.Option(min=1, help="Wrong tokens of one address in a minute at most.")] = 60.0,
    requests: Annotated[int, typer.Option(min=1, help="Requests under way at once.")] = 512,
    watchers: Annotated[int, typer.Option(min=0, help="How many of them may watch.")] = 256,
    header_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for the head of a request.")] = 10.0,
    body_timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for its body.")] = 20.0,
    idle_timeout: Annotated[float, typer.Option(min=1, help="Seconds between requests of a connection.")] = 30.0,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="An address or network whose X-Forwarded-For is believed.")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(help='A line for every request on stderr, with its id: "text" or "json".')
    ] = None,
) -> None:
    """Serve the studies of a database over HTTP, with the dashboard at /. Ctrl-C finishes what is under way.

    Tokens come from --tokens, or from RANDOMIST_TOKENS ("read:TOKEN work:TOKEN ..."); without either, one of each scope
    is made up and printed.

    Example: randomist serve --storage sqlite:///studies.db --tokens tokens.txt
    """
    try:
        from randomist.study.service import Tokens, create_app
        from randomist.study.service.limits import Limits
        from randomist.study.service.server import make_server
    except ImportError as missing:
        raise ImportError(
            f"the service needs the `study` extra ({missing}); pip install 'randomist[study]'"
        ) from missing

    given = os.environ.get("RANDOMIST_TOKENS")
    if tokens is not None:
        known = Tokens.read(tokens, public_read=public_read)
    elif given:
        pairs = [pair.partition(":") for pair in given.split()]
        known = Tokens({token: scope for scope, _, token in pairs}, public_read=public_read)
    else:
        made = Tokens.generate()
        for token, scope in made.items():
            err.print(f"token for {scope}: {token}", markup=False, soft_wrap=True)
        known = Tokens(made, public_read=public_read)
    limits = Limits(
        body, rate, 2 * rate, guesses, requests, watchers, header_timeout, body_timeout, idle_timeout
    )  # fmt: skip
    service = create_app(storage, known, limits=limits)
    options: dict[str, Any] = {"trusted_proxies": trusted_proxy or (), "log_format": log_format}
    server = make_server(service, host=host, port=port, **options)
    if log_format != "json":
        err.print(f"dashboard: http://{host}:{port}/", markup=False)
    server.run()
    if not server.started:
        raise typer.Exit(1)


app.command(name="serve")(serve)
study_app.command(name="serve")(serve)


def load(name: str, storage: str, worker: str | None = None) -> Study:
    """A study, or what to install."""
    try:
        from randomist.study import load_study
    except ImportError as missing:
        raise ImportError(f"studies need the `study` extra ({missing}); pip install 'randomist[study]'") from missing
    return load_study(name, storage=storage, worker=worker)


def say(value: Any) -> None:
    """One line of JSON."""
    print(json.dumps(value))


def _json(text: str, option: str) -> Any:
    """JSON, or a file that holds it."""
    try:
        return json.loads(text if text.lstrip()[:1] in "{[" else read_text(text, ParameterError))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ParameterError(f"{option} must be JSON, or a file with it: {error}") from error


def _write(path: Path, pieces: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        file.writelines(pieces)


def _trial(trial: Any) -> dict[str, Any]:
    shown = {"id": trial.id, "decision": for_json(trial.decision), "mediator": for_json(trial.mediator)}
    return shown | {"name": trial.name} if trial.name is not None else shown


def _interval(found: Any) -> dict[str, Any]:
    return {key: None if isinstance(x, float) and not math.isfinite(x) else x for key, x in found._asdict().items()}


def _finite(column: Any) -> list[Any]:
    return [x if math.isfinite(x) else None for x in column.tolist()]
