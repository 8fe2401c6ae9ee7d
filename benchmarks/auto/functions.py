"""Noisy functions on boxes: a set to design on, and one for the tables, of the same kinds with other places and noise.

`function.payoff(x, rng, t)` is what a learner is told at round t = 0, 1, ...; `function.mean(x)` is the truth. Shapes
are written in coordinates u where the box is [0, 1]^d; `DESIGN` and `TABLE` hold the functions by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.auto.shapes import (
    Array,
    Shape,
    basins,
    constant,
    corner,
    plateau,
    quadratic,
    rippled,
    sparse,
    unstable_system,
    valley,
)

Noise = Callable[[Array, int, np.random.Generator], float]  # at a point of the unit cube, in a round

BURST = range(100, 150)  # rounds of large noise


@dataclass(frozen=True, eq=False)
class Function:
    """A mean payoff over a box, and noise around it."""

    name: str
    shape: Shape
    noise: Noise
    low: Array  # (d,)
    high: Array  # (d,)

    @property
    def dimension(self) -> int:
        return len(self.low)

    @property
    def best(self) -> float:
        """The largest mean payoff in the box."""
        return self.shape.best

    @cached_property
    def typical(self) -> float:
        """The mean payoff of a uniform random point."""
        points = np.random.default_rng(0).uniform(self.low, self.high, size=(20_000, self.dimension))
        return float(self.mean(points).mean())

    def unit(self, x: ArrayLike) -> Array:
        """(..., d) -> (..., d); a number will do where d = 1."""
        rows = np.asarray(x, dtype=float)
        return ((rows if rows.ndim else rows[None]) - self.low) / (self.high - self.low)

    def mean(self, x: ArrayLike) -> Array:
        """The true mean payoff.  (..., d) -> (...)"""
        return np.asarray(self.shape.value(self.unit(x)))

    def payoff(self, x: ArrayLike, rng: np.random.Generator, t: int = 0) -> float:
        """What is told for a point in round t.  (d,) -> number"""
        return float(self.mean(x)) + self.noise(self.unit(x), t, rng)

    @property
    def flat(self) -> bool:
        """Whether all points are equal."""
        return self.best - self.typical < 1e-9

    def normalised(self, mean: ArrayLike) -> Array:
        """0 at the mean of a uniform random point, 1 at the best; NaN where all points are equal."""
        if self.flat:
            return np.full_like(mean, np.nan, dtype=float)
        return (np.asarray(mean) - self.typical) / (self.best - self.typical)


def gaussian(std: float) -> Noise:
    return lambda u, t, rng: std * float(rng.standard_normal())


def heavy(scale: float) -> Noise:
    """Student's t with 2 degrees of freedom: a mean, but no variance."""
    return lambda u, t, rng: scale * float(rng.standard_t(2))


def burst(std: float, during: float) -> Noise:
    return lambda u, t, rng: (during if t in BURST else std) * float(rng.standard_normal())


def growing(std: float, place: ArrayLike, slope: float) -> Noise:
    """The noise grows, or falls, with the distance from a place."""
    centre = np.asarray(place, dtype=float)
    return lambda u, t, rng: (std + slope * float(np.linalg.norm(u - centre))) * float(rng.standard_normal())


def proportional(std: float, share: float, shape: Shape) -> Noise:
    """The noise grows with the size of the mean payoff."""
    return lambda u, t, rng: (std + share * abs(float(shape.value(u)))) * float(rng.standard_normal())


def coins(shape: Shape) -> Noise:
    """Payoffs are 1 or 0, and the mean payoff is the chance of 1."""

    def noise(u: Array, t: int, rng: np.random.Generator) -> float:
        chance = float(shape.value(u))
        return float(rng.random() < chance) - chance

    return noise


def _set(entries: Iterable[tuple[str, Shape, Noise]], seed: int) -> dict[str, Function]:
    """Boxes of uneven widths, drawn by the seed."""
    rng, functions = np.random.default_rng(seed), {}
    for name, shape, noise in entries:
        low = rng.uniform(-5, 2, shape.dimension)
        functions[name] = Function(name, shape, noise, low, low + 10 ** rng.uniform(-1, 1, shape.dimension))
    return functions


_SYSTEM, _OTHER_SYSTEM = unstable_system(seed=0, width=1.5), unstable_system(seed=1, width=5.0)
_CHANCES = [basins(d, seed=18, heights=(0.9,), width=width) for d, width in ((2, 0.25), (5, 0.5))]
_OTHER_CHANCES = [basins(d, seed=69, heights=(0.85,), width=width) for d, width in ((3, 0.3), (8, 0.6))]

