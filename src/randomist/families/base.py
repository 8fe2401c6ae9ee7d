"""What a family of mediator distributions must offer: draw, log-density, Rényi divergence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._lookup import Named
from randomist._types import Array, Indices
from randomist.errors import ParameterError, ShapeError
from randomist.families.registry import kind_of

NODES = 256  # per decision, where an integral under it is a sum


class Family(Named, ABC):
    """The known distributions p_x over mediators, one per decision x.

    A family with `members = K` has decisions 0..K-1; one with `members = None` is indexed by points (a location family,
    for `Box`). Mediators have `shape` () for scalars or (d,) for vectors; arrays of n of them are (n,) or (n, d).
    Constructor arguments are dataclass fields of plain arrays, so that `state()` can be written and read anywhere.
    """

    _ours: ClassVar[str] = "randomist.families.registry:KINDS"

    members: int | None
    shape: tuple[int, ...]
    discrete: ClassVar[bool] = False  # densities are with respect to counting measure, not Lebesgue
    dtype: ClassVar[type] = float  # of a mediator's entries
    drawn: ClassVar[bool] = True  # `ask` draws the mediator; else the environment produces it, and `tell` is given it
    steps_known: ClassVar[bool] = False  # mediators are trajectories, with `step_divergences` of each

    @property
    def weighted_steps(self) -> int | None:
        """How many steps a trajectory has, where each reward is weighted by the actions before it alone."""
        return None

    @property
    def divergences_known(self) -> bool:
        """Whether `log_renyi` has an answer; else divergences are estimated from what was told."""
        return True

    @abstractmethod
    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> NDArray[Any]:
        """One mediator per decision.  (n, *shape)"""

    @abstractmethod
    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        """log p_x(z) for every pair; -inf off the support; `None` means all members.  (n_decisions, n_mediators)"""

    @abstractmethod
    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        """D_order(p_x || p_x'), exact, `inf` where it diverges.  (n_decisions, n_others)"""

    @property
    def decision_shape(self) -> tuple[int, ...]:
        """Of a decision of a family without members: a point where mediators lie, unless the family says otherwise."""
        return self.shape

    @property
    def spread(self) -> Array:
        """How far mediators lie from the decision of a location family: the unit of a search in a `Box`.  (d,)"""
        raise ParameterError(f"{type(self).__name__} has no `spread`, so that a Box of it cannot be searched")

    def within(self, low: Array, high: Array) -> Family:
        """The family that searches this box: itself, unless its mediators are to stay there."""
        return self

    @property
    def points(self) -> Array | None:
        """Where each member lies, where that means something.  (K, d)"""
        return None

    def nodes(self) -> tuple[NDArray[Any], Array]:
        """Points of every member and their weights, for integrals under it; weights sum to 1.  (K, L, *shape), (K, L)

        These are draws of a fixed seed; families override them by a rule that converges faster.
        """
        assert self.members is not None
        rng = np.random.default_rng(0)
        draws = np.stack([self.sample(None, rng) for _ in range(NODES)], axis=1)
        return draws, np.full((self.members, NODES), 1.0 / NODES)

    def joined(self, member: Any) -> Family:
        """The members of this family and one more, which is a family of one member."""
        from randomist.families.mixed import Mixed  # which knows all kinds

        if not isinstance(member, Family) or member.members != 1 or not member.drawn:
            raise ParameterError(
                f"a new member is a family of one member whose mediators are drawn, such as Gaussian([0.5], 1), got "
                f"{member!r:.80}"
            )
        return Mixed((self, member)).simplified()

    # Of policies over trajectories only.

    def step_divergences(self, mediator: Any) -> Array:
        """log Π_h d2(π_x(·|s_h) || π_acted(·|s_h)) of every policy x, where `steps_known`.  (S,)"""
        raise NotImplementedError

    def step_weights(self, steps: int) -> Array:
        """What each reward counts in the payoff, where there are `weighted_steps`.  (T,)"""
        raise NotImplementedError

    def whole(self) -> Family:
        """The same policies with each trajectory weighted as a whole, where there are `weighted_steps`."""
        raise NotImplementedError

    # One decision and one mediator are what a round needs; families override these two where that is much faster.

    def draw(self, decision: Any, rng: np.random.Generator) -> Any:
        """`sample` for one decision: a number, or an array of `shape`."""
        mediator = self.sample(np.asarray(decision)[None], rng)[0]
        return mediator if self.shape else mediator.item()

    def log_densities(self, mediator: Any) -> Array:
        """`log_density` of every member at one mediator.  (K,)"""
        return self.log_density(None, mediator)[:, 0]

    def state(self) -> dict[str, Any]:
        """The constructor's arguments as plain arrays, under the family's name."""
        family: Any = self  # a dataclass, as all of them are
        return {"kind": kind_of(type(self))} | {f.name: getattr(self, f.name) for f in fields(family) if f.init}

    def indices(self, decisions: ArrayLike | None) -> Indices:
        """Decisions of a family with members as checked indices; `None` means all of them.  (n,)"""
        if self.members is None:
            raise ParameterError(f"{type(self).__name__} has no members to index; give it a mean, or use it in a Box")
        if decisions is None:
            return np.arange(self.members)
        indices = np.atleast_1d(np.asarray(decisions))
        if indices.size == 0:
            return np.empty(0, dtype=np.int64)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise ShapeError(f"decisions must be a 1-D array of integers, got {indices.dtype} of shape {indices.shape}")
        low, high = (indices[0], indices[0]) if indices.size == 1 else (indices.min(), indices.max())  # 1: the hot loop
        if not (low >= 0 and high < self.members):
            raise ParameterError(f"decisions must lie in 0..{self.members - 1}, got {low}..{high}")
        return indices.astype(np.int64, copy=False)

    def mediator_rows(self, values: ArrayLike, name: str = "mediators") -> Array:
        """Mediators (or points) as one row each: (n, d) with d = 1 for scalars."""
        return _as_rows(values, self.shape, name)

    def decision_rows(self, values: ArrayLike) -> Array:
        """Decisions of a family without members as one row each.  (n, size of a decision)"""
        return _as_rows(values, self.decision_shape, "decisions")


def _as_rows(values: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape and (array.ndim != 1 + len(shape) or array.shape[1:] != shape):
        raise ShapeError(f"{name} must have shape (n, *{shape}) or {shape}, got {array.shape}")
    return array.reshape(-1, shape[0] if shape else 1)


def low_discrepancy(dimension: int, count: int = NODES) -> Array:
    """Points that fill the unit cube evenly, none on its border; the same ones every time.  (count, d)"""
    if dimension == 1:
        return (np.arange(count)[:, None] + 0.5) / count
    from scipy.stats import qmc  # slow to import, seldom needed

    cube: Array = qmc.Sobol(dimension, scramble=True, seed=0).random(count)
    return np.clip(cube, 2.0**-33, 1 - 2.0**-33)


def check_order(order: float) -> float:
    """A Rényi order is any number above 0, infinity included."""
    if not order > 0:
        raise ParameterError(f"order must be > 0 (1 is KL, inf the essential supremum), got {order}")
    return float(order)
