"""Which tasks and methods a command runs, and the settings that tuning chose, in `settings.toml` beside this file."""

from __future__ import annotations

import argparse
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.peers.methods import METHODS
from benchmarks.peers.problems import PROBLEMS, Problem
from benchmarks.peers.search import Method

SETTINGS = Path(__file__).with_name("settings.toml")


def parser(description: str, seeds: int | None) -> argparse.ArgumentParser:
    """The arguments that the commands share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tasks", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS), metavar="TASK")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), metavar="METHOD")
    parser.add_argument("--episodes", type=_positive, help="at most, of every run; each task has its own number")
    parser.add_argument("--seeds", type=_positive, default=seeds)
    parser.add_argument("--jobs", type=_positive, default=1, help="processes")
    return parser


def available(arguments: argparse.Namespace) -> tuple[list[Problem], list[Method]]:
    """What was asked for and is installed; the rest is skipped with a message."""
    problems, methods = [], []
    for name in dict.fromkeys(arguments.tasks):
        if missing := [package for package in PROBLEMS[name].needs if find_spec(package) is None]:
            print(f"skipped task {name}: not installed: {', '.join(missing)}", flush=True)
        else:
            problems.append(PROBLEMS[name])
    for name in dict.fromkeys(arguments.methods):
        if METHODS[name].missing:
            print(f"skipped method {name}: not installed: {', '.join(METHODS[name].missing)}", flush=True)
        else:
            methods.append(METHODS[name])
    return problems, methods


def chosen(path: Path = SETTINGS) -> dict[str, Any]:
    """By task and method: the settings, their average return, and the episodes and seeds that it is over."""
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def settings_for(problem: Problem, method: Method, tuned: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A method's settings on a task, and whether tuning chose them: where it did not, the first of its grid."""
    entry = tuned.get(problem.id, {}).get(method.id)
    return (method.grid[0], len(method.grid) == 1) if entry is None else (entry["settings"], True)


def write(tuned: dict[str, Any], path: Path = SETTINGS) -> None:
    """As TOML: numbers, text and tables of numbers are all there is."""
    lines = ["# Written by `python -m benchmarks.peers.tuning`.", ""]
    for task, entries in tuned.items():
        lines.append(f"[{task}]")
        for method, entry in entries.items():
            pairs = ", ".join(f"{key} = {value}" for key, value in entry["settings"].items())
            rest = ", ".join(f"{key} = {value}" for key, value in entry.items() if key != "settings")
            lines.append(f"{method} = {{ settings = {{ {pairs} }}, {rest} }}")
        lines.append("")
    path.write_text("\n".join(lines), encoding="utf-8")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be >= 1, got {number}")
    return number
