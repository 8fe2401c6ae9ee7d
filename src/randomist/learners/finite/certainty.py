"""How sure a learner on a finite set can be by now: intervals, and the decisions that may still be best.

Both are bets on what was told (`importance.intervals.anytime`), so that they hold at every round at once, whatever the
learner did and whenever one looks. A told payoff y in [0, 1] of decision j, drawn as z, is worth w_x y to decision x,
where w_x = p_x(z)/p_j(z): its mean is J(x), or less where j never does some of what x does. The same of 1 - y bounds
J(x) from above, and w_a y + w_b (1 - y) has a mean of at most 1 where b is at least as good as a.

Bets are laid when a trial is asked. What a pending or a failed trial paid is not known, and which ones are may depend
on what they paid: each counts as the worst for either side, w_x y = 0 and w_x (1 - y) = 0.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from randomist._checks import probability
from randomist._types import Array, Flags, Indices
from randomist.errors import ContradictionWarning, ParameterError
from randomist.importance.intervals.anytime import LEVELS, NONE, Bank, least_product, levels_of, mixed
from randomist.learners.payoffs import PayoffScale

if TYPE_CHECKING:
    from randomist.learners.finite.base import FiniteLearner
    from randomist.spaces import Finite

STEEP = (1.0, 8.0, math.inf)  # how fast stakes fall with d2 - 1, in every shape; the last bets on own rows alone
PAIR_STEEP = (2.0, 16.0)  # the same for the difference of two decisions
OTHERS, PAIR_OTHERS = (0, 3, NONE), (0, 3)  # the level of other policies' rows where divergences are not known
RESERVE = 0.1  # of the error, for decisions that are added later
MOST_LEADERS = 8  # whose bets are kept
CHUNK = 2**18  # weights that are computed at once


class Intervals(NamedTuple):
    """Bounds on every decision's mean payoff, in the user's units: they hold together, at every round at once."""

    low: Array  # (K,)
    high: Array  # (K,)


class Rows(NamedTuple):
    """Some told trials, as what they say about every decision."""

    sources: list[int]  # the decisions that were played
    kinds: Indices  # which of these each row played  (n,)
    weights: Array  # p_x(z) / p_j(z)  (n, K)
    payoffs: Array  # in [0, 1]  (n,)


class Leads(NamedTuple):
    """What speaks for the leader against the others."""

    leader: int
    open: Flags  # decisions that can be played  (K,)
    log_evidence: Array  # against each being the best  (K,)
    best_stake: Array  # the same of the single stake that has won most, without a prior  (K,)
    rows: int


Table: TypeAlias = Callable[[list[int]], NDArray[np.int8]]  # levels of every shape and decision, for some sources


class Levels:
    """How lightly each decision bets on the rows of another: known before they are drawn."""

    def __init__(self) -> None:
        self._excess: dict[int, Array] = {}  # d2(p_x || p_j) - 1 of every decision x, by source j

    def to(self, space: Finite, source: int) -> NDArray[np.int8]:
        """Of bets on means, for rows of `source`.  (C, K)"""
        if not space.family.divergences_known:
            return _unless(np.arange(space.size) == source, OTHERS)
        excess = self._excess_to(space, source)
        return np.stack([levels_of(excess, steep) for steep in STEEP])

    def of_pairs(self, space: Finite, leader: int, source: int) -> NDArray[np.int8]:
        """Of bets on differences to the leader, with both decisions in one bet.  (C, K)"""
        if not space.family.divergences_known:
            return _unless((np.arange(space.size) == source) | (source == leader), PAIR_OTHERS)
        excess = self._excess_to(space, source)
        return np.stack([levels_of(excess + excess[leader], steep) for steep in PAIR_STEEP])

    def apart(self, space: Finite, leader: int, source: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Of bets on the leader's mean, one for each rival, and on the rivals': rows go to the one they are more like.

        (C, K), (C, K)
        """
        of_rivals = self.to(space, source)
        of_leader = np.repeat(of_rivals[:, leader, None], space.size, axis=1)
        if space.family.divergences_known:
            excess = self._excess_to(space, source)
            to_leader = excess[leader] < excess
        else:
            to_leader = np.full(space.size, source == leader)
        never = np.int8(NONE)
        return np.where(to_leader, of_leader, never), np.where(to_leader, never, of_rivals)

    def _excess_to(self, space: Finite, source: int) -> Array:
        excess = self._excess.get(source)
        if excess is None or len(excess) < space.size:
            with np.errstate(over="ignore"):
                excess = np.expm1(space.log_divergences_to(source)[: space.size])
            excess[source] = 0.0
            self._excess[source] = excess
        return excess


