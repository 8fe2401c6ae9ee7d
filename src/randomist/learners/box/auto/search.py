"""Where a search in a box goes: a better point with a cloud around it, one parameter, far away."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from randomist._types import Array, Indices
from randomist.importance.passes import surface as passes
from randomist.learners.box.auto.samples import (
    GRAIN,
    REFUTED,
    SPREAD,
    Samples,
    middle_and_spread,
)
from randomist.learners.box.auto.surface import USUAL, Surface, likeliest, surface

# Scales of a cloud, in widths of the box: a wider one earns less at first, a narrower one learns no
# slope under noise.
LARGEST, SMALLEST = 0.2, 0.003
# From one scale to the next: a coarser step jumps over the best one, a finer one costs time.
STEP = 0.8
# What a play teaches, times this, may a cloud lose: 1 narrows too soon from 10 dimensions on.
WORTH = 2.0
# Dimensions from which on a cloud may lose more: else narrow ones see little but noise there.
MANY = 16
# Uphill, in diagonals of the cloud: without short ones a search overshoots, without long it creeps.
STEPS = np.array([0.03, 0.1, 0.3, 1.0, 3.0])
# Candidates of a refinement: near the best, towards good samples, at these, near any, anywhere.
# Fewer find less of what the surface has, more cost time.
KINDS = 5, 3, 2, 2, 2
# Scales of those near the best: with one alone it is too wide early or too narrow late.
REACHES = np.array([0.3, 1.0, 3.0])
# Best payoffs, towards whose points candidates lie: with fewer, luck decides.
LEADERS = 5
# Of the candidates in a round: with fewer the best point lags behind the surface.
REFINEMENTS = 4
# Smoothness is fitted anew with so many times the samples: rarer it lags, sooner it costs time.
GROWTH = 1.1
# Samples per dimension; before, ranks are too coarse unless they are easier to read.
ENOUGH = 10
# Share of rounds along one parameter, and the same times √n: a wrong option or a poor basin is left
# later with less, and with more they cost what they find.
AXIS = 0.25, 1.0
# Share of rounds that play what is recommended once more: without, nobody tells a lucky payoff, or
# ripples, from noise, and intervals miss.
AGAIN = 0.0625
# Scale of the first cloud around a given start: a wider one throws a good start away.
NEAR_FIRST = 0.02


@dataclass(frozen=True, eq=False)
class Position:
    """Where the search is, in coordinates where the box is the unit cube."""

    best: Array  # the point with the largest value, as of the last search  (d,)
    firm: Array  # the point with the largest cautious mean payoff  (d,)
    scale: float = LARGEST  # s, the std of the next decision in widths of the box
    smoothness: int = USUAL[0]  # of the surface through scores: a number of its lengths
    noise: int = USUAL[1]
    payoff_smoothness: int = USUAL[0]  # of the surface through payoffs
    payoff_noise: int = USUAL[1]
    by_rank: int = 1  # whether scores are ranks, mostly, or payoffs
    all_noise: int = 0  # whether mere noise explains the samples as well as any surface
    grain: float = GRAIN[0]  # the width of cells whose samples count as one, where there are many
    fitted: int = 0  # payoffs that these seven know; 0 before the first surface
    confirm: int = 0  # the first of the trials that play the best point to confirm it
    confirms: int = 0  # how many these are
    purpose: int = 0  # what the last trial was for: a number of `PURPOSES`

    def confirming(self, trials: Indices | int) -> Indices:
        """Which trials are of the last confirmation."""
        return np.asarray((trials >= self.confirm) & (trials < self.confirm + self.confirms))


class Coordinates(NamedTuple):
    """Those of a parameter, and how it moves."""

    at: Indices
    options: int = 0  # of a choice
    least: float = 0.01  # scale of its moves, in widths of the box: shorter ones learn nothing


class Start(NamedTuple):
    """A present setting that the user gave, and what its own plays paid, in `units`."""

    point: Array  # (d,)
    plays: int = 0
    mean: float = 0.0
    error: float = math.inf  # standard, of the mean

    @classmethod
    def of(cls, point: Array | None, samples: Samples) -> Start:
        """What samples say of a start; one that never paid, or none, has no plays.  (d,)"""
        if point is None:
            return cls(np.empty(0))
        paid = samples.units[samples.paid & samples.at(point)]
        if not len(paid):
            return cls(point)
        few = len(paid) <= 2  # their own spread says little
        spread = max(samples.units.std(), paid.std()) if few else paid.std(ddof=1)
        return cls(point, len(paid), float(paid.mean()), float(spread / math.sqrt(len(paid))))

    def due(self, found: Landscape, best: Array, known: int) -> bool:
        """Whether it is played once more: it has few plays, and is not surely worse."""
        if not 0 < self.plays < 1 + math.log2(1 + known):
            return False
        top = float(found.payoffs.means(best[None])[0])
        return self.plays < 2 or self.mean + REFUTED * self.error > top


class Known(NamedTuple):
    """What a round goes by."""

    samples: Samples
    payoffs: int  # how many, of which samples are a bounded number
    start: Start
    pending: Array  # points whose payoffs are not known yet  (p, d)


class Landscape(NamedTuple):
    """Two surfaces through the same samples.

    Ranks are the same for any noise and any range of payoffs, so a surface through them finds the
    way where payoffs are wild. But payoffs are what is earned: a place that pays a little more in
    nine of ten rounds, and in the tenth nothing, has the better ranks. So ranks decide among the
    points whose mean payoff is not below the best that is sure.
    """

    scores: Surface
    payoffs: Surface
    firm: float  # the largest cautious mean payoff that is known
    exchange: float  # scores per payoff
    room: float  # how much better it may be near the best point

    def values(self, points: Array) -> Array:
        """A point's score, less what its mean payoff lacks.  (n, d) -> (n,)"""
        lacking = np.maximum(self.firm - self.payoffs.means(points), 0.0)
        return self.scores.cautious(points) - self.exchange * lacking


