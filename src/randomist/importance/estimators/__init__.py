"""Estimators by name. A new one is its file and one line of the table."""

from __future__ import annotations

from typing import Any

from randomist.importance.estimators.base import Estimator
from randomist.importance.estimators.log_smoothing import LogSmoothing
from randomist.importance.estimators.optimistic import Optimistic
from randomist.importance.estimators.paper import Paper
from randomist.importance.estimators.self_normalised import SelfNormalised
from randomist.importance.parts import find_part

__all__ = ["ESTIMATORS", "Estimator", "find_estimator"]

ESTIMATORS: dict[str, Estimator] = {kind.name: kind() for kind in (Paper, Optimistic, SelfNormalised, LogSmoothing)}


def find_estimator(given: str | type[Estimator] | Estimator) -> Estimator:
    """The estimator that was given, or that has this name: one of the table, or one of your own."""
    found: Any = find_part(given, Estimator, "estimator", ESTIMATORS)
    estimator: Estimator = found() if isinstance(found, type) else found
    return estimator
