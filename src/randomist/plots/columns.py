"""The parameters of a run as columns of numbers, with their names, ends and scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.parameters import Choice, Integer, Parameter
from randomist.plots.marks import ends
from randomist.plots.runs import heading
from randomist.simulation.run import Run

LONG = 12  # letters of an option


class Column(NamedTuple):
    """One parameter: its values, as numbers of its axis, at the trials that are drawn."""

    key: str | int  # its name in the space, or its number
    name: str
    values: Array  # options by their number  (n,)
    low: float
    high: float
    log: bool = False
    whole: bool = False
    options: tuple[Any, ...] = ()


def columns_of(run: Run, rows: Indices, chosen: Sequence[str | int] | None) -> list[Column]:
    """The parameters to draw, at some of the trials."""
    if run.space is None and np.issubdtype(run.decisions.dtype, np.integer):
        raise ParameterError(
            f"{heading(run)} chose among policies and has no parameters to draw; draw rd.plot.estimates(learner)"
        )
    if run.space is not None:
        named = [run.space.named(run.mediators[row]) for row in rows]
        every = [
            _column(key, parameter, [values[key] for values in named])
            for key, parameter in run.space.parameters.items()
        ]
    else:
        table = run.mediators.reshape(len(run.mediators), -1)
        every = [
            Column(k, f"parameter {k}", table[rows, k], *ends(table[:, k], _recommendation(run, k), pad=0.0))
            for k in range(table.shape[1])
        ]
        every = [column if column.low < column.high else _widened(column) for column in every]
    for column in every:
        if not np.isfinite(1.1 * (column.high - column.low)):
            raise ParameterError(
                f"{column.name} goes from {column.low:g} to {column.high:g}, which is too far for an axis; "
                "take smaller units, or log=True"
            )
    if chosen is None:
        return every
    if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not len(chosen):
        raise ParameterError(f"parameters must be a list of names or numbers, got {chosen!r:.80}")
    return [_found(every, key) for key in chosen]


def _column(key: str, parameter: Parameter, values: list[Any]) -> Column:
    if isinstance(parameter, Choice):
        options = parameter.options
        numbers = np.array([_place(options, value) for value in values])
        return Column(key, key, numbers, 0.0, len(options) - 1.0, options=options)
    low, high = float(parameter.low), float(parameter.high)
    return Column(key, key, np.array(values, np.float64), low, high, parameter.log, isinstance(parameter, Integer))


def _place(options: tuple[Any, ...], value: Any) -> float:
    """Where an option lies on its axis; True is another one than 1."""
    return float(next(i for i, one in enumerate(options) if type(one) is type(value) and one == value))


def _widened(column: Column) -> Column:
    low, high = ends(column.low)
    return column._replace(low=low, high=high)


def labels(column: Column) -> list[tuple[float, str]]:
    """The options of a choice where they lie on its axis; long ones are cut."""
    texts = (text if len(text) <= LONG else f"{text[: LONG - 1]}…" for text in map(str, column.options))
    return list(enumerate(texts))


def _found(columns: Sequence[Column], key: Any) -> Column:
    for number, column in enumerate(columns):
        if not isinstance(key, bool) and key in (column.key, column.name, number):
            return column
    names = ", ".join(column.name for column in columns)
    raise ParameterError(f"there is no parameter {key!r:.80}; this run has {names:.200}")


def _recommendation(run: Run, k: int) -> Array | float:
    return np.empty(0) if run.recommendation is None else float(np.ravel(run.recommendation)[k])


def recommended(run: Run, column: Column) -> float | None:
    """Where the recommended point lies on the axis of a parameter."""
    if run.recommendation is None:
        return None
    if run.space is None:
        return float(np.ravel(run.recommendation)[int(column.key)])
    value = run.best[column.key]
    return _place(column.options, value) if column.options else float(value)
