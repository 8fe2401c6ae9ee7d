"""GP-UCB on a finite set (Srinivas et al. 2010, Theorem 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.spatial.distance import cdist

from randomist._checks import finite_array, number, probability
from randomist._types import Array
from randomist.errors import NoDataError, ParameterError, ShapeError
from randomist.histories.estimates import Estimates
from randomist.learners.finite.bandit import BanditLearner


@dataclass(eq=False, kw_only=True)
class GPUCB(BanditLearner):
    """A Gaussian process over where the decisions lie, and optimism over its posterior.

    The RBF kernel has unit variance. Repeated payoffs of a decision are one averaged observation with noise²/T, so a
    round costs O(K³) however long the run. Settings are those of `Learner`, and these.

    Parameters
    ----------
    length_scale
        How far apart decisions still inform each other: a number, or one per dimension of `features`. One fifth of
        each dimension's range by default.
    noise_std
        The standard deviation of a payoff around its mean, on the [0, 1] scale of `payoff_range`.
    failure_probability
        δ: with probability 1 - δ all confidence bounds hold. A smaller one explores more.
    features
        Where the decisions lie, (K, d); by default what the family says, such as the means of a Gaussian.
    """

    length_scale: Any = None
    noise_std: float = 0.1
    failure_probability: float = 0.1  # δ
    features: Any = None

    def __post_init__(self) -> None:
        number(self.noise_std, "noise_std", above=0)
        probability(self.failure_probability, "failure_probability")
        super().__post_init__()
        features = self.space.points if self.features is None else finite_array(self.features, "features")
        if features is None:
            raise ParameterError("this family does not say where its decisions lie; pass features of shape (K, d)")
        if features.ndim != 2 or len(features) != self.space.size:
            raise ShapeError(f"features must have shape ({self.space.size}, d), got {features.shape}")
        span = np.ptp(features, axis=0)
        scale = (
            np.where(span > 0, span, 1.0) / 5
            if self.length_scale is None
            else finite_array(self.length_scale, "length_scale")
        )
        if not (scale > 0).all():
            raise ParameterError(f"length_scale must be > 0, got {self.length_scale}")
        self._kernel = np.exp(-0.5 * cdist(features / scale, features / scale, "sqeuclidean"))  # (K, K)

    def opening(self) -> list[int]:
        """Nothing: the prior has an index for every decision. `first` is played first where it is given."""
        return [] if self.first is None else [self.first]

    def posterior(self) -> tuple[Array, Array]:
        """Mean and standard deviation at every decision.  (K,), (K,)"""
        weight = np.sqrt(self.plays) / self.noise_std  # W^½ with W = T / noise²
        means = self.payoff_sums / np.maximum(self.plays, 1)
        scaled = weight[:, None] * self._kernel  # W^½ K
        factor = cholesky(np.eye(self.space.size) + scaled * weight, lower=True)  # I + W^½ K W^½
        half = solve_triangular(factor, scaled, lower=True)  # (K, K)
        mean = half.T @ solve_triangular(factor, weight * means, lower=True)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", half, half), 0.0)
        return mean, np.sqrt(variance)

    def _estimate(self) -> Estimates:
        """The posterior mean as value, and its std as width."""
        mean, std = self.posterior()
        return super()._estimate()._replace(value=mean, width=std)

    def recommend(self) -> int:
        """The decision with the best posterior mean, played or not."""
        if not self.told:
            raise NoDataError("nothing has been told yet; tell at least one payoff before asking for a recommendation")
        return int(np.argmax(self._unit_estimates().value))

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        K, t, delta = self.space.size, self.told + 1, self.failure_probability
        beta = 2 * math.log(K * t**2 * math.pi**2 / (6 * delta))
        return estimates.value + math.sqrt(beta) * estimates.width

    def _knowledge(self, estimates: Estimates) -> Array:
        """The prior knows something of every decision: no index is infinite."""
        return np.zeros(self.space.size)
