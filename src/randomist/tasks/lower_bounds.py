"""Problems that are hard by construction: Theorems 1 and 2 (for every learner), Fact 1 (for FTL), rare losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.families import Dirac, Family, Gaussian, Uniform
from randomist.spaces import Finite
from randomist.tasks.base import Task


class _TwoDecisions(Task):
    """Two decisions with known expected payoffs."""

    space: Finite
    _expected: Array  # J(x)  (2,)

    def _set(self, family: Family | list[Family], expected: tuple[float, float]) -> None:
        object.__setattr__(self, "space", Finite(family))
        object.__setattr__(self, "_expected", np.array(expected, dtype=np.float64))

    def expected_payoff(self, decisions: ArrayLike | None = None) -> Array:
        return self._expected[self.space.family.indices(decisions)]

    @property
    def optimum(self) -> float:
        return float(self._expected.max())


@dataclass(frozen=True, eq=False)
class FollowTheLeaderTrap(_TwoDecisions):
    """Uniform([0, 1]) against Dirac(1/4), the payoff is the mediator: FTL's regret is at least (n-1)/16.

    Metelli et al. (2021), Fact 1, for the FTL that plays both decisions once first. If the first draw of the better one
    is below 1/4, which has probability 1/4, nothing that the other one shows will ever correct it.
    """

    id = "fact-1"

    def __post_init__(self) -> None:
        self._set([Uniform(low=np.array(0.0), high=np.array(1.0)), Dirac(at=np.array(0.25))], (0.5, 0.25))

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        return np.array(mediators, dtype=np.float64, ndmin=1)


class _RegretPair(_TwoDecisions):
    """The mediator is the action a; the payoff is the next state s' ~ N(±aΔ, 1), + in problem 1 and - in problem 2."""

    gap: float
    problem: Literal[1, 2]
    payoff_range = (-math.inf, math.inf)

    def _set_pair(self, family: Family | list[Family]) -> None:
        number(self.gap, "gap", above=0, most=1, why=" (without one both decisions are equal)")
        if self.problem not in (1, 2):
            raise ParameterError(f"problem must be 1 (first decision better) or 2 (second), got {self.problem!r}")
        self._set(family, (self._slope, 0.0))  # E[a] is 1 and 0

    @property
    def _slope(self) -> float:
        return self.gap if self.problem == 1 else -self.gap

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        actions = np.atleast_1d(np.asarray(mediators, dtype=np.float64))
        return self._slope * actions + rng.standard_normal(actions.shape)


@dataclass(frozen=True, eq=False)
class ConstantRegretPair(_RegretPair):
    """N(1, 1) against N(0, 1), the payoff is N(±aΔ, 1): no learner has regret below 1/(32Δ) in both problems.

    Metelli et al. (2021), Theorem 1. All divergences are finite (KL 1/2 between the decisions); one round tells the two
    problems apart by KL 4Δ² if it plays the first decision and 2Δ² if it plays the second. Payoffs are unbounded.

    Parameters
    ----------
    gap
        Δ in (0, 1], how much better the better decision is.
    problem
        1 if the first decision is the better one, 2 if the second.
    """

    id = "theorem-1"

    gap: float = 0.1
    problem: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        self._set_pair(Gaussian(mean=np.array([1.0, 0.0]), std=np.array(1.0)))


@dataclass(frozen=True, eq=False)
class LogarithmicRegretPair(_RegretPair):
    """N(1, 1) against Dirac(0), the payoff is N(±aΔ, 1): no learner has regret below log(Δ²n)/(8Δ) in both problems.

    Metelli et al. (2021), Theorem 2. Both divergences are infinite, and only the first decision tells the two problems
    apart (KL 4Δ² a round). Payoffs are unbounded.

    Differences from the paper: the reward is s', as in Theorem 1. The paper says a, with which both problems would pay
    the same.

    Parameters
    ----------
    gap
        Δ in (0, 1], how much better the better decision is.
    problem
        1 if the first decision is the better one, 2 if the second.
    """

    id = "theorem-2"

    gap: float = 0.1
    problem: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        self._set_pair([Gaussian(mean=np.array(1.0), std=np.array(1.0)), Dirac(at=np.array(0.0))])


@dataclass(frozen=True, eq=False)
class RareLoss(_TwoDecisions):
    """A sure payoff against a Bernoulli one with disjoint mediators: greedy learners stay on the worse one.

    Not in the paper. The mediators are the atoms 0 and 1, so that neither decision says anything about the other; the
    payoff at atom 1 is drawn by the task: 1 with probability `risky`, else 0. One early loss weighs more than the
    difference between the two.

    Parameters
    ----------
    sure
        The payoff of the first decision.
    risky
        The probability with which the second one pays 1.
    """

    id = "rare-loss"

    sure: float = 0.9
    risky: float = 0.95

    def __post_init__(self) -> None:
        for name, value in (("sure", self.sure), ("risky", self.risky)):
            number(value, name, least=0, most=1, why=" (it is the mean of a payoff)")
        self._set(Dirac(at=np.array([0.0, 1.0])), (self.sure, self.risky))

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        atoms = np.atleast_1d(np.asarray(mediators, dtype=np.float64))
        return np.where(atoms == 1.0, (rng.random(atoms.shape) < self.risky).astype(np.float64), self.sure)


@dataclass(frozen=True, eq=False)
class Jackpot(_TwoDecisions):
    """A sure small payoff against one that is mostly smaller and seldom 1: a few plays do not show which is better.

    Not in the paper. The mediators are the atoms 0 and 1. The second decision pays 1 with probability `chance`, else a
    uniform amount up to `most`: by default .0785 on average against a sure .05.

    Parameters
    ----------
    sure
        The payoff of the first decision.
    chance
        The probability with which the second one pays 1.
    most
        The largest payoff of the second one otherwise.
    """

    id = "jackpot"

    sure: float = 0.05
    chance: float = 0.05
    most: float = 0.06

    def __post_init__(self) -> None:
        for name in ("sure", "chance", "most"):
            number(getattr(self, name), name, least=0, most=1)
        mean = self.chance + (1 - self.chance) * self.most / 2
        self._set(Dirac(at=np.array([0.0, 1.0])), (self.sure, mean))

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        atoms = np.atleast_1d(np.asarray(mediators, dtype=np.float64))
        drawn = rng.random((*atoms.shape, 2))
        return np.where(atoms == 1.0, np.where(drawn[..., 0] < self.chance, 1.0, self.most * drawn[..., 1]), self.sure)
