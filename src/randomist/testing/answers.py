"""What a made-up world answers to a trial, in every kind of space: a function of the trial alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array, Indices
from randomist.families import Family
from randomist.families.likelihoods import Likelihoods
from randomist.learners.trial import Trial
from randomist.policies.episodes import Episode
from randomist.policies.trajectories import Policies
from randomist.spaces import Finite, Space, space_from_state


class Answer(NamedTuple):
    """What is told of a trial: its payoff and, where `ask` draws no mediator, what shows which one it was."""

    payoff: float
    log_likelihoods: Array | None = None
    episode: Episode | None = None

    def tell(self, learner: Any, trial: Trial | int) -> None:
        """Tell it in the way that its space asks for."""
        if self.episode is not None:
            learner.tell_episode(trial, self.episode)
        elif self.log_likelihoods is not None:
            learner.tell(trial, self.payoff, log_likelihoods=self.log_likelihoods)
        else:
            learner.tell(trial, self.payoff)

    def paying(self, payoff: Any) -> Answer:
        """The same with another payoff, be it a sound one or not; rewards follow where it is a number."""
        if self.episode is None:
            return self._replace(payoff=payoff)
        factor = payoff / self.payoff if isinstance(payoff, float) and math.isfinite(payoff) else 1.0
        return Answer(payoff, episode=replace(self.episode, rewards=factor * self.episode.rewards, payoff=payoff))

    def permuted(self, order: Indices) -> Answer:
        """The same where decisions and loggers are in another order."""
        return self if self.log_likelihoods is None else self._replace(log_likelihoods=self.log_likelihoods[order])


World = Callable[[Trial], Answer]


def world(space: Space, low: float = 0.0, high: float = 1.0) -> World:
    """A world that pays irregularly between `low` and `high`; the payoffs are exact in float64."""
    family = space.family
    if isinstance(family, Policies):
        return lambda trial: _episode(family, trial, low, high)
    if isinstance(family, Likelihoods):
        return lambda trial: _action(family, trial, low, high)
    return lambda trial: Answer(low + (high - low) * _unit(trial.mediator))


def _unit(seen: ArrayLike) -> float:
    """A payoff in [0, 1] of anything that can be seen."""
    return float(round(512 * (0.5 + 0.5 * math.sin(3.7 * float(np.sum(seen)) + 0.3)))) / 512


def _action(family: Likelihoods, trial: Trial, low: float, high: float) -> Answer:
    """An action that each policy takes with a probability of its own; now and then one of the others never does."""
    rng = np.random.default_rng([trial.id, trial.decision])
    log_likelihoods = np.log(rng.dirichlet(np.ones(family.count)))
    if trial.id % 5 == 0 and family.count > 1:
        log_likelihoods[(trial.decision + 1) % family.count] = -np.inf
    return Answer(low + (high - low) * _unit(log_likelihoods[trial.decision]), log_likelihoods)


def _episode(family: Policies, trial: Trial, low: float, high: float) -> Answer:
    """An episode in a linear world, as long as the horizon, or of three to six steps where there is none.

    What a step adds to the payoff is mapped to the range as the payoff is: `high - low` times its reward, and its share
    of `low`.
    """
    rng = np.random.default_rng([trial.id, trial.decision])
    policy, theta = family.policies[trial.decision], family.parameters[trial.decision]
    state, seen, did = rng.normal(size=policy.base.observation_size), [], []
    for _ in range(family.horizon or int(rng.integers(3, 7))):
        seen.append(state)
        did.append(policy.sample(theta, state, rng))
        state = 0.7 * state + 0.3 * np.resize(np.asarray(did[-1], np.float64), state.size)
    total = 0.25 + 0.5 * _unit(seen)  # off the ends of the range, which a sum of rewards may pass by rounding
    weights = family.step_weights(len(did))
    rewards = 0.5 + np.array([_unit(state) for state in seen])
    rewards *= total / float(weights @ rewards)
    mapped = low / weights.sum() + (high - low) * rewards
    payoff = low + (high - low) * total
    return Answer(payoff, episode=Episode(np.array(seen), np.array(did), mapped, payoff))


def permuted(space: Finite, order: Indices) -> Finite:
    """The same space with decisions, and loggers after them, in another order.  (K + L,)"""
    family = space.family
    if isinstance(family, Policies):
        pairs = [(family.policies[k], family.parameters[k]) for k in order]
        loggers = dict(zip(space.loggers, pairs[space.size :], strict=True))
        settings: dict[str, Any] = {
            name: getattr(family, name) for name in ("weights", "discount", "horizon", "average")
        }
        return Finite.policies(pairs[: space.size], loggers=loggers, **settings)
    if isinstance(family, Likelihoods):
        known = family.log_divergences
        divergences = None if known is None else known[np.ix_(order, order)]
        return Finite.likelihoods(space.size, loggers=space.loggers, log_divergences=divergences)
    names: dict[str, Any] = {"loggers": list(space.loggers)} if space.loggers else {}
    other = space_from_state({"kind": "Finite", "family": Permuted(family, order).state()} | names)
    assert isinstance(other, Finite)
    return other


@dataclass(frozen=True, eq=False)
class Permuted(Family):
    """The members of a family in another order."""

    family: Family
    order: Indices
    members: int | None = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", self.family.members)
        object.__setattr__(self, "shape", self.family.shape)

    @property
    def points(self) -> Array | None:
        return None if self.family.points is None else self.family.points[self.order]

    def nodes(self) -> tuple[NDArray[Any], Array]:
        points, weights = self.family.nodes()
        return points[self.order], weights[self.order]

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> NDArray[Any]:
        return self.family.sample(self.order[self.indices(decisions)], rng)

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        return self.family.log_density(self.order[self.indices(decisions)], mediators)

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        return self.family.log_renyi(self.order[self.indices(decisions)], self.order[self.indices(others)], order)

    def state(self) -> dict[str, Any]:
        return super().state() | {"family": self.family.state()}
