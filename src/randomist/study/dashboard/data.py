"""The numbers behind the dashboard's pages, small enough to send however long a study is.

`snapshot` has all of a study's page. A page that follows a study takes `news`, which needs no learner and is small, and
now and then `estimates`. `overview` is one page of all studies.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from randomist._json import for_json
from randomist.errors import NoDataError, StudyDataError
from randomist.learners.base import Learner
from randomist.learners.finite.base import FiniteLearner
from randomist.spaces import Box, Finite
from randomist.study.dashboard.curve import Curve, Curves
from randomist.study.dashboard.numbers import LEVEL, number
from randomist.study.dashboard.policies import policies
from randomist.study.dashboard.slices import recommended, slices
from randomist.study.export import plain
from randomist.study.records import Counters, StudyLine, StudyTrial
from randomist.study.storages.base import Storage
from randomist.study.study import Study

WORKERS = 200, 20_000  # that are shown, and the last trials that they are counted in
TRIALS = 100  # of the table, and of the open and the failed ones among them
STALE = 1000  # that are counted

_CURVES: WeakKeyDictionary[Study, Curve] = WeakKeyDictionary()  # of studies in this process


class Seen(NamedTuple):
    """What is read off the learner in one moment."""

    counters: Counters
    clipped: int
    best: Any
    panels: dict[str, Any]


def snapshot(study: Study, dimensions: tuple[int, int] = (0, 1), curve: Curve | None = None) -> dict[str, Any]:
    """All of a study's page as JSON: numbers have six digits, and what is not finite is null."""
    shown = news(study, curve or _kept(study)) | estimates(study, dimensions)
    return {"study": _about(study), "trials": _trials(study)} | shown


def _kept(study: Study) -> Curve:
    """A study's curve, of which a second look reads only what is new."""
    return _CURVES.setdefault(study, Curve(study.storage, study.record.id))


def news(study: Study, curve: Curve, size: int = 0, first: int = 0) -> dict[str, Any]:
    """Counts, and payoffs from a bucket on: what a page that knows the rest needs, without the learner."""
    counters = study.counters
    stale = study.storage.rows(study.record.id, limit=STALE, states=("stale",)).rows
    return {
        "counts": counts(counters) | {"stale": len(stale)},
        "payoffs": curve.columns(counters, size, first),
        "archived": study.archived,
        "at": time.time(),
    }


def estimates(study: Study, dimensions: tuple[int, int] = (0, 1)) -> dict[str, Any]:
    """What the learner says by now, and who works."""
    seen = study.look(lambda learner, known: _seen(learner, known, dimensions))
    return {
        "known": seen.counters.closed,
        "clipped": seen.clipped,
        "best": seen.best,
        "workers": _workers(study, seen.counters.asked),
    } | seen.panels


def trials(found: Sequence[StudyTrial], space: Any) -> list[dict[str, Any]]:
    """Rows of the table: what was decided is named where it has a name."""
    names = space.names if isinstance(space, Finite) else ()
    rows = []
    for trial in found:
        row = plain(trial)
        name = names[row["decision"]] if names and row["decision"] < len(names) else None
        rows.append({key: row[key] for key in _SHOWN} | {"name": name})
    return rows


_SHOWN = ("id", "state", "decision", "mediator", "parameters", "payoff", "feasible", "worker", "closed_by", "reason",
          "asked_at", "lease_until", "closed_at")  # fmt: skip


def overview(
    storage: Storage,
    curves: Curves,
    may_see: Callable[[str], bool],
    first: int = 0,
    limit: int = 50,
    after: float = 0.0,
) -> dict[str, Any]:
    """Studies, the one where something happened last first; those alone where that was at `after` or later."""
    lines = sorted((line for line in storage.lines() if may_see(line.name)), key=_active_at, reverse=True)
    active = [line for line in lines if _active_at(line) >= after]
    shown = [_line(storage, line, curves) for line in active[first : first + limit]]
    more = first + limit if first + limit < len(active) else None
    return {"studies": shown, "of": len(lines), "next": more, "at": time.time()}


def counts(counters: Counters) -> dict[str, int]:
    return {
        "asked": counters.asked,
        "told": counters.told,
        "failed": counters.failed,
        "retracted": counters.retracted,
        "pending": counters.asked - counters.closed,
    }


