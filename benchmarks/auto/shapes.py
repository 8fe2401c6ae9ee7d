"""Mean payoffs over the unit cube, with their best value known in closed form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CAP = 100.0  # the cost of a controller that does not stabilise its system


@dataclass(frozen=True, eq=False)
class Shape:
    """A mean payoff, the best point of the cube, and what is earned there."""

    value: Callable[[Array], Array]  # (..., d) -> (...)
    place: Array  # (d,)
    best: float = 0.0

    @property
    def dimension(self) -> int:
        return len(self.place)


def quadratic(
    d: int,
    seed: int,
    weights: Sequence[float] | None = None,
    at: Mapping[int, float] | None = None,
    slope: Mapping[int, float] | None = None,
    only: Sequence[int] | None = None,
) -> Shape:
    """-4/√d (u - c)ᵀ A (u - c): random points then scatter alike in every dimension.

    A is a rotation of curvatures between 0.5 and 2; with `weights` it is those, along the axes; with `only` the other
    coordinates do not matter. `at` puts some coordinates of c at an edge, where `slope` makes the payoff fall at once
    (these coordinates are not rotated).
    """
    rng = np.random.default_rng(seed)
    place = rng.uniform(0.2, 0.8, d)
    for i, edge in (at or {}).items():
        place[i] = edge
    if weights is not None:
        matrix = np.diag(weights)
    elif only is not None:
        matrix = 2.0 * d**0.5 * np.diag(np.isin(np.arange(d), only).astype(float))
    else:
        free = [i for i in range(d) if i not in (slope or {})]
        rotation = np.linalg.qr(rng.standard_normal((len(free), len(free))))[0]
        matrix = np.zeros((d, d))
        matrix[np.ix_(free, free)] = (rotation * 2 ** rng.uniform(-1, 1, len(free))) @ rotation.T
    falls = np.array([(slope or {}).get(i, 0.0) for i in range(d)])

    def value(u: Array) -> Array:
        away = u - place
        return -4 / np.sqrt(d) * ((away @ matrix) * away).sum(axis=-1) - np.abs(away) @ falls

    return Shape(value, place)


def rippled(d: int, seed: int, waves: int, height: float) -> Shape:
    """A quadratic under ripples: `waves` local optima along each coordinate."""
    smooth = quadratic(d, seed)

    def value(u: Array) -> Array:
        return smooth.value(u) - height * (1 - np.cos(2 * np.pi * waves * (u - smooth.place))).mean(axis=-1)

    return Shape(value, smooth.place)


def basins(d: int, seed: int, heights: Sequence[float], width: float) -> Shape:
    """A few bumps, the highest of them the first, and 0 between."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0.15, 0.85, (len(heights), d))
    tops = np.asarray(heights)

    def value(u: Array) -> Array:
        away = ((u[..., None, :] - places) ** 2).sum(axis=-1)  # (..., bumps)
        return (tops * np.exp(-away / (2 * width**2))).max(axis=-1)

    return Shape(value, places[0], float(tops[0]))


def sparse(d: int, seed: int, draws: int) -> Shape:
    """0 but in a ball that a uniform point hits once in `draws`: there between 0.5, at its border, and 1."""
    radius = {1: 0.5 / draws, 2: (1 / (np.pi * draws)) ** (1 / 2), 3: (3 / (4 * np.pi * draws)) ** (1 / 3)}[d]
    place = np.random.default_rng(seed).uniform(radius, 1 - radius, d)

    def value(u: Array) -> Array:
        away = ((u - place) ** 2).sum(axis=-1) / radius**2
        return np.where(away <= 1, 1 - away / 2, 0.0)

    return Shape(value, place, 1.0)


def corner(place: Sequence[int], slopes: Sequence[float]) -> Shape:
    """The payoff falls in proportion to the distance from a corner."""
    at, falls = np.array(place, dtype=float), np.asarray(slopes)
    return Shape(lambda u: -np.abs(u - at) @ falls, at)


def plateau(ridge: Sequence[float | None], side: int, begins: float, width: float) -> Shape:
    """0 over most of the cube; along the first free coordinate (None) it rises from `begins` to 1 at the edge `side`.

    It does so near the given coordinates of `ridge` only, within about `width`; further free ones do not matter.
    """
    free = [i for i, at in enumerate(ridge) if at is None]
    fixed = [i for i, at in enumerate(ridge) if at is not None]
    along, at = free[0], np.array([ridge[i] for i in fixed], dtype=float)
    place = np.array([0.5 if at is None else at for at in ridge])
    place[along] = side

    def value(u: Array) -> Array:
        rise = np.maximum((u[..., along] - begins) / (side - begins), 0.0)
        near = np.exp(-((u[..., fixed] - at) ** 2).sum(axis=-1) / (2 * width**2))
        return rise * near

    return Shape(value, place, 1.0)


def valley(d: int) -> Shape:
    """-log(1 + Rosenbrock's function) on [-2, 2]^d: a bent valley a hundred times steeper than its floor."""

    def value(u: Array) -> Array:
        x = 4 * u - 2
        before, after = x[..., :-1], x[..., 1:]
        return -np.log1p((100 * (after - before**2) ** 2 + (1 - before) ** 2).sum(axis=-1))

    return Shape(value, np.full(d, 0.75))


def constant(d: int, level: float) -> Shape:
    return Shape(lambda u: np.full(u.shape[:-1], level), np.full(d, 0.5), level)


def unstable_system(seed: int, width: float) -> Shape:
    """Six gains K of two inputs, u = -K x, on a system of three states that runs away by itself.

    x' = A x + B u + w with E[w wᵀ] = W. The payoff is minus the mean cost E[xᵀx + 0.1 uᵀu] per step in the long run:
    the covariance S of the state solves S = F S Fᵀ + W with F = A - B K. It is -100 where F is not stable, or the cost
    is larger. The best gains solve Riccati's equation; the box is `width` wide, and they are not at its centre.
    """
    from scipy.linalg import solve_discrete_are

    rng = np.random.default_rng(seed)
    a = 0.45 * rng.standard_normal((3, 3))
    a *= 1.15 / np.abs(np.linalg.eigvals(a)).max()
    b, w, price = rng.standard_normal((3, 2)), np.diag([0.3, 0.2, 0.1]), 0.1
    riccati = solve_discrete_are(a, b, np.eye(3), price * np.eye(2))
    gains = np.linalg.solve(price * np.eye(2) + b.T @ riccati @ b, b.T @ riccati @ a)
    place = rng.uniform(0.3, 0.7, 6)

    def value(u: Array) -> Array:
        k = (gains.ravel() + width * (u - place)).reshape(*u.shape[:-1], 2, 3)
        f = a - b @ k
        stable = np.abs(np.linalg.eigvals(f)).max(axis=-1) < 1
        f = np.where(stable[..., None, None], f, 0.0)
        twice = np.einsum("...ij,...kl->...ikjl", f, f).reshape(*f.shape[:-2], 9, 9)  # F ⊗ F
        s = np.linalg.solve(np.eye(9) - twice, w.reshape(9, 1)).reshape(*f.shape[:-2], 3, 3)
        cost = np.einsum("...ii->...", s) + price * np.einsum("...ij,...jk,...ik->...", k, s, k)
        return np.where(stable, -np.minimum(cost, CAP), -CAP)

    return Shape(value, place, -float(np.trace(riccati @ w)))
