"""Estimates of the expected payoff from shared samples (Sec. 4), their threshold and their confidence width."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from randomist._types import Array


def monte_carlo(payoff_sums: Array, counts: NDArray[np.int64]) -> Array:
    """Ĵ^MC: the mean of a decision's own payoffs, 0 where there are none.  (K,), (K,) -> (K,)"""
    return payoff_sums / np.maximum(counts, 1)


def multiple_importance(log_weight: Array, payoffs: Array) -> Array:
    """Ĵ = (1/m) Σ_i ω(z_i) y_i.  (K, m), (m,) -> (K,)"""
    return np.exp(log_weight) @ payoffs / len(payoffs)


def truncated_multiple_importance(log_weight: Array, payoffs: Array, log_threshold: Array) -> Array:
    """J̌ = (1/m) Σ_i min(M, ω(z_i)) y_i.  (K, m), (m,), (K,) -> (K,)"""
    return np.exp(np.minimum(log_weight, log_threshold[:, None])) @ payoffs / len(payoffs)


def optimistic(value: Array, coverage: Array) -> Array:
    """value⁺ = 1 - (1/m) Σ_i min(M, ω) (1 - y_i): the truncated estimate of the loss, taken from 1.

    From the truncated sums J̌ = (1/m) Σ min(M, ω) y and coverage = (1/m) Σ min(M, ω). It is 1 where nothing is known.
    """
    return 1.0 - (coverage - value)


def self_normalised(value: Array, coverage: Array) -> Array:
    """Σ min(M, ω) y / Σ min(M, ω): a weighted mean of payoffs; 0 where no sample has any weight."""
    mean: Array = np.divide(value, coverage, out=np.zeros_like(value), where=coverage > 0)
    return mean


def _as_it_is(value: Array, coverage: Array) -> Array:
    return value


Estimator: TypeAlias = Literal["paper", "optimistic", "self-normalised"]
ESTIMATORS: dict[str, Callable[[Array, Array], Array]] = {
    "paper": _as_it_is,
    "optimistic": optimistic,
    "self-normalised": self_normalised,
}


def confidence_term(told: int, confidence: float) -> float:
    """α log t at round t = m + 1, where m payoffs have been told."""
    return confidence * math.log(told + 1)


def log_threshold(log_effective: Array, told: int, confidence: float) -> Array:
    """log M_t(x), M = sqrt(m d2 / (α log t)) with d2 = m / η (App. C).  (K,) -> (K,)"""
    if not told:
        return np.full_like(log_effective, np.inf)
    return math.log(told) - 0.5 * (log_effective + math.log(confidence_term(told, confidence)))


def width(log_effective: Array, told: int, confidence: float) -> Array:
    """sqrt(α log t / η): the unit of every bonus in the paper; inf where η = 0.  (K,) -> (K,)"""
    if not told:
        return np.full_like(log_effective, np.inf)
    with np.errstate(over="ignore"):
        return np.exp(0.5 * (math.log(confidence_term(told, confidence)) - log_effective))
