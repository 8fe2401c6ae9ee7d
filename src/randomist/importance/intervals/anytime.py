"""Bets that may be looked at after every row: bounds that hold at all rounds at once, however policies were chosen.

Let X_t >= 0 be what row t says about an unknown m, with E[X_t | past] <= m: for a decision x played by x_t, the payoff
y in [0, 1] weighted by p_x(z)/p_{x_t}(z). For stakes λ_t >= 0 that are known before the row is,

    G_n(m) = Π_{t <= n} (1 + λ_t X_t) / (1 + λ_t m)

is a nonnegative supermartingale, because E[1 + λ_t X_t | past] <= 1 + λ_t m. So is any average of such products over
stakes, and by Ville's inequality G_n(m) >= 1/error happens at any n with probability at most `error`. G falls as m
grows: what it excludes lies below a bound.

Stakes are λ 2^-q: a grid of λ, and a level q that depends only on the pair (x, x_t), so that rows of an unlike policy
are bet on lightly. The best stake is about δ/Var X for m = E X - δ, which makes them inversely proportional to the
variance, as in any weighted mean of unequal samples. How much smaller the variance of own rows is depends on the
payoffs, so there are several ways to choose levels ("shapes"), and money on each. All that is kept of the rows is
Σ_t log(1 + λ_t X_t) of every stake and the number of rows at every level: O(stakes) a row, however many policies play.

Ville (1939), "Étude critique de la notion de collectif"; Waudby-Smith and Ramdas (2024), "Estimating means of bounded
random variables by betting"; for off-policy evaluation Karampatziakis, Mineiro and Ramdas (2021), "Off-policy
confidence sequences". Levels, shapes and the form that separates rows from m are choices made here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.importance.growth import BLOCK
from randomist.importance.intervals.fixed import Bets

LEVELS = 12  # a stake can be scaled by 2^0, ..., 2^-11
NONE = LEVELS  # the level at which nothing is bet
_EXPONENTS = np.arange(-9, 7)
STAKES: Array = np.exp2(_EXPONENTS.astype(np.float64))  # λ  (S,)
_LARGEST_GAIN = 1e9  # λX is cut here, so that BLOCK factors stay in float64; cutting can only lower a lower bound
CAP = _LARGEST_GAIN / STAKES[-1]
_STEPS = 44  # halvings of [0, 1]


def log_prior(shapes: int) -> Array:
    """How much money is on every stake of every shape; it adds up to 1.  (C, S)"""
    weight = 1.0 / (12.0 + (_EXPONENTS + 2.0) ** 2)
    return np.tile(np.log(weight / weight.sum() / shapes), (shapes, 1))


def levels_of(excess: Array, steepness: float) -> NDArray[np.int8]:
    """The level of a pair with `excess` d2 - 1: stakes fall like 1 / (1 + steepness · excess); NONE where it is inf."""
    with np.errstate(over="ignore"):
        level = np.round(np.log2(1.0 + steepness * np.minimum(excess, 1e300)))
    return np.minimum(level, NONE).astype(np.int8)


@dataclass(frozen=True, eq=False)
class AnytimeBets(Bets):
    """The bets on one variable, with so many rows at every level: what `Bank` inverts for many variables at once."""

    error: float
    counts: Indices  # (C, LEVELS)
    offsets: Array
    stakes: Array
    log_prior: Array

    @classmethod
    def on(cls, error: float, counts: Indices) -> AnytimeBets:
        shapes = len(counts)
        return cls(error, counts, np.zeros(shapes), np.tile(STAKES, (shapes, 1)), log_prior(shapes))

    def log_fair(self, m: float) -> Array:
        scaled = STAKES[:, None] * 2.0 ** -np.arange(LEVELS)  # (S, LEVELS)
        return np.asarray(self.counts @ np.log1p(scaled * m).T)


class Bank:
    """What bets on many variables have earned so far: K variables X >= 0, in C shapes, S stakes each.

    It grows by rows (`add`) and by variables (`open`). Sums do not depend on how rows come in chunks.
    """

    def __init__(self, size: int, shapes: int) -> None:
        self.shapes, self.rows = shapes, 0
        self._products, self._growth = np.ones((0, shapes, len(STAKES))), np.zeros((0, shapes, len(STAKES)))
        self.counts = np.zeros((0, shapes, LEVELS), np.int64)  # rows at every level
        self.open(size)

    def open(self, size: int) -> None:
        """Bets on further variables begin, until there are `size`."""
        more = size - len(self.counts)
        if more > 0:
            new = (more, self.shapes, len(STAKES))
            self._products, self._growth = (
                np.append(self._products, np.ones(new), 0),
                np.append(self._growth, np.zeros(new), 0),
            )
            self.counts = np.append(self.counts, np.zeros((more, self.shapes, LEVELS), np.int64), 0)

    def add(self, variables: Array, kinds: Indices, levels: NDArray[np.int8]) -> None:
        """Some more rows: row i has `variables[i]` and is bet on at `levels[kinds[i]]`.  (n, K), (n,), (J, C, K)"""
        _add(variables, kinds, levels, STAKES, CAP, self.rows, self._products, self._growth, self.counts)
        self.rows += len(variables)

    def growth(self) -> Array:
        """Σ_t log(1 + λ_t X_t).  (K, C, S)"""
        return np.asarray(self._growth + np.log(self._products))

    def log_evidence(self, m: Array, lost: Indices) -> Array:
        """log G(m) of every variable and stake, without the prior; `lost` rows have X = 0.  (K,) -> (K, C, S)"""
        return self.growth() - log_fair(self.counts + lost, m)

    def lower_bounds(self, errors: Array, lost: Indices) -> Array:
        """The largest m in [0, 1] below which all can be excluded, one for every variable.  (K,) -> (K,)"""
        return _lower_bounds(self.growth(), self.counts + lost, log_prior(self.shapes), STAKES, -np.log(errors))


def log_fair(counts: Indices, m: Array) -> Array:
    """Σ_t log(1 + λ_t m) of every variable and stake.  (K, C, LEVELS), (K,) -> (K, C, S)"""
    return _log_fair(counts, np.ascontiguousarray(m, np.float64), STAKES)


def mixed(log_wealth: Array) -> Array:
    """The logarithm of all money, given that of every stake without the prior.  (K, C, S) -> (K,)"""
    weighted = log_wealth + log_prior(log_wealth.shape[1])
    top = weighted.max(axis=(1, 2))
    return np.asarray(top + np.log(np.exp(weighted - top[:, None, None]).sum(axis=(1, 2))))


def least_product(gain: Array, gains: int, loss: Array, losses: Indices) -> tuple[Array, Array]:
    """The least of log G(m) + log G'(1 - m) over m in [0, 1], for bets on own rows, all at level 0.

    G bets on one variable, with Σ log(1 + λ X) in `gain`, over so many rows; G' on each of K others, as `loss` says.
    The second array has the same for the best stakes, without the prior.  (S,), (), (K, S), (K,) -> (K,), (K,)
    """
    return _least_product(gain, float(gains), loss, losses.astype(np.float64), log_prior(1)[0], STAKES)


@compiled
def _own_evidence(growth: Array, rows: float, prior: Array, stakes: Array, m: float) -> tuple[float, float]:
    """log of all money, and of the best stake's without the prior."""
    top, best, total = -math.inf, -math.inf, 0.0
    for s in range(len(stakes)):
        wealth = growth[s] - rows * math.log1p(stakes[s] * m)
        best = max(best, wealth)
        wealth += prior[s]
        if wealth > top:
            total = total * math.exp(top - wealth) + 1.0
            top = wealth
        else:
            total += math.exp(wealth - top)
    return top + math.log(total), best


