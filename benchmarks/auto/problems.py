"""The design set of Auto: where it was seen to fail, and what it must not lose.

A problem is made from a seed, which also draws where its best point lies: seeds below `JUDGED` are for design, those
from there on for judging (with the functions of `functions.TABLE` in the place of those of `DESIGN`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import randomist as rd
from benchmarks.auto.functions import DESIGN, TABLE, Function

Array = NDArray[np.float64]
JUDGED = 1000  # seeds from here on are never looked at while something is designed
DRAWN = 2000  # uniform points that say what a payoff is typically


@dataclass(frozen=True, eq=False)
class Problem:
    """Points are rows of a box; `means` is the truth, NaN where a call fails."""

    low: Array  # (d,)
    high: Array  # (d,)
    means: Callable[[Array], Array]  # (n, d) -> (n,)
    noise: Callable[[Array, float, int, np.random.Generator], float]  # point, its mean, round
    best: float
    first: Array | None = None
    parameters: rd.Parameters | None = None
    failing: float = 0.0  # chance of a call to fail, wherever it is

    def payoff(self, point: Array, t: int, rng: np.random.Generator) -> float:
        """What one call returns: NaN where it fails."""
        mean = float(self.means(point[None])[0])
        noise, fails = self.noise(point, mean, t, rng), rng.random() < self.failing
        return math.nan if fails else mean + noise

    @cached_property
    def typical(self) -> float:
        """The mean payoff of a uniform random point that does not fail."""
        rng, d = np.random.default_rng(0), len(self.low)
        points = rng.uniform(self.low, self.high, (DRAWN, d))
        return float(np.nanmean(self.means(points)))

    def shares(self, points: Array) -> Array:
        """1 at the best point, 0 at what is typical, -1 where a call fails.  (n, d) -> (n,)"""
        found = (self.means(points) - self.typical) / (self.best - self.typical)
        return np.where(np.isnan(found), -1.0, found)


def gaussian(std: float) -> Callable[[Array, float, int, np.random.Generator], float]:
    return lambda point, mean, t, rng: std * float(rng.standard_normal())


def plain(d: int, means: Callable[[Array], Array], std: float, best: float, **more: Any) -> Problem:
    """In the unit cube, with Gaussian noise."""
    return Problem(np.zeros(d), np.ones(d), means, gaussian(std), best, **more)


def known(name: str, seed: int) -> Problem:
    """A function of the design set, or its like of the set for judging."""
    function = _function(name, seed >= JUDGED)

    def noise(point: Array, mean: float, t: int, rng: np.random.Generator) -> float:
        return function.noise(function.unit(point), t, rng)

    return Problem(function.low, function.high, function.mean, noise, float(function.best))


def _function(name: str, judged: bool) -> Function:
    if not judged:
        return DESIGN[name]
    kind = name.rpartition("-")[0]
    return TABLE.get(name) or next(f for n, f in TABLE.items() if n.rpartition("-")[0] == kind)


def stock(seed: int) -> Problem:
    """(s, S) inventory: one basin, and noise that hides its slope. s and S - s, each up to 3,000."""

    def play(points: Array, runs: int, rng: np.random.Generator) -> Array:
        n, periods = len(points), 120
        s, top = points[:, :1], points.sum(axis=1, keepdims=True)
        demand = rng.exponential(100.0, (1, runs, periods))
        lead = rng.poisson(6.0, (1, runs, periods)) + 1
        have, coming = np.broadcast_to(top, (n, runs)).copy(), np.zeros((n, runs))
        arriving, cost = np.zeros((n, runs, periods + 60)), np.zeros((n, runs))
        rows, columns = np.indices((n, runs))
        for t in range(periods):
            have += arriving[..., t]
            coming -= arriving[..., t]
            have -= demand[..., t]
            order = np.where(have + coming < s, top - have - coming, 0.0)
            at = np.broadcast_to(t + np.minimum(lead[..., t], 59), (n, runs))
            arriving[rows, columns, at] += order
            coming += order
            if t >= 20:
                cost += np.maximum(have, 0) + 4 * np.maximum(-have, 0) + 36 * (order > 0) + 2 * order
        return -cost / 1e4

    def means(points: Array) -> Array:
        return play(np.atleast_2d(points), 60, np.random.default_rng(1)).mean(axis=1)

    def noise(point: Array, mean: float, t: int, rng: np.random.Generator) -> float:
        return float(play(point[None], 1, rng)[0, 0]) - mean

    return Problem(np.zeros(2), np.full(2, 3000.0), means, noise, -6.7)


def products(seed: int) -> Problem:
    """Six stocks, whole numbers from 0 to 60, of products with prices and costs; demand is Poisson's."""
    rng = np.random.default_rng(seed)
    demand, price, cost = rng.uniform(8, 40, 6), rng.uniform(1.5, 4, 6), rng.uniform(0.3, 1.2, 6)
    levels = np.arange(61)
    draws = np.minimum(levels[:, None, None], rng.poisson(demand, (4000, 6)).T[None])  # (61, 6, n)
    table = price * draws.mean(axis=2) - cost * levels[:, None]  # (61, 6)

    def mean(x: dict[str, Any]) -> float:
        return float(table[list(x.values()), np.arange(6)].sum())

    space = rd.Parameters(**{f"stock{i}": rd.Integer(0, 60) for i in range(6)})
    return _named(space, mean, 15.0, float(table.max(axis=0).sum()))