DESIGN = _set(
    [
        ("smooth-2", quadratic(2, seed=1), gaussian(0.3)),
        ("smooth-10", quadratic(10, seed=2), gaussian(0.2)),
        ("smooth-20", quadratic(20, seed=3), gaussian(0.2)),
        ("smooth-50", quadratic(50, seed=4), gaussian(0.2)),
        ("smooth-100", quadratic(100, seed=5), gaussian(0.2)),
        ("rough-5", rippled(5, seed=6, waves=8, height=0.6), gaussian(0.2)),
        ("basins-2", basins(2, seed=7, heights=(1.0, 0.8, 0.6), width=0.10), gaussian(0.2)),
        ("basins-6", basins(6, seed=8, heights=(1.0, 0.75, 0.7, 0.5), width=0.22), gaussian(0.1)),
        ("sparse-2", sparse(2, seed=9, draws=125), gaussian(0.0)),
        ("sparse-3", sparse(3, seed=10, draws=140), gaussian(0.05)),
        ("edge-3", quadratic(3, seed=11, at={0: 1.0}, slope={0: 1.0}), gaussian(0.2)),
        ("corner-2", corner((1, 0), slopes=(1.0, 0.6)), gaussian(0.2)),
        ("corner-8", corner((1, 0, 0, 1, 1, 0, 1, 0), slopes=(1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.3, 0.2)), gaussian(0.2)),
        ("plateau-2", plateau((None, 0.3), side=1, begins=0.75, width=0.2), gaussian(0.1)),
        ("heavy-4", quadratic(4, seed=12), heavy(0.2)),
        ("burst-3", quadratic(3, seed=13), burst(0.1, 5.0)),
        ("scaled-4", quadratic(4, seed=14, weights=(1.0, 20.0, 500.0, 1e4)), gaussian(20.0)),
        ("valley-4", valley(4), gaussian(0.2)),
        ("one-of-15", quadratic(15, seed=15, only=(4,)), gaussian(0.2)),
        ("uneven-noise-3", quadratic(3, seed=16), growing(0.05, quadratic(3, seed=16).place, 1.5)),
        ("line-1", basins(1, seed=17, heights=(1.0, 0.7), width=0.06), gaussian(0.2)),
        ("flat-3", constant(3, 0.5), gaussian(0.0)),
        ("noise-3", constant(3, 0.5), gaussian(0.3)),
        ("system-6", _SYSTEM, proportional(0.1, 0.1, _SYSTEM)),
        *((f"coins-{shape.dimension}", shape, coins(shape)) for shape in _CHANCES),
    ],
    seed=100,
)

TABLE = _set(
    [
        ("smooth-2", quadratic(2, seed=51), gaussian(0.4)),
        ("smooth-10", quadratic(10, seed=52), gaussian(0.3)),
        ("smooth-20", quadratic(20, seed=53), gaussian(0.3)),
        ("smooth-50", quadratic(50, seed=54), gaussian(0.3)),
        ("smooth-100", quadratic(100, seed=55), gaussian(0.3)),
        ("rough-5", rippled(5, seed=56, waves=11, height=0.8), gaussian(0.3)),
        ("basins-2", basins(2, seed=57, heights=(1.0, 0.85, 0.7, 0.5), width=0.08), gaussian(0.15)),
        ("basins-6", basins(6, seed=58, heights=(1.0, 0.8, 0.6), width=0.25), gaussian(0.15)),
        ("sparse-2", sparse(2, seed=59, draws=100), gaussian(0.1)),
        ("sparse-3", sparse(3, seed=60, draws=130), gaussian(0.0)),
        ("edge-4", quadratic(4, seed=61, at={2: 0.0}, slope={2: 0.8}), gaussian(0.3)),
        ("corner-2", quadratic(2, seed=62, at={0: 0.0, 1: 0.0}), gaussian(0.15)),
        ("corner-8", corner((0, 1, 1, 0, 1, 1, 0, 0), slopes=(0.3, 0.9, 0.2, 0.7, 0.5, 0.4, 0.6, 0.3)), gaussian(0.3)),
        ("plateau-3", plateau((0.6, None, None), side=0, begins=0.3, width=0.25), gaussian(0.1)),
        ("heavy-5", quadratic(5, seed=63), heavy(0.25)),
        ("burst-2", quadratic(2, seed=64), burst(0.15, 8.0)),
        ("scaled-5", quadratic(5, seed=65, weights=(1e4, 3.0, 1.0, 700.0, 60.0)), gaussian(30.0)),
        ("valley-5", valley(5), gaussian(0.3)),
        ("one-of-15", quadratic(15, seed=66, only=(11,)), gaussian(0.15)),
        ("uneven-noise-4", quadratic(4, seed=67), growing(0.6, quadratic(4, seed=67).place, -0.3)),
        ("line-1", basins(1, seed=68, heights=(1.0, 0.8, 0.6), width=0.05), gaussian(0.15)),
        ("flat-5", constant(5, -2.0), gaussian(0.0)),
        ("noise-2", constant(2, 10.0), gaussian(1.0)),
        ("system-6", _OTHER_SYSTEM, proportional(0.2, 0.05, _OTHER_SYSTEM)),
        *((f"coins-{shape.dimension}", shape, coins(shape)) for shape in _OTHER_CHANCES),
    ],
    seed=200,
)

SETS = {"design": DESIGN, "table": TABLE}