@compiled
def _least_product(
    gain: Array, gains: float, loss: Array, losses: Array, prior: Array, stakes: Array
) -> tuple[Array, Array]:
    """By thirds: both logarithms are convex in m. The ends are looked at too, because the least may be there."""
    least, best = np.full(len(loss), math.inf), np.zeros(len(loss))
    for k in range(len(loss)):
        low, high = 0.0, 1.0
        for step in range(_STEPS):
            if step == 0:
                left, right = low, high
            else:
                left, right = low + (high - low) / 3.0, high - (high - low) / 3.0
            all_left, best_left = _own_evidence(gain, gains, prior, stakes, left)
            other, best_other = _own_evidence(loss[k], losses[k], prior, stakes, 1.0 - left)
            all_left, best_left = all_left + other, best_left + best_other
            all_right, best_right = _own_evidence(gain, gains, prior, stakes, right)
            other, best_other = _own_evidence(loss[k], losses[k], prior, stakes, 1.0 - right)
            all_right, best_right = all_right + other, best_right + best_other
            if all_left < least[k]:
                least[k], best[k] = all_left, best_left
            if all_right < least[k]:
                least[k], best[k] = all_right, best_right
            if step > 0 and all_left < all_right:
                high = right
            elif step > 0:
                low = left
    return least, best


