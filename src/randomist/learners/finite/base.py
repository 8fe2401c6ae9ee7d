"""Learners on a finite set: what those that share samples and those that do not have in common.

General Randomized Exploration (Metelli et al. 2021, App. D.3): draw an index for every decision from its distribution
given the history, play the argmax. Subclasses say how an estimate becomes an index.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from randomist import _html
from randomist._checks import flag
from randomist._types import Array, Indices
from randomist.errors import NoDataError, ParameterError, ShapeError
from randomist.families.likelihoods import Likelihoods
from randomist.histories.estimates import HEADS, Estimates
from randomist.importance.perturbation import choose
from randomist.learners.base import Learner
from randomist.learners.finite.changing import added, apart, decision_number
from randomist.learners.trial import Trial
from randomist.spaces import Finite

if TYPE_CHECKING:
    from randomist.learners.finite.certainty import Certainty, Intervals
    from randomist.policies.episodes import Episode


@dataclass(eq=False, kw_only=True)
class FiniteLearner(Learner):
    """Play the argmax of an index over K decisions, after an opening of decisions that must each be played once.

    A subclass says in `index` how estimates become an index. Settings are those of `Learner`; `space` is a `Finite`,
    and `first` the decision to play first, where the opening leaves that open.
    """

    space: Finite = field(kw_only=False)

    def __post_init__(self) -> None:
        if not isinstance(self.space, Finite):
            raise ParameterError(
                f"{type(self).__name__} searches a Finite space, got a {type(self.space).__name__}; take a box learner "
                "such as MCMCRandomist, or lay a grid with Finite.grid(family, low, high, points)"
            )
        super().__post_init__()
        self._retired: set[int] = set()
        self._alone: set[int] = set()  # those that share no likelihoods with others
        self._arrived: list[int] = []  # the next trial's id when each of those that were added came
        odd = isinstance(self.first, bool) or np.ndim(self.first) or self.first not in range(self.space.size)
        if self.first is not None and odd:
            raise ParameterError(f"first must be a decision in 0..{self.space.size - 1}, got {self.first!r}")
        self._opening = dict.fromkeys(self.opening())  # an ordered set: what is still to be told once
        self._estimates: Estimates | None = None

    @abstractmethod
    def opening(self) -> list[int]:
        """The decisions to play before the index decides, in order."""

    @abstractmethod
    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        """An index for every decision; the largest is played, ties at random.  (K,)"""

    @abstractmethod
    def _estimate(self) -> Estimates: ...

    @abstractmethod
    def _observe(self, decision: int, mediator: Any, payoff: float) -> None: ...

    @abstractmethod
    def _observe_all(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        """Many in this order: the same as one by one; raises before it changes anything."""

    def tell(
        self, trial: Trial | int, payoff: Any = None, *, feasible: bool = True, log_likelihoods: Any = None
    ) -> None:
        """The payoff of an asked trial, in the user's units; in any order, each trial once.

        In a space of likelihoods, `log_likelihoods` has the log-likelihood of what was done under each policy.
        """
        ticket = self._ticket(trial)
        if not flag(feasible, "feasible"):
            self._exclude(ticket)  # refuses
        mediator = ticket.mediator
        if not self._drawn:
            assert isinstance(self.space.family, Likelihoods)
            payoff, mediator = self.space.family.observe(ticket.decision, payoff, log_likelihoods)
            if self._alone:
                mediator = apart(mediator, ticket.decision, self._alone)
        elif log_likelihoods is not None:
            raise ParameterError(
                "log_likelihoods are told in a space of likelihoods, Finite.likelihoods(K); here the family knows them"
            )
        self._tell(ticket, mediator, payoff)

    def tell_episode(self, trial: Trial | int, episode: Episode) -> None:
        """What the policy of an asked trial did, in a space of policies: it has likelihoods and payoff."""
        ticket = self._ticket(trial)
        if self._drawn:
            raise ParameterError(
                "episodes are told in a space of policies, Finite.policies(...); here the mediator was drawn by ask: "
                "tell(trial, payoff)"
            )
        assert isinstance(self.space.family, Likelihoods)
        payoff, mediator = self.space.family.observe_episode(ticket.decision, episode)
        self._tell(ticket, mediator, payoff)

    def tell_all(self, trials: Sequence[Trial | int], payoffs: Sequence[float]) -> None:
        """Many trials told at once, in this order: the same as one by one, in one pass where mediators are drawn."""
        tickets, told = self._checked_tells(trials, payoffs)
        if not (self._drawn and tickets):
            super().tell_all(tickets, told)
            return
        values, low, high = np.array(told), min(told), max(told)
        widening = self._scale.running and not (self._scale.covers(low) and self._scale.covers(high))
        if self._scale.running and self._in_turn(len(told), widening):
            super().tell_all(tickets, told)
            return
        decisions = np.array([ticket.decision for ticket in tickets], np.int64)
        mediators: NDArray[Any] = np.array([ticket.mediator for ticket in tickets], self.space.family.dtype)
        if widening:
            self._widen(low, high)
        self._observe_all(decisions, mediators, self._scale.units(values))
        self._scale.clipped += int(np.sum((values < self._scale.low) | (values > self._scale.high)))
        self.record.extend(decisions, mediators, values, np.array([ticket.id for ticket in tickets]))
        for ticket in tickets:
            del self._pending[ticket.id]
        self._close_opening(decisions)
        self._learned()

    def _in_turn(self, tells: int, widening: bool) -> bool:
        """Whether a running range, which may be about to grow, makes these tells count one after the other."""
        return False

    def estimates(self) -> Estimates:
        """What the history says about every decision now; `value` and `width` in the user's units.  (K,) each"""
        return self._scale.to_user(self._unit_estimates())

    @cached_property
    def certainty(self) -> Certainty:
        """The bets behind `intervals` and `surviving`; a typed error where nothing can be said for sure."""
        from randomist.learners.finite.certainty import Certainty

        return Certainty(self)

    def intervals(self, level: float = 0.95) -> Intervals:
        """Low and high of every decision's mean payoff, in the user's units; all hold together, at every round at once.

        With probability `level`, whatever the learner did and whenever one looks. Failed and pending trials count as
        the worst for either side, clipped payoffs as clipped; rows of an absorbed log do not count.
        """
        return self.certainty.intervals(level)

    def surviving(self, level: float = 0.95) -> Indices:
        """The decisions that may still be best; with probability `level` the best one is always among them."""
        return self.certainty.surviving(level)

    def rounds_left(self, level: float = 0.95) -> float:
        """An estimate of how many more rounds it takes until one decision survives: 0 where one does, inf if unknown.

        It extends the evidence so far in a straight line.
        """
        return self.certainty.rounds_left(level)

    def recommend(self) -> int:
        """The decision with the best estimated value among those that the history knows, the first one of equals."""
        if not self.told:
            raise NoDataError("nothing has been told yet; tell at least one payoff before asking for a recommendation")
        estimates = self._unit_estimates()
        known = (estimates.log_effective_samples > -np.inf) & self.active
        if not known.any():  # all that is known has been retired
            return int(np.argmax(self.active))
        return int(np.argmax(np.where(known, estimates.value, -np.inf)))

    def _repr_html_(self) -> str:
        estimates, left = self.estimates(), ["" if active else " (retired)" for active in self.active.tolist()]
        names = [name + word for name, word in zip(self.names, left, strict=True)]
        return _html.table(self._title(), estimates.rows(names), HEADS)

    # Decisions come and go.

    @property
    def names(self) -> tuple[str, ...]:
        """What each decision is called: its name in the space, or its number."""
        return self.space.names or tuple(map(str, range(self.space.size)))

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which decisions have not been retired.  (K,)"""
        active = np.ones(self.space.size, np.bool_)
        active[list(self._retired)] = False
        return active

    @property
    def arrivals(self) -> Indices:
        """The first trial that was asked when each decision was there: 0 unless it was added.  (K,)"""
        return np.array([0] * (self.space.size - len(self._arrived)) + self._arrived, np.int64)

    def add(self, member: Any = None, name: str | None = None, log_likelihoods: Any = None) -> int:
        """One more decision from now on: its number. What was told so far informs it like all others.

        `member` is a family of one member. In a space of likelihoods there is none; `log_likelihoods` has those of all
        that was told so far under the new policy, (t,), in the order of `record`. Without them it begins from scratch:
        it shares nothing, that is, it learns from its own trials alone, and these say nothing about the others. The
        space that was given to the learner stays as it is; `space` becomes another one.
        """
        return added(self, member, name, log_likelihoods)

    def retire(self, decision: int) -> None:
        """A decision is neither played nor recommended any more; its number is not used again.

        What it was told, or will be told of its pending trials, still informs the others.
        """
        number = decision_number(decision, self.space.size)
        if number in self._retired:
            raise ParameterError(f"decision {number} was retired before")
        if len(self._retired) + 1 == self.space.size:
            raise ParameterError(f"decision {number} is the last one that is left; add another one before it goes")
        self._retired.add(number)
        self._opening.pop(number, None)

    def opens(self, decision: int) -> bool:
        """Whether a decision that is added must be played once before the index decides."""
        opening = self.opening()
        return decision in opening and len(opening) > 1  # one alone is where a run begins

    def _unit_estimates(self) -> Estimates:
        """The estimates on the [0, 1] scale of `payoff_range`."""
        if self._estimates is None:
            self._estimates = self._estimate()
        return self._estimates

    def _absorb(self, decision: int, mediator: Any, payoff: float) -> None:
        self._observe(decision, mediator, payoff)
        self._opening.pop(decision, None)
        self._learned()

    def _learned(self) -> None:
        """Something was told: estimates are computed anew when they are next asked for."""
        self._estimates = None

    def _decide(self) -> int:
        if self._opening:
            asked = {trial.decision for trial in self._pending.values()}
            for decision in self._opening:
                if decision not in asked:
                    return decision
        estimates = self._unit_estimates()
        if self._pending:
            estimates = self._with_pending(estimates)
        index = self.index(estimates, self._rng)
        if type(index) is not np.ndarray or index.shape != (self.space.size,):
            raise ShapeError(
                f"{type(self).__name__}.index must return an array of shape ({self.space.size},), one per decision, "
                f"got {type(index).__name__} of shape {np.shape(index)}"
            )
        knowledge = self._knowledge(estimates)
        if self._retired:
            active = np.flatnonzero(self.active)
            chosen = choose(index[active], knowledge[active], self._rng.random())
            chosen = int(active[chosen]) if chosen >= 0 else chosen
        else:
            chosen = choose(index, knowledge, self._rng.random())
        if chosen < 0:
            raise ParameterError(f"{type(self).__name__}.index returned a NaN: {index}")
        return chosen

    def _with_pending(self, estimates: Estimates) -> Estimates:
        """The estimates as if the pending trials had been answered, where the learner can say what they would tell."""
        return estimates

    def _knowledge(self, estimates: Estimates) -> Array:
        """log η: -inf makes an index infinite, and the smaller one goes first among indices beyond float64."""
        return estimates.log_effective_samples

    def state(self) -> dict[str, Any]:
        decisions = {"names": list(self.space.names)} | {
            name: np.array(list(numbers), np.int64)
            for name, numbers in (
                ("retired", sorted(self._retired)),
                ("alone", sorted(self._alone)),
                ("arrived", self._arrived),
                ("opening", self._opening),
            )
        }
        return super().state() | {"decisions": decisions}

    def restore(self, state: dict[str, Any]) -> None:
        self.restore_decisions(state.get("decisions", {}))  # 0.1.0 had no such entry
        super().restore(state)
        if self.record.keep:
            self._close_opening(self.record.decisions)
        self._estimates = None

    def restore_decisions(self, state: dict[str, Any]) -> None:
        """What the entry "decisions" of a state says: those that came and went, and those to be played first."""
        self._retired, self._alone = (set(map(int, state.get(name, ()))) for name in ("retired", "alone"))
        self._arrived = list(map(int, state.get("arrived", ())))
        if "opening" in state:
            self._opening = dict.fromkeys(map(int, state["opening"]))

    def _close_opening(self, decisions: Indices) -> None:
        """These have been played."""
        if self._opening:
            for decision in np.unique(decisions).tolist():
                self._opening.pop(decision, None)
