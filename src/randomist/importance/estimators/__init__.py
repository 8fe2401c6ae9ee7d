"""Estimators by name. A new one is its file and one line of the table."""

from __future__ import annotations

from randomist._checks import choice
from randomist._lookup import imported, is_foreign
from randomist.importance.estimators.base import Estimator
from randomist.importance.estimators.log_smoothing import LogSmoothing
from randomist.importance.estimators.optimistic import Optimistic
from randomist.importance.estimators.paper import Paper
from randomist.importance.estimators.self_normalised import SelfNormalised

__all__ = ["ESTIMATORS", "Estimator", "find_estimator"]

ESTIMATORS: dict[str, Estimator] = {kind.name: kind() for kind in (Paper, Optimistic, SelfNormalised, LogSmoothing)}


def find_estimator(name: str) -> Estimator:
    """The estimator of this name: one of the table, or "module:Class" for one that is not ours."""
    if is_foreign(name):
        found: Estimator = imported(name)()
        return found
    return ESTIMATORS[choice(name, ESTIMATORS, "estimator")]
