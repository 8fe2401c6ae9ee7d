"""What commands that run learners share: their options, and a task by its id and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist.errors import ParameterError
from randomist.experiments.contenders import parse_settings

if TYPE_CHECKING:  # what takes its time to import is imported by the commands that need it
    from randomist.tasks import Task

# Any further `--key value` is a setting of the task: `randomist run illustrative --sigma 2 --lambda 0.1`.
OPEN = {"allow_extra_args": True, "ignore_unknown_options": True}
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of each run.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs, with seeds 0, 1, ...")]
TaskId = Annotated[
    str, typer.Argument(help="Task id (see `randomist list`), or module:Class; further `--key value` are its settings.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print numbers as JSON instead of a table.")]


def task_of(id_: str, arguments: list[str]) -> Task:
    """The task, with the settings that were given as further `--key value`."""
    from randomist.tasks import task as find_task

    return find_task(id_, **settings_of(arguments))


def settings_of(arguments: list[str]) -> dict[str, Any]:
    return parse_settings(_pairs(arguments))


def title_of(id_: str, arguments: list[str]) -> str:
    return " ".join([id_, *_pairs(arguments)])


def _pairs(arguments: list[str]) -> list[str]:
    """`["--sigma", "2", "--lambda=0.1"]` as `["sigma=2", "lambda=0.1"]`."""
    pairs, rest = [], iter(arguments)
    for word in rest:
        if not word.startswith("--"):
            raise ParameterError(f"unexpected argument {word!r}; settings of the task are written --key value")
        value = "" if "=" in word else "=" + (following if (following := next(rest, None)) is not None else "")
        if value == "=":
            raise ParameterError(f"the setting {word} has no value; write {word} VALUE")
        pairs.append(word[2:] + value)
    return pairs
