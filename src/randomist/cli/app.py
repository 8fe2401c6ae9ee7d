"""The command line's frame: the app, its consoles, progress, and errors on one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, NoReturn

from randomist import __version__
from randomist.errors import ParameterError, RandomistError

try:
    import typer
    from rich.console import Console
except ImportError as missing:
    sys.exit(f"error: the command line needs the `run` extra ({missing}); pip install 'randomist[run]'")

app = typer.Typer(
    help="Choose policies while they run: every rollout informs every policy.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="Anywhere: `--with MODULE` imports a module of yours, whose classes studies and files may then name; "
    "`--debug` shows the traceback of an error.",
)
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

Jobs = Annotated[int, typer.Option(min=1, help="Processes; the result does not depend on it.")]


def main() -> None:
    """The console script: errors on one line, with the traceback only under --debug."""
    sys.path.append(os.getcwd())  # where module:Class may name something of the user's
    arguments, modules, debug = _anywhere(sys.argv[1:])
    try:
        for module in modules:
            _import(module)
        app(args=arguments, prog_name="randomist")
    except (RandomistError, OSError, ImportError) as error:
        if debug:
            raise
        _die(str(error))
    except KeyboardInterrupt:
        _die("interrupted", 130)


def _anywhere(words: list[str]) -> tuple[list[str], list[str], bool]:
    """The arguments, without what may stand anywhere among them: --with MODULE and --debug."""
    rest, modules, debug, left = list[str](), list[str](), False, iter(words)
    for word in left:
        option, equals, value = word.partition("=")
        if option == "--with":
            modules.append(value if equals else next(left, ""))
        elif word == "--debug":
            debug = True
        else:
            rest.append(word)
    return rest, modules, debug


def _import(module: str) -> None:
    """A module that defines classes of the user's, which studies and files may then name."""
    name = module.removeprefix("./").removesuffix(".py").replace("/", ".")
    try:
        import_module(name if name[:1].isidentifier() else "")
    except (ImportError, ValueError) as error:
        raise ParameterError(
            f"--with takes a module that Python finds (installed, in the current folder, or on PYTHONPATH), got "
            f"{module!r}: {error}"
        ) from error


def _die(message: str, code: int = 1) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit


@contextmanager
def progress(total: int, unit: str) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr, silent where that is not a terminal; yields a function that advances it, by one, and
    says `words` behind it.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        job = bar.add_task("", total=total)
        yield lambda by=1, words="": bar.update(job, advance=by, description=words)
