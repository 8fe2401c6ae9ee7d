"""Bets whose stakes follow the rows: narrower than constant stakes where every row has the same mean.

Rows come in blocks of fixed numbers: 0 to 255, 256 to 511, 512 to 1023, and so on, each as long as all before. A block
has one variable X and stakes λ_b 2^e that depend on earlier blocks only. If E[X_i | past] = μ for every row,

    G_e(m) = Π_b Π_{i in b} (1 + λ_b 2^e X_i) / (1 + λ_b 2^e m)

is a nonnegative martingale for m = μ, because stakes and variable are known before the row is, and so is its average
over e with weights that are fixed in advance: by Markov's inequality what it excludes is wrong with probability at most
`error`. Unlike constant stakes (`fixed`), this needs the same mean in every row, given the past. It holds for a log of
one logger, and for rows weighted by the policy that acted (adaptive logs included), unless payoffs drift; not for
balanced weights of several loggers, whose rows have different means.

λ_b = sqrt(2 (log 1/error + 2) / (n Var)), the best constant stake for a variance, which is estimated on earlier blocks
with one more row of variance `CAUTION`. Where several variables speak about the same unknown (m - offset is the mean of
each), a block bets on the one that promises the narrowest interval. Wrong guesses cost width, never coverage.

Stakes that follow the data are due to Waudby-Smith and Ramdas (2024, "Estimating means of bounded random variables by
betting"); blocks, and choosing a variable among several, are choices made here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.importance.growth import Growth
from randomist.importance.intervals.fixed import LARGEST_GAIN, MARGIN, Bets, log_factor

FIRST = 256  # rows of the first block, which knows nothing
CAUTION = 4.0  # the variance that is assumed before there are rows
_DEEPEST = 0.45  # of the money is what a stake may lose in a row, as far as rows have shown
_GAIN = 0.97  # another variable than the first must promise a width below this part of the first one's
_EXPONENTS = np.arange(17) - 8
_WEIGHT = (1.0 + _EXPONENTS**2.0) ** -2
_LOG_PRIOR: Array = np.log(_WEIGHT / _WEIGHT.sum())[None, :]  # (1, S)


@dataclass(frozen=True, eq=False)
class BlockBets(Bets):
    """Bets that were laid in blocks, each on one variable: what is left to do is to say what they exclude."""

    error: float
    counts: Indices  # rows of each block  (B,)
    shifts: Array  # the offset of each block's variable  (B,)
    ladder: Array  # its stakes  (B, S)

    def __post_init__(self) -> None:
        object.__setattr__(self, "log_prior", _LOG_PRIOR)

    def log_fair(self, m: float) -> Array:
        return np.asarray(self.counts @ log_factor(self.ladder * (m - self.shifts[:, None])))[None, :]


class PlugIn:
    """What bets on some variables have earned so far; rows are added in order.

    Parameters
    ----------
    rows
        How many rows there will be. Stakes are made for that number; a bound holds at any number before it, too, if
        that number was not chosen by looking.
    error
        The probability with which the lower bound may be wrong.
    offsets, floors
        Variables X_f >= -floors[f] with mean m - offsets[f]; the first block bets on the first of them.
    spans
        What |X_f| cannot exceed, where known: a variance is not assumed to be above its square.
    late
        From which variable on they are not themselves in the first block: a model has no rows to be fitted on there.
    """

    def __init__(
        self,
        rows: int,
        error: float,
        offsets: Sequence[float],
        floors: Sequence[float],
        spans: Sequence[float] | None = None,
        late: int | None = None,
    ) -> None:
        self.rows, self.error, self.offsets = rows, error, np.array(offsets, dtype=np.float64)
        self._needed = math.log(1.0 / error) + 2.0
        self._largest = np.array([MARGIN / floor if floor > 0 else math.inf for floor in floors])
        limit = np.array([math.inf] * len(floors) if spans is None else spans, dtype=np.float64)
        self._caution = np.minimum(CAUTION, np.square(np.minimum(limit, 1e100)))
        self._sums = np.zeros((len(floors), 3))  # Σ X, Σ X² and the least X of every variable
        self._late = len(floors) if late is None else late
        self._counts = np.zeros(len(floors))  # rows behind the sums
        self._seen, self._end = 0, 0  # rows so far, and where the block ends
        self._blocks: list[tuple[int, float, Array]] = []  # rows, offset and stakes of every block
        self._chosen, self._growth, self._earned = 0, Growth(np.ones((1, 1)), np.ones(1)), np.zeros_like(_LOG_PRIOR)

    def add(self, variables: Sequence[Array]) -> None:
        """Some more rows of every variable.  F arrays of (n,)"""
        count, begin = len(variables[0]), 0
        while begin < count:
            if self._seen == self._end:
                self._open()
            end = min(count, begin + self._end - self._seen)
            self._growth.add([variables[self._chosen][begin:end]])
            for f, values in enumerate(variables):
                if f < self._late or self._seen >= FIRST:
                    _add_powers(values[begin:end], self._sums[f])
                    self._counts[f] += end - begin
            self._seen += end - begin
            begin = end

    def laid_next(self) -> tuple[Array, Array]:
        """Stakes on every variable in the rows to come, NaN where it is not bet on, and where variables are cut.

        (F, S), (F,)
        """
        if self._seen == self._end:
            self._open()
        stakes = np.full((len(self._sums), _LOG_PRIOR.shape[1]), np.nan)
        stakes[self._chosen] = self._blocks[-1][2]
        return stakes, np.full(len(stakes), LARGEST_GAIN / self._blocks[-1][2].max())

    def take(self, rows: int, growth: Array, powers: Array) -> None:
        """What stakes earned in rows that were summed elsewhere, and ΣX, ΣX² and the least X of every variable.

        The rows must not reach beyond the block that `laid_next` was asked for.  (F, S), (F, 3)
        """
        self._growth.take(growth[self._chosen][None, :])
        known = slice(None) if self._seen >= FIRST else slice(0, self._late)
        self._sums[known, :2] += powers[known, :2]
        self._sums[known, 2] = np.minimum(self._sums[known, 2], powers[known, 2])
        self._counts[known] += rows
        self._seen += rows

    def lower_bound(self, low: float, high: float) -> float:
        """The largest m in [low, high] below which all can be excluded; wrong with probability at most `error`."""
        if not self._seen:
            return low
        return self.laid().lower_bound(self.earned(), low, high)

    def laid(self) -> BlockBets:
        """The bets of all blocks so far."""
        counts = np.array([rows for rows, _, _ in self._blocks])
        counts[-1] -= self._end - self._seen  # of the last block, only those that came
        shifts, ladder = np.array([b for _, b, _ in self._blocks]), np.array([b for _, _, b in self._blocks])
        return BlockBets(self.error, counts, shifts, ladder)

    def earned(self) -> Array:
        """Σ_i log(1 + λ X_i) of every stake.  (1, S)"""
        return self._earned + self._growth.total()

    def _open(self) -> None:
        """Choose the variable and the stakes of the next block."""
        if self._blocks:
            self._earned = self._earned + self._growth.total()
        length = self._seen or FIRST
        self._end = self._seen + length
        self._chosen, stake = self._best()
        stakes = np.minimum(stake * 2.0**_EXPONENTS, self._largest[self._chosen])[None, :]
        self._blocks.append((length, float(self.offsets[self._chosen]), stakes[0]))
        self._growth = Growth(stakes, LARGEST_GAIN / stakes.max(axis=1))

    def _best(self) -> tuple[int, float]:
        """The variable that promises the narrowest interval, and its stake: with stake λ, the width is about
        needed / (λ n) + λ Var / 2."""
        spread = self._sums[:, 1] - self._sums[:, 0] ** 2 / np.maximum(self._counts, 1)
        variance = (np.maximum(spread, 0.0) + self._caution) / (self._counts + 1)
        stake = np.minimum(np.sqrt(2.0 * self._needed / (self.rows * variance)), self._limits())
        width = self._needed / (stake * self.rows) + stake * variance / 2.0
        chosen = int(np.argmin(width)) if self._seen and width.min() < _GAIN * width[0] else 0
        return chosen, float(stake[chosen])

    def _limits(self) -> Array:
        """What a stake should not exceed: a variance says little about one that may lose half of the money.  (F,)"""
        deepest = np.maximum(-self._sums[:, 2], 1e-12)
        limit = np.where(np.isfinite(self._largest), _DEEPEST / deepest, math.inf)
        return np.asarray(np.minimum(self._largest, limit))


@compiled
def _add_powers(values: Array, sums: Array) -> None:
    """Row by row, so that sums do not depend on how rows come in chunks; cut where squares would overflow."""
    for i in range(len(values)):
        x = min(values[i], 1e100)
        sums[0] += x
        sums[1] += x * x
        sums[2] = min(sums[2], x)
