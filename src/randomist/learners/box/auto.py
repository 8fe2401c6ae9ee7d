"""Auto: a box and payoffs are all that it needs. The default in a box."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from randomist._checks import finite_array
from randomist._types import Array
from randomist.errors import NoDataError, ParameterError, ShapeError
from randomist.families import LocationScale
from randomist.histories.finite import Estimates
from randomist.histories.scaled import ScaledHistory
from randomist.importance import estimators
from randomist.learners.base import Learner
from randomist.learners.box.filling import filling_point
from randomist.learners.box.scouting import scout, scouting_pays
from randomist.spaces import Box

FEWEST, MOST = 4, 16  # points that fill the box at first, two per dimension between these bounds
LARGEST, SMALLEST = 0.2, 0.01  # scale, in widths of the box: LARGEST/√d at first, never below SMALLEST
SCOUTED = 0.03  # scale of the points that fill the box and of scouts
REFINEMENTS = 4  # of the candidates, around the best so far
LOCAL, TOWARDS, LEADING, PAST, ANYWHERE = 5, 3, 2, 2, 2  # candidates of each kind in a refinement
LEADERS = 5  # best payoffs, towards whose mediators candidates lie
NEIGHBOURS = 1.0  # samples that a wider mean counts as
RATE = 0.7  # by which the scale changes in d + 1 rounds
NARROWER, SEEN = 0.6, 0.3  # it narrows where this much narrower earns more, by this many standard errors
PROGRESS = 0.8  # of a random walk's net displacement: above it the search is under way, below it settles


@dataclass(eq=False, kw_only=True)
class Auto(Learner):
    """Search a box with Gaussians that narrow by themselves: `Auto(low=..., high=...)`, or `Auto(dimension=d)`.

    Each round plays N(x, (s·width)²) at the point x with the largest value. The value is the self-normalised estimate
    at scale s, Σ ω y / Σ ω over all samples of all scales, drawn towards the one at a wider scale as if that were one
    more sample: one lucky payoff does not make a leader. Candidates are near the best so far, between it and the best
    mediators, at these, near past decisions, and anywhere. The scale s grows while the point keeps moving in one
    direction, and shrinks while it moves to and fro or rests (cumulative step length, Hansen and Ostermeier 2001), if a
    narrower Gaussian is seen to earn more. At most every other round is a scout's: it resembles the best samples
    coordinate by coordinate, and goes out as long as the tail of the payoffs says that a better basin may exist.

    A decision is (x, s), s in widths of the box; a mediator may lie a little outside. Without bounds the box is [-1, 1]
    in every dimension. The payoffs' range is learned. Not in the paper; docs have what was tried and measured.
    """

    learns_range: ClassVar[bool] = True
    asks_change: ClassVar[tuple[str, ...]] = ("_best", "_scale_now", "_path", "_length", "_searched")

    space: Box = field(default=None, kw_only=False)  # type: ignore[assignment]
    low: Any = None
    high: Any = None
    dimension: int | None = None
    payoff_range: tuple[float, float] | Literal["running"] = "running"

    def __post_init__(self) -> None:
        self.space = _scaled_box(self.space, self.low, self.high, self.dimension)
        self.low = self.high = self.dimension = None  # the space has them
        super().__post_init__()
        self._low, self._width = self.space.low[:-1], self.space.high[:-1] - self.space.low[:-1]
        d = self._low.size
        if self.first is not None:
            self.first = finite_array(self.first, "first").reshape(-1)
            if self.first.size != d:
                raise ShapeError(f"first must be a point of {d} coordinates, got {self.first.size}")
            if not self.space.contains(np.append(self.first, SCOUTED)).all():
                raise ParameterError(f"first must lie in the box {self._bounds()}, got {self.first}")
        self.history = ScaledHistory(d)
        self._shift = self._rng.random(d)  # of the points that fill the box
        self._opening = min(max(2 * d, FEWEST), MOST)
        self._scale_now = LARGEST / math.sqrt(d)
        self._best: Array | None = None  # the point with the largest value, as of the last search
        self._path, self._length = np.zeros(d), 0.0  # averages of steps and of their squared lengths
        self._searched = 0  # payoffs that the last search knew

    @property
    def scale(self) -> float:
        """s: the std of the next decision, in widths of the box."""
        return self._scale_now

    def recommend(self) -> Any:
        """The point with the largest value so far; play it without noise."""
        if not self.told:
            raise NoDataError("nothing has been told yet; tell at least one payoff before asking for a recommendation")
        return self._mediator(self._start() if self._best is None else self._best)

    def estimate(self, decisions: ArrayLike) -> Estimates:
        """What the history says about decisions (x, s): the self-normalised estimate and the harmonic η."""
        rows = self.space.family._decision_rows(decisions)
        if not self.space.contains(rows).all():
            raise ParameterError(f"decisions must lie in the box {self._bounds()}, the scale being the last entry")
        n, told = len(rows), self.told
        if not told:
            nothing, unknown = np.zeros(n), np.full(n, np.inf)
            return Estimates(nothing, nothing, unknown, unknown, nothing.astype(np.int64), nothing, -unknown)
        value, coverage = np.empty(n), np.empty(n)
        for k, row in enumerate(rows):
            mean, _, log_coverage = self.history.weighted_means(self._unit(row[None, :-1]), float(row[-1]))
            value[k], coverage[k] = mean[0], math.exp(min(log_coverage[0], 700.0))
        played = self.record.decisions
        log_effective = logsumexp(-self.space.family.log_renyi(rows, played), axis=1)
        plays = (rows[:, None, :] == played[None, :, :]).all(axis=2).sum(axis=1)
        with np.errstate(over="ignore"):
            threshold = np.exp(estimators.log_threshold(log_effective, told, self.confidence))
        width = estimators.width(log_effective, told, self.confidence)
        effective = np.maximum(np.exp(log_effective), plays)
        return Estimates(value, effective, threshold, width, plays.astype(np.int64), coverage, log_effective)

    # A round.

    def _decide(self) -> Any:
        if self._next_id < self._opening or not self.told:
            return self._decision(self._filling(self._next_id), SCOUTED)
        if self._searched < self.told:
            self._search()
        assert self._best is not None
        if self._scouting(self._best):
            return self._decision(scout(self.history.mediators.rows, self.history.payoffs.rows, self._rng), SCOUTED)
        return self._decision(self._best, self._scale_now)

    def _scouting(self, best: Array) -> bool:
        """Whether the next trial is a scout; at most every other one is."""
        scouted = self.history.scales.rows == SCOUTED
        out = sum(trial.decision[-1] == SCOUTED for trial in self.pending)
        if 2 * (int(scouted.sum()) + out - self._opening + 1) > self._next_id - self._opening + 1:
            return False
        return scouting_pays(self.history.payoffs.rows, scouted, float(self._values(best[None])[0]))

    def _search(self) -> None:
        """The best of the candidates, refined; then the scale learns from how far that moved."""
        start = self._start() if self._best is None else self._best
        best, value = start, self._values(start[None])[0]
        leaders = self.history.mediators.rows[np.argsort(-self.history.payoffs.rows, kind="stable")[:LEADERS]]
        for _ in range(REFINEMENTS):
            candidates = self._candidates(best, leaders)
            values = self._values(candidates)
            k = int(np.argmax(values))
            if values[k] > value:
                best, value = candidates[k], values[k]
        self._adapt(best, best - start, self.told - self._searched)
        self._best, self._searched = best, self.told

    def _values(self, points: Array) -> Array:
        """Σ ω y / Σ ω at the present scale, drawn towards the one at a wider scale.  (n, d) -> (n,)"""
        wider = self._scale_now * (1 + 5 / points.shape[1])
        return self.history.drawn_means(points, self._scale_now, wider, NEIGHBOURS)

    def _candidates(self, best: Array, leaders: Array) -> Array:
        """(LOCAL + TOWARDS + LEADING + PAST + ANYWHERE, d)"""
        rng, d, s = self._rng, best.size, self._scale_now
        local = best + s * rng.choice([0.3, 1.0, 3.0], (LOCAL, 1)) * rng.standard_normal((LOCAL, d))
        towards = best + rng.random((TOWARDS, 1)) * (leaders[rng.integers(len(leaders), size=TOWARDS)] - best)
        leading = leaders[rng.integers(len(leaders), size=LEADING)]
        past = self.history.points.rows[rng.integers(self.told, size=PAST)] + s * rng.standard_normal((PAST, d))
        anywhere = rng.random((ANYWHERE, d))
        points: Array = np.clip(np.concatenate([local, towards, leading, past, anywhere]), 0.0, 1.0)
        return points

    def _adapt(self, best: Array, move: Array, rounds: int) -> None:
        """The scale by the net displacement of recent moves, relative to that of a random walk of as many."""
        d = move.size
        memory = 1 / (1 + math.sqrt(d))
        step = move / self._scale_now
        self._path = (1 - memory) * self._path + memory * step
        self._length = (1 - memory) * self._length + memory * float(step @ step)
        walk = self._length * memory / (2 - memory)
        resting = self._length < 1e-3
        progress = 0.0 if resting else float(self._path @ self._path) / walk
        if progress > PROGRESS:
            self._scale_now /= RATE ** (rounds / (d + 1))
        elif self._narrower_pays(best):
            self._scale_now *= RATE ** (rounds / (d + 1))
        self._scale_now = min(max(self._scale_now, SMALLEST), LARGEST / math.sqrt(d))

    def _narrower_pays(self, point: Array) -> bool:
        """Whether a narrower Gaussian there is seen to earn more than its noise: below that, narrowing is no use."""
        s, history = self._scale_now, self.history
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
            return self._unit(self.first)
        return filling_point(number, self._shift)

    # Units.

    def _unit(self, points: Array) -> Array:
        unit: Array = (points - self._low) / self._width
        return unit

    def _bounds(self) -> str:
        return f"[{self.space.low}, {self.space.high}]"

    def _decision(self, point: Array, scale: float) -> Array:
        decision = np.append(np.clip(self._low + point * self._width, self.space.low[:-1], self.space.high[:-1]), scale)
        decision.flags.writeable = False
        return decision

    def _mediator(self, point: Array) -> Any:
        parameters = np.clip(self._low + point * self._width, self.space.low[:-1], self.space.high[:-1])
        return parameters if self.space.family.shape else float(parameters[0])

    # Told.

    def _absorb(self, decision: Any, mediator: Any, payoff: float) -> None:
        point, scale = self._unit(decision[:-1]), float(decision[-1])
        self.history.append(point, scale, self._unit(np.ravel(mediator)), payoff)

    def _rescale(self, payoffs: Array) -> None:
        self.history.payoffs.rows[:] = payoffs

    def _caches(self) -> dict[str, Any]:
        return self.history.state() | {
            "best": None if self._best is None else self._best.copy(),
            "scale": self._scale_now,
            "path": self._path.copy(),
            "length": self._length,
            "searched": self._searched,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        record, caches = self.record, state["caches"]
        told = zip(record.decisions, record.mediators, self._scale.units(record.payoffs), strict=True)
        for (decision, mediator, payoff), log_mixture in zip(told, caches["log_mixture"], strict=True):
            point, scale = self._unit(decision[:-1]), float(decision[-1])
            self.history.append_again(point, scale, self._unit(np.ravel(mediator)), payoff, log_mixture)
        self._best = None if caches["best"] is None else np.array(caches["best"])
        self._scale_now, self._path = float(caches["scale"]), np.array(caches["path"])
        self._length, self._searched = float(caches["length"]), int(caches["searched"])


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
        if isinstance(dimension, bool) or not isinstance(dimension, int | np.integer) or dimension < 1:
            raise ParameterError(f"dimension must be a whole number >= 1, got {dimension!r}")
        low = np.broadcast_to(finite_array(-1.0 if low is None else low, "low"), (int(dimension),))
        high = np.broadcast_to(finite_array(1.0 if high is None else high, "high"), (int(dimension),))
    elif low is None or high is None:
        raise ParameterError("Auto needs a box: give low and high, or dimension, or a Box")
    low, high = np.broadcast_arrays(finite_array(low, "low"), finite_array(high, "high"))
    if not (low < high).all():
        raise ParameterError(f"low must be below high in every dimension, got low={low} and high={high}")
    most = LARGEST / math.sqrt(max(1, low.size))
    return Box(LocationScale(high - low), np.append(low, min(SMALLEST, most)), np.append(high, max(SCOUTED, most)))
