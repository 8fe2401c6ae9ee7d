"""Divergences between trajectories by the closed form of each step, averaged over what was visited.

d2(p_x || p_j) is estimated by the mean, over the trajectories i that j drew, of Π_h d2(π_x(·|s_ih) || π_j(·|s_ih))
(Metelli, Papini, Faccio and Restelli 2018, Sec. 5.1). Environments have no say in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.importance.divergences.base import Divergence
from randomist.importance.passes.layout import NOW

if TYPE_CHECKING:
    from randomist.histories.columns import Columns
    from randomist.spaces import Finite


class PerStep(Divergence):
    """η = Σ_j T_j / d2(p_x || p_j) with these means for d2, and at least the harmonic bound."""

    name = "per-step"
    stepwise = True

    def __init__(self, space: Finite) -> None:
        super().__init__(space)
        self._log_sums = np.full((space.sources, space.sources), -np.inf)  # log Σ_i Π_h d2, row x, column j

    @classmethod
    def for_space(cls, space: Finite) -> type[Divergence]:
        if not space.family.steps_known:
            raise ParameterError('divergence="per-step" needs a space of policies over trajectories: Finite.policies')
        return cls

    def observe(self, source: int, mediator: Any) -> None:
        column = self._log_sums[:, source]
        np.logaddexp(column, self.space.family.step_divergences(mediator), out=column)

    def effective_samples(self, columns: Columns, eta: Array) -> Array:
        plays = columns.plays[NOW]
        played = plays > 0
        terms = 2 * np.log(plays[played]) - self._log_sums[:, played]  # T / (Σ/T)
        log_effective = np.maximum(np.logaddexp.reduce(terms, axis=1), eta[1])
        return np.array([np.exp(log_effective), log_effective])

    def state(self) -> dict[str, Any]:
        return {"step_log_sums": self._log_sums.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self._log_sums[:] = state["step_log_sums"]
