"""What takes a learner some computing to say, and pages of rows, as functions of a study: JSON, for `Reads`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from randomist._json import for_json
from randomist.histories.estimates import Estimates
from randomist.study.dashboard import data
from randomist.study.export import plain
from randomist.study.records import State
from randomist.study.study import Study

if TYPE_CHECKING:
    from randomist.learners.box.auto.interval import Interval

COLUMNS = ("value", "effective_samples", "threshold", "width", "plays", "coverage")


def decisions(study: Study) -> dict[str, Any]:
    found = enumerate(zip(study.names, study.active.tolist(), strict=False))  # one may come in between
    return {"decisions": [{"decision": k, "name": name, "active": active} for k, (name, active) in found]}


def estimates(study: Study) -> dict[str, Any]:
    """Of every decision of a finite set."""
    return _estimates(study.estimates())


def estimate(study: Study, points: list[Any]) -> dict[str, Any]:
    """Of any decisions of a box."""
    return _estimates(study.estimate(np.array(points, float)))


def recommendation(study: Study) -> dict[str, Any]:
    return {"decision": for_json(study.recommend()), "told": study.told}


def interval(study: Study, point: float | list[float] | None, level: float) -> dict[str, Any]:
    return _interval(study.interval(point, level))


def confirmation(study: Study, level: float) -> dict[str, Any]:
    found = study.confirmed(level)
    both = {"mean": _interval(found.mean), "median": _interval(found.median)}
    return {"point": for_json(found.point), "plays": found.plays} | both


def trials(study: Study, first: int, limit: int, states: tuple[State, ...]) -> dict[str, Any]:
    """A page of trials, by id."""
    found = study.trials(states, first=first, limit=limit)
    return {"trials": [plain(t) for t in found], "next": found[-1].id + 1 if len(found) == limit else None}


def latest(
    study: Study, before: int | None, limit: int, states: tuple[State, ...], worker: str | None
) -> dict[str, Any]:
    """A page of trials for the dashboard, the newest first."""
    found, after = study.latest(states, before=before, limit=limit, worker=worker)
    return {"trials": data.trials(found, study.space), "next": after, "at": time.time()}


def audit(study: Study) -> dict[str, Any]:
    return {"entries": [entry._asdict() for entry in study.audit()]}


def _interval(found: Interval) -> dict[str, Any]:
    return {key: None if isinstance(x, float) and not np.isfinite(x) else x for key, x in found._asdict().items()}


def _estimates(found: Estimates) -> dict[str, Any]:
    columns = {name: np.asarray(getattr(found, name)) for name in COLUMNS}
    return {name: [x if np.isfinite(x) else None for x in column.tolist()] for name, column in columns.items()}
