"""Importance weights of the balance heuristic (Veach and Guibas 1995), in log space."""

from __future__ import annotations

import numpy as np

from randomist._types import Array, Indices


def log_mixture(log_density: Array, counts: Indices) -> Array:
    """log Φ_t(z) = log Σ_k (T_k / m) p_k(z), the density of the mixture that was played (Sec. 4).

    log_density: (K, n) of every decision at every mediator; counts: (K,) plays of each decision.  -> (n,)
    """
    from scipy.special import logsumexp  # slow to import

    played = counts > 0
    share = np.log(counts[played] / counts.sum())
    return np.asarray(logsumexp(log_density[played] + share[:, None], axis=0))


def log_weights(log_density: Array, log_mixture: Array) -> Array:
    """log ω_x(z) = log p_x(z) - log Φ_t(z) (Sec. 4); -inf where p_x(z) = 0.  (K, n), (n,) -> (K, n)"""
    return log_density - log_mixture
