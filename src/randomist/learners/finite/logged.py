"""Rows of a log as samples of a finite space: who drew each, and how likely it was under every source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.learners.finite.prior import Prior
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


def logged_prior(log: Log, space: Finite) -> Prior:
    """What a log that has only propensities says: its estimates, each worth its effective rows."""
    _check_candidates(log, space)
    found, K = log.evaluate(), space.size
    plays = np.where(np.isfinite(found.self_normalised), found.effective_samples, 0.0)[:K]
    return Prior((np.where(plays > 0, found.self_normalised[:K], 0.0), plays), K, 0)


def _check_candidates(log: Log, space: Finite) -> None:
    if len(log.candidates) < space.size:
        raise ParameterError(
            f"the log has likelihoods of {len(log.candidates)} candidates ({', '.join(log.candidates)}), the space "
            f"{space.size} decisions; the first {space.size} candidates of the log are the decisions, in their order"
        )


def _columns(log: Log, space: Finite) -> list[int]:
    """Which of the log's likelihoods belongs to each decision, and then to each logger."""
    _check_candidates(log, space)
    K = space.size
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
