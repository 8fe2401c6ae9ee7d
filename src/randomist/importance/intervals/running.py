"""Constant stakes for any number of rows: bounds that hold at every row at once, with sums that can be kept.

If X_t >= 0 and E[X_t | past] = μ for every row, Π_t (1 + λ X_t) / (1 + λ μ) is a nonnegative martingale for λ >= 0, and
so is its average over stakes with weights that are fixed in advance. By Ville's inequality it ever reaches 1/error
with probability at most `error`: a bound may be looked at after every row, and rows may end whenever one likes. Stakes
do not depend on the number of rows, unlike in `fixed` and `plugin`, so that sums of today serve tomorrow; the price is
that stakes for a thousand rows and for a hundred million all get some of the money.

Ville (1939), "Étude critique de la notion de collectif"; for off-policy evaluation Karampatziakis, Mineiro and Ramdas
(2021), "Off-policy confidence sequences".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from randomist._types import Array
from randomist.importance.intervals.fixed import Bets

_EXPONENTS = np.arange(-14, 5)
STAKES: Array = np.exp2(_EXPONENTS.astype(np.float64))[None, :]  # λ  (1, S)
_WEIGHT = 1.0 / (16.0 + (_EXPONENTS + 5.0) ** 2)  # the best stake of ten thousand rows is about 2^-5
_LOG_PRIOR: Array = np.log(_WEIGHT / _WEIGHT.sum())[None, :]
_HALVINGS = 44  # of [0, 1]


@dataclass(frozen=True, eq=False)
class RunningBets(Bets):
    """The bets after so many rows."""

    rows: int
    error: float

    def __post_init__(self) -> None:
        for name, value in (("stakes", STAKES), ("log_prior", _LOG_PRIOR), ("offsets", np.zeros(1))):
            object.__setattr__(self, name, value)

    def log_fair(self, m: float) -> Array:
        return np.asarray(self.rows * np.log1p(STAKES * m))

    def lower_bounds(self, growth: Array) -> Array:
        """`lower_bound` in [0, 1] of many variables at once.  (M, S) -> (M,)"""
        low, high = np.zeros(len(growth)), np.ones(len(growth))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            wealth = _LOG_PRIOR + growth - self.rows * np.log1p(STAKES * middle[:, None])
            enough = np.logaddexp.reduce(wealth, axis=1) >= math.log(1.0 / self.error)
            low, high = np.where(enough, middle, low), np.where(enough, high, middle)
        return low
