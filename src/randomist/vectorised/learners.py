"""How an estimate becomes an index, in JAX: each is the `index` of its learner."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from randomist.errors import ParameterError
from randomist.importance.estimators import find_estimator
from randomist.learners.base import Learner
from randomist.learners.finite.ftl import FollowTheLeader
from randomist.learners.finite.optimist import Optimist
from randomist.learners.finite.randomist import Randomist
from randomist.learners.finite.realist import Realist
from randomist.learners.finite.ucb1 import UCB1
from randomist.learners.settings import bias_factor
from randomist.vectorised import realist
from randomist.vectorised.coins import Coins, coins_upto
from randomist.vectorised.spaces import Set

Index = Callable[..., Any]  # of a history, the round, a key, the set and `tables_of`  -> (K,), and the history


def index_of(learner: Learner) -> Index:
    """The index of a learner with its settings; a typed error where it has none here."""
    make = INDICES.get(type(learner))
    if make is None:
        known = ", ".join(cls.__name__ for cls in INDICES)
        raise ParameterError(
            f"runs over many seeds at once know {known}, got {type(learner).__name__}; leave device= out"
        )
    usual: dict[str, tuple[Any, ...]] = {"estimator": ("paper",), "divergence": ("harmonic",)}
    if isinstance(learner, Realist):
        usual = {"estimator": ("self-normalised",), "divergence": ("mixture", "harmonic")}
    usual |= dict.fromkeys(("window", "discount", "prior"), (None,)) | {"perturbation": ("binomial",)}
    for name, values in usual.items():
        if getattr(learner, name, values[0]) not in values:
            said = " or ".join(f"{name}={value!r}" for value in values)
            raise ParameterError(f"runs over many seeds at once have {said}; leave it, or device=, out")
    return make(learner)


def shares(learner: Learner) -> bool:
    """Whether every sample informs every decision."""
    return not isinstance(learner, UCB1)


def integrates(learner: Learner) -> bool:
    """Whether effective samples are integrals over nodes."""
    return getattr(learner, "divergence", None) == "mixture"


def tables_of(learner: Learner, rounds: int) -> Coins | None:
    """What an index looks up: the law of as many coins as a run may flip."""
    return coins_upto(learner.perturbation_scale * rounds + 1) if isinstance(learner, Randomist) else None


def _bias(learner: Any) -> float:
    factor = bias_factor(learner.bias_correction, find_estimator(learner.estimator))
    if factor is None:
        raise ParameterError('bias_correction="computed" is not known to runs over many seeds at once')
    return factor


def _ftl(learner: Any) -> Index:
    return lambda known, t, key, space, tables: (known.seen(t, learner.confidence).value, known)


def _optimist(learner: Any) -> Index:
    factor = _bias(learner) + math.sqrt(2)

    def index(known: Any, t: Any, key: Any, space: Set, tables: None) -> Any:
        seen = known.seen(t, learner.confidence)
        return seen.value + factor * seen.width, known  # B_t(x), Algorithm 1

    return index


def _randomist(learner: Any) -> Index:
    a, b = float(learner.perturbation_scale), _bias(learner)

    def index(known: Any, t: Any, key: Any, space: Set, tables: Coins) -> Any:
        seen = known.seen(t, learner.confidence)
        coins = jnp.ceil(a * seen.effective)  # ⌈a η⌉
        uniform = jax.random.uniform(key, coins.shape, jnp.float64, 2.0**-54, 1.0)
        heads = tables.heads(coins, uniform)
        return seen.value + b * seen.width + heads / jnp.maximum(seen.effective, 1e-300), known  # Algorithm 2

    return index


def _realist(learner: Any) -> Index:
    def index(known: Any, t: Any, key: Any, space: Set, tables: None) -> Any:
        return realist.index(known, t, known.weighed(t, learner.confidence, space))

    return index


def _ucb1(learner: Any) -> Index:
    def index(known: Any, t: Any, key: Any, space: Set, tables: None) -> Any:
        seen = known.seen(t, learner.confidence)
        return seen.value + seen.width, known

    return index


INDICES: dict[Any, Callable[[Any], Index]] = {
    FollowTheLeader: _ftl,
    Optimist: _optimist,
    Randomist: _randomist,
    Realist: _realist,
    UCB1: _ucb1,
}
