"""Confidence bounds by betting: for any number of rows, any weights, and rows that are not identically distributed.

Let X_1..X_n be independent with X_i >= -B and mean μ̄ = (1/n) Σ E X_i. For a stake λ fixed in advance, λB < 1, any m,

    G_λ(m) = Π_i (1 + λ X_i) / (1 + λ m)^n,    E G_λ(μ̄) = Π_i (1 + λ E X_i) / (1 + λ μ̄)^n <= 1,

because the logarithm is concave. So does any average of G_λ over stakes that are fixed in advance, and by Markov's
inequality G(μ̄) >= 1/error has probability at most `error`: the m with G(m) >= 1/error can be excluded. G falls as m
grows, hence they are all m below a bound. Three things make this fit for importance weights. X = ω y needs no upper
bound (B = 0), so weights need not be cut; the rows may come from several policies in any order, as long as nobody chose
the policies by looking at payoffs; and the data enter through Σ_i log(1 + λ_j X_i) for a few λ_j, which is one pass.

Where each X_i has the same conditional mean given the past, G_λ is a martingale and independence is not needed: that is
the case of a log whose policies were chosen adaptively, each row weighted by the policy that acted.

Betting for means is due to Waudby-Smith and Ramdas (2024, "Estimating means of bounded random variables by betting"),
for off-policy evaluation to Karampatziakis, Mineiro and Ramdas (2021) and Waudby-Smith, Wu, Ramdas, Karampatziakis and
Mineiro (2024); averaging constant bets to Cover (1991) and Orabona and Jun (2021). Stakes that stay constant, the
concavity step for rows that are not identically distributed, and the baselines below are choices made here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from randomist._types import Array, Flags
from randomist.importance.bounds import confidence_term
from randomist.importance.growth import Growth

STAKES = 16  # constant stakes per variable, each twice the one before
_EXPONENTS = np.arange(STAKES) - STAKES // 2
MARGIN = 0.9  # of the largest stake that a variable's lower bound allows
_OTHERS = 0.1  # of the money, on variables after the first
LARGEST_GAIN = 1e9  # λX is cut here, so that 32 factors stay in float64; cutting can only lower a lower bound


class Bets(ABC):
    """Bets on variables X_f that all speak about one unknown m: the mean of X_f is m - offsets[f].

    A kind of bets says which stakes it lays and how much money is on each, both without looking at the data, and in
    `log_fair` what the stakes grow to if m is the truth. Whoever has the data adds them to `growth()`, and
    `lower_bound` says what its total excludes.
    """

    error: float  # the probability with which the bound may be wrong
    offsets: Array  # (F,)
    stakes: Array  # λ  (F, S)
    log_prior: Array  # of each stake; the priors of all F · S add up to at most 1  (F, S)

    @abstractmethod
    def log_fair(self, m: float) -> Array:
        """What E Π_i (1 + λ X_i) of each stake cannot exceed if m is the truth, as a logarithm.  (F, S)"""

    @property
    def caps(self) -> Array:
        """Where each variable is cut before it is bet on.  (F,)"""
        return np.asarray(LARGEST_GAIN / self.stakes.max(axis=1))

    def growth(self) -> Growth:
        """What the stakes have earned before the first row: nothing."""
        return Growth(self.stakes, self.caps)

    def log_evidence(self, log_growth: Array, m: float) -> float:
        """log G(m), with Σ_i log(1 + λ X_i) in `log_growth`.  (F, S)"""
        return float(np.logaddexp.reduce((self.log_prior + log_growth - self.log_fair(m)).ravel()))

    def lower_bound(self, log_growth: Array, low: float, high: float) -> float:
        """The largest m in [low, high] below which all can be excluded; wrong with probability at most `error`."""
        needed = math.log(1.0 / self.error)
        if self.log_evidence(log_growth, low) < needed:
            return low
        if self.log_evidence(log_growth, high) >= needed:
            return high
        while high - low > 1e-13:  # halved, because SciPy's roots take longer to import than this takes
            middle = 0.5 * (low + high)
            if self.log_evidence(log_growth, middle) >= needed:
                low = middle
            else:
                high = middle
        return low


@dataclass(frozen=True, eq=False)
class ConstantBets(Bets):
    """The same stakes in each of a number of rows that is known in advance."""

    rows: int
    error: float
    offsets: Array
    stakes: Array
    log_prior: Array

    @classmethod
    def on(cls, rows: int, error: float, offsets: Sequence[float], floors: Sequence[float]) -> ConstantBets:
        """Bets for variables X_f >= -floors[f].

        The best stake is about sqrt(2 log(1/error) / (n Var X)). Var X is not known, so the stakes span a factor of
        2^15 around Var X = 1, and the prior prefers the middle. Most of the money is on the first variable, so that
        the others cannot widen an interval by more than a hundredth where they do not help.
        """
        middle = math.sqrt(2.0 * (math.log(1.0 / error) + 2.0) / rows)
        largest = np.array([MARGIN / floor if floor > 0 else math.inf for floor in floors])
        stakes = np.minimum(middle * 2.0**_EXPONENTS, largest[:, None])
        weight = 1.0 / (4.0 + _EXPONENTS**2.0)
        share = np.full(len(offsets), _OTHERS / max(len(offsets) - 1, 1))
        share[0] = 1.0 - share[1:].sum()
        prior = share[:, None] * (weight / weight.sum())
        return cls(rows, error, np.array(offsets, dtype=np.float64), stakes, np.log(prior))

    def log_fair(self, m: float) -> Array:
        return np.asarray(self.rows * log_factor(self.stakes * (m - self.offsets[:, None])))  # (1 + λ E X)^n


class Constant:
    """Constant bets and what they have earned so far."""

    def __init__(self, bets: Bets) -> None:
        self.bets, self._growth = bets, bets.growth()

    def add(self, variables: Sequence[Array]) -> None:
        """Some more rows of every variable.  F arrays of (n,)"""
        self._growth.add(variables)

    def laid_next(self) -> tuple[Array, Array]:
        """Stakes on every variable in the rows to come, and where variables are cut.  (F, S), (F,)"""
        return self.bets.stakes, self.bets.caps

    def take(self, rows: int, growth: Array, powers: Array) -> None:
        """What stakes earned in rows that were summed elsewhere.  (F, S), (F, 3)"""
        self._growth.take(growth)

    def lower_bound(self, low: float, high: float) -> float:
        """The largest m in [low, high] below which all can be excluded; wrong with probability at most `error`."""
        return self.bets.lower_bound(self._growth.total(), low, high)

    def log_evidence(self, m: float) -> float:
        """log G(m)"""
        return self.bets.log_evidence(self._growth.total(), m)


def log_factor(gain: Array) -> Array:
    """log(1 + λ E X); λ E X is at least -MARGIN, by the floor of X, whatever is asked."""
    return np.asarray(np.log1p(np.maximum(gain, -MARGIN)))


def baselines(weight_bound: float, rows: int, error: float, steps: int = 2) -> tuple[list[float], list[float]]:
    """Offsets c and floors of the variables ω (y - c) that bound J from below, E ω (y - c) = J - c.

    Without a bound on the weights only c = 0 has a floor. With ω <= W the mean of ω is exactly 1, which c > 0 uses: it
    takes out of ω y what comes from ω alone. A c is left out where it cannot help: the best stake is
    sqrt(2 log(1/error) / (n Var)), Var <= W, and the floor c W allows 1 / (c W). If that is less at Var = W, the rows
    are too few for any variance.
    """
    chosen, needed = [0.0], 2.0 * (math.log(1.0 / error) + 2.0)
    for c in np.arange(1, steps + 1) / steps:
        if needed * float(c) ** 2 * weight_bound < rows:
            chosen.append(float(c))
    return chosen, [c * weight_bound if c else 0.0 for c in chosen]


def difference_baselines(
    leader_bound: float, rival_bound: float, distance: float = math.inf, steps: int = 2
) -> tuple[list[float | None], list[float], list[float]]:
    """Kinds, offsets and floors of the variables that bound J_a - J_b from below.

    Kind None is ω_a y + ω_b (1 - y), with mean J_a - J_b + 1, which needs no bound. Kind c is (ω_a - ω_b)(y - c), with
    mean J_a - J_b: it is at least -max(c W_a, (1-c) W_b), and at least -max(c, 1-c) D if |ω_a - ω_b| <= D. It is exact
    where the weights that it subtracts are bounded.
    """
    kinds: list[float | None] = [None]
    offsets, floors = [-1.0], [0.0]
    for c in (np.arange(steps + 1) / steps).tolist():
        floor = max(c * leader_bound if c else 0.0, (1 - c) * rival_bound if c < 1 else 0.0)
        floor = min(floor, max(c, 1 - c) * distance)
        if math.isfinite(floor):
            kinds.append(c)
            offsets.append(0.0)
            floors.append(floor)
    return kinds, offsets, floors


def truncated_interval(
    value: Array, log_effective: Array, rows: int, confidence: float, error: float
) -> tuple[Array, Array]:
    """The paper's concentration lemma (Metelli et al. 2021, App. C), each side wrong with probability at most `error`.

    `value` is the truncated estimate with the paper's threshold, on the [0, 1] scale, and `log_effective` log η for
    known divergences. With L = α log t: J > J̌ - ε where η ε² = 2 log(1/error) (1 + ε/3 sqrt(η/L)), and
    J < J̌ + sqrt(L/η) + sqrt(2 log(1/error)/η).
    """
    eta = np.exp(np.minimum(log_effective, 700.0))
    term, needed = confidence_term(rows, confidence), math.log(1.0 / error)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        slope = 2.0 * needed / 3.0 * np.sqrt(eta / term)
        below = (slope + np.sqrt(slope**2 + 8.0 * needed * eta)) / (2.0 * eta)
        above = np.sqrt(term / eta) + np.sqrt(2.0 * needed / eta)
    known: Flags = eta > 0
    low = np.where(known, np.clip(value - below, 0.0, 1.0), 0.0)
    high = np.where(known, np.clip(value + above, 0.0, 1.0), 1.0)
    return low, high
