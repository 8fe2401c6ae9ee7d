"""How much the mixture says about each decision: the harmonic-mean bound on d2 (Papini et al. 2019, Theorem 5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from randomist._types import Array


def log_effective_samples(log_divergence: Array, counts: NDArray[np.int64]) -> Array:
    """log η_t(x) = log Σ_j 1 / d2(p_x || p_{x_j}); an infinite divergence contributes nothing (App. F.1).

    log_divergence: (n, K), D2 of each decision to each of the K played ones; counts: (K,).  -> (n,), -inf where η = 0
    """
    played = counts > 0
    if not played.any():
        return np.full(log_divergence.shape[0], -np.inf)
    return np.asarray(logsumexp(np.log(counts[played]) - log_divergence[:, played], axis=1))


def log_harmonic_divergence(log_divergence: Array, counts: NDArray[np.int64]) -> Array:
    """log of m / Σ_j 1/d2(p_x || p_{x_j}), which stands for d2(p_x || Φ_t) everywhere.  (n, K), (K,) -> (n,)"""
    return math.log(counts.sum()) - log_effective_samples(log_divergence, counts)
