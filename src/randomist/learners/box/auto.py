"""Auto: a box and payoffs are all that it needs. The default in a box."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array, probability, whole_number
from randomist._types import Array, Flags, Indices
from randomist.errors import NoDataError, ParameterError, ShapeError, StateError
from randomist.histories.estimates import Estimates
from randomist.importance.passes import surface as passes
from randomist.learners.box import interval as intervals
from randomist.learners.box import scouting, turns
from randomist.learners.box.base import BoxLearner
from randomist.learners.box.climbing import FEWER, LARGEST, REFINEMENTS, highest, scale_at, searched
from randomist.learners.box.corners import scaled_box
from randomist.learners.box.filling import farthest_point, filling_point
from randomist.learners.box.interval import Confirmation, Interval
from randomist.learners.box.landscape import Landscape, border, room
from randomist.learners.box.pool import FINEST, WIDEST
from randomist.learners.box.position import Position
from randomist.learners.box.report import clearest, reports
from randomist.learners.box.samples import FEWEST, REMEMBERED, Samples, middle_and_spread, remembered, scores, units
from randomist.learners.box.surface import likeliest, surface
from randomist.learners.payoffs import number
from randomist.learners.trial import Trial
from randomist.spaces import Box

GROWTH, AGAIN = 1.1, 50  # smoothness and noise are chosen anew when there are as many samples more
ENOUGH = 10  # samples per dimension; before, ranks are too coarse unless they are easier to read
CLOUD = 8  # pairs of points that stand for a decision's Gaussian
RECENT = 16  # trials before the middle one, the last of which that drew from a cloud says where the best point was
LAG = 4 * turns.REPLAY  # payoffs between two plays of one point, at most: those of a batch come in any order
GONE = {"path", "length", "searched"}  # of a search, as versions up to 0.1.0 had it


@dataclass(eq=False, kw_only=True)
class Auto(BoxLearner):
    """Search a box with Gaussians that narrow by themselves: `Auto(low=..., high=...)`, or `Auto(dimension=d)`.

    Gaussian processes go through payoffs and through their ranks; of many samples, those near one another count as
    plays of one point. How smooth they are and how much is noise follows from their evidence. Each round plays N(x,
    (s·width)²), truncated to the box, at the point x of the best rank whose mean payoff is not below the best that is
    sure. s is the largest scale at which what is lost on average, compared with x, is within twice what one play may
    teach (more in more than 16 dimensions), and within what there is to find: what the best payoffs exceed one another,
    or what noise hides. A scout goes to a place where the process is unsure, if what it may find, earned for as long
    again as the run has lasted, is more than it costs; the more of them come back with nothing, the longer the next one
    waits. One round of four, later of eight, may be a stride, farther the way that x came, where little may be lost;
    one of eight, at first of sixteen, plays the last point once more. The box is filled at first, while all payoffs are
    equal, in every other round where they have been mere noise for long, and now and then if few places were seen.

    A decision is (x, s), s in widths of the box; at s = 0 the point itself is played. Every mediator lies in the box.
    Not in the paper; its page in the docs has what was tried and measured.

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
        "running", the default, takes payoffs as they come. (low, high) fixes their range, in your units, so that
        `confirmed` can give an interval for the mean that assumes nothing else.
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
        self.space = scaled_box(self.space, self.low, self.high, self.dimension)
        super().__post_init__()
        d = self.space.dimension
        self._shift = self._rng.random(d)  # of the points that fill the box
        self._opening = turns.opening(d)
        half = np.random.default_rng(0).standard_normal((CLOUD, d))
        self._cloud = np.concatenate([half, -half])
        self._begun = np.empty((0, d)), np.empty(0)  # known before: points and payoffs, in the user's units
        self.infeasible: dict[int, Array] = {}  # mediators of trials that were told to be so, by id
        self._top: tuple[tuple[int, int], Array] | None = None  # the recommended point, and what was known for it

    # What a user asks for.

    @property
    def scale(self) -> float:
        """s: the std of the next decision, in widths of the box."""
        return LARGEST if self.search is None else self.search.scale

    def recommend(self) -> Any:
        """The point with the largest value by all that was told, one that samples support; play it without noise.

        It is searched anew after each tell, whatever was asked since. A point that was confirmed stays the recommended
        one until the search goes on.
        """
        return self._point(self.space.from_unit(self._recommended()))

    def estimate(self, points: ArrayLike) -> Estimates:
        """What the samples say about the mean payoff at any points of the box, in the user's units.  (n,) each

        `width` is a standard deviation, `effective_samples` how many plays of the point alone would say as much, and
        `coverage` the part of what was unknown of it that is known now.
        """
        return self.bands(points)[0]

    def bands(self, points: ArrayLike, level: float = 0.95) -> tuple[Estimates, Array, Array]:
        """`estimate`, and the low and high of `interval` at many points: NaN where that is unsupported.  (n,) each

        They stand on all samples, or on those nearest to the first point, where the interval there is clearly narrower.
        So those of the first point are `interval`'s, and others are too wide, or unsupported, where samples far from it
        would say more.
        """
        probability(level, "level")
        rows = self._inside(points, "points")
        unsupported = np.full(len(rows), np.nan)
        if not len(rows) or not self._known() or (samples := self._samples()).flat:
            return self._unknown(len(rows)), unsupported, unsupported
        inside = self.space.to_unit(rows)
        found = reports(samples, inside[0], self._position().grain)
        fit = [one for one in found if self._known() >= self._opening and not self._rough(one.noise)]
        chosen = clearest(fit or found, inside[0])
        bounds = chosen.bounds(inside, level) if fit else (unsupported, unsupported)
        return chosen.estimates(inside, self._plays(rows)), *bounds

    def interval(self, point: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """An interval for the mean payoff at a point itself, by default the recommended one, from what is known so far.

        It stands on the Gaussian process: on a mean payoff that is about as smooth as it was found to be, and noise
        about the same everywhere. Where too few samples are near for that it answers "unsupported", and not a number;
        `confirm` gives intervals that assume less.
        """
        probability(level, "level")
        if point is None:
            if not self._known():
                return intervals.unsupported(level)
            point = self.recommend()
        if len(rows := self._inside(point, "point")) != 1:
            raise ShapeError(f"interval takes one point, got {len(rows)}; estimate takes several")
        estimates, low, high = self.bands(point, level)
        if np.isnan(low[0]):
            return intervals.unsupported(level)
        return Interval(float(estimates.value[0]), float(low[0]), float(high[0]), level, "surface")

    def confirm(self, n: int) -> list[Trial]:
        """The next `n` trials play the recommended point itself; tell them, and `confirmed` has an interval."""
        self._confirm(whole_number(n, "n"))
        return self.ask(batch=n)

    def confirmed(self, level: float = 0.95) -> Confirmation:
        """What the plays of the last `confirm` say about that point alone.

        The point was chosen before them, so independent payoffs are all that is needed: for the mean where
        `payoff_range` is known, and for the median always. For the mean of payoffs without a known range there is no
        such interval; it gets Student's, which says that it is asymptotic. Where all plays paid what other points paid,
        too, as successes do, that would be no interval at all: the range of all that was told stands for the real one.
        """
        probability(level, "level")
        if self.search is None or not (rows := self.search.confirms_with(self.record.ids)).any():
            raise NoDataError("no play of a confirmation has been told; ask for some with confirm(n), and tell them")
        payoffs, point = self.record.payoffs[rows], self.record.mediators[rows][0]
        if not self._scale.running and not self._scale.unbounded:
            mean = intervals.bounded_mean(self._clipped(payoffs), self._scale.low, self._scale.high, level)
        elif np.ptp(payoffs) == 0 and self._paid_elsewhere(point, payoffs[0]):
            mean = intervals.equal_payoffs(payoffs, self.record.payoffs, level)
        else:
            mean = intervals.asymptotic_mean(payoffs, level)
        return Confirmation(self._point(point), len(payoffs), mean, intervals.median(payoffs, level))

    def scouts(self, trial: Trial) -> bool:
        """Whether a trial was asked to see what is there: a scout's, a stride, or one that fills the box."""
        return bool(self._to_see(np.array([trial.id]), np.array([trial.decision[-1]]))[0])

    def begin(self, points: ArrayLike, payoffs: ArrayLike) -> None:
        """Known results of earlier work: points of the box and what each paid, in the user's units.  (n, d), (n,)

        They inform the search like samples of its own, and count neither as told nor as asked.
        """
        rows, values = self._inside(points, "points"), [number(payoff) for payoff in np.ravel(payoffs).tolist()]
        if len(rows) != len(values):
            raise ShapeError(f"give one payoff per point, got {len(rows)} points and {len(values)} payoffs")
        if not self._scale.running:
            for value in values:
                self._scale.unit(value)  # refuses
        known = self._begun
        self._begun = np.concatenate([known[0], rows]), np.concatenate([known[1], values])

    # A round.

    def _confirm(self, n: int) -> None:
        self.search = replace(self._position(), best=self._recommended(), confirm=self._next_id, confirms=n)

    def _decide(self) -> Any:
        before = self.search
        if before is not None and before.confirm <= self._next_id < before.confirm + before.confirms:
            return self._decision(before.best, 0.0)
        samples = self._samples() if self._known() else None
        if samples is None or samples.flat or self._opens(samples):
            return self._decision(self._filling(), 0.0)
        if self._looks(samples):
            return self._decision(farthest_point(samples.points, self._rng), 0.0)
        position = self._fitted(self._position(), samples)
        found = self._landscape(samples, position, reversed(self._pending.values()))
        self.search = self._moved(self._judged(position, found, samples), found, samples)
        if turns.replays(self._next_id, self._opening) and self.told:
            back = len(self._pending) // turns.REPLAY % len(samples.points)  # in a batch, each plays another point
            return self._decision(np.clip(samples.points[-1 - back], 0.0, 1.0), 0.0)
        away = self._away(self.search, found, samples)
        if away is not None:
            return self._decision(away, 0.0)
        if turns.wanders(self._next_id, self.search.fruitless, bool(self.search.all_noise)):
            return self._decision(self._filling(), LARGEST)
        return self._decision(self.search.best, self.search.scale)

    def _opens(self, samples: Samples) -> bool:
        """Whether the next trial is of the opening, which ends sooner at a ceiling."""
        begins = self._next_id == 0 and self.first is not None
        return begins or (self._next_id + len(self._begun[1]) < self._opening and not samples.ceiling)

    def _looks(self, samples: Samples) -> bool:
        """Whether so few places were seen that the next trial goes where least was.

        All of them may be one poor basin, whose top looks like the best there is. At a ceiling, where the best payoffs
        are equal, half as many will do: more often than not, that is the best there is.
        """
        enough = turns.places(self._next_id)
        return enough > 0 and self._places() < (enough // 2 if samples.tail == 0 else enough)

    def _moved(self, position: Position, found: Landscape, samples: Samples) -> Position:
        """With the best point and the firm one searched anew, and the scale at which the best is played."""
        search = position.scale, samples, self._rng
        best = searched(found.values, found.scores, position.best, *search, REFINEMENTS)
        firm = searched(found.firmness, found.payoffs, position.firm, *search, FEWER)
        scale = scale_at(found, best, position.scale, self._cloud)
        heading = scouting.steered(position.heading, best - position.best)
        return replace(position, best=best, firm=firm, scale=scale, heading=heading)

    def _away(self, position: Position, found: Landscape, samples: Samples) -> Array | None:
        """Where a scout or a stride goes, if one is due and worth a play.  (d,)"""
        if turns.scouts(self._next_id - position.scouted, position.fruitless, bool(position.all_noise)):
            scout = self._scout(position, found, samples)
            if scout is not None:
                self.search = replace(position, scouted=self._next_id)
                return scout
        if turns.strides(self._next_id) and position.scale < LARGEST and not position.all_noise:
            return scouting.stride(found, position.best, self._ways(position, found), position.scale)
        return None

    def _ways(self, position: Position, found: Landscape) -> Array:
        """Where a stride may go: at first on as in the last few rounds, later as in the second half of all.  (n, d)"""
        half = self.told // 2
        rows = self.record.decisions[max(half - RECENT, 0) : half]
        centres = rows[rows[:, -1] > 0, :-1]
        if self._next_id < turns.EARLY or not len(centres):
            return np.atleast_2d(scouting.AHEAD * position.heading)
        return scouting.onward(found, self.space.to_unit(centres[-1]), position.best)

    def _scout(self, position: Position, found: Landscape, samples: Samples) -> Array | None:
        """Where it may find most; where all may be noise and the first found nothing, every other fills the box.  (d,)

        Then no surface tells where to go, and no point is known to be worse than another.
        """
        fills = position.all_noise and position.fruitless >= turns.REST
        scout = None
        if not fills or position.fruitless % 2:
            scout = scouting.scout(found, position.best, samples, self._known(), self._rng)
        return self._filling() if fills and scout is None else scout

    def _recommended(self) -> Array:
        """The best point by all that is known, pending trials left out.  (d,)"""
        position, known = self._position(), (self._known(), len(self.infeasible))
        confirmed = position.confirms > 0 and self._next_id <= position.confirm + position.confirms
        if confirmed or self._known() < self._opening or (samples := self._samples()).flat:
            return position.best
        if self._top is None or self._top[0] != known:
            position = self._fitted(position, samples)
            found = self._landscape(samples, position, ())
            top = highest(found, position.best, position.scale, samples)
            self._top = known, top if found.stands(top, position.best) else position.best
        return self._top[1]

    def _fitted(self, position: Position, samples: Samples) -> Position:
        """With smoothness and noise of both surfaces chosen anew, if there are many samples more than they know."""
        if self._known() < min(GROWTH * position.fitted, position.fitted + AGAIN):
            return position
        near = samples.near(position.best, position.grain)
        ranks = likeliest(near.points, near.of(samples.scores), position.smoothness, position.noise)
        by_payoff = position.payoff_smoothness, position.payoff_noise
        payoffs = likeliest(near.points, near.of(samples.units), *by_payoff)
        return replace(
            position,
            smoothness=ranks.length,
            noise=ranks.noise,
            payoff_smoothness=payoffs.length,
            payoff_noise=payoffs.noise,
            all_noise=int(max(ranks.gain, payoffs.gain) <= 0),
            by_rank=int(ranks.gain > payoffs.gain or self._known() >= ENOUGH * position.best.size),
            fitted=self._known(),
            grain=min(ranks.grain, payoffs.grain),
        )

    def _judged(self, position: Position, found: Landscape, samples: Samples) -> Position:
        """What the scouts that came back found: whether one was better than the best by more than noise."""
        new = slice(position.judged, None)
        ids, scales = self.record.ids[new], self.record.decisions[new, -1]
        scouted = self._to_see(ids, scales) & (ids >= self._opening)
        count = min(len(ids), REMEMBERED)
        found_there = samples.units[len(samples.units) - count :][scouted[len(ids) - count :]]
        better = found.payoffs.means(position.best[None])[0] + 2 * math.sqrt(found.payoffs.noise)
        fruitless = scouting.fruitless(position.fruitless, found_there, better)
        return replace(position, judged=self.told, fruitless=fruitless)

    # What is known.

    def _known(self) -> int:
        """Samples: told, and known before."""
        return self.told + len(self._begun[1])

    def _to_see(self, ids: Indices, scales: Array) -> Flags:
        """Which trials play a point itself to see what is there: not once more, and not to confirm it."""
        found: Flags = (scales == 0) & ~turns.replays(ids, self._opening)
        return found if self.search is None else found & ~self.search.confirms_with(ids)

    def _places(self) -> int:
        """How many places all over the box were seen: those of the opening, of scouts, and those known before."""
        ids = self.record.ids
        seen = self._to_see(ids, self.record.decisions[:, -1]) & ((ids < self._opening) | ~turns.strides(ids))
        return len(self._begun[1]) + int(seen.sum())

    def _samples(self) -> Samples:
        record, begun = self.record, len(self._begun[1])
        chosen = remembered(self._known())
        old, new = chosen[chosen < begun], chosen[chosen >= begun] - begun
        mediators = self.space.to_unit(record.mediators[new].reshape(len(new), self.space.dimension))
        seen = record.decisions[new, -1] == 0
        if self.search is not None:
            seen &= ~self.search.confirms_with(record.ids[new])
        payoffs = np.append(self._begun[1][old], self._clipped(record.payoffs[new]))
        points = np.concatenate([self.space.to_unit(self._begun[0][old]), mediators])
        return Samples(points, payoffs, scores(payoffs), units(payoffs), np.append(np.ones(len(old), bool), seen))

    def _landscape(self, samples: Samples, position: Position, pending: Iterable[Trial]) -> Landscape:
        """What a search looks at near its best point, pending trials and infeasible ones counted."""
        near = samples.near(position.best, position.grain)
        points, scores, units = near.points, near.of(samples.scores), near.of(samples.units)
        unpaid = self._last(trial.mediator for trial in pending)
        apart = passes.distances(np.concatenate([points, unpaid]))
        by_payoff = surface(points, units, position.payoff_smoothness, position.payoff_noise, unpaid, apart)
        if position.by_rank:
            by_score = surface(points, scores, position.smoothness, position.noise, unpaid, apart)
        else:
            scores, by_score = units, by_payoff
        firm = float(by_payoff.cautious(np.stack([position.firm, position.best])).max())
        _, spread = middle_and_spread(units.means)
        exchange = 1.0 if by_score is by_payoff else float(scores.means.std()) / spread if spread > 0 else 0.0
        more = room(by_payoff, position.best, self._known(), samples.tail)
        outside = self._last(reversed(self.infeasible.values()))
        return Landscape(by_score, by_payoff, firm, exchange, more, border(points, outside))

    def _unknown(self, n: int) -> Estimates:
        """Of points of which nothing can be said but what all payoffs were, if they were equal."""
        nothing = Estimates.nothing(n)
        return nothing._replace(value=np.full(n, self._samples().payoffs[0])) if self._known() else nothing

    def _plays(self, rows: Array) -> Indices:
        """How often decisions were played at points, with any scale.  (n, d) -> (n,)"""
        played = self.record.decisions[:, :-1]
        played = played[np.isin(played[:, 0], rows[:, 0])]  # few are
        return np.array([(played == row).all(axis=1).sum() for row in rows])

    def _paid_elsewhere(self, point: Any, payoff: float) -> bool:
        """Whether another point paid just that: then payoffs come in levels, and equal ones say little of the mean."""
        elsewhere = (self.record.mediators.reshape(self.told, -1) != np.ravel(point)).any(axis=1)
        return bool((self.record.payoffs[elsewhere] == payoff).any())

    def _rough(self, noise: float) -> bool:
        """Whether points that were played twice paid more alike than so much noise lets them."""
        record = self.record
        again = np.flatnonzero(turns.replays(record.ids, self._opening) & (record.decisions[:, -1] == 0))[-REMEMBERED:]
        differences = []
        for row in again:
            before = max(row - LAG, 0)
            same = (record.mediators[before:row].reshape(row - before, -1) == record.mediators[row]).all(axis=1)
            if same.any():
                differences.append(record.payoffs[row] - record.payoffs[before + int(np.argmax(same))])
        return intervals.rough(np.array(differences), noise)

    def _last(self, mediators: Iterable[Any]) -> Array:
        """The first of these, which are the last ones that happened, as points of the unit cube.  (p, d)"""
        rows = [np.ravel(mediator) for mediator in islice(mediators, FEWEST)]
        return self.space.to_unit(np.array(rows, dtype=np.float64).reshape(-1, self.space.dimension))

    def _position(self) -> Position:
        """Where the search is; before it has begun, where the best payoff was drawn."""
        if self.search is not None:
            position: Position = self.search
            return position
        if not self._known():
            self._require_data()
        samples = self._samples()
        start = np.clip(samples.points[int(np.argmax(samples.payoffs))], 0.0, 1.0)
        return Position(start, start)

    def _clipped(self, payoffs: Array) -> Array:
        """Payoffs of the record within a range that is fixed."""
        return payoffs if self._scale.running else np.clip(payoffs, self._scale.low, self._scale.high)

    def _inside(self, points: ArrayLike, name: str) -> Array:
        """Points of the box, one per row.  (n, d)"""
        rows: Array = self.space.family.mediator_rows(finite_array(points, name), name)
        low, high = self.space.corners
        outside = ((rows < low) | (rows > high)).any(axis=1)
        if outside.any():
            raise ParameterError(f"{name} must lie in the box from {low} to {high}, got {rows[outside][0]}")
        return rows

    def _filling(self) -> Array:
        """The next of the points that fill the box, the first one as given.  (d,)"""
        if self._next_id == 0 and self.first is not None:
            return self.space.to_unit(np.ravel(self.first))
        return filling_point(self._next_id, self._shift)

    def _decision(self, point: Array, scale: float) -> Array:
        decision: Array = self.space.family.join(self.space.from_unit(point), scale)
        decision.flags.writeable = False
        return decision

    # What is told.

    def _absorb(self, decision: Any, mediator: Any, payoff: float) -> None:
        """Nothing: all is in the record."""

    def _rescale(self, payoffs: Array) -> None:
        """Nothing: payoffs are read as they were told."""

    def _exclude(self, ticket: Trial) -> None:
        self.infeasible[ticket.id] = np.ravel(ticket.mediator)

    # Save and load.

    def state(self) -> dict[str, Any]:
        mediators = np.array(list(self.infeasible.values())).reshape(-1, self.space.dimension)
        infeasible = {"ids": np.array(list(self.infeasible), np.int64), "mediators": mediators}
        begun = {"points": self._begun[0].reshape(-1, *self.space.family.shape), "payoffs": self._begun[1]}
        return super().state() | {"infeasible": infeasible, "begun": begun}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if "begun" in state:  # not in 0.1.0
            self.begin(state["begun"]["points"], state["begun"]["payoffs"])
            excluded = state["infeasible"]
            self.infeasible = dict(zip(map(int, excluded["ids"]), np.asarray(excluded["mediators"]), strict=True))

    def check_search(self, state: Any) -> Any:
        if isinstance(state, dict) and state.keys() & GONE:  # of an earlier version
            state = {name: value for name, value in state.items() if name not in GONE}
        if not isinstance(state, dict) or "best" not in state:
            raise StateError(f"a search of Auto has a best point, got {state!r:.80}")
        usual = {f.name: f.default for f in fields(Position) if f.name not in ("best", "firm")}
        search = super().check_search(usual | {"firm": state["best"]} | state)
        if not FINEST <= search.grain <= WIDEST:
            raise StateError(f"a search of Auto has cells between {FINEST} and {WIDEST} wide, got {search.grain}")
        return search
