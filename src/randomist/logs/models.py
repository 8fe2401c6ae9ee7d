"""Models of payoffs that help where they are right and do no harm where they are wrong.

With f(x, a) the payoff that a model expects, and f̄(x) = Σ_a π(a|x) f(x, a) what it expects of a candidate,

    X = ω (y - f(x, a)) + f̄(x),    E[X | x, past] = J(x)  if f depends on the past only and W = max ω is finite,

because E[ω f | x] = f̄. A good model takes most of the variance away; any other leaves the mean as it is. For bets a
model is fitted on the rows before each block (the blocks of `importance.intervals.plugin`), and clipped to the range of
payoffs, so that X >= -W. Without a bound on the weights X has no floor, and no model is used.

A floor of -W allows stakes below 1/W only, which is often less than a good model's small variance deserves. But f may
be any function of context, action and past: with f' = min(f, B/ω(x, a)), ω f' <= B, and so X >= -B. What large weights
lose of the model, all rows win in stakes. Bets are offered a few B, as variables of their own, where ω is known, or at
least bounded, for actions that were not taken (`logged_by`, `propensity_floor`). For the loss it is 1 - f that is cut.

The doubly robust estimate averages X with models that were fitted on other rows (five folds); its interval is
asymptotic.

Dudík, Langford and Li (2011), "Doubly robust policy evaluation and learning"; Chernozhukov et al. (2018), "Double/
debiased machine learning"; for bets Waudby-Smith et al. (2024), "Anytime-valid off-policy inference".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from randomist._types import Array, Indices
from randomist.errors import LogError, ParameterError
from randomist.importance.intervals.plugin import FIRST
from randomist.logs.problems import SHOWN
from randomist.logs.source import CUTS, MODEL

FOLDS = 5
_WIDE = 400  # columns of the design, above which contexts and actions are not multiplied

Expected = Callable[[Indices, Indices], Array]  # (rows to fit, rows to predict) -> (predicted, A)


def expected_payoffs(
    model: Any, frame: pl.DataFrame, native: Any, context: Sequence[str] | None, actions: int, codes: Indices, y: Array
) -> tuple[Array, Array]:
    """What a model expects of every action: fitted on the rows before each block, and on other folds.  (n, A) twice

    `y` is on the [0, 1] scale, NaN where it is not known. A function of the frame is used as it is, without a fit.
    """
    rows = np.arange(len(y))
    if callable(model) and not hasattr(model, "fit"):
        known = _checked(np.asarray(model(native), dtype=np.float64), len(y), actions)
        return known, known
    fit = _fitting(model, frame, context, actions, codes, y)
    early, crossed = np.zeros((len(y), actions)), np.zeros((len(y), actions))
    begin = FIRST
    while begin < len(y):
        block = rows[begin : 2 * begin]
        early[block] = fit(rows[:begin], block)
        begin *= 2
    for fold in range(FOLDS):
        inside = rows % FOLDS == fold
        crossed[inside] = fit(rows[~inside], rows[inside])
    return _checked(early, len(y), actions), _checked(crossed, len(y), actions)


def _fitting(
    model: Any, frame: pl.DataFrame, context: Sequence[str] | None, actions: int, codes: Indices, y: Array
) -> Expected:
    from sklearn.base import clone
    from sklearn.linear_model import Ridge

    if model == "default":
        model = Ridge(alpha=1.0)
    elif not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise ParameterError(
            f"model must be 'default', a regressor with fit and predict, or a function, got {type(model).__name__}"
        )
    inputs = numeric(frame, context)
    multiplied = (inputs.shape[1] + 1) * actions <= _WIDE

    def design(rows: Indices, action: Indices) -> Array:
        chosen = np.eye(actions)[action]  # (n, A)
        x = inputs[rows]
        if not multiplied:
            return np.hstack([x, chosen])
        return np.hstack([x, chosen, (x[:, :, None] * chosen[:, None, :]).reshape(len(rows), -1)])

    def fit(seen: Indices, wanted: Indices) -> Array:
        seen = seen[np.isfinite(y[seen])]
        if not len(seen):
            return np.zeros((len(wanted), actions))
        fitted = clone(model).fit(design(seen, codes[seen]), y[seen])
        columns = [fitted.predict(design(wanted, np.full(len(wanted), a))) for a in range(actions)]
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])

    return fit


def numeric(frame: pl.DataFrame, context: Sequence[str] | None) -> Array:
    """Contexts as standardised numbers; text becomes a column per value.  (n, d)"""
    if not context:
        raise ParameterError("a model needs to know its inputs: name them with context=[...]")
    chosen = frame.select(list(context))
    text = [name for name, kind in chosen.schema.items() if not kind.is_numeric() and kind != pl.Boolean]
    numbers = (chosen.to_dummies(text) if text else chosen).cast(pl.Float64).fill_null(0.0)
    x = np.nan_to_num(numbers.to_numpy(), posinf=0.0, neginf=0.0)
    first = x[:FIRST]  # what comes later must not be looked at
    spread = first.std(axis=0)
    return np.asarray((x - first.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _checked(found: Array, rows: int, actions: int) -> Array:
    if found.shape != (rows, actions):
        raise LogError(f"the model must expect a payoff for each of ({rows}, {actions}), got {found.shape}")
    wrong = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(wrong):
        raise LogError(
            f"what the model expects is not finite in {len(wrong)} rows ({', '.join(map(str, wrong[:SHOWN]))}"
            f"{', …' if len(wrong) > SHOWN else ''}); correct the model, or its inputs"
        )
    return np.clip(found, 0.0, 1.0)


def model_columns(
    expected: tuple[Array, Array], codes: Indices, distributions: dict[str, Array], names: Sequence[str]
) -> dict[str, Array]:
    """Columns of a log: what was expected of the action that was taken, and of every candidate; NaN if not known."""
    rows, columns = np.arange(len(codes)), {}
    for kind, table in zip(("early", "crossed"), expected, strict=True):
        columns[f"{MODEL}{kind}"] = table[rows, codes]
        for name in names:
            known = distributions.get(name)
            mean = np.full(len(codes), np.nan) if known is None else (known * table).sum(axis=1)
            columns[f"{MODEL}{kind}:{name}"] = mean
    return columns


def cut_columns(
    early: Array, codes: Indices, policy: Array, weights: Array, taken: Array, bound: float, name: str
) -> dict[str, Array]:
    """What is to be added to a candidate's gain and loss so that neither is below -B, for every B: columns of a log.

    It is f̄' - ω f', whose mean is 0 in every context. `weights` are those of all actions, or bounds on them, (n, A);
    `taken` is that of the action that was taken, (n,).
    """
    rows, columns = np.arange(len(codes)), {}
    for j, most in enumerate(cuts(bound)):
        with np.errstate(divide="ignore"):
            limit = most / weights  # (n, A)
        for side, value in (("gain", early), ("loss", 1.0 - early)):
            value = np.minimum(value, limit)
            added = (policy * value).sum(axis=1) - taken * value[rows, codes]
            added[:FIRST] = 0.0  # no row has been seen that a model could be fitted on
            columns[f"{MODEL}cut {j} {side}:{name}"] = added
    return columns


def cuts(bound: float) -> list[float]:
    """B, for weights that do not exceed a bound."""
    return [bound / 2.0**j for j in range(1, CUTS + 1)]


class DoublyRobust:
    """Means and squares of ω (y - f) + f̄, and of f̄ alone, with models that were fitted on other rows."""

    def __init__(self, rows: int, sums: Array) -> None:
        self._rows, self._sums = rows, sums  # (3, K)

    def found(
        self, quantile: float, payoff_range: tuple[float, float]
    ) -> tuple[Array | None, Array | None, Array | None, Array | None]:
        """The estimate, its asymptotic interval, and the direct estimate, in the units of the payoffs."""
        if not self._rows:
            return None, None, None, None
        mean, squares, direct = self._sums / self._rows
        half = quantile * np.sqrt(np.maximum(squares - mean**2, 0.0) / self._rows)
        low, span = payoff_range[0], payoff_range[1] - payoff_range[0]
        return low + span * mean, low + span * (mean - half), low + span * (mean + half), low + span * direct
