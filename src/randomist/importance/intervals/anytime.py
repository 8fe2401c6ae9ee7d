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
_STEPS = 36  # halvings of [0, 1]
_SECTIONS = 30  # golden ones: what is left of [0, 1] is 1e-6, and the least of a smooth function known to its square


def log_prior(shapes: int) -> Array:
    """How much money is on every stake of every shape; it adds up to 1.  (C, S)"""
    weight = 1.0 / (12.0 + (_EXPONENTS + 2.0) ** 2)
    return np.tile(np.log(weight / weight.sum() / shapes), (shapes, 1))


def levels_of(excess: Array, steepness: float) -> NDArray[np.int8]:
    """The level of a pair with `excess` d2 - 1: stakes fall like 1 / (1 + steepness · excess); NONE where it is inf."""
    with np.errstate(over="ignore"):
        scaled = np.multiply(steepness, excess, out=np.zeros(len(excess)), where=excess > 0)
        level = np.round(np.log2(1.0 + scaled))
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


def least_product(gain: Bank, loss: Bank, gain_lost: Indices, loss_lost: Indices) -> tuple[Array, Array]:
    """The least of log G(m) + log G'(1 - m) over m in [0, 1], for bets on rows that no two have in common.

    G bets on the variables of `gain`, G' on those of `loss`, whose mean is 1 - m. The second array has the best stakes'
    at that m, without the prior.  (K,), (K,)
    """
    prior, ours, theirs = log_prior(gain.shapes), gain.counts + gain_lost, loss.counts + loss_lost
    least, m = _least_product(gain.growth(), loss.growth(), ours, theirs, prior, STAKES)
    best = (gain.growth() - log_fair(ours, m)).max(axis=(1, 2)) + (loss.growth() - log_fair(theirs, 1 - m)).max(
        axis=(1, 2)
    )
    return least, best


def mixed(log_wealth: Array) -> Array:
    """The logarithm of all money, given that of every stake without the prior.  (K, C, S) -> (K,)"""
    weighted = log_wealth + log_prior(log_wealth.shape[1])
    top = weighted.max(axis=(1, 2))
    return np.asarray(top + np.log(np.exp(weighted - top[:, None, None]).sum(axis=(1, 2))))


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


@compiled
def _least_product(
    gain: Array, loss: Array, gain_counts: Indices, loss_counts: Indices, prior: Array, stakes: Array
) -> tuple[Array, Array]:
    """By golden sections, because both logarithms are convex in m; and at the ends, where the least may be."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    least, where = np.full(len(gain), math.inf), np.zeros(len(gain))
    table = np.empty(len(stakes) + gain_counts.shape[2] - 1)
    for k in range(len(gain)):
        low, high, at, known = 0.0, 1.0, 0.0, 0.0  # `at` is a point inside [low, high], and `known` what is there
        for step in range(_SECTIONS):
            if step < 2:
                m = float(step)
            elif step == 2:
                m = ratio
            else:
                m = low + high - at
            value = _log_evidence(gain[k], gain_counts[k], prior, stakes, m, table)
            value += _log_evidence(loss[k], loss_counts[k], prior, stakes, 1.0 - m, table)
            if value < least[k]:
                least[k], where[k] = value, m
            if step == 2:
                at, known = m, value
            elif step > 2:
                if value < known:  # the least is on m's side of `at`
                    low, high = (at, high) if m > at else (low, at)
                    at, known = m, value
                else:
                    low, high = (low, m) if m > at else (m, high)
    return least, where