def landscape(position: Position, known: Known) -> Landscape:
    """The surfaces as they are around a position."""
    samples, pending = known.samples, known.pending
    near = samples.near(position.best, position.grain)
    units, scores = near.of(samples.units), near.of(samples.scores)
    apart = passes.distances(np.concatenate([near.points, pending]))
    at = position.payoff_smoothness, position.payoff_noise
    payoffs = by_score = surface(near.points, units, *at, pending, apart)
    exchange, (_, spread) = 1.0, middle_and_spread(units.means)
    if position.by_rank:
        at = position.smoothness, position.noise
        by_score = surface(near.points, scores, *at, pending, apart)
        exchange = float(scores.means.std()) / spread if spread > 0 else 0.0
    firm = float(payoffs.cautious(np.stack([position.firm, position.best])).max())
    more = room(payoffs, position.best, known.payoffs, samples.tail)
    return Landscape(by_score, payoffs, firm, exchange, more)


def room(payoffs: Surface, best: Array, plays: int, tail: float) -> float:
    """By how much the best payoffs exceed one another, or what noise hides near the best point.

    Where all of the best are equal, the former says that there is nothing more to find. But luck
    has a ceiling, too: of payoffs 0 and 1 many are 1, and the mean is still far below. If n plays
    scatter by s in each of d coordinates, noise σ leaves a slope unsure by σ/(s√n), so that at a
    curvature c the best point loses dσ²/(4cs²n); the plays themselves lose cds². Whatever s is,
    both together are no less than dσ/√n: that much is hidden, and no more than the largest payoff
    is above the mean.  (d,)
    """
    hidden = best.size * payoffs.noise_near(best) / math.sqrt(plays)
    return max(tail, min(hidden, payoffs.ceiling - float(payoffs.means(best[None])[0])))


