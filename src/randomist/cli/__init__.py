"""The command line: parses, calls, prints. `randomist --help`."""

from randomist.cli.app import main  # before the commands: it says what to install where typer is missing

# isort: split
from randomist.cli import logs, papers, runs, studies  # noqa: F401 (they add their commands to the app)

__all__ = ["main"]
