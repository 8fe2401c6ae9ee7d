"""Where a learner searches: a finite set of decisions, a box of them, or a box of parameters with names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._lookup import ours
from randomist._types import Array, Indices
from randomist.errors import EmptySpaceError, ParameterError, ShapeError, StateError
from randomist.families import Family, Gaussian, LocationScale, Mixed, TruncatedGaussian, family_from_state
from randomist.families.likelihoods import Likelihoods
from randomist.parameters import Meaning, Parameter

if TYPE_CHECKING:
    from randomist.histories.finite import FiniteHistory
    from randomist.histories.per_decision import PerDecisionHistory
    from randomist.importance.divergences import Divergence
    from randomist.importance.estimators import Estimator
    from randomist.policies.trajectories import PolicyLike

SPREAD = 0.1  # std of learners that do not choose it themselves, in widths of a box


@dataclass(frozen=True, eq=False)
class Finite:
    """K decisions 0..K-1: the members of one family, or of a list of families, one after the other.

    `loggers` are policies that are no decisions, by name: they drew rows of a log that a learner is to `absorb`. Each
    is a family of one member. `names` says what the decisions are called, in tables and on dashboards.

    >>> Finite(Gaussian(mean=[0, 1, 2], std=0.5)).size
    3
    """

    family: Family  # the decisions' members, and after them one of each logger
    size: int = field(init=False)
    loggers: tuple[str, ...] = field(init=False)
    names: tuple[str, ...] = field(init=False)  # of the decisions, or none
    added: int = field(init=False)  # how many of the decisions joined while a learner ran, the last ones

    def __init__(
        self,
        family: Family | Sequence[Family],
        *,
        loggers: Mapping[str, Family] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(family, Family):
            if not isinstance(family, Sequence) or not all(isinstance(part, Family) for part in family):
                raise ParameterError(f"a Finite space is made of a family or a list of families, got {family!r}")
            if not len(family):
                raise EmptySpaceError("a Finite space needs at least one decision, got an empty list of families")
            family = Mixed(tuple(family))
        if family.members is None:
            raise ParameterError(
                f"{family!r} has no members; give it a mean, lay a grid with Finite.grid(family, low, high, points), "
                "or search a continuum with Box(family, low, high)"
            )
        others = dict(loggers or {})
        for name, part in others.items():
            if not isinstance(name, str) or not isinstance(part, Family) or part.members != 1:
                raise ParameterError(f"a logger is a name and a family of one member, got {name!r}: {part!r}")
        joined = Mixed((family, *others.values())).simplified() if others else family
        self._set(joined, family.members, tuple(others), names)

    def _set(
        self, family: Family, size: int, loggers: tuple[str, ...], names: Sequence[str] | None, added: int = 0
    ) -> None:
        called = _names(names, size)
        for name, value in (
            *(("family", family), ("size", size), ("loggers", loggers)),
            *(("names", called), ("added", added)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def _of(
        cls, family: Family, loggers: Sequence[str] = (), names: Sequence[str] | None = None, added: int = 0
    ) -> Finite:
        """The members of a family, the last ones of which are loggers."""
        others = tuple(loggers)
        if not all(isinstance(name, str) for name in others) or len(set(others)) < len(others):
            raise ParameterError(f"loggers must be different names, got {loggers!r}")
        assert family.members is not None
        if family.members <= len(others):
            raise EmptySpaceError("a Finite space needs at least one decision besides the loggers")
        space = object.__new__(cls)
        space._set(family, family.members - len(others), others, names, added)
        return space

    def with_member(self, member: Any, name: str | None = None) -> Finite:
        """Another space with one more decision: a family of one member, or None in a space of likelihoods."""
        if self.loggers:
            raise ParameterError(
                f"a space with loggers ({', '.join(self.loggers)}) takes no further decisions; make a new learner of "
                "all of them"
            )
        names = None
        if self.names or name is not None:
            names = [*(self.names or map(str, range(self.size))), str(self.size) if name is None else name]
        return self._of(self.family.joined(member), (), names, self.added + 1)

    @classmethod
    def likelihoods(
        cls,
        count: int,
        *,
        loggers: Sequence[str] = (),
        log_divergences: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> Finite:
        """K policies whose mediators the environment produces: `tell` takes the log-likelihood under each of them.

        `loggers` names policies that are no decisions and drew rows of a log that is to be absorbed; `tell` takes their
        log-likelihoods too, after those of the K. `log_divergences` has D_2(p_x || p_x') of every pair, loggers last,
        where that is known; otherwise learners estimate them.  (K + L, K + L)
        """
        if isinstance(loggers, str):
            raise ParameterError(f"loggers must be a list of names, got {loggers!r}")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise EmptySpaceError(f"likelihoods needs a whole number >= 1 of policies, got {count!r}")
        return cls._of(Likelihoods(int(count) + len(loggers), log_divergences), loggers, names)

    @classmethod
    def policies(
        cls,
        policies: Sequence[PolicyLike],
        *,
        loggers: Mapping[str, PolicyLike] | None = None,
        weights: Literal["trajectory", "per-decision"] = "trajectory",
        discount: float = 1.0,
        horizon: int | None = None,
        average: bool = False,
        names: Sequence[str] | None = None,
    ) -> Finite:
        """Noisy policies over trajectories: `tell_episode(trial, episode)` computes likelihoods and payoff.

        A policy is a pair of a `GaussianPolicy` or `SoftmaxPolicy` and its parameters, or what `load_policy` returned.
        The payoff is the episode's own, or the sum of discounted rewards; `average` divides it by that of the
        discounts over `horizon` steps. "per-decision" weights each reward only by the actions before it, which needs
        `horizon`, the longest that an episode can be.
        """
        from randomist.policies.trajectories import Policies

        others = dict(loggers or {})
        family = Policies((*policies, *others.values()), weights, discount, horizon, average)
        return cls._of(family, tuple(others), names)

    @classmethod
    def grid(
        cls,
        family: Gaussian | TruncatedGaussian,
        low: ArrayLike,
        high: ArrayLike,
        points: int | Sequence[int],
        *,
        names: Sequence[str] | None = None,
    ) -> Finite:
        """`points` decisions per dimension, evenly spaced from `low` to `high`, ends included."""
        box = Box(family, low, high)
        lows, highs = np.atleast_1d(box.low), np.atleast_1d(box.high)
        if np.shape(points) not in ((), lows.shape):
            raise ShapeError(f"points must be one number, or one per dimension ({lows.size}), got {points}")
        counts = np.broadcast_to(np.asarray(points), lows.shape)
        if not np.issubdtype(counts.dtype, np.integer) or (counts < 1).any():
            raise EmptySpaceError(f"points must be whole numbers >= 1, got {points}")
        axes = [np.linspace(lo, hi, n) for lo, hi, n in zip(lows, highs, counts, strict=True)]
        mesh = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)  # (K, d)
        return cls(box.family.at(mesh.reshape(-1, *family.shape)), names=names)

    @property
    def points(self) -> Array | None:
        """Where each decision lies, where the family says it.  (K, d)"""
        points = self.family.points
        return None if points is None else points[: self.size]

    @property
    def sources(self) -> int:
        """How many distributions a sample can come from: the decisions, and then the loggers."""
        return self.size + len(self.loggers)

    def log_divergences_to(self, other: int) -> Array:
        """D_2(p_x || p_other) for every decision x, and then every logger.  (K + L,)"""
        return self.family.log_renyi(None, [other])[:, 0]

    def uninformed(self) -> Indices:
        """Decisions x with v(x) = max_x' d2(p_x || p_x') = inf (Remark 1), in index order.

        None where divergences are not known: what nothing was seen of has an infinite index anyway.
        """
        if not self.family.divergences_known:
            return np.empty(0, np.int64)
        members = kinds = np.arange(self.size)
        if isinstance(self.family, Gaussian):
            mean, std, _ = self.family.parameters(None)
            if np.ptp(mean) < 1e150 * std.min():  # then d2 is infinite because of the stds, or not at all
                _, members, kinds = np.unique(std[: self.size], axis=0, return_index=True, return_inverse=True)
        block = max(1, 2**20 // len(members))  # never more than a few MiB at a time, however large K is
        rows = (self.family.log_renyi(members[s : s + block], members) for s in range(0, len(members), block))
        infinite = np.concatenate([np.isinf(row).any(axis=1) for row in rows])
        return np.flatnonzero(infinite[kinds.ravel()])

    def history(
        self,
        divergence: type[Divergence],
        estimator: Estimator,
        *,
        nodes: bool = False,
        window: int | None = None,
        discount: float | None = None,
        device: str = "cpu",
    ) -> FiniteHistory | PerDecisionHistory:
        """An empty history of this space; with `nodes`, biases can be integrated; a `window` or `discount` forgets.

        One on a `device` other than "cpu" needs JAX.
        """
        from randomist.histories.finite import FiniteHistory
        from randomist.histories.per_decision import PerDecisionHistory

        if device != "cpu":
            if self.family.weighted_steps is not None:
                raise ParameterError(
                    f"per-decision weights are not there on a device: take weights='trajectory', or leave device="
                    f"{device!r:.80} out"
                )
            history: type[FiniteHistory] = ours("randomist.histories.device:DeviceHistory")
            settings: dict[str, Any] = {"nodes": nodes, "window": window, "discount": discount, "device": device}
            return history(self, divergence, estimator, **settings)
        kind = FiniteHistory if self.family.weighted_steps is None else PerDecisionHistory
        return kind(self, divergence, estimator, nodes=nodes, window=window, discount=discount)

    def of_whole_trajectories(self) -> Finite:
        """The same policies, each trajectory weighted as a whole."""
        return self._of(self.family.whole(), self.loggers, self.names, self.added)

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"kind": "Finite", "family": self.family.state()}
        entries = {"loggers": list(self.loggers), "names": list(self.names), "added": self.added}
        return state | {name: entry for name, entry in entries.items() if entry}


@dataclass(frozen=True, eq=False)
class Box:
    """Every point between `low` and `high`: the decision is the location of a location family, or location and scale.

    >>> Box(Gaussian(std=[0.15, 3.0]), low=[-1, 0], high=[1, 20]).dimension
    2
    """

    family: Any  # of one distribution per point: a Gaussian, a LocationScale, or another location family
    low: Array
    high: Array
    meaning: Meaning | None  # of the coordinates of a mediator, where these stand for parameters with names

    def __init__(self, family: Family, low: ArrayLike, high: ArrayLike, meaning: Meaning | None = None) -> None:
        if family.members is not None:
            raise ParameterError("a Box is searched by a family without a mean, such as Gaussian(std=0.15)")
        low, high = (_bound(side, name, family.decision_shape) for side, name in ((low, "low"), (high, "high")))
        if not (low < high).all():
            raise EmptySpaceError(f"low must be below high in every dimension, got low={low} and high={high}")
        values = {"family": family.within(low, high), "low": low, "high": high, "meaning": meaning}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """How many coordinates a point has, without a scale."""
        return math.prod(self.family.shape)

    @property
    def corners(self) -> tuple[Array, Array]:
        """The lowest and the highest point, without scales.  (d,), (d,)"""
        if isinstance(self.family, LocationScale):
            return self.family.split(self.low)[0], self.family.split(self.high)[0]
        return np.ravel(self.low), np.ravel(self.high)

    def to_unit(self, points: Array) -> Array:
        """Points in coordinates where the box is the unit cube.  (..., d)"""
        low, high = self.corners
        return np.asarray((points - low) / (high - low))

    def from_unit(self, points: Array) -> Array:
        """Undo `to_unit`, for points of the unit cube; never outside of the box.  (..., d)"""
        low, high = self.corners
        return np.asarray(np.clip(low + points * (high - low), low, high))

    def history(self) -> Any:
        """An empty history of this space, for learners of a fixed std."""
        from randomist.histories.box import BoxHistory
        from randomist.histories.gaussian import GaussianHistory
        from randomist.histories.truncated import TruncatedHistory

        if isinstance(self.family, TruncatedGaussian):
            return TruncatedHistory(self)
        return GaussianHistory(self) if isinstance(self.family, Gaussian) else BoxHistory(self)

    def contains(self, decisions: ArrayLike) -> np.typing.NDArray[np.bool_]:
        """Which decisions lie in the box.  (n,)"""
        rows = self.family.decision_rows(decisions)
        outside = (rows < self.low.reshape(-1)) | (rows > self.high.reshape(-1))
        inside: np.typing.NDArray[np.bool_] = outside.sum(axis=1) == 0
        return inside

    def named(self, point: ArrayLike) -> dict[str, Any]:
        """What a mediator or a recommended point stands for: the parameters by name, in their own units."""
        if self.meaning is None:
            raise ParameterError("the coordinates of this box have no names; Parameters(kp=Real(0.1, 100)) give them")
        return self.meaning.named(point)

    def state(self) -> dict[str, Any]:
        state = {"kind": "Box", "family": self.family.state(), "low": self.low, "high": self.high}
        return state if self.meaning is None else state | {"parameters": self.meaning.state()}


class Parameters(Box):
    """Parameters by name, each a `Real`, an `Integer` or a `Choice`; a pair (low, high) is a `Real`.

    To a learner it is the unit cube, with as many coordinates as the parameters need.

    >>> space = Parameters(kp=Real(0.1, 100, log=True), taps=Integer(1, 12), mode=Choice("a", "b"))
    >>> space.named([0.0, 0.5, 0.9])
    {'kp': 0.1, 'taps': 7, 'mode': 'b'}
    """

    meaning: Meaning

    def __init__(self, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        meaning = Meaning(parameters, **named)
        d = meaning.dimension
        super().__init__(Gaussian(std=np.full(d, SPREAD)), np.zeros(d), np.ones(d), meaning)

    @property
    def parameters(self) -> dict[str, Parameter]:
        return self.meaning.parameters

    @property
    def names(self) -> tuple[str, ...]:
        return self.meaning.names

    def point(self, values: Mapping[str, Any]) -> Array:
        """Undo `named`: a point that stands for these values, in the middle of its cell.  (d,)"""
        return self.meaning.point(values)

    def describe(self) -> dict[str, str]:
        """How each parameter is written, by name."""
        return self.meaning.describe()

    def __repr__(self) -> str:
        return f"Parameters({', '.join(f'{name}={text}' for name, text in self.describe().items())})"


def _names(names: Any, size: int) -> tuple[str, ...]:
    """Different names for all decisions, or none."""
    if names is None or (isinstance(names, Sequence) and not isinstance(names, str) and not len(names)):
        return ()
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ParameterError(f"names must be a list of texts, one per decision, got {names!r:.80}")
    if len(names) != size:
        raise ShapeError(f"names must be {size}, one per decision, got {len(names)}: {', '.join(names)[:80]}")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ParameterError(f"names must differ, and {twice!r} is there twice")
    return tuple(names)


def _bound(value: ArrayLike, name: str, shape: tuple[int, ...]) -> Array:
    """One side of a box, spread over its dimensions."""
    array = finite_array(value, name)
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise ShapeError(f"{name} must be a number or have the family's shape {shape}, got {array.shape}") from None


Space = Finite | Box


def space_from_state(state: dict[str, Any]) -> Space:
    """Undo `Finite.state` and `Box.state`."""
    try:
        kind, family = state["kind"], family_from_state(state["family"])
        if kind == "Finite":
            if family.members is None:
                return Finite(family)  # which refuses it
            return Finite._of(family, state.get("loggers", ()), state.get("names"), int(state.get("added", 0)))
        if kind == "Box":
            meaning = Meaning.from_state(state["parameters"]) if "parameters" in state else None
            return Box(family, state["low"], state["high"], meaning)
    except (KeyError, TypeError) as error:
        raise StateError(f"no space can be read from {state!r} ({error!r})") from error
    raise StateError(f"no {kind!r} of a {type(family).__name__} is known; spaces are Finite and Box")
