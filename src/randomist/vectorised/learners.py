"""How an estimate becomes an index, in JAX: the finite learners of the paper. Each is its learner's `index`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from randomist.errors import ParameterError
from randomist.importance.estimators import find_estimator
from randomist.learners.base import Learner
from randomist.learners.finite.ftl import FollowTheLeader
from randomist.learners.finite.optimist import Optimist
from randomist.learners.finite.randomist import Randomist
from randomist.learners.finite.ucb1 import UCB1
from randomist.learners.settings import bias_factor


class Seen(NamedTuple):
    """What an index is made of, on the [0, 1] scale.  (K,) each"""

    value: Any
    effective: Any  # η, or plays without sharing
    width: Any  # sqrt(α log t / η)


Index = Callable[[Seen, Any], Any]  # of what was seen and a key  -> (K,)


def index_of(learner: Learner) -> Index:
    """The index of a learner with its settings; a typed error where it has none here."""
    make = INDICES.get(type(learner))
    if make is None:
        known = ", ".join(cls.__name__ for cls in INDICES)
        raise ParameterError(
            f"runs over many seeds at once know {known}, got {type(learner).__name__}; leave device= out"
        )
    usual: Mapping[str, Any] = {"estimator": "paper", "divergence": "harmonic", "window": None, "discount": None}
    for name, value in {**usual, "prior": None, "perturbation": "binomial"}.items():
        if getattr(learner, name, value) != value:
            raise ParameterError(f"runs over many seeds at once have {name}={value!r}; leave it, or device=, out")
    return make(learner)


def shares(learner: Learner) -> bool:
    """Whether every sample informs every decision."""
    return not isinstance(learner, UCB1)


def _bias(learner: Any) -> float:
    factor = bias_factor(learner.bias_correction, find_estimator(learner.estimator))
    if factor is None:
        raise ParameterError('bias_correction="computed" is not known to runs over many seeds at once')
    return factor


def _ftl(learner: Any) -> Index:
    return lambda seen, key: seen.value


def _optimist(learner: Any) -> Index:
    factor = _bias(learner) + math.sqrt(2)
    return lambda seen, key: seen.value + factor * seen.width  # B_t(x), Algorithm 1


def _randomist(learner: Any) -> Index:
    a, b = float(learner.perturbation_scale), _bias(learner)

    def index(seen: Seen, key: Any) -> Any:
        coins = jnp.ceil(a * seen.effective)  # ⌈a η⌉
        heads = jax.random.binomial(key, coins, 0.5, dtype=jnp.float64)
        return seen.value + b * seen.width + heads / jnp.maximum(seen.effective, 1e-300)  # Algorithm 2

    return index


def _ucb1(learner: Any) -> Index:
    return lambda seen, key: seen.value + seen.width


INDICES: dict[Any, Callable[[Any], Index]] = {
    FollowTheLeader: _ftl,
    Optimist: _optimist,
    Randomist: _randomist,
    UCB1: _ucb1,
}
