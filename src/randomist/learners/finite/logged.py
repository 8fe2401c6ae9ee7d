"""Rows of a log as samples of a finite space: who drew each, and how likely it was under every source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.spaces import Finite

if TYPE_CHECKING:
    from randomist.logs import Log


@dataclass(frozen=True, eq=False)
class Samples:
    """Some rows of a log; sources are the decisions, then the loggers of the space."""

    sources: Indices  # (n,)
    log_density: Array  # (n, S)
    payoffs: Array  # in the log's units  (n,)


def logged_rows(log: Log, space: Finite) -> Iterator[Samples]:
    """All used rows of a log, some at a time; refused where the mixture of what drew them cannot be known."""
    columns = _columns(log, space)  # of the log, one per source
    source_of = np.full(len(log.likelihoods), -1)
    source_of[columns] = np.arange(len(columns))
    for rows in log.raw_batches():
        density = np.ascontiguousarray(rows.log_likelihoods[:, columns])
        yield Samples(source_of[rows.loggers], density, rows.payoffs)


def _columns(log: Log, space: Finite) -> list[int]:
    """Which of the log's likelihoods belongs to each decision, and then to each logger."""
    if not log.names_loggers:
        raise ParameterError(
            "the log does not say which policy drew each row, so the mixture of all that drew is not known; give it a "
            "column 'logger', and a likelihood column for every logger"
        )
    K = space.size
    if len(log.candidates) < K:
        raise ParameterError(
            f"the log has likelihoods of {len(log.candidates)} candidates ({', '.join(log.candidates)}), the space "
            f"{K} decisions; the first {K} candidates of the log are the decisions, in their order"
        )
    others = dict(zip(log.likelihoods[K:], range(K, len(log.likelihoods)), strict=True))
    unknown = [name for name in others if name not in space.loggers]
    if unknown:
        raise ParameterError(
            f"the log has rows or likelihoods of {', '.join(unknown)}, neither among the {K} decisions nor a logger of "
            f"the space; make the space with loggers for {', '.join(unknown)}, or leave them out of the log"
        )
    missing = [name for name in space.loggers if name not in others]
    if missing:
        raise ParameterError(
            f"the log lacks likelihoods of the space's logger {', '.join(missing)}; name it as a candidate of the log, "
            "behind the decisions"
        )
    return [*range(K), *(others[name] for name in space.loggers)]
