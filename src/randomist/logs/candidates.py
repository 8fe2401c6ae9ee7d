"""Policies as people have them, as probabilities of actions: models, functions, columns, arrays."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from randomist._types import Array, Indices
from randomist.errors import LogError, ParameterError
from randomist.logs.frames import as_numbers, columns_of
from randomist.logs.problems import SHOWN

_SUM = 1e-4  # by which probabilities may miss 1: float32, and files with few digits


def probabilities(
    name: str, policy: Any, frame: pl.DataFrame, native: Any, context: Sequence[str] | None, actions: Sequence[Any]
) -> Array:
    """What a policy does in every row, checked.  (n, A)

    A policy is a function of the context, a fitted classifier (its `predict_proba` and `classes_`), the name of a
    column of actions, columns of probabilities (a list in the order of `actions`, or a mapping from actions to columns
    or to numbers), or an array: of A probabilities, or of (n, A).
    """
    if isinstance(policy, str):
        columns_of(frame, [policy])
        return _certain(name, frame[policy], actions)
    if isinstance(policy, Mapping):
        missing = [action for action in policy if action not in actions]
        if missing:
            raise LogError(_unseen(name, missing[0], actions))
        columns_of(frame, [of for of in policy.values() if not isinstance(of, int | float)])
        found = np.zeros((frame.height, len(actions)))
        for action, of in policy.items():
            always = isinstance(of, int | float)  # np.float64 is a float
            found[:, list(actions).index(action)] = of if always else as_numbers(frame, of).to_numpy()
    elif isinstance(policy, list | tuple) and all(isinstance(column, str) for column in policy):
        columns = columns_of(frame, policy)
        if len(columns) != len(actions):
            raise LogError(
                f"policy {name!r} has {len(columns)} columns, and there are {len(actions)} actions "
                f"({_few(actions)}): give one column per action, in this order"
            )
        found = np.column_stack([as_numbers(frame, column).to_numpy() for column in columns])
    elif hasattr(policy, "predict_proba") and hasattr(policy, "classes_"):
        found = _classified(name, policy, frame, native, context, actions)
    elif hasattr(policy, "predict") and not inspect.isclass(policy):
        chosen_actions = policy.predict(_inputs(policy, frame, native, context))
        return _certain(name, pl.Series(np.asarray(chosen_actions)), actions)
    elif is_function(policy):
        found = np.asarray(policy(selected(native, context)), dtype=np.float64)
    else:
        found = _array(name, policy, frame.height)
    return _checked(name, found, frame.height, actions)


def is_function(policy: Any) -> bool:
    """Whether it is called with the context; models are not."""
    return callable(policy) and not inspect.isclass(policy) and not hasattr(policy, "predict")


def likelihoods_taken(name: str, found: Array) -> Array:
    """Probabilities of what was done in every row, checked; 0 is allowed.  (n,)"""
    wrong = np.flatnonzero(~((found >= 0.0) & (found <= 1.0 + 1e-6)))
    if len(wrong):
        raise LogError(
            f"policy {name!r} must give probabilities of what was done, in [0, 1], and has {found[wrong[0]]:.6g} in "
            f"{len(wrong)} rows ({', '.join(map(str, wrong[:SHOWN]))}{', …' if len(wrong) > SHOWN else ''}); correct "
            "the policy"
        )
    return found


def _array(name: str, policy: Any, rows: int) -> Array:
    try:
        found = np.asarray(policy, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(
            f"policy {name!r} must be a function, a fitted classifier, a column of actions, columns of probabilities "
            f"or an array, got {type(policy).__name__}"
        ) from None
    return np.tile(found, (rows, 1)) if found.ndim == 1 else found


def _classified(
    name: str, model: Any, frame: pl.DataFrame, native: Any, context: Sequence[str] | None, actions: Sequence[Any]
) -> Array:
    known = list(actions)
    classes = [value.item() if hasattr(value, "item") else value for value in model.classes_]
    found = np.zeros((frame.height, len(known)))
    shown = np.asarray(model.predict_proba(_inputs(model, frame, native, context)), dtype=np.float64)
    for column, action in zip(shown.T, classes, strict=True):
        if action not in known:
            raise LogError(_unseen(name, action, actions))
        found[:, known.index(action)] = column
    return found


def _inputs(model: Any, frame: pl.DataFrame, native: Any, context: Sequence[str] | None) -> Any:
    """The context as the model was fitted: with names, or as numbers."""
    if context is None:
        context = list(getattr(model, "feature_names_in_", ())) or None
    if context is None:
        raise ParameterError("a model needs to know its inputs: name them with context=[...]")
    chosen = selected(native, context)
    return chosen if hasattr(model, "feature_names_in_") else frame.select(columns_of(frame, context)).to_numpy()


def selected(native: Any, context: Sequence[str] | None) -> Any:
    if context is None:
        return native
    chosen = list(context)
    return native.select(chosen) if hasattr(native, "select") else native[chosen]


def _certain(name: str, taken: pl.Series, actions: Sequence[Any]) -> Array:
    """A policy that always takes the action that a column names.  (n, A)"""
    found = np.zeros((len(taken), len(actions)))
    found[np.arange(len(taken)), codes(taken, actions, f"policy {name!r} takes")] = 1.0
    return found


def codes(taken: pl.Series, actions: Sequence[Any], who: str) -> Indices:
    """Which of the actions each row has; refused where it is none of them.  (n,)"""
    place = {action: code for code, action in enumerate(actions)}
    found = np.array([place.get(action, -1) for action in taken.to_list()], dtype=np.int64)
    strange = np.flatnonzero(found < 0)
    if len(strange):
        first = taken[int(strange[0])]
        raise LogError(
            f"{who} action {first!r}, which is not among the actions ({_few(actions)}), in {len(strange)} rows "
            f"({', '.join(map(str, strange[:SHOWN]))}{', …' if len(strange) > SHOWN else ''}); name all actions with "
            "actions=[...]"
        )
    return found


def _checked(name: str, found: Array, rows: int, actions: Sequence[Any]) -> Array:
    if found.shape != (rows, len(actions)):
        raise LogError(
            f"policy {name!r} must give probabilities of shape ({rows}, {len(actions)}), one column per action "
            f"({_few(actions)}), got {found.shape}"
        )
    for wrong, words in (
        (~np.isfinite(found).all(axis=1), "are not finite"),
        ((found < -1e-9).any(axis=1), "are negative"),
        (np.abs(found.sum(axis=1) - 1.0) > _SUM, "do not sum to 1"),
    ):
        where = np.flatnonzero(wrong)
        if len(where):
            total = f" (their sum is {found[where[0]].sum():.6g} in the first)" if "sum" in words else ""
            raise LogError(
                f"probabilities of policy {name!r} {words} in {len(where)} rows "
                f"({', '.join(map(str, where[:SHOWN]))}{', …' if len(where) > SHOWN else ''}){total}; correct the "
                "policy"
            )
    return np.maximum(found, 0.0)


def _unseen(name: str, action: Any, actions: Sequence[Any]) -> str:
    return (
        f"policy {name!r} has action {action!r}, which is not among the actions ({_few(actions)}); name all actions "
        "with actions=[...]"
    )


def _few(actions: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, list(actions)[:6]))
    return shown + (f" and {len(actions) - 6} more" if len(actions) > 6 else "")
