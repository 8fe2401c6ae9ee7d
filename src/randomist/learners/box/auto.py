"""Auto: a box and payoffs are all that it needs. The default in a box."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from randomist._checks import finite_array, whole_number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.families import LocationScale
from randomist.histories.estimates import Estimates
from randomist.learners.box.base import BoxLearner
from randomist.learners.box.filling import filling_point
from randomist.learners.box.scouting import SCALE as SCOUTED
from randomist.learners.box.scouting import is_scout, scout, scouting_pays
from randomist.spaces import Box

FEWEST, MOST = 4, 16  # points that fill the box at first, two per dimension between these bounds
LARGEST, SMALLEST = 0.2, 0.01  # scale, in widths of the box: LARGEST/√d at first, never below SMALLEST
REFINEMENTS = 4  # of the candidates, around the best so far
LOCAL, TOWARDS, LEADING, PAST, ANYWHERE = 5, 3, 2, 2, 2  # candidates of each kind in a refinement
LEADERS = 5  # best payoffs, towards whose mediators candidates lie
NEIGHBOURS = 1.0  # samples that a wider mean counts as
RATE = 0.7  # by which the scale changes in d + 1 rounds
NARROWER, SEEN = 0.6, 0.3  # it narrows where this much narrower earns more, by this many standard errors
PROGRESS = 0.8  # of a random walk's net displacement: above it the search is under way, below it settles


@dataclass(frozen=True, eq=False)
class Position:
    """Where the search is, in coordinates where the box is the unit cube."""

    best: Array  # the point with the largest value, as of the last search  (d,)
    scale: float  # s, the std of the next decision in widths of the box
    path: Array  # average of the steps of the search  (d,)
    length: float  # average of their squared lengths
    searched: int  # payoffs that the last search knew


@dataclass(eq=False, kw_only=True)
class Auto(BoxLearner):
    """Search a box with Gaussians that narrow by themselves: `Auto(low=..., high=...)`, or `Auto(dimension=d)`.

    Each round plays N(x, (s·width)²) at the point x with the largest value. The value is the self-normalised estimate
    at scale s, Σ ω y / Σ ω over all samples of all scales, drawn towards the one at a wider scale as if that were one
    more sample: one lucky payoff does not make a leader. Candidates are near the best so far, between it and the best
    mediators, at these, near past decisions, and anywhere. The scale s grows while the point keeps moving in one
    direction, and shrinks while it moves to and fro or rests (cumulative step length, Hansen and Ostermeier 2001), if a
    narrower Gaussian is seen to earn more. At most every other round is a scout's: it resembles the best samples
    coordinate by coordinate, and goes out as long as the tail of the payoffs says that a better basin may exist.

    A decision is (x, s), s in widths of the box; a mediator may lie a little outside. Not in the paper; its page in the
    docs has what was tried and measured.

    Parameters
    ----------
    space
        A `Box`, of which only the corners are used; or leave it out and give `low` and `high`, or `dimension`.
    low, high
        The corners of the box: a number each, or one number per dimension. They stay as you gave them; `space` has the
        box that is searched.
    dimension
        How many parameters there are. Without `low` and `high` each of them is searched between -1 and 1.
    payoff_range
        "running", the default, learns the range from what is told. (low, high) fixes it, in your units.
    out_of_range
        What happens to a payoff outside of a fixed range: "refuse" raises an error, "clip" clips and counts it.
    first
        The point to begin with; by default the points that fill the box at first are shifted by the seed.
    seed
        A whole number. The same seed gives the same run; None takes one from the system, which `entropy` then names.
    confidence
        α, for the `threshold` and `width` that `estimate` reports. The search itself does not use it.
    """

    learns_range: ClassVar[bool] = True
    Search: ClassVar[type] = Position

    space: Box = field(default=None, kw_only=False)  # type: ignore[assignment]
    low: Any = None
    high: Any = None
    dimension: int | None = None
    payoff_range: tuple[float, float] | Literal["running"] = "running"

    def __post_init__(self) -> None:
        self.space = _scaled_box(self.space, self.low, self.high, self.dimension)
        super().__post_init__()
        d = self.space.dimension
        self._shift = self._rng.random(d)  # of the points that fill the box
        self._opening = min(max(2 * d, FEWEST), MOST)

    @property
    def scale(self) -> float:
        """s: the std of the next decision, in widths of the box."""
        return LARGEST / math.sqrt(self.space.dimension) if self.search is None else self.search.scale

    def recommend(self) -> Any:
        """The point with the largest value so far; play it without noise."""
        self._require_data()
        return self._point(self.space.from_unit(self._start() if self.search is None else self.search.best))

    def _estimate(self, decisions: Array) -> Estimates:
        """The self-normalised estimate and the harmonic η."""
        estimates: Estimates = self.history.estimate(decisions, self.confidence)
        return estimates

    # A round.

    def _decide(self) -> Any:
        if self._next_id < self._opening or not self.told:
            return self._decision(self._filling(self._next_id), SCOUTED)
        if self.search is None or self.search.searched < self.told:
            self.search = self._searched()
        if self._scouting(self.search.best):
            return self._decision(scout(self.history.mediators.rows, self.history.payoffs.rows, self._rng), SCOUTED)
        return self._decision(self.search.best, self.search.scale)

    def _scouting(self, best: Array) -> bool:
        """Whether the next trial is a scout; at most every other one is."""
        scouted = is_scout(self.history.scales.rows)
        out = sum(bool(is_scout(self.space.family.split(trial.decision)[1])) for trial in self._pending.values())
        if 2 * (int(scouted.sum()) + out - self._opening + 1) > self._next_id - self._opening + 1:
            return False
        return scouting_pays(self.history.payoffs.rows, scouted, float(self._values(best[None])[0]))

    def _searched(self) -> Position:
        """The best of the candidates, refined; then the scale learns from how far that moved."""
        start = self._start() if self.search is None else self.search.best
        best, value = start, self._values(start[None])[0]
        leaders = self.history.mediators.rows[np.argsort(-self.history.payoffs.rows, kind="stable")[:LEADERS]]
        for _ in range(REFINEMENTS):
            candidates = self._candidates(best, leaders)
            values = self._values(candidates)
            k = int(np.argmax(values))
            if values[k] > value:
                best, value = candidates[k], values[k]
        return self._adapted(best, best - start)

    def _values(self, points: Array) -> Array:
        """Σ ω y / Σ ω at the present scale, drawn towards the one at a wider scale.  (n, d) -> (n,)"""
        wider = self.scale * (1 + 5 / points.shape[1])
        return np.asarray(self.history.drawn_means(points, self.scale, wider, NEIGHBOURS))

    def _candidates(self, best: Array, leaders: Array) -> Array:
        """(LOCAL + TOWARDS + LEADING + PAST + ANYWHERE, d)"""
        rng, d, s = self._rng, best.size, self.scale
        local = best + s * rng.choice([0.3, 1.0, 3.0], (LOCAL, 1)) * rng.standard_normal((LOCAL, d))
        towards = best + rng.random((TOWARDS, 1)) * (leaders[rng.integers(len(leaders), size=TOWARDS)] - best)
        leading = leaders[rng.integers(len(leaders), size=LEADING)]
        past = self.history.points.rows[rng.integers(self.told, size=PAST)] + s * rng.standard_normal((PAST, d))
        anywhere = rng.random((ANYWHERE, d))
        points: Array = np.clip(np.concatenate([local, towards, leading, past, anywhere]), 0.0, 1.0)
        return points

    def _adapted(self, best: Array, move: Array) -> Position:
        """The scale by the net displacement of recent moves, relative to that of a random walk of as many."""
        d, scale = move.size, self.scale
        before = self.search or Position(best, scale, np.zeros(d), 0.0, 0)
        memory, rounds = 1 / (1 + math.sqrt(d)), self.told - before.searched
        step = move / scale
        path = (1 - memory) * before.path + memory * step
        length = (1 - memory) * before.length + memory * float(step @ step)
        walk = length * memory / (2 - memory)
        resting = length < 1e-3
        progress = 0.0 if resting else float(path @ path) / walk
        change = max(RATE ** (rounds / (d + 1)), SMALLEST)  # asked far ahead, it would be 0
        if progress > PROGRESS:
            scale /= change
        elif self._narrower_pays(best):
            scale *= change
        scale = min(max(scale, SMALLEST), LARGEST / math.sqrt(d))
        if is_scout(scale):
            scale = math.nextafter(scale, 1.0)
        return Position(best, scale, path, length, self.told)

    def _narrower_pays(self, point: Array) -> bool:
        """Whether a narrower Gaussian there is seen to earn more than its noise: below that, narrowing is no use."""
        s, history = self.scale, self.history
        mean, _, _ = history.weighted_means(point[None], s)
        square, _, _ = history.weighted_means(point[None], s, history.payoffs.rows**2)
        narrower, shared, _ = history.weighted_means(point[None], NARROWER * s)
        noise = math.sqrt(max(square[0] - mean[0] ** 2, 0.0) / shared[0])
        return bool(narrower[0] - mean[0] > SEEN * noise)

    def _start(self) -> Array:
        """Where the best payoff was drawn.  (d,)"""
        start: Array = np.clip(self.history.mediators.rows[int(np.argmax(self.history.payoffs.rows))], 0.0, 1.0)
        return start

    def _filling(self, number: int) -> Array:
        """Point `number` of those that fill the box, the first one as given.  (d,)"""
        if number == 0 and self.first is not None:
            return self.space.to_unit(np.ravel(self.first))
        return filling_point(number, self._shift)

    def _decision(self, point: Array, scale: float) -> Array:
        decision: Array = self.space.family.join(self.space.from_unit(point), scale)
        decision.flags.writeable = False
        return decision


def _scaled_box(space: Any, low: Any, high: Any, dimension: Any) -> Box:
    """Points and scales to search, from a box, its two corners, or a number of dimensions."""
    if isinstance(space, Box):
        if isinstance(space.family, LocationScale):
            return space
        low, high = space.low, space.high
    elif space is not None:
        raise ParameterError(
            f"Auto searches a box, got a {type(space).__name__}; give low and high, or take Realist on a finite set"
        )
    elif dimension is not None:
        shape = (whole_number(dimension, "dimension"),)
        low = np.broadcast_to(finite_array(-1.0 if low is None else low, "low"), shape)
        high = np.broadcast_to(finite_array(1.0 if high is None else high, "high"), shape)
    elif low is None or high is None:
        raise ParameterError("Auto needs a box: give low and high, or dimension, or a Box")
    low, high = np.broadcast_arrays(finite_array(low, "low"), finite_array(high, "high"))
    if not (low < high).all():
        raise ParameterError(f"low must be below high in every dimension, got low={low} and high={high}")
    most = LARGEST / math.sqrt(max(1, low.size))
    return Box(LocationScale(high - low), np.append(low, min(SMALLEST, most)), np.append(high, max(SCOUTED, most)))
