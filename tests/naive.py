"""The definitions, written as naively as they can be: oracles for everything that is fast elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import mpmath
import numpy as np

from randomist.families.base import Family

mpmath.mp.dps = 60


@dataclass(frozen=True, eq=False)
class Table(Family):
    """A family given by numbers: log_densities[k, z] of member k at mediator z (an index), divergences[k, j]."""

    log_table: np.ndarray
    divergences: np.ndarray
    members: int = field(init=False)
    shape: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self):
        object.__setattr__(self, "members", len(self.log_table))

    def sample(self, decisions, rng):
        finite = [np.flatnonzero(np.isfinite(self.log_table[k])) for k in self.indices(decisions)]
        return np.array([rng.choice(z) for z in finite], dtype=float)

    def log_density(self, decisions, mediators):
        return self.log_table[self.indices(decisions)][:, np.atleast_1d(mediators).astype(int)]

    def log_renyi(self, decisions, others, order=2.0):
        assert order == 2.0
        return self.divergences[np.ix_(self.indices(decisions), self.indices(others))]


def estimates(log_density, log_divergence, decisions, payoffs, confidence=2.0):
    """value, η, M, width of every decision by the definitions of PAPER_NOTES, in 60 digits.

    log_density: (K, m) at the told mediators; log_divergence: (K, K); decisions, payoffs: (m,).
    """
    K, m = len(log_density), len(decisions)
    p = [[mpmath.exp(mpmath.mpf(float(v))) if np.isfinite(v) else mpmath.mpf(0) for v in row] for row in log_density]
    term = confidence * mpmath.log(m + 1)
    result = {"value": [], "effective_samples": [], "threshold": [], "width": [], "coverage": []}
    for x in range(K):
        eta = mpmath.fsum(
            mpmath.exp(-mpmath.mpf(float(log_divergence[x, j]))) for j in decisions if np.isfinite(log_divergence[x, j])
        )
        d2 = m / eta if eta else mpmath.inf
        M = mpmath.sqrt(m * d2 / term)
        total = weights = mpmath.mpf(0)
        for i in range(m):
            phi = mpmath.fsum(p[j][i] for j in decisions) / m
            weight = min(M, p[x][i] / phi)
            weights += weight
            total += weight * mpmath.mpf(float(payoffs[i]))
        result["value"].append(total / m)
        result["coverage"].append(weights / m)
        result["effective_samples"].append(eta)
        result["threshold"].append(M)
        result["width"].append(mpmath.sqrt(term / eta) if eta else mpmath.inf)
    return result
