"""The told trials of a study as a log: what each of its policies would have earned.

The learner chose policies by looking at payoffs, so the log is adaptive, and a row is weighted by the policy that acted
in it (`weights="own"`), whose likelihood is known whatever made the learner choose it. The mixture of all policies,
which "balance" divides by, depends on payoffs, and is refused.

Trials that failed, are pending or were retracted have no row. Where whether a trial is missing depends on what it would
have paid, estimates are biased and intervals do not hold: decide that by what was known before the payoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from randomist._types import Array, Flags, Indices
from randomist.errors import NoDataError, ParameterError
from randomist.logs import Log
from randomist.spaces import Finite
from randomist.study import replay
from randomist.study.observed import sources_of
from randomist.study.rows import Shapes

if TYPE_CHECKING:
    from randomist.study.study import Study

CHUNK = 2**20  # densities that are computed at a time


def log_of(study: Study, candidates: Sequence[str] | None, settings: dict[str, Any]) -> Log:
    """`Study.log`, which says what the arguments are.

    A policy that was added from scratch is a candidate where it is named; then rows of trials that were asked before it
    came are left out.
    """
    if settings.get("weights", "own") != "own" or not settings.get("adaptive", True):
        raise ParameterError(
            "the policies of a study were chosen by looking at payoffs: its log is adaptive=True with weights='own', "
            f"got weights={settings.get('weights', 'own')!r} and adaptive={settings.get('adaptive', True)!r}"
        )
    began = replay.fresh(study.name, study.record.learner)
    shapes = Shapes(study.name, began.space)
    past = replay.read(shapes, study.storage.everything(study.record.id), began)
    space = study.space
    assert isinstance(space, Finite)
    told = ~np.isnan(past.payoffs)
    ids, payoffs = past.closings[told], past.payoffs[told]
    if not len(ids):
        raise NoDataError(f"nothing has been told in study {study.name!r} yet, so it has no log")
    done = [row for row, there in zip(past.observed, told, strict=True) if there]
    densities, known = _densities(space, past.mediators[ids], done, past.changes, ids)
    names = sources_of(space)
    chosen = [name for name, column in zip(names, known.T, strict=True) if column.all()]
    if candidates is not None:
        chosen = _checked(candidates, names)
    rows = known[:, [names.index(name) for name in chosen]].all(axis=1)
    if not rows.any():
        raise NoDataError(f"no told trial has the likelihoods of all of {', '.join(chosen)[:200]}; leave some out")
    ends = settings.get("payoff_range") or study.learner_range
    if ends is None:
        raise ParameterError(
            f"intervals need a range of payoffs, and study {study.name!r} has payoff_range={began.payoff_range!r}; "
            "give log(payoff_range=(low, high))"
        )
    if began.out_of_range == "clip":
        payoffs = np.clip(payoffs, *ends)
    columns = {name: densities[rows, k] for k, name in enumerate(names)}
    loggers = np.array(names, dtype=np.str_)[past.decisions[ids][rows]]
    settings |= {"adaptive": True, "weights": "own", "candidates": chosen, "payoff_range": ends}
    return Log.from_arrays(payoffs[rows], columns, loggers=loggers, ids=ids[rows], **settings)


def _checked(candidates: Any, names: Sequence[str]) -> list[str]:
    if isinstance(candidates, str) or not candidates:
        raise ParameterError(f"candidates are names of policies, at least one, got {candidates!r:.80}")
    unknown = [name for name in candidates if name not in names]
    if unknown:
        raise ParameterError(f"there is no policy {unknown[0]!r:.80}; there are {', '.join(names)[:200]}")
    return list(candidates)


def _densities(
    space: Finite, drawn: Any, done: Sequence[Array], changes: Sequence[Any], ids: Indices
) -> tuple[Array, Flags]:
    """The log-likelihood of each told sample under every source, and where that is known.  (n, S) each"""
    n, family = len(ids), space.family
    found, known = np.full((n, space.sources), -np.inf), np.ones((n, space.sources), bool)
    if family.drawn:
        step = max(1, CHUNK // space.sources)
        for start in range(0, n, step):
            found[start : start + step] = family.log_density(None, drawn[start : start + step]).T
        return found, known
    if family.steps_known:
        return family.log_density(None, np.array(done)).T.copy(), known
    for row, vector in zip(found, done, strict=True):
        row[: len(vector)] = vector
    return found, _filled(found, known, done, changes, ids, space.size - space.added)


def _filled(
    found: Array, known: Flags, done: Sequence[Array], changes: Sequence[Any], ids: Indices, size: int
) -> Flags:
    """What later policies say of earlier rows, where that was given when they were added; else it is not known."""
    from randomist.study.changes import joined

    lengths = np.array([len(vector) for vector in done])
    for k, row in enumerate((row for row in changes if row.kind == "add"), start=size):
        alone, column = joined(row.data)
        before = lengths <= k
        if column is not None:
            found[before, k] = [column.get(number, -np.inf) for number in ids[before].tolist()]
            known[before, k] = [number in column for number in ids[before].tolist()]
        elif alone:
            known[:, k] = ids >= row.asked  # tells of earlier trials need not say it
        else:
            known[before, k] = False
    return known