def _unless(own: Flags, levels: Sequence[int]) -> NDArray[np.int8]:
    """Level 0 of own rows, and these of others.  (K,) -> (C, K)"""
    return np.stack([np.where(own, 0, level).astype(np.int8) for level in levels])


class Lead:
    """Bets that one decision is better than each of the others.

    `paired` are on w_a y + w_b (1 - y), whose mean is at most 1 unless a is better. `gain` and `loss` are on J(a) > m
    and J(b) < m, for decisions that are too unlike for one bet: whatever m lies between the two means, their product
    wins against it.
    """

    def __init__(self) -> None:
        self.paired, self.gain, self.loss = Bank(0, len(PAIR_STEEP)), Bank(0, len(STEEP)), Bank(0, len(STEEP))

    def banks(self) -> tuple[Bank, Bank, Bank]:
        return self.paired, self.gain, self.loss


class Certainty:
    """The bets on a learner's record: brought up to date when they are asked for, O(K) for every new row."""

    def __init__(self, learner: FiniteLearner) -> None:
        if not isinstance(learner.payoff_range, tuple | list) or not np.isfinite(learner.payoff_range).all():
            raise ParameterError(
                f"what a decision could still pay is not known with payoff_range={learner.payoff_range!r}, so nothing "
                "can be said for sure; give payoff_range=(low, high) to make the learner"
            )
        if not learner.record.keep:
            raise ParameterError(
                "intervals and survivors are bets on the record, which a learner with keep_record=False forgets; leave "
                "it at True"
            )
        self._learner = learner
        self._scale = PayoffScale(learner.payoff_range, learner.out_of_range)
        self._levels = Levels()
        self._gain, self._loss = Bank(0, len(STEEP)), Bank(0, len(STEEP))
        self._leads: dict[int, Lead] = {}  # of the decisions that led lately

    # What is asked for.

    def intervals(self, level: float) -> Intervals:
        errors = (1.0 - probability(level, "level")) * self._shares() / 2.0
        gain, loss, lost = self._interval_bets()
        low, high = gain.lower_bounds(errors, lost), 1.0 - loss.lower_bounds(errors, lost)
        if (low > high).any():
            self._warn(np.flatnonzero(low > high), level)
            low, high = np.where(low > high, 0.0, low), np.where(low > high, 1.0, high)
        start, end = self._scale.low, self._scale.high
        return Intervals(start + (end - start) * low, start + (end - start) * high)

    def log_wealth(self, means: Array) -> Array:
        """What the bets against these means (in the user's units) have made of 1, for low and high.  (K,) -> (2, K)

        The intervals of a level have left out a mean as soon as this exceeds log(2 / (1 - level) / its share).
        """
        m = self._scale.units(np.asarray(means, np.float64))
        gain, loss, lost = self._interval_bets()
        return np.stack([mixed(gain.log_evidence(m, lost)), mixed(loss.log_evidence(1.0 - m, lost))])

    def surviving(self, level: float) -> Indices:
        leads = self._evidence()
        return np.flatnonzero(leads.open & (leads.log_evidence < self._needed(level)))

    def rounds_left(self, level: float) -> float:
        """How many more rounds until one survives, if evidence grows as it has so far; inf where it has not."""
        leads, needed = self._evidence(), self._needed(level)
        rivals = leads.open & (leads.log_evidence < needed)
        rivals[leads.leader] = False
        if not rivals.any():
            return 0.0
        best, missing = leads.best_stake[rivals], (needed - leads.log_evidence)[rivals]
        if leads.rows == 0 or (best <= 0).any():
            return math.inf
        return float(math.ceil(leads.rows * np.max(missing / best)))

    # Bets on means.

    def _interval_bets(self) -> tuple[Bank, Bank, Indices]:
        """The bets that low and high are made of, and the rows that both lost."""
        K = self._learner.space.size
        self._gain.open(K)
        self._loss.open(K)
        for rows in self._rows_from(self._gain.rows):
            levels = self._table(rows.sources)
            self._gain.add(rows.weights * rows.payoffs[:, None], rows.kinds, levels)
            self._loss.add(rows.weights * (1.0 - rows.payoffs)[:, None], rows.kinds, levels)
        return self._gain, self._loss, self._lost(self._table)

    def _shares(self) -> Array:
        """Each decision's part of the error; they add up to at most 1.  (K,)"""
        return np.full(self._learner.space.size, (1.0 - RESERVE) / self._learner.space.size)

    def _warn(self, contradicted: Indices, level: float) -> None:
        named = ", ".join(map(str, contradicted[:5])) + (", ..." if len(contradicted) > 5 else "")
        warnings.warn(
            f"the bounds on decision {named} contradict each other, which by chance happens in fewer than "
            f"{1 - level:.2g} of all runs: its interval is the whole range; check whether payoffs drift, and whether "
            "likelihoods are those of the policies",
            ContradictionWarning,
            stacklevel=4,
        )

    # Bets on differences.

    def _evidence(self) -> Leads:
        """How much speaks against each decision being the best, by its difference to the leader."""
        learner = self._learner
        K, estimates = learner.space.size, learner.estimates()
        open_ = np.ones(K, bool)
        known = open_ & (estimates.log_effective_samples > -np.inf)
        if K == 1 or not known.any():
            return Leads(int(np.argmax(open_)), open_, np.full(K, -math.inf), np.zeros(K), len(learner.record))
        leader = int(np.argmax(np.where(known, estimates.value, -np.inf)))
        bets = self._lead_of(leader)
        lost = [self._lost(table) for table in self._pair_tables(leader)]
        paired = bets.paired.log_evidence(np.ones(K), lost[0])  # (K, C, S)
        apart, best_apart = least_product(bets.gain, bets.loss, *lost[1:])
        log_evidence = np.logaddexp(mixed(paired), apart) - math.log(2.0) - math.log(max(K - 1, 1))
        log_evidence[leader] = -math.inf
        best = np.maximum(paired.max(axis=(1, 2)), best_apart)
        return Leads(leader, open_, log_evidence, best, len(learner.record))

    def _lead_of(self, leader: int) -> Lead:
        """The bets on this leader, brought up to date; those of decisions that have not led for long are forgotten."""
        bets = self._leads.pop(leader, None) or Lead()
        self._leads[leader] = bets
        if len(self._leads) > MOST_LEADERS:
            del self._leads[next(iter(self._leads))]
        for bank in bets.banks():
            bank.open(self._learner.space.size)
        tables = self._pair_tables(leader)
        for rows in self._rows_from(bets.paired.rows):
            y = rows.payoffs[:, None]
            gain, loss = rows.weights[:, leader, None] * y, rows.weights * (1.0 - y)
            for bank, variables, table in zip(bets.banks(), (gain + loss, gain + 0 * loss, loss), tables, strict=True):
                bank.add(variables, rows.kinds, table(rows.sources))
        return bets

    def _pair_tables(self, leader: int) -> tuple[Table, Table, Table]:
        space, levels = self._learner.space, self._levels
        return (
            lambda sources: np.stack([levels.of_pairs(space, leader, source) for source in sources]),
            lambda sources: np.stack([levels.apart(space, leader, source)[0] for source in sources]),
            lambda sources: np.stack([levels.apart(space, leader, source)[1] for source in sources]),
        )

    def _needed(self, level: float) -> float:
        return -math.log((1.0 - probability(level, "level")) * (1.0 - RESERVE))

    # Rows and levels.

    def _rows_from(self, begin: int) -> Iterator[Rows]:
        learner, record = self._learner, self._learner.record
        K, step = learner.space.size, max(1, CHUNK // learner.space.sources)
        for start in range(begin, len(record), step):
            part = slice(start, start + step)
            decisions = record.decisions[part]
            log_density = learner.space.family.log_density(None, record.mediators[part])  # (S, n)
            with np.errstate(over="ignore"):
                weights = np.exp(log_density[:K] - log_density[decisions, np.arange(len(decisions))])
            sources, kinds = np.unique(decisions, return_inverse=True)
            payoffs = self._scale.units(record.payoffs[part])
            yield Rows(sources.tolist(), kinds, np.ascontiguousarray(weights.T), payoffs)

    def _table(self, sources: list[int]) -> NDArray[np.int8]:
        return np.stack([self._levels.to(self._learner.space, source) for source in sources])

    def _lost(self, table: Table) -> Indices:
        """How many rows at every level have an answer that is not known.  (K, C, LEVELS)"""
        learner = self._learner
        lost = np.zeros((learner.space.size, table([0]).shape[1], LEVELS), np.int64)
        lost[:, :, 0] += len(learner.failures) - len(learner.failed)  # of an older state, which did not say whose
        unanswered = [trial.decision for trial in learner.pending] + list(learner.failed.values())
        if unanswered:
            sources, times = np.unique(unanswered, return_counts=True)
            for levels, count in zip(table(sources.tolist()), times.tolist(), strict=True):
                shape, decision = np.nonzero(levels < NONE)
                lost[decision, shape, levels[shape, decision]] += count
        return lost
