"""Mediators that the environment produces: all that is known of one is how likely each policy was to produce it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._checks import reals, shown, whole_number
from randomist._types import Array
from randomist.errors import MediatorError, ParameterError, ShapeError
from randomist.families.base import Family, check_order

if TYPE_CHECKING:
    from randomist.policies.episodes import Episode


@dataclass(frozen=True, eq=False)
class Likelihoods(Family):
    """K policies whose mediators come with their log-likelihoods: a mediator *is* that vector, of shape (K,).

    Factors that all policies share, such as the environment's, may be left out: only differences count.

    Parameters
    ----------
    count
        K, how many policies there are.
    log_divergences
        D_2(p_x || p_x') in row x and column x', where that is known.  (K, K)

    Examples
    --------
    >>> Likelihoods(3).divergences_known
    False
    """

    drawn: ClassVar[bool] = False

    count: int
    log_divergences: Array | None = None
    members: int = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)

    if TYPE_CHECKING:  # the field is an array; what may be given is anything that becomes one

        def __init__(self, count: int, log_divergences: ArrayLike | None = None) -> None: ...

    def __post_init__(self) -> None:
        count = whole_number(self.count, "the number of policies")
        for name, value in (("count", count), ("members", count), ("shape", (count,))):
            object.__setattr__(self, name, value)
        if self.log_divergences is not None:
            object.__setattr__(self, "log_divergences", _checked_divergences(self.log_divergences, count))

    @property
    def divergences_known(self) -> bool:
        return self.log_divergences is not None

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> NDArray[Any]:
        raise ParameterError("mediators of these policies are not drawn here: run the policy, and tell what it did")

    def draw(self, decision: Any, rng: np.random.Generator) -> None:
        """Nothing: the environment will say."""

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        return self.mediator_rows(mediators)[:, self.indices(decisions)].T

    def log_densities(self, mediator: Any) -> Array:
        return np.asarray(mediator)

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        if self.log_divergences is None or check_order(order) != 2.0:
            raise ParameterError(
                f"divergences of order {order} between these policies are not known; give log_divergences of order 2, "
                'or let learners estimate them with divergence="empirical"'
            )
        return self.log_divergences[np.ix_(self.indices(decisions), self.indices(others))]

    def joined(self, member: Any) -> Likelihoods:
        """One more policy, whose divergences are not known and count as infinite where others are known."""
        if member is not None:
            raise ParameterError(
                f"a policy that is known by its likelihoods has no member to add, got {member!r:.80}; give its "
                "log_likelihoods of what was told so far, or nothing to begin from scratch"
            )
        if self.log_divergences is None:
            return Likelihoods(self.count + 1)
        divergences = np.full((self.count + 1, self.count + 1), np.inf)
        divergences[:-1, :-1], divergences[-1, -1] = self.log_divergences, 0.0
        return Likelihoods(self.count + 1, divergences)

    def observe(self, decision: int, payoff: Any, log_likelihoods: ArrayLike | None) -> tuple[Any, Array]:
        """What `tell` says of a trial of `decision`: its payoff, and its mediator."""
        return payoff, self.checked(decision, log_likelihoods)

    def observe_episode(self, decision: int, episode: Episode) -> tuple[float, Array]:
        """What `tell_episode` says of a trial of `decision`: its payoff, and its mediator."""
        raise ParameterError(
            "episodes are told in a space of policies, Finite.policies(...); here only likelihoods are known: "
            "tell(trial, payoff, log_likelihoods=...)"
        )

    def checked(self, decision: int, log_likelihoods: ArrayLike | None) -> Array:
        """Log-likelihoods as they were told, checked and read-only.  (K,)"""
        if log_likelihoods is None:
            raise MediatorError(
                f"what the policy did is known by its likelihoods: tell(trial, payoff, log_likelihoods=...) with "
                f"{self.count} of them, one per policy"
            )
        try:
            vector = reals(log_likelihoods, "a log-likelihood")
        except (TypeError, ValueError):
            raise MediatorError(f"log_likelihoods must be numbers, got {shown(log_likelihoods)}") from None
        if vector.shape != (self.count,):
            raise ShapeError(f"log_likelihoods must have shape ({self.count},), one per policy, got {vector.shape}")
        if not vector[decision] > -np.inf or not (vector < np.inf).all():
            self._refuse(decision, vector)
        vector.flags.writeable = False
        return vector

    def _refuse(self, decision: int, vector: Array) -> None:
        wrong = np.flatnonzero(~(vector < np.inf))
        if wrong.size:
            raise MediatorError(
                f"log_likelihoods must be numbers or -inf, got {vector[wrong[0]]} for policy {wrong[0]}; a likelihood "
                "of 0 is -inf"
            )
        raise MediatorError(
            f"policy {decision} acted, and its own log-likelihood of what it did is {vector[decision]}; it must be "
            "finite: check that likelihoods are those of the action that was taken"
        )


def _checked_divergences(value: ArrayLike, count: int) -> Array:
    """A matrix of divergences, read-only.  (K, K)"""
    try:
        matrix = reals(value, "a divergence")
    except (TypeError, ValueError):
        raise ParameterError(f"log_divergences must be numbers, got {shown(value)}") from None
    if matrix.shape != (count, count):
        raise ShapeError(f"log_divergences must have shape ({count}, {count}), one per pair, got {matrix.shape}")
    if not (matrix >= 0).all() or (np.diag(matrix) != 0).any():
        raise ParameterError("log_divergences must be >= 0, inf where they diverge, and 0 on the diagonal")
    matrix.flags.writeable = False
    return matrix