def _line(storage: Storage, line: StudyLine, curves: Curves) -> dict[str, Any]:
    curve = curves.of(line.id)
    if curve.learner is None:
        curve.learner = _learner(storage.find(line.name).learner)
    try:
        payoffs = curve.spark(line.counters) | {"problem": None}
    except StudyDataError as error:  # the others can be shown all the same
        payoffs = {"spark": [], "best": None, "average": None, "problem": str(error)}
    return {
        "name": line.name,
        "learner": curve.learner,
        "created_at": line.created_at,
        "archived": line.archived_at is not None,
        "active_at": _active_at(line),
        "counts": counts(line.counters),
    } | payoffs


def _active_at(line: StudyLine) -> float:
    return max(x for x in (line.created_at, line.asked_at, line.closed_at) if x is not None)


def _learner(text: str) -> str:
    """The class of a study's learner."""
    try:
        return str(json.loads(text)["learner"])
    except (ValueError, TypeError, LookupError):
        return "?"


def _seen(learner: Learner, known: Counters, dimensions: tuple[int, int]) -> Seen:
    best: dict[str, Any]
    if isinstance(learner, FiniteLearner):
        found, chosen = policies(learner), int(learner.recommend()) if learner.told else None
        best = {"decision": chosen, "name": None if chosen is None else learner.names[chosen]}
        if chosen in found["decision"]:
            at = found["decision"].index(chosen)
            best |= {key: found[key][at] for key in ("value", "low", "high")}
        return Seen(known, learner.clipped, best, {"finite": found})
    point = recommended(learner)
    found = slices(learner, point, dimensions)
    value = found.pop("best") if point is not None else {}
    box = learner.space
    assert isinstance(box, Box)
    named = None if point is None or box.meaning is None else box.named(point)
    best = {"decision": for_json(point), "parameters": named, "confirmed": _confirmed(learner)}
    best |= {key: value.get(key) for key in ("value", "low", "high")}
    return Seen(known, learner.clipped, best, {"box": found})


def _confirmed(learner: Any) -> dict[str, Any] | None:
    """What plays of the recommended point say, where there were some."""
    if not hasattr(learner, "confirmed"):
        return None
    try:
        found = learner.confirmed(LEVEL)
    except NoDataError:
        return None
    mean = {key: number(getattr(found.mean, key)) for key in ("mean", "low", "high")}
    return {"plays": found.plays, "basis": found.mean.basis} | mean


def _trials(study: Study) -> list[dict[str, Any]]:
    """The last ones, and those that are open or failed."""
    found = {trial.id: trial for trial in study.latest(limit=TRIALS)[0]}
    for states in (("asked", "stale"), ("failed",)):
        found |= {trial.id: trial for trial in study.latest(states, limit=TRIALS)[0]}
    return trials([found[id_] for id_ in sorted(found, reverse=True)], study.space)


def _workers(study: Study, asked: int) -> list[dict[str, Any]]:
    """Those of the last trials, who was seen last first."""
    found: dict[str, dict[str, Any]] = {}
    for row in study.storage.workers_since(study.record.id, max(asked - WORKERS[1], 0)):
        nobody = {"worker": str(row.worker), "pending": 0, "told": 0, "failed": 0, "retracted": 0, "seen": 0.0}
        one = found.setdefault(str(row.worker), nobody)
        one["pending" if row.state == "asked" else str(row.state)] = row.trials
        moments = [m for m in (row.asked_at, row.closed_at) if isinstance(m, float)]
        one["seen"] = max([one["seen"], *moments])
    return sorted(found.values(), key=lambda one: -one["seen"])[: WORKERS[0]]


def _about(study: Study) -> dict[str, Any]:
    return {
        "name": study.name,
        "learner": study.learner_name,
        "space": _space(study),
        "lease": study.lease,
        "created_at": study.created_at,
    }


def _space(study: Study) -> dict[str, Any]:
    space = study.space
    family = type(space.family).__name__
    if isinstance(space, Box):
        written = None if space.meaning is None else space.meaning.state()
        ends = {"low": for_json(space.low), "high": for_json(space.high)}
        return {"kind": "Box", "family": family, "parameters": written} | ends
    return {"kind": "Finite", "family": family, "size": space.size}
