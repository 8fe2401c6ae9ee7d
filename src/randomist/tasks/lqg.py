"""Linear-quadratic Gaussian control with clipped states and actions, and its exact expected payoff.

A. Metelli, M. Papini, P. D'Oro and M. Restelli, Policy Optimization as Online Learning with Mediator Feedback, AAAI
2021, Figure 3 left; P. Dorato, V. Cerone and C. Abdallah, Linear-Quadratic Control, 1995, for the problem.
"""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import choice, number, whole_number
from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.errors import ParameterError, ShapeError
from randomist.families import Gaussian
from randomist.policies import Linear
from randomist.spaces import Box, Finite, Space
from randomist.tasks.base import ControlTask

if TYPE_CHECKING:
    import gymnasium
    from scipy.interpolate import PPoly

_TAIL = 8.0  # standard deviations of the gain that the quadrature covers
_GAINS = 100  # per unit, in the table of J(θ); they and the cells of the state grid give J(ξ) to about 1e-5
_CELLS = 400
_KINKS = (-2, -1, 0, 1)  # gains where J is not smooth: at 1, say, a state at the limit begins to earn nothing
_MOST_DECISIONS = 10**6
_BLOCK = 2**20  # normal draws held at a time


class LQG(ControlTask):
    """Steer x' = x + u + N(0, noise_std²) to 0 with u = θx; the payoff is the normalised discounted return.

    States and actions are clipped to [-limit, limit], x_0 is uniform there, the reward is 1 less the cost
    state_cost x² + action_cost u² (of the clipped action) over its maximum, and the return is divided by Σ_h γ^h:
    payoffs lie in [0, 1]. The mediator is the gain, θ ~ N(ξ, std²), and the decisions are `points` values of ξ from
    `low` to `high`, or with `space="box"` all of them. A gain that is not finite gives a payoff of NaN.

    In `dimension` d > 1 the state, action and gain are vectors, A = B = I, and the gain matrix is diagonal,
    u_i = θ_i x_i: the cost over its maximum is then the average over coordinates, and so is the exact J(ξ) of the
    one-dimensional ones. The space is a box unless `space="grid"` asks for points^d decisions.

    Parameters
    ----------
    points
        How many decisions the grid has per dimension.
    std
        Of the hyperpolicy N(ξ, std²): a number, or one per coordinate.
    low, high
        The ends of the grid, or the corners of the box.
    horizon
        How many steps an episode has.
    discount
        γ in (0, 1].
    noise_std
        The standard deviation of the noise in each coordinate.
    limit
        What states and actions are clipped to, in absolute value.
    state_cost, action_cost
        The weights of x² and u² in the cost; only their ratio matters.
    dimension
        d, how many coordinates the state has.
    space
        "grid" or "box"; by default a grid in one dimension, a box in more.
    """

    id = "lqg"
    space: Space

    def __init__(
        self,
        points: int = 100,
        std: ArrayLike = 0.15,
        low: ArrayLike = -1.0,
        high: ArrayLike = 1.0,
        horizon: int = 20,
        discount: float = 0.99,
        noise_std: float = 0.1,
        limit: float = 4.0,
        state_cost: float = 0.9,
        action_cost: float = 0.9,
        dimension: int = 1,
        space: Literal["grid", "box"] | None = None,
    ) -> None:
        self.horizon, self.dimension = whole_number(horizon, "horizon"), whole_number(dimension, "dimension")
        self.discount = number(discount, "discount", above=0, most=1)
        self.noise_std, self.limit = number(noise_std, "noise_std", least=0), number(limit, "limit", above=0)
        self.state_cost = number(state_cost, "state_cost", least=0)
        self.action_cost = number(action_cost, "action_cost", least=0)
        if not 0 < self.state_cost + self.action_cost < math.inf:
            raise ParameterError(f"costs must not both be 0 and have a finite sum, got {state_cost} and {action_cost}")
        if space is not None:
            choice(space, ("grid", "box"), "space")
        self.policy = Linear(self.dimension, self.dimension, diagonal=True, action_scale=1 / self.limit)
        shape = () if dimension == 1 else (dimension,)
        if np.shape(std) not in ((), shape):
            raise ShapeError(f"std must be a number or have shape {shape}, got {np.shape(std)}")
        family = Gaussian(std=np.broadcast_to(np.asarray(std, dtype=np.float64), shape))
        self._box = Box(family, low, high)
        if space == "box" or (space is None and dimension > 1):
            self.space = self._box
        elif points**dimension > _MOST_DECISIONS:
            raise ParameterError(
                f"a grid of {points} points in {dimension} dimensions has more than {_MOST_DECISIONS} decisions; "
                'take fewer points or space="box"'
            )
        else:
            self.space = Finite.grid(family, low, high, points)

    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """One episode per gain.  (n,), or (n, d) in d > 1 dimensions -> (n,)

        An episode takes `horizon` normal draws per coordinate from `rng`, one for the start (by its quantile) and one
        per transition, so a batch of mediators gets what the same mediators would get one by one.
        """
        from scipy.special import ndtr

        gains = self._box.family.mediator_rows(mediators)
        out = np.empty(len(gains))
        block = max(1, _BLOCK // (self.horizon * self.dimension))
        for begin in range(0, len(gains), block):
            chosen = gains[begin : begin + block]
            draws = rng.standard_normal((len(chosen), self.horizon, self.dimension))
            draws[:, 0] = self.limit * (2 * ndtr(draws[:, 0]) - 1)  # x_0, uniform
            draws[:, 1:] *= self.noise_std
            out[begin : begin + block] = _returns(
                chosen, draws, self.discount, self.limit, self.state_cost, self.action_cost
            )
        return out

    def make_env(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """`randomist/LQG-v0`, which takes actions as fractions of `limit`, with this task's constants."""
        import gymnasium

        names = ("dimension", "noise_std", "limit", "state_cost", "action_cost")
        constants = {name: getattr(self, name) for name in names}
        return gymnasium.make(
            "randomist.tasks.environments:randomist/LQG-v0", max_episode_steps=-1, render_mode=render_mode, **constants
        )

    def episode_payoff(self, rewards: ArrayLike) -> float:
        """The normalised discounted return Σγ^h r_h / Σγ^h."""
        earned: Array = np.asarray(rewards, dtype=np.float64)
        weights = self.discount ** np.arange(len(earned))
        return float(weights @ earned / weights.sum())

    def expected_payoff(self, decisions: ArrayLike | None = None) -> Array:
        """J(ξ), clipping included, exact to about 1e-5 (1e-3 if no noise smooths it); see `gain_values`.  (n,)"""
        if isinstance(self.space, Finite):
            indices: Indices | slice = slice(None) if decisions is None else self.space.family.indices(decisions)
            return self._table[indices].copy()
        if decisions is None:
            raise ParameterError("a box has no list of decisions; name those whose expected payoff you want")
        if not self.space.contains(decisions).all():
            raise ParameterError(f"decisions must lie between {self.space.low} and {self.space.high}")
        return self._expected(self.space.family.mediator_rows(decisions, "decisions"))

    @property
    def optimum(self) -> float:
        return self._optimum

    @cached_property
    def _optimum(self) -> float:
        from scipy.optimize import minimize_scalar  # slow to import, like all of scipy that is needed for J

        if isinstance(self.space, Finite):
            return float(self._table.max())
        lows, highs, stds = np.atleast_1d(self._box.low), np.atleast_1d(self._box.high), self._stds
        best = 0.0
        for low, high, std in zip(lows, highs, stds, strict=True):  # coordinates do not interact
            grid = np.linspace(low, high, 2001)
            k = int(self._expected_1d(grid, std).argmax())
            around = (grid[max(k - 1, 0)], grid[min(k + 1, 2000)])
            found = minimize_scalar(
                lambda x, std=std: -float(self._expected_1d(np.array([x]), std)[0]), bounds=around, method="bounded"
            )
            best += max(-found.fun, float(self._expected_1d(grid[[k]], std)[0])) / self.dimension
        return float(best)

    @cached_property
    def _table(self) -> Array:
        """J of every decision of a finite space.  (K,)"""
        assert isinstance(self.space, Finite)
        assert self.space.points is not None
        return self._expected(self.space.points)

    @property
    def _stds(self) -> Array:
        """Of every coordinate of the gain.  (d,)"""
        return np.atleast_1d(self._box.family.spread)

    def _expected(self, points: Array) -> Array:
        """(n, d) -> (n,)"""
        each = [self._expected_1d(points[:, i], std) for i, std in enumerate(self._stds)]
        return np.asarray(np.mean(each, axis=0))

    def _expected_1d(self, points: Array, std: float) -> Array:
        """E[J(θ)], θ ~ N(ξ, std²), by a trapezoidal rule fine enough for the kinks of J.  (n,) -> (n,)"""
        nodes = np.linspace(-_TAIL, _TAIL, 2 * math.ceil(_TAIL * max(64.0, 4 * _GAINS * std)) + 1)
        weights = np.exp(-0.5 * nodes**2)
        weights /= weights.sum()
        total = np.zeros(len(points))
        for node, weight in zip(nodes, weights, strict=True):
            total += weight * self._gain_value(points + std * node)
        return total

    @cached_property
    def _gain_value(self) -> PPoly:
        """J(θ) at every gain that a decision of the box can draw; one table per process and setting."""
        reach = _TAIL * self._stds
        low, high = float((self._box.low - reach).min()), float((self._box.high + reach).max())
        constants = (self.discount, self.noise_std, self.limit, self.state_cost, self.action_cost)
        return _gain_spline(low, high, self.horizon, *constants)


@lru_cache(maxsize=32)
def _gain_spline(
    low: float,
    high: float,
    horizon: int,
    discount: float,
    noise_std: float,
    limit: float,
    state_cost: float,
    action_cost: float,
) -> PPoly:
    """Cubic splines through J(θ) on a grid from `low` to `high`, one between each two kinks."""
    from scipy.interpolate import CubicSpline, PPoly

    ticks = np.arange(math.floor(low * _GAINS), math.ceil(high * _GAINS) + 1)
    blocks = np.array_split(ticks / _GAINS, math.ceil(ticks.size / 128))
    values = np.concatenate(
        [gain_values(block, horizon, discount, noise_std, limit, state_cost, action_cost) for block in blocks]
    )
    cuts = [tick * _GAINS - int(ticks[0]) for tick in _KINKS]
    ends = [0, *(cut for cut in cuts if 0 < cut < ticks.size - 1), ticks.size - 1]
    pieces = [CubicSpline(ticks[i : j + 1] / _GAINS, values[i : j + 1]) for i, j in pairwise(ends)]
    return PPoly(np.concatenate([piece.c for piece in pieces], axis=1), ticks / _GAINS)


def gain_values(
    gains: Array,
    horizon: int = 20,
    discount: float = 0.99,
    noise_std: float = 0.1,
    limit: float = 4.0,
    state_cost: float = 0.9,
    action_cost: float = 0.9,
    cells: int = _CELLS,
) -> Array:
    """J(θ), the expected payoff of u = θx, by dynamic programming over a grid of states.  (n,) -> (n,)

    V_h(x) = r(x, u) + γ G(x + u) with G(m) = E[V_{h+1}(clip(m + noise))]. All gains share the operator that takes V
    to G: it is exact for the piecewise linear V on the grid, and G, which the noise makes smooth, is read off its own
    grid by cubic interpolation. V and G are even, so grids begin at 0.
    """
    spacing = limit / cells
    states: Array = np.linspace(0.0, limit, cells + 1)  # (N,)
    means: Array = np.linspace(
        0.0, 2 * limit + 2 * spacing, 2 * cells + 3
    )  # |x + u| <= 2 limit, and a margin for the cubic  (M,)
    operator = _expectation_of_hats(means, limit, cells, max(noise_std, 1e-12)).T.copy()  # (N, M)
    reached = np.abs(operator) > 1e-12  # what is below is rounding
    first, last = reached.argmax(axis=1), means.size - reached[:, ::-1].argmax(axis=1)

    actions = np.clip(gains[:, None] * states, -limit, limit)  # (n, N)
    rewards = 1 - (state_cost * states**2 + action_cost * actions**2) / ((state_cost + action_cost) * limit**2)
    cell, t = np.divmod(np.abs(states + actions) / spacing, 1.0)
    index = cell.astype(np.int64)
    index, t = np.where(index == 2 * cells, index - 1, index), np.where(index == 2 * cells, 1.0, t)
    lagrange = (  # at -1, 0, 1, 2 cells
        (-1, -t * (t - 1) * (t - 2) / 6),
        (0, (t + 1) * (t - 1) * (t - 2) / 2),
        (1, -(t + 1) * t * (t - 2) / 2),
        (2, (t + 1) * t * (t - 1) / 6),
    )
    value = rewards.copy()
    for _ in range(horizon - 1):
        ahead = _banded_product(value, operator, first, last)  # G  (n, M)
        value = rewards.copy()
        for shift, weight in lagrange:
            value += discount * weight * np.take_along_axis(ahead, np.abs(index + shift), axis=1)
    total = float(np.sum(discount ** np.arange(horizon)))
    return np.asarray((value[:, 1:] + value[:, :-1]).sum(axis=1) / (2 * cells * total))  # x_0 uniform


@compiled
def _banded_product(left: Array, right: Array, first: Indices, last: Indices) -> Array:
    """left @ right, whose row k is zero outside first[k]:last[k].

    The order of additions is fixed. That of a BLAS depends on its threads, and so the last bits of its sums.
    """
    out = np.zeros((left.shape[0], right.shape[1]))
    for i in range(left.shape[0]):
        for k in range(left.shape[1]):
            for j in range(first[k], last[k]):
                out[i, j] += left[i, k] * right[k, j]
    return out


def _expectation_of_hats(means: Array, limit: float, cells: int, noise_std: float) -> Array:
    """E[hat_i(clip(m + noise))] for the piecewise linear basis on [0, limit] of even functions.  (M, N)

    Hats are second differences of (y - k)₊, whose expectation is s(zΦ(z) + φ(z)) with z = (m - k)/s.
    """
    from scipy.special import ndtr

    knots = limit / cells * np.arange(-cells, cells + 1)
    z = (means[:, None] - knots) / noise_std
    excess = noise_std * (z * ndtr(z) + np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi))
    ramps = -np.diff(excess, axis=1) * (cells / limit)  # from 0 to 1 between neighbouring knots  (M, 2 cells)
    hats = -np.diff(ramps, axis=1, prepend=1.0, append=0.0)  # constant beyond the ends: the clip  (M, 2 cells + 1)
    folded: Array = hats[:, cells:].copy()
    folded[:, 1:] += hats[:, cells - 1 :: -1]
    return folded


@compiled
def advance(
    x: float, u: float, noise: float, limit: float, state_cost: float, action_cost: float
) -> tuple[float, float]:
    """The next value of one coordinate, and its reward in [0, 1]."""
    u = min(max(u, -limit), limit)
    cost = state_cost * (x * x) + action_cost * (u * u)
    highest = state_cost * (limit * limit) + action_cost * (limit * limit)
    return min(max(x + u + noise, -limit), limit), 1.0 - cost / highest


@compiled
def step(
    state: Array, action: Array, noise: Array, limit: float, state_cost: float, action_cost: float
) -> tuple[Array, float]:
    """The next state and the reward of one step.  (d,), (d,), (d,) -> (d,), number"""
    following, total = np.empty_like(state), 0.0
    for i in range(state.size):
        following[i], reward = advance(state[i], action[i], noise[i], limit, state_cost, action_cost)
        total += reward
    return following, total / state.size


@compiled
def _returns(gains: Array, draws: Array, discount: float, limit: float, state_cost: float, action_cost: float) -> Array:
    """Normalised returns; draws[:, 0] are the starts, draws[:, t] the noise of step t.  (n, d), (n, H, d) -> (n,)"""
    n, horizon, dimension = draws.shape
    out = np.zeros(n)
    for i in range(n):
        for j in range(dimension):
            x, weight, total, norm = draws[i, 0, j], 1.0, 0.0, 0.0
            for t in range(horizon):
                noise = draws[i, t + 1, j] if t + 1 < horizon else 0.0  # the last transition does not matter
                x, reward = advance(x, gains[i, j] * x, noise, limit, state_cost, action_cost)
                total += weight * reward
                norm += weight
                weight *= discount
            out[i] += total / norm
        out[i] = out[i] / dimension if np.isfinite(gains[i]).all() else np.nan
    return out
