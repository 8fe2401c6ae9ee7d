"""The command line: parses, calls, prints. `randomist --help`."""

from randomist.cli import logs, papers, runs, studies  # noqa: F401 (they add their commands to the app)
from randomist.cli.app import main

__all__ = ["main"]
