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
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from randomist._checks import probability
from randomist._types import Array, Flags, Indices
from randomist.errors import ContradictionWarning, ParameterError
from randomist.importance.intervals.anytime import LEVELS, NONE, Bank, least_product, mixed
from randomist.learners.finite.levels import PAIR_STEEP, STEEP, Levels, Source
from randomist.learners.payoffs import PayoffScale

if TYPE_CHECKING:
    from randomist.learners.finite.base import FiniteLearner

RESERVE = 0.1  # of the error, for decisions that are added later
MOST_LEADERS = 8  # whose bets are kept
LARGEST_LOG_WEIGHT = 100.0  # what is bet on is cut far below
CHUNK = 2**18  # weights that are computed at once


class Intervals(NamedTuple):
    """Bounds on every decision's mean payoff, in the user's units: they hold together, at every round at once."""

    low: Array  # (K,)
    high: Array  # (K,)


class Rows(NamedTuple):
    """Some told trials, as what they say about every decision."""

    sources: list[Source]
    kinds: Indices  # which of the sources each row has  (n,)
    weights: Array  # p_x(z) / p_j(z)  (n, K)
    payoffs: Array  # in [0, 1]  (n,)


class Leads(NamedTuple):
    """What speaks for the leader against the others."""

    leader: int
    open: Flags  # decisions that can be played  (K,)
    log_evidence: Array  # against each being the best  (K,)
    best_stake: Array  # the same of the single stake that has won most, without a prior  (K,)
    rows: int


