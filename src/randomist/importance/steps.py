"""Divergences between trajectories by the closed form of each step, averaged over what was visited.

d2(p_x || p_j) is estimated by the mean, over the trajectories i that j drew, of Π_h d2(π_x(·|s_ih) || π_j(·|s_ih))
(Metelli, Papini, Faccio and Restelli 2018, Sec. 5.1). Environments have no say in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from randomist._types import Array, Indices


class StepDivergences:
    """Sums over the trajectories of every source j of exp(D_i(x || j)), in log space."""

    def __init__(self, sources: int) -> None:
        self.log_sums = np.full((sources, sources), -np.inf)  # log Σ_i Π_h d2, row x, column j

    def add(self, source: int, log_divergence: Array) -> None:
        """One more trajectory of `source`, with log Π_h d2(π_x || π_source) of every x.  (S,)"""
        column = self.log_sums[:, source]
        np.logaddexp(column, log_divergence, out=column)

    def log_effective_samples(self, plays: Indices) -> Array:
        """log Σ_j T_j / d2(p_x || p_j), with d2 the mean so far; -inf where all diverge.  (S,) -> (S,)"""
        played = plays > 0
        log_plays = np.log(plays[played])
        terms = 2 * log_plays - self.log_sums[:, played]  # T / (Σ/T)
        out: Array = np.logaddexp.reduce(terms, axis=1)
        return out

    def state(self) -> dict[str, Any]:
        return {"step_log_sums": self.log_sums.copy()}
