"""Auto: a box and payoffs are all that it needs. The default in a box."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from randomist._checks import finite_array, whole_number
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.families import LocationScale
from randomist.histories.estimates import Estimates
from randomist.learners.box.base import BoxLearner
from randomist.learners.box.filling import filling_point
from randomist.learners.box.surface import USUAL, Surface, likeliest, surface, tamed
from randomist.spaces import Box

FEWEST, MOST = 4, 16  # points that fill the box at first, two per dimension between these bounds
LARGEST, SMALLEST = 0.2, 0.01  # scale, in widths of the box
STEP = 0.8  # from one scale to the next
SAMPLES = 200, 400
REFINEMENTS = 4  # of the candidates, around the best so far
LOCAL, TOWARDS, LEADING, PAST, ANYWHERE = 5, 3, 2, 2, 2  # candidates of each kind in a refinement
STEPS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])  # uphill, in diagonals of the cloud
CLIMBS = 4
CAUTION = 0.5  # posterior deviations below the mean that make a point's value
NEAR = 0.5  # of the samples of a surface: the last and the nearest ones
LEADERS = 5  # best payoffs, towards whose mediators candidates lie
GROWTH, AGAIN = 1.1, 50  # smoothness and noise are chosen anew when there are as many samples more
EXTREMES = 5  # payoffs that show the upper tail
SCOUTS = 64  # places that are looked at for a scout
REST = 8  # fruitless scouts that double the wait for the next one
REMEMBERED = 1024  # samples: the last ones, and as many of those before


@dataclass(frozen=True, eq=False)
class Position:
    """Where the search is, in coordinates where the box is the unit cube."""

    best: Array  # the point with the largest mean, as of the last search  (d,)
    scale: float = LARGEST  # s, the std of the next decision in widths of the box
    length: int = USUAL[0]  # of the surface
    noise: int = USUAL[1]
    fitted: int = 0  # payoffs that these two know
    scouted: int = 0  # the last scout's number
    judged: int = 0  # payoffs that were looked at for what scouts found
    fruitless: int = 0  # scouts that found nothing


@dataclass(eq=False, kw_only=True)
class Auto(BoxLearner):
    """Search a box with Gaussians that narrow by themselves: `Auto(low=..., high=...)`, or `Auto(dimension=d)`.

    A Gaussian process goes through the samples, the nearest ones and some of all others; how smooth it is and how much
    of the payoffs is noise follows from its evidence. Each round plays N(x, (s·width)²), truncated to the box, at the
    point x where its mean is largest. Candidates are near the best so far, between it and the best mediators, at these,
    near past decisions, anywhere, and uphill. s is the largest scale at which what is lost on average, compared with x,
    is within a posterior deviation: as wide as cannot be told apart from the best. A scout goes to a place where the
    process is unsure, if what it may find, earned for as long again as the run has lasted, is more than it costs; the
    more of them come back with nothing, the longer the next one waits.

    A decision is (x, s), s in widths of the box; at s = 0 the point itself is played. Every mediator lies in the box. Not
    in the paper; its page in the docs has what was tried and measured.

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
        The point to begin with, played as given; by default the points that fill the box are shifted by the seed.
    seed
        A whole number. The same seed gives the same run; None takes one from the system, which `entropy` then names.
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
        self.space = _scaled_box(self.space, self.low, self.high, self.dimension)
        super().__post_init__()
        d = self.space.dimension
        self._shift = self._rng.random(d)  # of the points that fill the box
        self._opening = min(max(2 * d, FEWEST), MOST)
        half = np.random.default_rng(0).standard_normal((8, d))
        self._cloud = np.concatenate([half, -half])

    @property
    def scale(self) -> float:
        """s: the std of the next decision, in widths of the box."""
        return LARGEST if self.search is None else self.search.scale

    def recommend(self) -> Any:
        """The point with the largest mean so far; play it without noise."""
        self._require_data()
        return self._point(self.space.from_unit(self._start() if self.search is None else self.search.best))

    def estimate(self, points: ArrayLike) -> Estimates:
        """What the samples say about any points of the box; `value` and `width` in the user's units.  (n,) each

        `width` is a standard deviation, `effective_samples` how many plays of the point alone would say as much, and
        `coverage` the part of what was unknown of it that is known now.
        """
        rows = self.space.family.mediator_rows(points, "points")
        low, high = self.space.corners
        outside = ((rows < low) | (rows > high)).any(axis=1)
        if outside.any():
            raise ParameterError(f"point {rows[outside][0]} lies outside the box [{low}, {high}]")
        return self._scale.to_user(self._estimate(rows))

    def _estimate(self, decisions: Array) -> Estimates:
        n = len(decisions)
        if not self.told:
            return Estimates.nothing(n)
        unit = self.space.to_unit(decisions)
        found = self._surface(self.search or Position(self._start()), unit[0])
        deviation = found.deviations(unit)
        with np.errstate(divide="ignore"):
            effective = np.minimum(found.noise / deviation**2, float(self.told))
            log_effective = np.log(effective)
        plays = np.array([(self.history.points.rows == row).all(axis=1).sum() for row in unit])
        coverage = 1 - deviation**2 / found.variance
        return Estimates(found.means(unit), effective, np.full(n, np.inf), deviation, plays, coverage, log_effective)

    # A round.

    def _decide(self) -> Any:
        if self._next_id < self._opening or self._flat():
            return self._decision(self._filling(self._next_id), 0.0)
        before = self.search or Position(self._start())
        if self.told >= GROWTH * before.fitted or self.told >= before.fitted + AGAIN:
            samples, payoffs = self._samples(before.best)
            length, noise = likeliest(samples, payoffs, before.length, before.noise)
            before = replace(before, length=length, noise=noise, fitted=self.told)
        found = self._surface(before, before.best)
        best = self._searched(found, before.best)
        self.search = replace(before, best=best, scale=self._scale_at(found, best, before.scale), **self._judged(found))
        scout = self._scout(found)
        if scout is not None:
            self.search = replace(self.search, scouted=self._next_id)
            return self._decision(scout, 0.0)
        return self._decision(self.search.best, self.search.scale)

    def _flat(self) -> bool:
        """Whether the payoffs do not say where to go: all of them are the same."""
        payoffs = self.history.payoffs.rows
        return len(payoffs) == 0 or bool(payoffs.min() == payoffs.max())

    # The surface.

    def _surface(self, position: Position, near: Array) -> Surface:
        samples, payoffs = self._samples(near)
        pending = [self.space.to_unit(np.ravel(trial.mediator)) for trial in self._pending.values()]
        waiting = np.array(pending[-SAMPLES[0] :]).reshape(-1, near.size)
        return surface(samples, payoffs, position.length, position.noise, waiting)

    def _samples(self, near: Array) -> tuple[Array, Array]:
        """Mediators and payoffs of the last samples, of the nearest ones, and of some of all others.  (n, d), (n,)"""
        t, most = self.told, min(max(SAMPLES[0], 4 * near.size), SAMPLES[1])
        pool = _remembered(t)
        if len(pool) > most:
            distance = np.sum((self.history.mediators.rows[pool] - near) ** 2, axis=1)
            distance[-(most // 4) :] = -1.0
            order, nearest = np.argsort(distance, kind="stable"), int(NEAR * most)
            spread = np.linspace(nearest, len(pool) - 1, most - nearest).astype(np.int64)
            pool = pool[np.sort(order[np.concatenate([np.arange(nearest), spread])])]
        return self.history.mediators.rows[pool], tamed(self.history.payoffs.rows[pool])

    # Where to play.

    def _searched(self, found: Surface, start: Array) -> Array:
        """The best of the candidates, refined.  (d,)"""
        best, value = start, found.safe(start[None], CAUTION)[0]
        for _ in range(REFINEMENTS):
            candidates = self._candidates(found, best)
            values = found.safe(candidates, CAUTION)
            k = int(np.argmax(values))
            if values[k] > value:
                best, value = candidates[k], values[k]
        return best

    def _candidates(self, found: Surface, best: Array) -> Array:
        """(n, d)"""
        rng, d, s, samples = self._rng, best.size, self.scale, self.history.mediators.rows
        leaders = samples[self._leaders()]
        local = best + s * rng.choice([0.3, 1.0, 3.0], (LOCAL, 1)) * rng.standard_normal((LOCAL, d))
        towards = best + rng.random((TOWARDS, 1)) * (leaders[rng.integers(len(leaders), size=TOWARDS)] - best)
        leading = leaders[rng.integers(len(leaders), size=LEADING)]
        past = self.history.points.rows[rng.integers(self.told, size=PAST)] + s * rng.standard_normal((PAST, d))
        anywhere = rng.random((ANYWHERE, d))
        uphill = self._uphill(found, best)
        points: Array = np.clip(np.concatenate([local, towards, leading, past, anywhere, uphill]), 0.0, 1.0)
        return points

    def _leaders(self) -> Indices:
        """The samples with the best payoffs."""
        payoffs = self.history.payoffs.rows
        n = min(LEADERS, len(payoffs))
        return np.argpartition(-payoffs, n - 1)[:n]

    def _uphill(self, found: Surface, point: Array) -> Array:
        """The best points along the gradient, each from the one before.  (CLIMBS at most, d)"""
        steps, path = STEPS[:, None] * self.scale * math.sqrt(point.size), []
        for _ in range(CLIMBS):
            slope = found.slope(point)
            slope[((point <= 0) & (slope < 0)) | ((point >= 1) & (slope > 0))] = 0.0
            steepness = math.sqrt(float(slope @ slope))
            if steepness < 1e-12:
                break
            line = np.clip(point + steps * slope / steepness, 0.0, 1.0)
            point = line[int(np.argmax(found.means(line)))]
            path.append(point)
        return np.array(path).reshape(-1, point.size)

    def _scale_at(self, found: Surface, best: Array, scale: float) -> float:
        """The largest scale, of those a factor apart, at which a cloud cannot be told apart from its centre."""
        caution, top = best.size / (best.size + 5), found.means(best[None])[0]

        def alike(scale: float) -> bool:
            cloud = np.clip(best + scale * self._cloud, 0.0, 1.0)
            return bool(top - found.means(cloud).mean() <= caution * found.deviations(cloud).mean())

        if alike(scale):
            while scale < LARGEST and alike(min(scale / STEP, LARGEST)):
                scale = min(scale / STEP, LARGEST)
            return scale
        while scale > SMALLEST and not alike(scale):
            scale = max(scale * STEP, SMALLEST)
        return scale

    # Scouts.

    def _scout(self, found: Surface) -> Array | None:
        """A place where one play may pay for itself; None where there is none, or the last scouts found nothing.

        If the mean there becomes known as well as one payoff lets it, it exceeds the best by st (u Φ(u) + φ(u)) on
        average (Frazier et al. 2009, the knowledge gradient), in each of as many rounds as there were.
        """
        position = self.search
        if self._next_id - position.scouted < 2 ** (position.fruitless / REST):
            return None
        places = self._rng.random((SCOUTS, position.best.size))
        mean, deviation = found.means(places), found.deviations(places)
        top = found.means(position.best[None])[0]
        learned = np.maximum(deviation**2 / np.sqrt(deviation**2 + found.noise + 1e-300), 1e-12)
        u = (mean - top) / learned
        gain = learned * (u * ndtr(u) + np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))
        worth = self.told * np.minimum(gain, self._excess(top)) - (top - mean)
        k = int(np.argmax(worth))
        return places[k] if worth[k] > 0 else None

    def _excess(self, top: float) -> float:
        """By how much one more draw may exceed the best of all so far, as the upper tail of the payoffs says.

        The best of n + 1 draws exceeds that of n by θ/(n + 1) on average, if the tail is exponential with mean θ. It is
        measured among the points that were played to see and among all, since a ceiling shows in the latter first.
        """
        payoffs = self.history.payoffs.rows
        seen = payoffs[self.history.scales.rows == 0]
        return math.sqrt(_mean_excess(payoffs) * _mean_excess(np.append(seen, top))) / (len(seen) + 1)

    def _judged(self, found: Surface) -> dict[str, int]:
        """What the scouts that came back found: whether one was better than the best by more than noise."""
        position = self.search or Position(self._start())
        ids, payoffs = self.record.ids[position.judged :], self.history.payoffs.rows[position.judged :]
        scouted = (self.history.scales.rows[position.judged :] == 0) & (ids >= self._opening)
        better = found.means(position.best[None])[0] + 2 * math.sqrt(found.noise)
        fruitless = position.fruitless
        for payoff in payoffs[scouted]:
            fruitless = fruitless // 2 if payoff > better else fruitless + 1
        return {"judged": self.told, "fruitless": fruitless}

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

    def restore(self, state: dict[str, Any]) -> None:
        super(BoxLearner, self).restore(state)
        record = self.record
        self.history.extend(record.decisions, record.mediators, self._scale.units(record.payoffs))


def _mean_excess(payoffs: Array) -> float:
    """By how much the largest exceed the next one."""
    n = min(EXTREMES, len(payoffs) - 1)
    largest = np.partition(payoffs, -n - 1)[-n - 1 :]
    return float(largest.mean() - largest.min()) * (n + 1) / n


def _remembered(told: int) -> Indices:
    """The last samples, and those before them at even distances: a bounded number of all that were told."""
    older = told - REMEMBERED
    if older <= REMEMBERED:
        return np.arange(told)
    stride = 2 ** math.ceil(math.log2(older / REMEMBERED))
    return np.concatenate([np.arange(0, older, stride), np.arange(older, told)])


def _scaled_box(space: Any, low: Any, high: Any, dimension: Any) -> Box:
    """Points and scales to search, from a box, its two corners, or a number of dimensions."""
    if isinstance(space, Box):
        low, high = space.corners
        if space.family.shape == ():
            low, high = low[0], high[0]
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
    return Box(LocationScale(high - low), np.append(low, 0.0), np.append(high, LARGEST))
