"""Do recent payoffs contradict older ones? Two-sample tests at times that get rarer, at one level for a whole run.

Without drift, the payoffs of a decision are independent draws of one law, in the order in which it is played, whatever
made the learner play it. When it has been played n_j = ⌈16 · 1.5^j⌉ times, the payoffs after each of n_0, ..., n_{j-1}
are compared with those before: the means of n and n' payoffs in [0, 1] differ by more than

    sqrt(log(4/δ)/2 (1/n + 1/n'))                                                   (Hoeffding 1963), or
    r(n) + r(n'),  r(n) = sqrt(2 V log(16/δ)/n) + 7 log(16/δ)/(3 (n - 1))           (Maurer and Pontil 2009, Theorem 4)

with probability at most δ/2 each, V being the sample variance. The j comparisons at n_j share 1/(j (j + 1)) of their
decision's part of the level, so that all of a run's sum up to less than the level.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices

LEVEL = 0.01  # of a run without drift: the probability of a false alarm, at any time
FIRST, GROWTH = 16, 1.5
TIMES = 64  # the last one is after 10^12 plays
NOW, TEST, MARKS = range(3)  # the tables of a test: sums, what says when to compare, and the sums at those times
N, SUM, SQUARES = range(3)  # rows of sums
PASSED, SHARE = range(2)  # rows of TEST: how many of the times have passed, a decision's part of the level


class DriftTest:
    """Sums of each decision's payoffs in [0, 1], now and at the times when they are compared: O(1) a payoff."""

    def __init__(self, decisions: int) -> None:
        self.tables = np.zeros((MARKS + TIMES, 3, decisions))  # one array is one argument; untouched memory is free
        self.tables[TEST, SHARE] = LEVEL / 2 / decisions
        self._added = 0
        self.found: tuple[int, int] | None = None  # the first decision that drifted, and after how many of its plays

    def add(self, decision: int, payoff: float) -> None:
        before = _add(self.tables, decision, payoff)
        if before and self.found is None:
            self.found = decision, before

    def add_all(self, decisions: Indices, payoffs: Array) -> None:
        """Payoffs as they were told.  (n,), (n,)"""
        decision, before = _add_all(self.tables, decisions, payoffs)
        if before and self.found is None:
            self.found = int(decision), int(before)

    def grow(self) -> None:
        """One more decision, which gets a part of the level that was kept for those that come later."""
        self._added += 1
        used = MARKS + int(self.tables[TEST, PASSED].max())
        tables = np.zeros((MARKS + TIMES, 3, self.tables.shape[2] + 1))
        tables[:used, :, :-1] = self.tables[:used]
        tables[TEST, SHARE, -1] = LEVEL / 2 / (self._added * (self._added + 1))
        self.tables = tables


@compiled
def _add_all(tables: Array, decisions: Indices, payoffs: Array) -> tuple[int, int]:
    """The first of these decisions that drifted, and where; (0, 0) if none did."""
    decision, found = 0, 0
    for i in range(decisions.shape[0]):
        before = _add(tables, decisions[i], payoffs[i])
        if before and not found:
            decision, found = decisions[i], before
    return decision, found


@compiled
def _add(tables: Array, k: int, payoff: float) -> int:
    """One more payoff; how many plays came before the drift, 0 where there is none to be seen."""
    sums, test, marks = tables[NOW, :, k], tables[TEST, :, k], tables[MARKS:, :, k]
    sums[N] += 1.0
    sums[SUM] += payoff
    sums[SQUARES] += payoff * payoff
    j = int(test[PASSED])
    if j == marks.shape[0] or sums[N] < math.ceil(FIRST * GROWTH**j):
        return 0
    marks[j] = sums
    test[PASSED] += 1.0
    for split in range(j):
        if _differ(marks[split], sums - marks[split], test[SHARE] / (j * (j + 1)) / j):
            return int(marks[split, N])
    return 0


@compiled
def _differ(older: Array, recent: Array, level: float) -> bool:
    """Whether the means of two samples differ, by n, Σ y and Σ y² of each."""
    difference = abs(older[SUM] / older[N] - recent[SUM] / recent[N])
    if difference > math.sqrt(0.5 * math.log(4.0 / level) * (1.0 / older[N] + 1.0 / recent[N])):
        return True
    return bool(difference > _radius(older, level) + _radius(recent, level))


@compiled
def _radius(sample: Array, level: float) -> float:
    n, log_term = sample[N], math.log(16.0 / level)
    if n < 2:
        return math.inf
    variance = max(sample[SQUARES] - sample[SUM] * sample[SUM] / n, 0.0) / (n - 1)
    return float(math.sqrt(2.0 * variance * log_term / n) + 7.0 * log_term / (3.0 * (n - 1)))
