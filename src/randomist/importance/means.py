"""Estimates of the expected payoff by their definitions (Sec. 4): what the fast passes compute, written out."""

from __future__ import annotations

import numpy as np

from randomist._types import Array, Indices


def monte_carlo(payoff_sums: Array, counts: Indices) -> Array:
    """Ĵ^MC: the mean of a decision's own payoffs, 0 where there are none.  (K,), (K,) -> (K,)"""
    return payoff_sums / np.maximum(counts, 1)


def multiple_importance(log_weight: Array, payoffs: Array) -> Array:
    """Ĵ = (1/m) Σ_i ω(z_i) y_i.  (K, m), (m,) -> (K,)"""
    return np.exp(log_weight) @ payoffs / len(payoffs)


def truncated_multiple_importance(log_weight: Array, payoffs: Array, log_threshold: Array) -> Array:
    """J̌ = (1/m) Σ_i min(M, ω(z_i)) y_i.  (K, m), (m,), (K,) -> (K,)"""
    return np.exp(np.minimum(log_weight, log_threshold[:, None])) @ payoffs / len(payoffs)