@compiled
def _add(
    variables: Array,
    kinds: Indices,
    levels: NDArray[np.int8],
    stakes: Array,
    cap: float,
    before: int,
    products: Array,
    growth: Array,
    counts: Indices,
) -> None:
    """Factors are multiplied, and one logarithm is taken every BLOCK rows."""
    n, K = variables.shape
    C, S = products.shape[1:]
    for i in range(n):
        level = levels[kinds[i]]
        for k in range(K):
            x = min(variables[i, k], cap)
            for c in range(C):
                q = level[c, k]
                if q < counts.shape[2]:
                    counts[k, c, q] += 1
                    scaled = x / (1 << q)
                    if scaled > 0.0:
                        for s in range(S):
                            products[k, c, s] *= 1.0 + stakes[s] * scaled
        if (before + i + 1) % BLOCK == 0:
            for k in range(K):
                for c in range(C):
                    for s in range(S):
                        growth[k, c, s] += math.log(products[k, c, s])
                        products[k, c, s] = 1.0


@compiled
def _log_fair(counts: Indices, m: Array, stakes: Array) -> Array:
    K, C, levels = counts.shape
    S = len(stakes)
    fair = np.zeros((K, C, S))
    table = np.empty(S + levels - 1)
    for k in range(K):
        for e in range(len(table)):
            table[e] = math.log1p(stakes[S - 1] * 2.0 ** (e - len(table) + 1) * m[k])
        for c in range(C):
            for q in range(levels):
                if counts[k, c, q]:
                    for s in range(S):
                        fair[k, c, s] += counts[k, c, q] * table[s + levels - 1 - q]
    return fair


@compiled
def _log_evidence(growth: Array, counts: Indices, prior: Array, stakes: Array, m: float, table: Array) -> float:
    """log of all money on one variable; stakes are successive powers of 2, so that their levels share a table."""
    C, S = growth.shape
    levels = counts.shape[1]
    for e in range(len(table)):
        table[e] = math.log1p(stakes[S - 1] * 2.0 ** (e - len(table) + 1) * m)
    top, total = -math.inf, 0.0
    for c in range(C):
        for s in range(S):
            wealth = prior[c, s] + growth[c, s]
            for q in range(levels):
                if counts[c, q]:
                    wealth -= counts[c, q] * table[s + levels - 1 - q]
            if wealth > top:
                total = total * math.exp(top - wealth) + 1.0
                top = wealth
            else:
                total += math.exp(wealth - top)
    return top + math.log(total)


@compiled
def _lower_bounds(growth: Array, counts: Indices, prior: Array, stakes: Array, needed: Array) -> Array:
    K = len(growth)
    bounds = np.zeros(K)
    table = np.empty(len(stakes) + counts.shape[2] - 1)
    for k in range(K):
        low, high = 0.0, 1.0  # evidence falls from low to high
        if _log_evidence(growth[k], counts[k], prior, stakes, low, table) < needed[k]:
            continue
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            if _log_evidence(growth[k], counts[k], prior, stakes, middle, table) >= needed[k]:
                low = middle
            else:
                high = middle
        bounds[k] = low
    return bounds
