"""The paper's bound on d2(p_x || Φ_t): the harmonic mean of pairwise divergences (Papini et al. 2019, Theorem 5)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from randomist._types import Array, Indices
from randomist.importance.divergences.base import Divergence
from randomist.importance.divergences.empirical import Empirical

if TYPE_CHECKING:
    from randomist.histories.columns import Columns
    from randomist.spaces import Finite


class Harmonic(Divergence):
    """η = Σ_j T_j / d2(p_x || p_j); estimated from the weights where the space does not know its divergences."""

    name = "harmonic"

    @classmethod
    def for_space(cls, space: Finite) -> type[Divergence]:
        return cls if space.family.divergences_known else Empirical

    def effective_samples(self, columns: Columns, eta: Array) -> Array:
        return eta


def log_effective_samples(log_divergence: Array, counts: Indices) -> Array:
    """log η_t(x) = log Σ_j 1 / d2(p_x || p_{x_j}); an infinite divergence contributes nothing (App. F.1).

    log_divergence: (n, K), D2 of each decision to each of the K played ones; counts: (K,).  -> (n,), -inf where η = 0
    """
    played = counts > 0
    if not played.any():
        return np.full(log_divergence.shape[0], -np.inf)
    terms = np.log(counts[played]) - log_divergence[:, played]
    return np.asarray(np.logaddexp.reduce(terms, axis=1))


def log_harmonic_divergence(log_divergence: Array, counts: Indices) -> Array:
    """log of m / Σ_j 1/d2(p_x || p_{x_j}), which stands for d2(p_x || Φ_t) everywhere.  (n, K), (K,) -> (n,)"""
    return math.log(counts.sum()) - log_effective_samples(log_divergence, counts)
