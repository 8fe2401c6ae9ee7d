"""What is wrong with a log, as far as it can be seen: each warning has a name, a number and a remedy.

These are tests, not guarantees. Those of weights that average more than 1 hold at any number of rows (bets). The others
compare means by the normal approximation, each at a level of `FALSE_ALARM`.
What they look at:

- drift: residuals r = ω (y - J) average 0 early and late, where ω divides by the policy that acted;
- drift of loggers: balanced weights and those of the policy that acted give the same estimate if payoffs do not drift;
- censored: as drift, and it is the end that earns less: payoffs that are not in yet;
- serial: payoffs of neighbouring rows are alike, as those of one user's visits are;
- repeated: every row is there as many times, or equal rows stand side by side.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from randomist._types import Array, Indices
from randomist.logs.totals import SLICES

if TYPE_CHECKING:
    from randomist.logs.log import Log
    from randomist.logs.sums import Moments
    from randomist.logs.tally import Heavy

FALSE_ALARM = 1e-3  # of each warning, over all candidates
_LEAST = 50.0  # effective samples on each side of a comparison in time
_FEW = 25.0  # times the square of the largest residual that the variance of a sum must have
SIXTEENTHS = 16  # slices, before the last of them is halved
_POOR_COVERAGE = 0.5  # of missing mass
_ONE = 0.01  # of a sum of squares that one row may have
_ALIKE = 12  # different rows that must all be there as many times
_HASHES = 2**23  # rows without ids whose neighbours are looked at; beyond, some stand for all


class Trouble(str):
    """A warning: words, with a `name` to look for and the number behind it."""

    name: str
    value: float

    def __new__(cls, name: str, value: float, words: str) -> Trouble:
        trouble = super().__new__(cls, words)
        trouble.name, trouble.value = name, float(value)
        return trouble


class Slices:
    """Sums of a candidate's weights and payoffs in each of `SLICES` parts of the log, in time."""

    def __init__(self, sums: Array, largest: float) -> None:
        self._sums = sums  # rows, Σω, Σωy, Σω², Σω²y, Σω²y², weighted by the policy that acted  (slices, 6)
        self._largest = largest  # ω

    def change(self) -> tuple[float, int, float]:
        """z of the clearest change between before and after, the slice where it begins, and its size.

        In less than the last sixteenth, only losses are looked for: payoffs that are not in yet. The normal
        approximation of so few rows is trusted if none of them can be much of the spread.
        """
        n, w, wy, ww, wwy, wwyy = self._sums.T
        value = wy.sum() / w.sum() if w.sum() > 0 else 0.0
        total, squares = wy - value * w, wwyy - 2 * value * wwy + value**2 * ww  # Σr and Σr² of r = ω (y - J)
        most = (self._largest * max(value, 1.0 - value)) ** 2
        best = (0.0, 0, 0.0)
        for cut in range(1, len(SLICES)):
            sides = [slice(0, cut), slice(cut, len(SLICES))]
            if any(w[s].sum() ** 2 < _LEAST * ww[s].sum() or w[s].sum() <= 0 for s in sides):
                continue
            means = [total[s].sum() / n[s].sum() for s in sides]
            if cut >= SIXTEENTHS and (means[1] > means[0] or n[sides[1]].sum() * squares.sum() < _FEW * most * n.sum()):
                continue
            apart = sum(squares[s].sum() / n[s].sum() ** 2 for s in sides)
            spread = max(apart, squares.sum() / n.sum() * sum(1.0 / n[s].sum() for s in sides))  # a side may be short
            if spread > 0 and abs(z := (means[1] - means[0]) / math.sqrt(spread)) > abs(best[0]):
                best = (z, cut, means[1] - means[0])
        return best


class Neighbours:
    """Whether payoffs of neighbouring rows of one logger are alike: their correlation at distance 1."""

    def __init__(self, sums: Array) -> None:
        self._sums = sums  # pairs, Σy, Σy', Σyy', Σy²  (loggers + 1, 5)

    def correlation(self) -> tuple[float, float]:
        """z and the correlation itself."""
        n, first, second, product, squares = self._sums.T
        with np.errstate(divide="ignore", invalid="ignore"):
            shared = np.where(n > 0, product - first * second / n, 0.0).sum()
            spread = np.where(n > 0, squares - first**2 / n, 0.0).sum()
        pairs = n.sum()
        if pairs < 100 or spread <= 0:
            return 0.0, 0.0
        return float(shared / spread * math.sqrt(pairs)), float(shared / spread)


class Disagreement:
    """Balanced estimates against those of the policy that acted: Σ (ω - ω') y and its square."""

    def __init__(self, rows: int, sums: Array) -> None:
        self._rows, self._sums = rows, sums  # Σd, Σd², and the largest d²

    def found(self) -> tuple[float, float]:
        """z and the difference itself. Rows have different means, so the spread is overestimated, if at all."""
        total, squares, largest = self._sums
        if largest >= _ONE * squares:  # few rows decide: no normal approximation
            return 0.0, 0.0
        return float(total / math.sqrt(squares)), float(total / self._rows)


def quantile(tests: int) -> float:
    """What |z| does not exceed in a clean log, but `FALSE_ALARM` of the time over so many tests."""
    return -NormalDist().inv_cdf(FALSE_ALARM / (2 * max(tests, 1)))


def drifts(slices: list[Slices]) -> tuple[int, float, int, float] | None:
    """The candidate whose value changes most clearly, with z, slice and size; None if nothing is clear."""
    changes = [part.change() for part in slices]
    k = int(np.argmax([abs(z) for z, _, _ in changes]))
    return (k, *changes[k]) if abs(changes[k][0]) > quantile(len(SLICES) * len(slices)) else None


