"""The paper's illustrative problem (Figure 2): five Gaussians, one payoff, and how much they tell about each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import number
from randomist._types import Array
from randomist.families import Gaussian
from randomist.spaces import Finite
from randomist.tasks.base import Task

_MEAN = (0.0, 1.0, 2.0, 2.95, 3.0)
_CEILING = 4.0  # the payoff is z/4, clipped to [0, 1]


@dataclass(frozen=True, eq=False)
class Illustrative(Task):
    """z ~ N(μ_k, s_k²) with μ = (0, 1, 2, 2.95, 3) and s = (σ, σ, σ, λ, σ); the payoff is clip(z/4, 0, 1).

    Metelli et al. (2021), Figure 2, with (σ, λ) in {2, 0.1}². With (2, 2) every decision informs every other (log v =
    2.25); with (0.1, 0.1) hardly (log v = 900); with (2, 0.1) and (0.1, 2) some not at all. Because payoffs are
    clipped, the best decision at (2, 0.1) is the fourth, not the fifth.

    Parameters
    ----------
    sigma
        σ, the standard deviation of all decisions but the fourth.
    lambda_
        λ, the standard deviation of the fourth.
    """

    id = "illustrative"

    sigma: float = 2.0
    lambda_: float = 0.1
    space: Finite = field(init=False, repr=False)
    _expected: Array = field(init=False, repr=False)  # J(x)  (5,)

    def __post_init__(self) -> None:
        for name, value in (("sigma", self.sigma), ("lambda_", self.lambda_)):
            number(value, name, above=0, why=" (the paper uses 2 and 0.1)")
        mean, std = np.array(_MEAN), np.array([self.sigma] * 3 + [self.lambda_, self.sigma])
        expected = (_mean_excess(mean, std, 0.0) - _mean_excess(mean, std, _CEILING)) / _CEILING
        object.__setattr__(self, "space", Finite(Gaussian(mean, std)))
        object.__setattr__(self, "_expected", expected)

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        return np.clip(np.atleast_1d(np.asarray(mediators, dtype=np.float64)) / _CEILING, 0.0, 1.0)

    def expected_payoff(self, decisions: ArrayLike | None = None) -> Array:
        return self._expected[self.space.family.indices(decisions)]

    @property
    def optimum(self) -> float:
        return float(self._expected.max())


def _mean_excess(mean: Array, std: Array, level: float) -> Array:
    """E max(z - level, 0) for z ~ N(mean, std²)."""
    from scipy.special import ndtr

    u = (mean - level) / std
    return np.asarray(std * (u * ndtr(u) + np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi)))