def raw(seed: int) -> Problem:
    """Fifteen reals between 0.001 and 1,000, of which one matters, by its order of magnitude."""

    def means(points: Array) -> Array:
        return np.asarray(-((np.log10(points[:, 3]) - 0.7) ** 2))

    return Problem(np.full(15, 1e-3), np.full(15, 1e3), means, gaussian(0.3), 0.0)


def started(seed: int) -> Problem:
    """A good present setting in a wide box with a quiet plateau; noise grows with the payoff."""
    width, at = np.array([60.0, 60.0, 80.0]), np.array([110.0, 70.0, 130.0])

    def means(points: Array) -> Array:
        return np.asarray(200 * np.exp(-(((points - at) / width) ** 2).sum(axis=1)))

    def noise(point: Array, mean: float, t: int, rng: np.random.Generator) -> float:
        return 1.2 * mean * float(rng.standard_normal())

    box, first = np.array([2203.0, 4869.0, 3981.0]), np.array([80.0, 40.0, 100.0])
    return Problem(np.zeros(3), box, means, noise, 200.0, first)


def options(seed: int) -> Problem:
    """Two numbers and a mode, additive, the optimum near an edge and the best mode ahead of another."""
    rng = np.random.default_rng(seed)
    steep, power = float(rng.choice([1, 3])), float(rng.choice([1.5, 1.6]))
    worth = np.array([0.0, 1.0, float(rng.choice([-1.0, 0.0, 0.5]))])
    space = rd.Parameters(kp=rd.Real(0.1, 1000, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b", "c"))

    def mean(x: dict[str, Any]) -> float:
        away = (math.log10(x["kp"]) - power) ** 2 + (x["taps"] - 4) ** 2 / 20
        return float(-steep * away + worth["abc".index(x["mode"])])

    return _named(space, mean, 0.05, 1.0)


def ridge(seed: int) -> Problem:
    """A valley across two reals, and two switches that depend on each other."""
    sign = 1 if seed % 2 else -1
    space = rd.Parameters(
        x=rd.Real(1e-3, 10, log=True), y=rd.Real(-2, 2), steps=rd.Integer(1, 128, log=True),
        flag=rd.Choice(True, False), form=rd.Choice("round", "square"),
    )  # fmt: skip

    def mean(x: dict[str, Any]) -> float:
        bent = (math.log10(x["x"]) + 1 - x["y"]) ** 2
        side = (0.4 if x["flag"] else 0.0) * (sign if x["form"] == "round" else -sign)
        return float(side - bent - 0.1 * (math.log2(x["steps"]) - 4) ** 2 - 0.05 * (x["y"] - 1) ** 2)

    return _named(space, mean, 0.1, 0.4)


def _named(space: rd.Parameters, mean: Callable[[dict[str, Any]], float], std: float, best: float) -> Problem:
    def means(points: Array) -> Array:
        return np.array([mean(space.named(point)) for point in points])

    return plain(space.dimension, means, std, best, parameters=space)


def region(seed: int) -> Problem:
    """A third of the box fails, and the payoff rises towards it."""
    place = np.random.default_rng(seed).uniform(0.2, 0.8, 2)

    def means(points: Array) -> Array:
        value = points[:, 0] - ((points[:, 1:] - place) ** 2).sum(axis=1)
        return np.where(points[:, 0] > 2 / 3, np.nan, value)

    return plain(3, means, 0.1, 2 / 3)


def chance(seed: int) -> Problem:
    """Three calls of ten fail, wherever they are."""
    return plain(4, partial(_bowl, _place(seed, 4)), 0.2, 0.0, failing=0.3)


def quiet(seed: int) -> Problem:
    return plain(4, partial(_bowl, _place(seed, 4)), 0.2, 0.0)


def _place(seed: int, d: int) -> Array:
    return np.random.default_rng(seed).uniform(0.2, 0.8, d)


def _bowl(place: Array, points: Array) -> Array:
    return np.asarray(-2 * ((points - place) ** 2).sum(axis=1))


def tops(seed: int) -> Problem:
    """Two separate tops in three dimensions: the wide one is the lower one."""
    rng = np.random.default_rng(seed)
    high = rng.uniform(0.15, 0.85, 3)
    wide = np.where(high > 0.5, high - 0.45, high + 0.45) + rng.uniform(-0.05, 0.05, 3)

    def means(points: Array) -> Array:
        one, two = (((points - at) ** 2).sum(axis=1) for at in (high, wide))
        return np.asarray(np.maximum(np.exp(-one / 0.045), 0.75 * np.exp(-two / 0.18)))

    return plain(3, means, 0.1, 1.0)


def creeping(seed: int) -> Problem:
    """Seven parameters, of which three pairs move together: across a pair it is steep, along it is flat."""
    rng = np.random.default_rng(seed)
    apart, along = rng.uniform(-0.2, 0.2, 3), rng.uniform(0.5, 1.5, 3)
    rest = float(rng.uniform(0.2, 0.8))

    def means(points: Array) -> Array:
        one, two = points[:, 0:6:2], points[:, 1:6:2]
        steep = 20 * ((one - two - apart) ** 2).sum(axis=1)
        flat = 0.7 * ((one + two - along) ** 2).sum(axis=1)
        return np.asarray(-np.log1p(steep + flat + (points[:, 6] - rest) ** 2))

    return plain(7, means, 0.05, 0.0)


def slope(seed: int) -> Problem:
    """It rises towards a corner; the noise of a play is as large as the whole slope of a parameter."""
    rng = np.random.default_rng(seed)
    corner, falls = rng.integers(0, 2, 5).astype(float), rng.uniform(0.1, 0.5, 5)

    def means(points: Array) -> Array:
        return np.asarray(-np.abs(points - corner) @ falls)

    return plain(5, means, 0.5, 0.0)


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "inventory": stock,
    "products-6": products,
    "raw-15": raw,
    "good-start": started,
    "options": options,
    "ridge": ridge,
    "failing-third": region,
    "failing-chance": chance,
    "bowl-4": quiet,
    "two-tops": tops,
    "creeping-7": creeping,
    "slope-5": slope,
    **{
        name: partial(known, name)
        for name in (
            "system-6", "smooth-2", "smooth-10", "smooth-20", "basins-2", "sparse-3", "plateau-2", "rough-5",
            "one-of-15", "valley-4", "corner-8", "heavy-4", "burst-3", "coins-2",
        )
    },
}  # fmt: skip
QUICK: Sequence[str] = [name for name in PROBLEMS if name != "smooth-20"]
