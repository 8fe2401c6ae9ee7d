"""What a confidence level asks for: the threshold of weights, and the width of an estimate (Sec. 4, App. C)."""

from __future__ import annotations

import math

import numpy as np

from randomist._types import Array


def confidence_term(told: float, confidence: float) -> float:
    """α log t at round t = m + 1, where m payoffs have been told."""
    return confidence * math.log(told + 1)


def log_threshold(log_effective: Array, told: float, confidence: float) -> Array:
    """log M_t(x), M = sqrt(m d2 / (α log t)) with d2 = m / η (App. C).  (K,) -> (K,)"""
    if not told:
        return np.full_like(log_effective, np.inf)
    return math.log(told) - 0.5 * (log_effective + math.log(confidence_term(told, confidence)))


def width(log_effective: Array, told: float, confidence: float) -> Array:
    """sqrt(α log t / η): the unit of every bonus in the paper; inf where η = 0.  (K,) -> (K,)"""
    if not told:
        return np.full_like(log_effective, np.inf)
    with np.errstate(over="ignore"):
        return np.exp(0.5 * (math.log(confidence_term(told, confidence)) - log_effective))
