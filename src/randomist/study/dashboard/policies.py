"""What a learner says of a finite set: for every policy its value, an interval, and on how much that stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from randomist._types import Array
from randomist.errors import ContradictionWarning, ParameterError
from randomist.learners.finite.base import FiniteLearner
from randomist.study.dashboard.numbers import LEVEL, numbers

SHOWN = 400  # policies at most


def policies(learner: FiniteLearner) -> dict[str, Any]:
    """All of them, or the best and the most played, in their order."""
    estimates, size, active = learner.estimates(), learner.space.size, learner.active
    order = np.arange(size)
    if size > SHOWN:
        best, most = np.argsort(-estimates.value), np.argsort(-estimates.plays)
        order = np.unique(np.concatenate([best[: SHOWN // 2], most[: SHOWN // 2]]))
    low, high, why = _intervals(learner)
    points = learner.space.points
    named = bool(learner.space.names) or not active.all()
    known = np.asarray(estimates.log_effective_samples) > -np.inf
    return {
        "decision": order.tolist(),
        "of": size,
        "point": None if points is None else [numbers(point) for point in points[order]],
        "name": [learner.names[k] + ("" if active[k] else " (retired)") for k in order.tolist()] if named else None,
        "active": active[order].tolist(),
        "value": numbers(np.where(known, estimates.value, np.nan)[order]),
        "low": numbers(low[order]),
        "high": numbers(high[order]),
        "level": LEVEL,
        "without": why,
        "possible": (active & ~(high < np.max(low[active], initial=-np.inf)))[order].tolist(),
        "effective_samples": numbers(estimates.effective_samples[order]),
        "plays": estimates.plays[order].tolist(),
        "missing": numbers(np.clip(1 - estimates.coverage[order], 0.0, 1.0)),
    }


def _intervals(learner: FiniteLearner) -> tuple[Array, Array, str | None]:
    """Certified ones, which hold together and at every look; NaN and the reason where there are none.  (K,), (K,)"""
    try:
        return *learner.intervals(LEVEL), None
    except (ParameterError, ContradictionWarning) as error:
        nothing = np.full(learner.space.size, np.nan)
        return nothing, nothing, str(error)
