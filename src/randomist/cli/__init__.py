"""The command line: parses, calls, prints. `randomist --help`."""

from randomist.cli.app import main  # before the commands: it says what to install where typer is missing

# isort: split
# They add their commands to the app, in the order in which `randomist --help` has them.
from randomist.cli import tuning, logs, runs, comparisons, papers, studies, keeping, doctor  # noqa: F401  # isort: skip

__all__ = ["main"]
