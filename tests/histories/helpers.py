"""Histories that tests make by the names of their parts."""

from __future__ import annotations

from typing import Any

import numpy as np

import randomist as rd
from randomist.histories.finite import FiniteHistory
from randomist.importance.divergences import find_divergence
from randomist.importance.estimators import find_estimator


def empty(space: rd.Finite, divergence: str = "harmonic", estimator: str = "paper", **settings: Any) -> FiniteHistory:
    return FiniteHistory(space, find_divergence(divergence), find_estimator(estimator), **settings)


def told(history: FiniteHistory, decisions: Any, mediators: Any, payoffs: Any) -> FiniteHistory:
    """The same history, after these samples one by one."""
    for decision, mediator, payoff in zip(decisions, mediators, payoffs, strict=True):
        history.append(int(decision), mediator, float(payoff))
    return history


def columns(history: FiniteHistory) -> int:
    """How many columns its samples have, distant ones apart."""
    return sum(part.payoffs.size for part in history.columns.parts()) - len(history.columns.distant)


def assert_same_bits(ours: Any, theirs: Any) -> None:
    """States, estimates and whatever is nested of arrays, numbers and text: equal bit for bit."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert_same_bits(ours[key], theirs[key])
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same_bits(one, other)
    elif isinstance(ours, np.ndarray):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    else:
        assert ours == theirs