def played(
    before: Position | None,
    known: Known,
    cloud: Array,
    parameters: list[Coordinates],
    rng: Generator,
) -> tuple[Position, Array, str]:
    """Where the search is in a round, the point that is played, and what for."""
    position = fitted(begun(before, known), known)
    found = landscape(position, known)
    position = moved(position, found, known, cloud, rng)
    best, scale = position.best, position.scale
    if known.start.due(found, best, known.payoffs):
        return position, known.start.point, "start"
    if position.all_noise and rng.random() < 2 * AGAIN:  # else a narrow top is never found
        return position, best, "fill"
    if not position.all_noise and rng.random() < AGAIN:
        return position, standing(found, known), "again"
    if rng.random() < min(AXIS[0], AXIS[1] / math.sqrt(known.payoffs)):
        return position, moved_along(best, scale, parameters, rng), "axis"
    return position, best, "cloud"


def begun(position: Position | None, known: Known) -> Position:
    """Where the first surface is searched: at a given start, or where the best payoff was."""
    if position is not None and position.fitted:
        return position
    samples, start = known.samples, known.start
    best = np.clip(samples.points[int(np.argmax(samples.payoffs))], 0.0, 1.0)
    if start.plays:
        best = start.point
    now = position or Position(best, best)
    return replace(now, best=best, firm=best, scale=NEAR_FIRST if start.plays else LARGEST)


def fitted(position: Position, known: Known) -> Position:
    """With smoothness and noise of both surfaces chosen anew, if many samples are new."""
    if known.payoffs < GROWTH * position.fitted:
        return position
    samples = known.samples
    fit = samples.near(position.best, position.grain).spread(position.best)
    at = position.smoothness, position.noise
    ranks = likeliest(fit.points, fit.of(samples.scores), *at)
    at = position.payoff_smoothness, position.payoff_noise
    payoffs = likeliest(fit.points, fit.of(samples.units), *at)
    many = known.payoffs >= ENOUGH * position.best.size
    return replace(
        position,
        smoothness=ranks.length,
        noise=ranks.noise,
        payoff_smoothness=payoffs.length,
        payoff_noise=payoffs.noise,
        all_noise=int(max(ranks.gain, payoffs.gain) <= 0),
        by_rank=int(many or ranks.gain > payoffs.gain),
        fitted=known.payoffs,
        grain=min(ranks.grain, payoffs.grain),
    )


def moved(
    position: Position, found: Landscape, known: Known, cloud: Array, rng: Generator
) -> Position:
    """With the best point and the firm one searched anew, and the scale at which it is played."""
    values, firmness, payoffs = found.values, found.payoffs.cautious, found.payoffs
    around = position.scale, known.samples, rng
    best = searched(values, found.scores, position.best, *around)
    firm = searched(firmness, payoffs, position.firm, *around)
    start, most = known.start, LARGEST
    if start.plays >= 2 and start.mean > payoffs.means(best[None])[0]:
        best, firm, most = start.point, start.point, NEAR_FIRST
    scale = min(scale_at(found, best, position.scale, cloud), most)
    return replace(position, best=best, firm=firm, scale=scale)


def searched(
    values: Callable[[Array], Array],
    found: Surface,
    start: Array,
    scale: float,
    samples: Samples,
    rng: Generator,
) -> Array:
    """The best of the candidates, refined; some of them lie uphill on a surface.  (d,)"""
    best, value = start, values(start[None])[0]
    leaders = samples.points[samples.leaders(LEADERS)]
    for _ in range(REFINEMENTS):
        points = candidates(found, best, scale, samples.points, leaders, rng)
        there = values(points)
        k = int(np.argmax(there))
        if there[k] > value:
            best, value = points[k], there[k]
    return best


