"""Whether a log is clean, by a few sums of its columns: most are, and then no row has to be looked at by itself."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from randomist._types import Indices
from randomist.logs import source
from randomist.logs.columns import Columns
from randomist.logs.problems import Ids, Increasing
from randomist.logs.source import ID, LOGGER, PAYOFF, PREFIX, PROPENSITY

_MOST = 64  # policies that are looked for by name


def clean_counts(columns: Columns, payoff_range: tuple[float, float], most: float) -> tuple[int, Indices] | None:
    """How many rows there are, and by which policy, if nothing is wrong with any of them; None if something may be.

    `most` is what a log-likelihood must not exceed. A log without ids is not looked at: whether its rows repeat is seen
    row by row.
    """
    if ID not in columns or len(columns.likelihoods) > _MOST:
        return None
    ids = Increasing()
    for frame in columns.scan.select(ID).chunks(source.SLICE_ROWS):
        ids.add(Ids.of(frame[ID]))
    if not ids.increasing:
        return None
    payoff = source.numbers(PAYOFF, columns.types[PAYOFF])
    (low, high), fine = payoff_range, []
    fine.append((payoff.null_count() == 0) & payoff.is_finite().all() & (payoff.min() >= low) & (payoff.max() <= high))
    for name in columns.likelihoods:
        values = source.numbers(PREFIX + name, columns.types[PREFIX + name])
        known = (values.null_count() == 0) & ~values.is_nan().any() & (values.max() < math.inf)
        fine.append(known & (values.max() <= most) & (values.min() > -math.inf))
    acted = []
    if columns.names_loggers:
        logger = pl.col(LOGGER).cast(pl.String)
        acted = [(logger == name).sum() for name in columns.likelihoods]
    elif columns.weights == "own":
        values = source.numbers(PROPENSITY, columns.types[PROPENSITY])
        fine.append((values.null_count() == 0) & values.is_finite().all() & (values.max() <= most))
    asked = [pl.len(), *fine, *acted]
    found = columns.scan.select(expr.alias(str(i)) for i, expr in enumerate(asked)).collect().row(0)
    rows, counts = int(found[0]), np.array(found[1 + len(fine) :], dtype=np.int64)
    if not rows or not all(found[1 : 1 + len(fine)]) or (columns.names_loggers and counts.sum() != rows):
        return None
    return rows, counts if columns.names_loggers else np.zeros(len(columns.likelihoods), np.int64)
