"""Noisy policies, for those who search over actions and need the density of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array, Indices
from randomist.errors import ParameterError, ShapeError
from randomist.policies.base import Policy, positive


@dataclass(frozen=True)
class GaussianPolicy:
    """N(base's action, diag(std²)): `std` is a number, or one per action."""

    base: Policy
    std: float | tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.base, Policy) or self.base.discrete:
            raise ParameterError(f"a GaussianPolicy needs a base with continuous actions, got {self.base}")
        object.__setattr__(self, "std", positive(self.std, "std", self.base.action_size))

    @property
    def size(self) -> int:
        return self.base.size

    def sample(self, parameters: ArrayLike, observations: ArrayLike, rng: np.random.Generator) -> Array:
        """One action per observation, with the shapes of `Policy.act`.  (..., action_size)"""
        return self.perturb(self.base.outputs(parameters, observations), rng)

    def perturb(self, outputs: Array, rng: np.random.Generator) -> Array:
        """The base's outputs with noise: the action that is drawn.  (..., action_size)"""
        return outputs + self.std * rng.standard_normal(outputs.shape)

    def log_density(self, parameters: ArrayLike, observations: ArrayLike, actions: ArrayLike) -> Array:
        """The log-density of each action.  (..., action_size) -> (...)"""
        mean, std = self.base.outputs(parameters, observations), np.broadcast_to(self.std, self.base.action_size)
        taken = np.asarray(actions, dtype=np.float64)
        if taken.shape != mean.shape:
            raise ShapeError(f"actions must have shape {mean.shape}, one per observation, got {taken.shape}")
        exponent = -0.5 * np.sum(((taken - mean) / std) ** 2, axis=-1)
        return np.asarray(exponent - np.log(std).sum() - 0.5 * math.log(2 * math.pi) * self.base.action_size)

    def state(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "base": self.base.state(), "std": self.std}


@dataclass(frozen=True)
class SoftmaxPolicy:
    """Action k with probability proportional to exp(output k) of a discrete base."""

    base: Policy

    def __post_init__(self) -> None:
        if not isinstance(self.base, Policy) or not self.base.discrete:
            raise ParameterError(f"a SoftmaxPolicy needs a base with discrete=True, got {self.base}")

    @property
    def size(self) -> int:
        return self.base.size

    def sample(self, parameters: ArrayLike, observations: ArrayLike, rng: np.random.Generator) -> Indices:
        """One action per observation, with the shapes of `Policy.act`.  (...)"""
        return np.asarray(self.base.choose(self.perturb(self.base.outputs(parameters, observations), rng)))

    def perturb(self, outputs: Array, rng: np.random.Generator) -> Array:
        """The base's outputs with noise: the largest is at the action that is drawn.  (..., action_size)"""
        return outputs + rng.gumbel(size=outputs.shape)  # the Gumbel trick

    def log_density(self, parameters: ArrayLike, observations: ArrayLike, actions: ArrayLike) -> Array:
        """The log-probability of each action.  (...) -> (...)"""
        from scipy.special import log_softmax  # slow to import, and not needed to act

        log_probability = log_softmax(self.base.outputs(parameters, observations), axis=-1)
        taken = np.asarray(actions)
        if taken.shape != log_probability.shape[:-1]:
            raise ShapeError(f"actions must have shape {log_probability.shape[:-1]}, got {taken.shape}")
        if taken.dtype.kind not in "iu" or not ((taken >= 0) & (taken < self.base.action_size)).all():
            raise ParameterError(f"actions must be whole numbers in 0..{self.base.action_size - 1}, got {actions!r}")
        return np.asarray(np.take_along_axis(log_probability, taken[..., None], axis=-1)[..., 0])

    def state(self) -> dict[str, Any]:
        return {"kind": type(self).__name__, "base": self.base.state()}
