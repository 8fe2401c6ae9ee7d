"""From evaluation to action: the candidates that may be best, as decisions to choose among while they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from randomist._types import Array

if TYPE_CHECKING:
    from randomist.logs.report import Evaluation
    from randomist.spaces import Finite


@dataclass(frozen=True, eq=False)
class Contenders:
    """Candidates of which one is the best at `level`, by decreasing estimate.  Arrays are (C,)."""

    names: tuple[str, ...]
    values: Array  # the self-normalised estimates, in the units of the payoffs
    plays: Array  # effective rows: how many rows of the candidate itself the log is worth
    low: Array
    high: Array
    level: float

    @classmethod
    def of(cls, found: Evaluation) -> Contenders:
        inside = np.array([k for k, name in enumerate(found.candidates) if name in found.contenders])
        value = np.where(np.isfinite(found.self_normalised), found.self_normalised, found.payoff_range[0])
        order = inside[np.argsort(-value[inside], kind="stable")]
        plays = np.where(np.isfinite(found.self_normalised), found.effective_samples, 0.0)
        names = tuple(found.candidates[k] for k in order)
        return cls(names, value[order], plays[order], found.low[order], found.high[order], found.level)

    @property
    def prior(self) -> tuple[list[float], list[float]]:
        """Values and plays, for `prior=` of a learner: what is told outvotes a log that no longer holds."""
        return self.values.tolist(), self.plays.tolist()

    def space(self) -> Finite:
        """A decision per contender: which of them to run."""
        from randomist.families import Dirac
        from randomist.spaces import Finite

        return Finite(Dirac(np.arange(len(self.names), dtype=np.float64)), names=self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value:.4g} ({low:.4g} to {high:.4g})"
            for name, value, low, high in zip(self.names, self.values, self.low, self.high, strict=True)
        )
