"""What commands that run learners share: their options, and a task by its id and settings."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any

import typer

from randomist.errors import ParameterError, TaskError
from randomist.experiments.contenders import literal, parse_settings

if TYPE_CHECKING:  # what takes its time to import is imported by the commands that need it
    from randomist.spaces import Parameters
    from randomist.tasks import Task

# Any further `--key value` is a setting of the task: `randomist run illustrative --sigma 2 --lambda 0.1`.
OPEN = {"allow_extra_args": True, "ignore_unknown_options": True}
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of each run.")]
Seeds = Annotated[int, typer.Option(min=1, help="Runs, with seeds 0, 1, ...")]
TaskId = Annotated[
    str, typer.Argument(help="Task id (see `randomist list`), or module:Class; further `--key value` are its settings.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print numbers as JSON instead of a table.")]

Parameter = Annotated[
    list[str],
    typer.Option("--parameter", "-p", help="kp=0.1..100, kp=0.1..100:log, taps=1..12:int, or mode=a,b,c; repeatable."),
]


def task_of(id_: str, context: typer.Context) -> Task:
    """The task, with the settings that were given as further `--key value`."""
    from randomist.tasks import task as find_task

    settings = settings_of(context.args)
    try:
        return find_task(id_, **settings)
    except TaskError as error:
        options = [word.lstrip("-") for option in context.command.params for word in option.opts]
        for name in settings:
            word = name.rstrip("_").replace("_", "-")
            if near := get_close_matches(word, options, 1):
                raise ParameterError(f"there is no option --{word}; did you mean --{near[0]}? ({error})") from None
        raise


def parameters_of(texts: list[str]) -> Parameters:
    """Parameters of their texts, such as kp=0.1..100:log."""
    from randomist.spaces import Parameters

    found = dict[str, Any]()
    for text in texts:
        name, equals, rest = text.partition("=")
        if not equals or not name.isidentifier() or name in found:
            raise ParameterError(f"a parameter is NAME=LOW..HIGH or NAME=A,B,C, each name once, got {text!r}")
        found[name] = _parameter(text, rest)
    return Parameters(found)


def _parameter(text: str, rest: str) -> Any:
    from randomist.parameters import Choice, Integer, Real

    ends, _, how = rest.partition(":")
    low, dots, high = ends.partition("..")
    if not dots:
        return Choice(*map(literal, rest.split(",")))
    words = set(how.split(":")) if how else set()
    if not words <= {"log", "int"}:
        raise ParameterError(f"behind LOW..HIGH come :log and :int, got {text!r}")
    try:
        if "int" in words:
            return Integer(int(low), int(high), log="log" in words)
        return Real(float(low), float(high), log="log" in words)
    except ValueError as error:
        raise ParameterError(f"{text!r}: {error}") from None


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