Table: TypeAlias = Callable[[list[Source]], NDArray[np.int8]]  # levels of every shape and decision  (J, C, K)


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
        if not learner.record.keep or learner.record.last is not None:
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
        low, high = self.unit_intervals(level)
        start, span = self._scale.low, self._scale.high - self._scale.low
        return Intervals(start + span * low, start + span * high)

    def unit_intervals(self, level: float) -> tuple[Array, Array]:
        """Low and high on the [0, 1] scale of `payoff_range`."""
        errors = (1.0 - probability(level, "level")) * self._shares() / 2.0
        gain, loss, lost = self._interval_bets()
        low, high = gain.lower_bounds(errors, lost), 1.0 - loss.lower_bounds(errors, lost)
        if (low > high).any():
            self._warn(np.flatnonzero(low > high), level)
            low, high = np.where(low > high, 0.0, low), np.where(low > high, 1.0, high)
        return low, high

    def log_wealth(self, means: Array) -> Array:
        """What the bets against these means (in the user's units) have made of 1, for low and high.  (K,) -> (2, K)

        The intervals of a level have left out a mean as soon as this exceeds log(2 / (1 - level) / its share).
        """
        m = self._scale.units(np.asarray(means, np.float64))
        gain, loss, lost = self._interval_bets()
        return np.stack([mixed(gain.log_evidence(m, lost)), mixed(loss.log_evidence(1.0 - m, lost))])

    def surviving(self, level: float) -> Indices:
        leads = self.evidence()
        return np.flatnonzero(leads.open & (leads.log_evidence < self._needed(level)))

    def rounds_left(self, level: float) -> float:
        """How many more rounds until one survives, if evidence grows as it has so far; inf where it has not."""
        leads, needed = self.evidence(), self._needed(level)
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
        """Each decision's part of the error; with all that may still be added, they add up to 1.  (K,)"""
        added = np.count_nonzero(self._is_added())
        first = self._learner.space.size - added
        later = RESERVE * 6.0 / math.pi**2 / np.arange(1, added + 1) ** 2.0
        return np.concatenate([np.full(first, (1.0 - RESERVE) / first), later])

    def _is_added(self) -> Flags:
        return np.asarray(self._learner.arrivals > 0)

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

    def evidence(self) -> Leads:
        """How much speaks against each decision being the best, by its difference to the leader."""
        learner = self._learner
        K, estimates = learner.space.size, learner.estimates()
        open_ = learner.active
        known = open_ & (estimates.log_effective_samples > -np.inf)
        if K == 1 or not known.any():
            return Leads(int(np.argmax(open_)), open_, np.full(K, -math.inf), np.zeros(K), len(learner.record))
        leader = int(np.argmax(np.where(known, estimates.value, -np.inf)))
        bets = self._lead_of(leader)
        lost = [self._lost(table) for table in self._pair_tables(leader)]
        paired = bets.paired.log_evidence(np.ones(K), lost[0])  # (K, C, S)
        apart, best_apart = least_product(bets.gain, bets.loss, *lost[1:])
        log_evidence = np.logaddexp(mixed(paired), apart) + math.log(self._shares()[leader] / 2.0)
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
            loss = rows.weights * (1.0 - y)
            gain = np.repeat(rows.weights[:, leader, None] * y, loss.shape[1], axis=1)
            for bank, variables, table in zip(bets.banks(), (gain + loss, gain, loss), tables, strict=True):
                bank.add(variables, rows.kinds, table(rows.sources))
        return bets

    def _pair_tables(self, leader: int) -> tuple[Table, Table, Table]:
        space, levels = self._learner.space, self._levels
        return (
            lambda sources: np.stack([levels.of_pairs(space, leader, *source) for source in sources]),
            lambda sources: np.stack([levels.apart(space, leader, *source)[0] for source in sources]),
            lambda sources: np.stack([levels.apart(space, leader, *source)[1] for source in sources]),
        )

    def _needed(self, level: float) -> Array:
        """The evidence that excludes each decision. One of the first ones is the best of them: they need not share."""
        share = np.where(self._is_added(), self._shares(), 1.0 - RESERVE)
        return np.asarray(-np.log((1.0 - probability(level, "level")) * share))

    # Rows and levels.

    def _rows_from(self, begin: int) -> Iterator[Rows]:
        learner, record = self._learner, self._learner.record
        K, step = learner.space.size, max(1, CHUNK // learner.space.sources)
        for start in range(begin, len(record), step):
            part = slice(start, start + step)
            decisions = record.decisions[part]
            log_density = learner.space.family.log_density(None, record.mediators[part])  # (S, n)
            log_weights = log_density[:K] - log_density[decisions, np.arange(len(decisions))]
            weights = np.exp(np.minimum(log_weights, LARGEST_LOG_WEIGHT))
            sources, kinds, _ = self._sources(decisions, record.ids[part])
            payoffs = self._scale.units(record.payoffs[part])
            yield Rows(sources, kinds, np.ascontiguousarray(weights.T), payoffs)

    def _sources(self, decisions: Indices, ids: Indices) -> tuple[list[Source], Indices, Indices]:
        """The sources of some trials, which of them each has, and how many trials have each.  J, (n,), (J,)"""
        known = np.searchsorted(self._learner.arrivals, ids, side="right")
        found, kinds, times = np.unique(
            np.stack([decisions, known], axis=1), axis=0, return_inverse=True, return_counts=True
        )
        return [Source(*row) for row in found.tolist()], kinds.reshape(-1), times

    def _table(self, sources: list[Source]) -> NDArray[np.int8]:
        return np.stack([self._levels.to(self._learner.space, *source) for source in sources])

    def _lost(self, table: Table) -> Indices:
        """How many rows at every level have an answer that is not known.  (K, C, LEVELS)"""
        learner = self._learner
        lost = np.zeros((learner.space.size, table([Source(0, 1)]).shape[1], LEVELS), np.int64)
        lost[:, :, 0] += len(learner.failures) - len(learner.failed)  # of an older state, which did not say whose
        unanswered = [(trial.decision, trial.id) for trial in learner.pending]
        unanswered += [(decision, id_) for id_, decision in learner.failed.items()]
        if unanswered:
            sources, _, times = self._sources(*np.array(unanswered, np.int64).T)
            for levels, count in zip(table(sources), times.tolist(), strict=True):
                shape, decision = np.nonzero(levels < NONE)
                lost[decision, shape, levels[shape, decision]] += count
        return lost
