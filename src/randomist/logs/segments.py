"""The same evaluation for parts of a log: countries, devices, months."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import polars as pl

from randomist.errors import ParameterError
from randomist.logs.log import Log
from randomist.logs.report import Evaluation

MOST = 1000


def evaluate_segments(log: Log, column: str, level: float, settings: Mapping[str, Any]) -> Evaluation:
    """The evaluation of the whole log, with those of its segments; the error is shared equally by all of them.

    Everything that is said about S segments and the whole holds together with probability `level`, because each of
    the S + 1 evaluations is wrong with probability at most (1 - level) / (S + 1). How many segments there are must not
    depend on payoffs.
    """
    from randomist.logs.evaluation import evaluate

    values = pl.concat([part.unique() for part in log.column(column)]).unique().sort()
    if len(values) > MOST:
        raise ParameterError(
            f"column {column!r} has {len(values)} different values, more than {MOST} segments; group them"
        )
    shared = 1.0 - (1.0 - level) / (len(values) + 1)
    whole = evaluate(log, level=shared, **settings)
    segments = {
        "missing" if value is None else str(value): dataclasses.replace(
            evaluate(log.where(column, value), level=shared, **settings), level=level
        )
        for value in values.to_list()
    }
    return dataclasses.replace(whole, level=level, segments=segments)