def warnings(
    log: Log,
    heavy: list[Heavy],
    slices: list[Slices],
    neighbours: Neighbours,
    disagreements: list[Disagreement],
    moments: list[Moments],
    coverage: Array,
    clustered: bool,
) -> list[Trouble]:
    """All that can be said, the worst first."""
    found = []
    if log.adaptive and log.weights == "balance":
        found.append(
            Trouble(
                "adaptive",
                1.0,
                "policies were chosen adaptively: with balanced weights neither estimates nor intervals are "
                "guaranteed; use weights='own'",
            )
        )
    found += _of_time(log, slices, disagreements)
    found += _of_rows(log, neighbours, clustered)
    for k, (name, covered) in enumerate(zip(log.candidates, coverage.tolist(), strict=True)):
        if heavy[k].found():
            mean = moments[k].mean_weight(len(log))
            found.append(
                Trouble(
                    "weights",
                    mean,
                    f"weights of {name} average {mean:.3g}, and true likelihoods allow 1: check its likelihoods, the "
                    "loggers' and who acted",
                )
            )
        elif covered < 1.0 - _POOR_COVERAGE:
            missing = f"the log covers little of what {name} does: {1 - covered:.0%} of its mass is missing"
            found.append(Trouble("coverage", 1 - covered, missing))
    if log.rows < log.rows_read:
        found.append(
            Trouble(
                "skipped",
                log.rows_read - log.rows,
                f"{log.rows_read - log.rows} of {log.rows_read} rows were left out; the rest stands for all only if "
                "being bad has nothing to do with the payoff",
            )
        )
    return found


def _of_time(log: Log, slices: list[Slices], disagreements: list[Disagreement]) -> list[Trouble]:
    found = []
    span = log.payoff_range[1] - log.payoff_range[0]
    change = drifts(slices)
    if change is not None:
        k, _, cut, size = change
        name, where = log.candidates[k], f"from row {SLICES[cut - 1] * len(log) // SLICES[-1]} of {len(log)} on"
        if cut >= 3 * SIXTEENTHS // 4 and size < 0:
            words = (
                f"{name} earns {abs(size) * span:.3g} less {where}: the last payoffs may not be in yet; leave out rows "
                "that were not observed long enough (from_table(time=..., observed_until=...))"
            )
            found.append(Trouble("censored", size * span, words))
        else:
            words = (
                f"payoffs drift: {name} earns {abs(size) * span:.3g} {'more' if size > 0 else 'less'} {where}; what is "
                "estimated is the average over the log, with constant stakes; evaluate the last rows alone"
            )
            found.append(Trouble("drift", size * span, words))
    apart = [part.found() for part in disagreements]
    if apart:
        k = int(np.argmax([abs(z) for z, _ in apart]))
        z, size = apart[k]
        if abs(z) > quantile(len(apart)):
            words = (
                f"estimates of {log.candidates[k]} differ by {size * span:+.3g} between balanced weights and those of "
                "the policy that acted: payoffs drift while loggers change; use weights='own'"
            )
            found.append(Trouble("loggers-drift", size * span, words))
    return found


def _of_rows(log: Log, neighbours: Neighbours, clustered: bool) -> list[Trouble]:
    found = []
    if log.copies > 1:
        words = f"every row is there {log.copies} times or a multiple of it; give rows an id, or leave copies out"
        found.append(Trouble("repeated", log.copies, words))
    elif log.side_by_side > 0 and not clustered:
        words = (
            f"{log.side_by_side:.1%} more rows equal the row before them than equal rows further apart: are rows "
            "repeated? give rows an id, or leave copies out; or name what belongs together with cluster="
        )
        found.append(Trouble("repeated", log.side_by_side, words))
    z, correlation = neighbours.correlation()
    if not (log.adaptive or clustered or log.copies > 1) and z > quantile(1):
        words = (
            f"payoffs of neighbouring rows are alike (correlation {correlation:.3g}): if rows of one user, or of one "
            "hour, belong together, name them with cluster="
        )
        found.append(Trouble("serial", correlation, words))
    return found


class Hashes:
    """Hashes of rows, in bounded memory: of a long log the first ones, and of all rows those of some values."""

    def __init__(self) -> None:
        self.rows = self._kept = self._mask = 0
        self._first: list[Indices] = []
        self._some: list[Indices] = []  # of which as many are there as in the log, or none

    def add(self, hashes: Indices) -> None:
        if self.rows < _HASHES:
            self._first.append(hashes)
        self.rows += len(hashes)
        self._some.append(hashes[hashes & self._mask == 0])
        self._kept += len(self._some[-1])
        while self._kept > 2 * _HASHES and self._mask < 2**40:
            self._mask = 2 * self._mask + 1
            self._some = [part[part & self._mask == 0] for part in self._some]
            self._kept = sum(map(len, self._some))

    def copies(self) -> tuple[int, float]:
        """How many times every row is there, and how many more rows equal their neighbour than rows far away."""
        if self.rows < 2 * _ALIKE:
            return 1, 0.0
        _, counts = np.unique(np.concatenate(self._some), return_counts=True)
        copies = int(np.gcd.reduce(counts)) if len(counts) >= _ALIKE else 1
        hashes = np.concatenate(self._first)
        n = len(hashes)
        far = min(997, n // 2)
        near = float(np.mean(hashes[1:] == hashes[:-1]))
        apart = float(np.mean(hashes[far:] == hashes[:-far]))
        spread = math.sqrt(2.0 * max(apart * (1 - apart), 1.0 / n) / (n - far))
        return copies, near - apart if len(counts) >= _ALIKE and near - apart > 8.0 * spread else 0.0