def candidates(
    found: Surface, best: Array, scale: float, samples: Array, leaders: Array, rng: Generator
) -> Array:
    """Near the best, towards the best samples, at these, near all, anywhere, uphill.  (n, d)"""
    d, (near, towards, at, past, anywhere) = best.size, KINDS
    normal, uniform = rng.standard_normal((near + past, d)), rng.random((anywhere, d))
    leading = leaders[rng.integers(len(leaders), size=towards + at)]
    reaches = scale * REACHES[rng.integers(len(REACHES), size=near), None]
    points = [
        best + reaches * normal[:near],
        best + rng.random((towards, 1)) * (leading[:towards] - best),
        leading[towards:],
        samples[rng.integers(len(samples), size=past)] + scale * normal[near:],
        uniform,
        found.uphill(best, STEPS * scale * math.sqrt(d)),
    ]
    return np.asarray(np.clip(np.concatenate(points), 0.0, 1.0))


def patience(dimension: int) -> float:
    """How much more a cloud may lose in many dimensions."""
    return max(1.0, float((dimension / MANY) ** 0.25))


def scale_at(found: Landscape, best: Array, scale: float, cloud: Array) -> float:
    """The largest scale, of those a factor apart, at which a cloud loses no more than it teaches.

    Nor more than there is to find. Both are (d/16)^¼ times as large in more than 16 dimensions,
    where narrow clouds see little but noise.
    """
    more = patience(best.size)
    worth, most_lost = more * WORTH, more * found.room
    score, payoff = (one.means(best[None])[0] for one in (found.scores, found.payoffs))
    most = found.payoffs.ceiling + math.sqrt(found.payoffs.noise)  # where all pay that, neither

    def pays(scale: float) -> bool:
        points = np.clip(best + scale * cloud, 0.0, 1.0)
        mean, taught = found.scores.taught(points)
        if score - mean.mean() > worth * taught.mean():
            return False
        mean, taught = found.payoffs.taught(points)
        may = np.minimum(np.clip(most - mean, 0.0, worth * taught), most_lost)
        return bool(payoff - mean.mean() <= may.mean())

    if pays(scale):
        while scale < LARGEST and pays(min(scale / STEP, LARGEST)):
            scale = min(scale / STEP, LARGEST)
        return scale
    while scale > SMALLEST and not pays(scale):
        scale = max(scale * STEP, SMALLEST)
    return scale


def moved_along(best: Array, scale: float, parameters: list[Coordinates], rng: Generator) -> Array:
    """The best point, moved along one parameter; a choice takes another option.  (d,)

    The step is s 2^j N(0, 1) with chance 2^-j, j >= 1, at most half the box, and reflected; s is
    the cloud's scale, and of a whole number no less than half of what it takes to the next one. No
    surface is asked: where a cloud narrowed too soon, it is too sure of what is beyond, and only
    plays may speak against a region.
    """
    point = best.copy()
    at, options, least = parameters[rng.integers(len(parameters))]
    if options:
        now = int(point[at[0]] >= 0.5) if len(at) == 1 else int(np.argmax(point[at]))
        other = (now + 1 + int(rng.integers(options - 1))) % options
        half, one = 0.25 + 0.5 * other, np.where(np.arange(options) == other, 0.75, 0.25)
        point[at] = half if len(at) == 1 else one
        return point
    doublings = 1 - int(math.log2(1.0 - rng.random()))
    reach = min(max(scale, least) * 2.0**doublings, 0.5)
    step = np.abs(point[at] + rng.standard_normal() * reach)
    point[at] = np.clip(np.where(step > 1, 2 - step, step), 0.0, 1.0)
    return point


def standing(found: Landscape, known: Known) -> Array:
    """The point that is recommended: played, paid, and not refuted by its own plays.  (d,)

    The given start stays it until something is better by a standard error of the difference.
    """
    samples, start = known.samples, known.start
    points = np.clip(samples.points[samples.paid], 0.0, 1.0)
    points = points[np.argsort(-found.scores.means(points), kind="stable")[:SPREAD]]
    refuted = samples.refuted(points, found.scores.means(points), found.scores.noise)
    values = found.values(points)
    top = points[int(np.argmax(np.where(refuted, values.min() - 1, values)))]
    if start.plays:
        mean, deviation = (float(one[0]) for one in found.payoffs.posterior(top[None]))
        if mean - start.mean < math.hypot(deviation, start.error):
            return start.point
    return np.asarray(top)
