"""Bandits: decisions that say nothing about each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.families import Dirac
from randomist.spaces import Finite
from randomist.tasks.base import Task


@dataclass(frozen=True, eq=False)
class Bernoulli(Task):
    """Decision k pays 1 with probability `means[k]`, else 0; its mediator is k itself, so that nothing is shared.

    Not in the paper: the problems on which learners with bandit feedback are compared.
    """

    id = "bernoulli"

    means: Sequence[float] = (0.5, 0.45)
    space: Finite = field(init=False, repr=False)
    _expected: Array = field(init=False, repr=False)  # J(x)  (K,)

    def __post_init__(self) -> None:
        expected = finite_array(self.means, "means")
        if expected.ndim != 1 or not expected.size or expected.min() < 0 or expected.max() > 1:
            raise ParameterError(f"means must be a list of numbers in [0, 1], one per decision, got {self.means!r:.80}")
        object.__setattr__(self, "space", Finite(Dirac(at=np.arange(len(expected)))))
        object.__setattr__(self, "_expected", expected)

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        mediators = np.atleast_1d(np.asarray(mediators, dtype=np.float64))
        known = np.isin(mediators, np.arange(len(self._expected)))
        chosen = self._expected[np.where(known, mediators, 0).astype(np.int64)]
        return np.where(known, rng.random(chosen.shape) < chosen, np.nan)  # no payoff where there is no decision

    def expected_payoff(self, decisions: ArrayLike | None = None) -> Array:
        return self._expected[self.space.family.indices(decisions)]

    @property
    def optimum(self) -> float:
        return float(self._expected.max())
