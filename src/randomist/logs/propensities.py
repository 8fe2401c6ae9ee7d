"""Propensities where none were logged: a classifier says how likely each action was, from the rows of other folds.

Nothing makes a fitted propensity right. What holds is conditional: if in every row the true propensity is at most g
times the fitted one, ω̂ y / g <= ω y, row by row, and a bet with a constant stake on the left earns no more than one on
the right. So intervals hold for every g that is true, with constant stakes (stakes that follow the rows would have
seen, through the classifier, rows to come), without bounds on weights, which would need propensities from below too.

What can be seen is calibration: among rows where an action is said to have some probability, or where a column of the
context has some values, how often was it taken?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from randomist._types import Array, Indices
from randomist.errors import LogError, ParameterError
from randomist.logs.models import FOLDS, numeric

FACTOR = 1.2  # by which fitted propensities may be wrong in any row, unless the user says otherwise
_GROUPS, _LEAST = 10, 1000.0  # groups of rows, and actions that each must expect: 20% off is 6 standard deviations
_INPUTS = 20  # columns of the context that rows are grouped by
_MANY = 5000  # rows, from which on calibration needs no shape


@dataclass(frozen=True)
class Fitted:
    """How propensities were fitted, and how well that fits."""

    model: str
    off_by: float  # the largest factor between predicted and observed frequencies, over groups of rows
    groups: int

    def __str__(self) -> str:
        seen = f"by {self.groups} groups, frequencies differ from predictions by a factor of up to {self.off_by:.3g}"
        seen = seen if self.groups else "rows are too few to compare with frequencies"
        return f"propensities were fitted ({self.model}, {FOLDS} folds); {seen}"


def fitted_propensities(
    model: Any, frame: pl.DataFrame, context: Sequence[str] | None, codes: Indices, actions: int
) -> tuple[Array, Fitted]:
    """Probabilities of all actions in every row, by a classifier that was fitted on other rows.  (n, A)"""
    from sklearn.base import clone
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    n = len(codes)
    if isinstance(model, str) and model == "default":
        chosen, name = LogisticRegression(max_iter=1000), "logistic regression"
    elif hasattr(model, "fit") and hasattr(model, "predict_proba"):
        shape = "isotonic" if n >= _MANY else "sigmoid"
        chosen, name = CalibratedClassifierCV(clone(model), method=shape, cv=3), f"{type(model).__name__}, calibrated"
    else:
        raise ParameterError(
            f"propensity_model must be 'default' or a classifier with fit and predict_proba, got {type(model).__name__}"
        )
    if np.bincount(codes, minlength=actions).min() < 2 * FOLDS:
        raise LogError(
            f"an action was taken in {np.bincount(codes, minlength=actions).min()} rows, too few to fit its propensity "
            f"by {FOLDS} folds; group rare actions, or log propensities"
        )
    inputs = numeric(frame, context)
    found, rows = np.zeros((n, actions)), np.arange(n)
    for fold in range(FOLDS):
        inside = rows % FOLDS == fold
        fitted = clone(chosen).fit(inputs[~inside], codes[~inside])
        found[np.ix_(inside, fitted.classes_)] = fitted.predict_proba(inputs[inside])
    if not np.isfinite(found).all():
        raise LogError("propensities of the classifier are not finite; correct it, or its inputs")
    found = np.maximum(found, 0.1 / n)  # an action that was taken was possible
    found /= found.sum(axis=1, keepdims=True)
    return found, Fitted(name, *_calibration(found, codes, inputs[:, :_INPUTS]))


def _calibration(found: Array, codes: Indices, inputs: Array) -> tuple[float, int]:
    """The largest factor between predicted and observed frequencies of an action, and how many groups were compared."""
    worst, groups = 1.0, 0
    for action in range(found.shape[1]):
        predicted, taken = found[:, action], codes == action
        count = int(min(_GROUPS, predicted.sum() // _LEAST))
        if not count:
            continue
        for key in (predicted, *inputs.T):
            order = np.argsort(key, kind="stable")
            ends = np.searchsorted(np.cumsum(predicted[order]), np.linspace(0.0, predicted.sum(), count + 1)[1:-1])
            for part in np.split(order, ends):  # each expects as many actions
                ratio = max(taken[part].sum(), 0.5) / max(predicted[part].sum(), 0.5)
                worst, groups = max(worst, ratio, 1.0 / ratio), groups + 1
    return float(worst), groups
