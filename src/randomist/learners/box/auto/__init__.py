"""Auto: a box and payoffs are all that it needs. The default in a box."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array, probability, whole_number
from randomist._types import Array, Indices
from randomist.errors import NoDataError, ParameterError, ShapeError, StateError
from randomist.families import LocationScale
from randomist.histories.estimates import Estimates
from randomist.learners.box.auto import interval as intervals
from randomist.learners.box.auto import search
from randomist.learners.box.auto.interval import Confirmation, Interval
from randomist.learners.box.auto.samples import (
    GRAIN,
    POINTS,
    REMEMBERED,
    Samples,
    gathered,
    remembered,
)
from randomist.learners.box.auto.search import LARGEST, Coordinates, Known, Position, Start
from randomist.learners.box.base import BoxLearner
from randomist.learners.box.filling import filling_point
from randomist.learners.payoffs import number
from randomist.learners.trial import PURPOSES, Trial
from randomist.parameters import Choice, Integer
from randomist.spaces import Box

# Points that fill the box at first, one more than dimensions between these bounds: with fewer a
# basin is missed, more earn nothing.
OPENING = 3, 16
# Pairs of points that stand for a decision's Gaussian: with fewer its scale jumps.
CLOUD = 8


@dataclass(eq=False, kw_only=True)
class Auto(BoxLearner):
    """Search a box with Gaussians that narrow by themselves: `Auto(low=..., high=...)`.

    Gaussian processes go through payoffs and through their ranks; how smooth they are and how much
    is noise follows from their evidence. Most rounds play N(x, (s·width)²), truncated to the box,
    at the point x of the best rank whose mean payoff is not below the best that is sure. s is the
    largest scale at which what is lost on average, compared with x, is within twice what one play
    may teach, and within what there is to find. One round of four, ever fewer later, moves along
    one parameter, whatever the surface says of that. A call that fails counts as the worst payoff
    so far where calls fail, and not where they fail by chance. What is recommended has been played.

    A decision is (x, s), s in widths of the box; at s = 0 the point itself is played. Every
    mediator lies in the box. Not in the paper.

    Parameters
    ----------
    space
        A `Box`, of which only the corners are used; or leave it out and give `low` and `high`, or
        `dimension`.
    low, high
        The corners of the box: a number each, or one number per dimension. They stay as you gave
        them; `space` has the box that is searched.
    dimension
        How many parameters there are. Without `low` and `high` each of them is searched between -1
        and 1.
    payoff_range
        "running", the default, takes payoffs as they come. (low, high) fixes their range, in your
        units, so that `confirmed` can give an interval for the mean that assumes nothing else.
    out_of_range
        What happens to a payoff outside of a fixed range: "refuse" raises an error, "clip" clips
        and counts it.
    first
        A present setting. It is played first, again now and then until it is surely worse than what
        was found, and recommended unless something is better.
    seed
        A whole number. The same seed gives the same run; None takes one from the system, which
        `entropy` then names.
    confidence
        Not used: there so that all learners have it.
    """

    learns_range: ClassVar[bool] = True
    Search: ClassVar[type] = Position

    space: Box = field(default=None, kw_only=False)  # type: ignore[assignment]
    low: Any = None
    high: Any = None
    dimension: int | None = None
    payoff_range: tuple[float, float] | Literal["running"] = "running"

    def __post_init__(self) -> None:
        self.space = scaled_box(self.space, self.low, self.high, self.dimension)
        super().__post_init__()
        d = self.space.dimension
        self._shift = self._rng.random(d)  # of the points that fill the box
        self._opening = min(max(d + 1, OPENING[0]), OPENING[1])
        half = np.random.default_rng(0).standard_normal((CLOUD, d))
        self._cloud = np.concatenate([half, -half])
        self._parameters = coordinates(self.space)
        self._begun = np.empty((0, d)), np.empty(0)  # known before: points and payoffs
        self.infeasible: dict[int, Array] = {}  # mediators of trials that were told so, by id
        self.lost: dict[int, Array] = {}  # and of those that failed
        self._top: tuple[Any, Array] | None = None  # what is recommended, and what was known for it

    # What a user asks for.

    @property
    def scale(self) -> float:
        """s: the std of the last cloud, in widths of the box."""
        return LARGEST if self.search is None else float(self.search.scale)

    def recommend(self) -> Any:
        """The played point with the largest value by all that was told; play it without noise.

        A point that was confirmed stays the recommended one until the search goes on.
        """
        return self._point(self.space.from_unit(self._recommended()))

    def estimate(self, points: ArrayLike) -> Estimates:
        """What is known of the mean payoff at any points of the box, in your units.  (n,) each

        `width` is a standard deviation, `effective_samples` how many plays of the point alone would
        say as much, and `coverage` the part of what was unknown of it that is known now.
        """
        return self.bands(points)[0]

    def bands(self, points: ArrayLike, level: float = 0.95) -> tuple[Estimates, Array, Array]:
        """`estimate`, and the low and high of `interval`: NaN where unsupported.  (n,) each

        Samples far from the first point stand for their neighbours, too.
        """
        probability(level, "level")
        rows = inside(self.space, points, "points")
        unsupported = np.full(len(rows), np.nan)
        samples = self._samples(()) if self._known() and len(rows) else None
        if samples is None:
            return Estimates.nothing(len(rows)), unsupported, unsupported
        if samples.flat:  # nothing can be said but what all of them were
            equal = np.full(len(rows), samples.payoffs[0])
            return Estimates.nothing(len(rows))._replace(value=equal), unsupported, unsupported
        at = self.space.to_unit(rows)
        grain = GRAIN[0] if self.search is None else self.search.grain
        found = intervals.report(samples, at[0], grain)
        estimates = found.estimates(at, played_at(self.record.decisions[:, :-1], rows))
        if self._known() < self._opening:
            return estimates, unsupported, unsupported
        return estimates, *found.bounds(at, level)

    def interval(self, point: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """An interval for the mean payoff at a point, by default the recommended one.

        It stands on a mean payoff that is about as smooth as it was found to be. Where too few
        samples are near for that it answers "unsupported"; `confirm` assumes less.
        """
        probability(level, "level")
        if point is None:
            if not self._known():
                return intervals.unsupported(level)
            point = self.recommend()
        if len(rows := inside(self.space, point, "point")) != 1:
            raise ShapeError(f"interval takes one point, got {len(rows)}; estimate takes several")
        estimates, low, high = self.bands(point, level)
        if np.isnan(low[0]):
            return intervals.unsupported(level)
        return Interval(float(estimates.value[0]), float(low[0]), float(high[0]), level, "surface")

    def confirm(self, n: int) -> list[Trial]:
        """The next `n` trials play the recommended point; told, they make `confirmed`."""
        self._confirm(whole_number(n, "n"))
        return self.ask(batch=n)

    def confirmed(self, level: float = 0.95) -> Confirmation:
        """What the plays of the last `confirm` say about that point alone.

        Independent payoffs are all that is needed: for the mean where `payoff_range` is known, and
        for the median always. Else the mean gets Student's interval, which is asymptotic; where all
        plays paid what other points paid, too, the range of all that was told stands for the real.
        """
        probability(level, "level")
        now, ids = self.search, self.record.ids
        rows = np.zeros(len(ids), bool) if now is None else now.confirming(ids)
        if not np.any(rows):
            raise NoDataError(
                "no play of a confirmation was told; ask for some with confirm(n), and tell them"
            )
        open_ended = self._scale.running or self._scale.unbounded
        ends = None if open_ended else (self._scale.low, self._scale.high)
        found = intervals.confirmation(self.record, rows, ends, level)
        return found._replace(point=self._point(found.point))

    def begin(self, points: ArrayLike, payoffs: ArrayLike) -> None:
        """Known results of earlier work: points and what each paid, in your units.  (n, d), (n,)

        They inform the search like samples of its own, and count neither as told nor as asked.
        """
        rows = inside(self.space, points, "points")
        values = [number(payoff) for payoff in np.ravel(payoffs).tolist()]
        if len(rows) != len(values):
            raise ShapeError(
                f"give one payoff per point, got {len(rows)} points and {len(values)} payoffs"
            )
        for value in values if not self._scale.running else ():
            self._scale.unit(value)  # refuses
        known = self._begun
        self._begun = np.concatenate([known[0], rows]), np.concatenate([known[1], values])

    # A round.

    def _decide(self) -> Array:
        point, scale, purpose = self._next()
        now = self.search or Position(point, point)
        self.search = replace(now, purpose=PURPOSES.index(purpose))
        decision: Array = self.space.family.join(self.space.from_unit(point), scale)
        decision.flags.writeable = False
        return decision

    def _next(self) -> tuple[Array, float, str]:
        """A point of the unit cube to play, a scale, and what for."""
        before = self.search
        if before is not None and before.confirming(self._next_id):
            return before.best, 0.0, "confirm"
        pending = self._unit(trial.mediator for trial in reversed(self._pending.values()))
        known = self._seen(pending) if self._known() else None
        if known is None or known.samples.flat or self._opens(known.samples):
            return self._filling(), 0.0, "open"
        self.search, point, purpose = search.played(
            before, known, self._cloud, self._parameters, self._rng
        )
        if purpose == "fill":
            return self._filling(), 0.0, purpose
        return point, 0.0 if purpose in ("start", "again") else self.search.scale, purpose

    def _opens(self, samples: Samples) -> bool:
        """Whether the next trial is of the opening, which ends sooner at a ceiling."""
        few = self._next_id + len(self._begun[1]) < self._opening
        return (self._next_id == 0 and self.first is not None) or (few and not samples.ceiling)

    def _filling(self) -> Array:
        if self._next_id == 0 and self.first is not None:
            return self.space.to_unit(np.ravel(self.first))
        return filling_point(self._next_id, self._shift)

    def _confirm(self, n: int) -> None:
        best = self._recommended()
        now = self.search or Position(best, best)
        self.search = replace(now, best=best, confirm=self._next_id, confirms=n)

    def _recommended(self) -> Array:
        """The point that all that is known stands for, pending trials left out.  (d,)"""
        if not self._known():
            self._require_data()
        now = self.search
        if now is not None and now.confirms and self._next_id <= now.confirm + now.confirms:
            return np.asarray(now.best)
        counts = self._known(), len(self.infeasible), len(self.lost)
        if self._top is None or self._top[0] != counts:
            known = self._seen(self._unit([]))
            samples = known.samples
            if samples.flat or known.payoffs < self._opening:
                paid = np.where(samples.paid, samples.payoffs, -math.inf)
                top = np.clip(samples.points[int(np.argmax(paid))], 0.0, 1.0)
            else:
                position = search.fitted(search.begun(now, known), known)
                top = search.standing(search.landscape(position, known), known)
            self._top = counts, top
        return self._top[1]

    # What is known.

    def _known(self) -> int:
        """Payoffs: told, and known before."""
        return self.told + len(self._begun[1])

    def _seen(self, pending: Array) -> Known:
        failed = self.infeasible | self.lost
        samples = self._samples([failed[id_] for id_ in sorted(failed)[-REMEMBERED:]])
        start = None if self.first is None else self.space.to_unit(np.ravel(self.first))
        return Known(samples, self._known(), Start.of(start, samples), pending)

    def _samples(self, failed: Any) -> Samples:
        """A bounded number of all payoffs, and calls that failed."""
        (points, payoffs), chosen = self._begun, remembered(self._known())
        old, new = chosen[chosen < len(payoffs)], chosen[chosen >= len(payoffs)] - len(payoffs)
        told = self.record.mediators[new].reshape(-1, self.space.dimension)
        paid = np.concatenate([payoffs[old], self._clipped(self.record.payoffs[new])])
        at = self.space.to_unit(np.concatenate([points[old], told]))
        return gathered(at, paid, self._unit(failed, REMEMBERED))

    def _unit(self, mediators: Any, most: int = POINTS[0]) -> Array:
        """The first of these in the unit cube.  (p, d)"""
        rows = np.array([np.ravel(mediator) for mediator in islice(mediators, most)], np.float64)
        return self.space.to_unit(rows.reshape(-1, self.space.dimension))

    def _clipped(self, payoffs: Array) -> Array:
        scale = self._scale
        return payoffs if scale.running else np.clip(payoffs, scale.low, scale.high)

    # Told, saved and loaded.
    def _absorb(self, decision: Any, mediator: Any, payoff: float) -> None:
        """Nothing: all is in the record."""

    def _rescale(self, payoffs: Array) -> None:
        """Nothing: payoffs are read as they were told."""

    def _exclude(self, ticket: Trial) -> None:
        self.infeasible[ticket.id] = np.ravel(ticket.mediator)

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """A trial that is never answered: the search keeps away from where calls fail."""
        ticket = self._ticket(trial)
        super().fail(ticket, reason)
        self.lost[ticket.id] = np.ravel(ticket.mediator)

    def state(self) -> dict[str, Any]:
        points = self._begun[0].reshape(-1, *self.space.family.shape)
        state = super().state() | {"begun": {"points": points, "payoffs": self._begun[1]}}
        for name in ("infeasible", "lost"):
            kept = getattr(self, name)
            mediators = np.array(list(kept.values())).reshape(-1, self.space.dimension)
            state[name] = {"ids": np.array(list(kept), np.int64), "mediators": mediators}
        return state

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if not {"begun", "infeasible", "lost"} <= state.keys():
            raise StateError("a state of Auto has begun, infeasible and lost; this one is older")
        self.begin(state["begun"]["points"], state["begun"]["payoffs"])
        for name in ("infeasible", "lost"):
            kept = zip(state[name]["ids"], np.asarray(state[name]["mediators"]), strict=True)
            setattr(self, name, {int(id_): mediator for id_, mediator in kept})

    def check_search(self, state: Any) -> Any:
        found = super().check_search(state)
        if not GRAIN[0] <= found.grain <= GRAIN[1]:
            raise StateError(
                f"a search of Auto has cells of widths between {GRAIN}, got {found.grain}"
            )
        if found.purpose not in range(len(PURPOSES)):
            raise StateError(f"a search of Auto has no purpose {found.purpose}")
        return found


def inside(space: Box, points: ArrayLike, name: str) -> Array:
    """Points of a box, one per row.  (n, d)"""
    rows: Array = space.family.mediator_rows(finite_array(points, name), name)
    low, high = space.corners
    outside = np.asarray((rows < low) | (rows > high)).any(axis=1)
    if outside.any():
        raise ParameterError(
            f"{name} must lie in the box from {low} to {high}, got {rows[outside][0]}"
        )
    return rows


def played_at(points: Array, rows: Array) -> Indices:
    """How often decisions were played at points, with any scale.  (t, d), (n, d) -> (n,)"""
    points = points[np.isin(points[:, 0], rows[:, 0])]  # few are
    return np.array([(points == row).all(axis=1).sum() for row in rows])


def coordinates(space: Box) -> list[Coordinates]:
    """Of each parameter, in their order."""
    if space.meaning is None:
        return [Coordinates(np.array([i])) for i in range(space.dimension)]
    found, first = [], 0
    for one in space.meaning.parameters.values():
        at = np.arange(first, first + one.size)
        first += one.size
        if isinstance(one, Choice):
            found.append(Coordinates(at, len(one.options)))
        elif isinstance(one, Integer):
            found.append(Coordinates(at, 0, max(0.5 / (one.high - one.low + 1), 0.01)))
        else:
            found.append(Coordinates(at))
    return found


def scaled_box(space: Any, low: Any, high: Any, dimension: Any) -> Box:
    """Points and scales to search, from a box, its two corners, or a number of dimensions."""
    meaning = None
    if isinstance(space, Box):
        meaning, (low, high) = space.meaning, space.corners
        if space.family.shape == ():
            low, high = low[0], high[0]
    elif space is not None:
        raise ParameterError(
            f"Auto searches a box, got a {type(space).__name__}; give low and high, or take "
            "Realist on a finite set"
        )
    elif dimension is not None:
        shape = (whole_number(dimension, "dimension"),)
        low = np.broadcast_to(finite_array(-1.0 if low is None else low, "low"), shape)
        high = np.broadcast_to(finite_array(1.0 if high is None else high, "high"), shape)
    elif low is None or high is None:
        raise ParameterError("Auto needs a box: give low and high, or dimension, or a Box")
    low, high = np.broadcast_arrays(finite_array(low, "low"), finite_array(high, "high"))
    if not (low < high).all():
        raise ParameterError(
            f"low must be below high in every dimension, got low={low} and high={high}"
        )
    return Box(LocationScale(high - low), np.append(low, 0.0), np.append(high, LARGEST), meaning)
