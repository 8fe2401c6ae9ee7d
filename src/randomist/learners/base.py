"""The protocol of every learner: ask for a trial, tell its payoff, save and load."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, overload

import numpy as np

from randomist._types import Array
from randomist.errors import (
    ClosedTrialError,
    ParameterError,
    RandomistError,
    StateError,
    UnknownTrialError,
)
from randomist.histories.finite import Record
from randomist.learners.payoffs import PayoffScale, number
from randomist.spaces import Finite, Space, space_from_state

FORMAT = 1  # of the saved state


class Trial(NamedTuple):
    """The ticket from `ask` to `tell`: play `decision`, whose mediator was drawn as `mediator`."""

    id: int
    decision: Any  # an index of a Finite space, a point of a Box
    mediator: Any  # a number, or an array of shape (d,); None where the environment produces it


@dataclass(eq=False)
class Learner(ABC):
    """What all learners share: tickets, payoffs mapped to [0, 1], randomness from one seed, exact save and load.

    Settings are dataclass fields, so a subclass adds its own by annotation and `state()` finds them. A subclass says in
    `_decide` what to play next and in `_absorb` what a told payoff changes.
    """

    space: Space
    _: KW_ONLY
    confidence: float = 2.0  # α
    payoff_range: tuple[float, float] | Literal["running"] = (0.0, 1.0)
    out_of_range: Literal["refuse", "clip"] = "refuse"
    first: Any = None  # x_1; drawn from the seed by default
    seed: int | None = 0

    learns_range: ClassVar[bool] = False  # whether the range of payoffs is better learned than taken from the task
    asks_change: ClassVar[tuple[str, ...]] = ()  # attributes that an ask may change, beside the tickets
    registry: ClassVar[dict[str, type[Learner]]] = {}

    def __init_subclass__(cls) -> None:
        Learner.registry[cls.__name__] = cls  # the last one of a name, so that a module can be reloaded

    def __post_init__(self) -> None:
        self._check_settings()
        if self.seed is None:
            self.seed = int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]  # a run that cannot be named cannot be repeated
        decision_seed, mediator_seed = np.random.SeedSequence(self.seed).spawn(2)
        self._rng = np.random.default_rng(decision_seed)  # what the learner draws to decide
        self._mediator_rng = np.random.default_rng(mediator_seed)  # what the family draws
        family, finite = self.space.family, isinstance(self.space, Finite)
        self._drawn = family.drawn  # whether `ask` draws the mediator
        self.record = Record(
            () if finite else family.decision_shape,
            family.shape,
            (np.int64 if finite else float, family.dtype),
            keep=self._keeps_record(),
        )
        self._scale = PayoffScale(self.payoff_range, self.out_of_range)
        self.failures: dict[int, str] = {}  # why each failed trial failed
        self._pending: dict[int, Trial] = {}
        self._next_id = 0

    # What a learner is.

    @abstractmethod
    def _decide(self) -> Any:
        """The next decision, given the history."""

    @abstractmethod
    def _absorb(self, decision: Any, mediator: Any, payoff: float) -> None:
        """A told payoff in [0, 1] enters the caches; raises before it changes anything."""

    @abstractmethod
    def recommend(self) -> Any:
        """The decision with the best estimated value."""

    # The protocol.

    @overload
    def ask(self) -> Trial: ...
    @overload
    def ask(self, batch: int, *, one_decision: bool = False) -> list[Trial]: ...
    def ask(self, batch: int | None = None, *, one_decision: bool = False) -> Trial | list[Trial]:
        """The next trial, or the next `batch` of them; nothing need be told in between.

        `one_decision=True` decides once and draws a mediator of that decision for every trial of the batch.
        """
        if batch is None:
            return self._ask(self._decide())
        if not isinstance(batch, int | np.integer) or batch < 1:
            raise ParameterError(f"batch must be a whole number >= 1, got {batch!r}; leave it out for a single trial")
        if one_decision:
            decision = self._decide()
            return [self._ask(decision) for _ in range(batch)]
        return [self._ask(self._decide()) for _ in range(batch)]

    def tell(self, trial: Trial | int, payoff: float) -> None:
        """The payoff of an asked trial, in the user's units; in any order, each trial once."""
        ticket = self._ticket(trial)
        self._tell(ticket, ticket.mediator, payoff)

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """An asked trial that will never be answered: it leaves no trace in the estimates."""
        ticket = self._ticket(trial)
        self.failures[ticket.id] = str(reason)
        del self._pending[ticket.id]

    @property
    def pending(self) -> list[Trial]:
        """Asked, neither told nor failed."""
        return list(self._pending.values())

    @property
    def clipped(self) -> int:
        """How many payoffs were outside the range and were clipped."""
        return self._scale.clipped

    @property
    def told(self) -> int:
        """How many payoffs have been told; the next round is t = told + 1."""
        return len(self.record)

    # Save and load.

    def state(self) -> dict[str, Any]:
        """Everything that the future depends on, as plain arrays, numbers and strings."""
        pending = self.pending
        return {
            "format": FORMAT,
            "learner": type(self).__name__,
            "space": self.space.state(),
            "settings": {f.name: getattr(self, f.name) for f in fields(self) if f.name != "space"},
            "record": self.record.state(),
            "pending": {
                "ids": np.array([trial.id for trial in pending], np.int64),
                "decisions": np.array([trial.decision for trial in pending]),
                "mediators": np.array(
                    [trial.mediator for trial in pending] if self._drawn else np.empty((len(pending), 0))
                ),
            },
            "next_id": self._next_id,
            "running_range": [self._scale.low, self._scale.high] if self._scale.running else None,
            "clipped": self.clipped,
            "failures": {"ids": np.array(list(self.failures), np.int64), "reasons": list(self.failures.values())},
            "generators": {
                "decision": self._rng.bit_generator.state,
                "mediator": self._mediator_rng.bit_generator.state,
            },
            "caches": self._caches(),
        }

    def _caches(self) -> dict[str, Any]:
        """What the subclass adds to the state."""
        return {}

    def _restore(self, state: dict[str, Any]) -> None:
        """Undo `state` on a fresh learner; a subclass rebuilds its caches after calling this."""
        self.record.restore(state["record"])
        if self._scale.running:
            payoffs = [self.record.payoffs] if self.record.keep and len(self.record) else []
            seen = [float(end) for told in payoffs for end in (told.min(), told.max())]
            seen += [end for end in state.get("running_range") or () if math.isfinite(end)]
            if seen:
                self._scale.widen(min(seen), max(seen))
        pending = state["pending"]
        decisions, mediators = np.asarray(pending["decisions"]), np.asarray(pending["mediators"])
        for id_, decision, mediator in zip(pending["ids"], decisions, mediators, strict=True):
            self._pending[int(id_)] = Trial(int(id_), _plain(decision), _plain(mediator) if self._drawn else None)
        self._next_id = int(state["next_id"])
        self._scale.clipped = int(state["clipped"])
        failures = state["failures"]
        self.failures = dict(zip(map(int, failures["ids"]), failures["reasons"], strict=True))
        self._rng.bit_generator.state = state["generators"]["decision"]
        self._mediator_rng.bit_generator.state = state["generators"]["mediator"]

    # Inside.

    def _ask(self, decision: Any) -> Trial:
        trial = Trial(self._next_id, decision, self.space.family.draw(decision, self._mediator_rng))
        self._pending[trial.id] = trial
        self._next_id += 1
        return trial

    def _tell(self, ticket: Trial, mediator: Any, payoff: float) -> None:
        value = number(payoff)
        if self._scale.running and not self._scale.covers(value):
            self._widen(value, value)
        self._absorb(ticket.decision, mediator, self._scale.unit(value))
        self.record.append(ticket.decision, mediator, value)
        del self._pending[ticket.id]

    def _adopt(self, trial: Trial, marks: dict[str, Any] | None = None) -> None:
        """A trial that another process asked of the same study enters as if this learner had asked it.

        `marks` is what that ask left in `asks_change`.
        """
        self._pending[trial.id] = trial
        self._next_id = max(self._next_id, trial.id + 1)
        for name, value in (marks or {}).items():
            setattr(self, name, value)

    def _ticket(self, trial: Trial | int) -> Trial:
        if type(trial) is Trial and type(trial.id) is int and self._pending.get(trial.id) is trial:
            return trial  # the very ticket: nothing to check
        id_ = trial.id if isinstance(trial, Trial) else trial
        if isinstance(id_, bool) or not isinstance(id_, int | np.integer):
            raise UnknownTrialError(f"a trial is named by the ticket that `ask` gave, or its id, got {trial!r}")
        ticket = self._pending.get(id_)
        if ticket is None:
            if isinstance(id_, int | np.integer) and 0 <= id_ < self._next_id:
                ended = "failed" if id_ in self.failures else "told"
                raise ClosedTrialError(f"trial {id_} was {ended} before; each trial is told or failed once: ask again")
            raise UnknownTrialError(
                f"trial {id_!r} was never asked of this learner; ids so far: 0..{self._next_id - 1}"
            )
        if isinstance(trial, Trial) and trial is not ticket and not _same(trial, ticket):
            raise UnknownTrialError(
                f"{trial} is not the trial that this learner asked as {ticket}; tell the one it gave"
            )
        return ticket

    def _keeps_record(self) -> bool:
        """Whether decisions, mediators and payoffs are kept as they were told, or only what they sum up to."""
        return True

    def _widen(self, low: float, high: float) -> None:
        """Let the running range include these payoffs, and map anew what was told."""
        self._scale.widen(low, high)
        self._rescale(self._scale.units(self.record.payoffs))

    @abstractmethod
    def _rescale(self, payoffs: Array) -> None:
        """The running range grew: all told payoffs, mapped anew, replace those in the caches."""

    def _check_settings(self) -> None:
        if not (math.isfinite(self.confidence) and self.confidence > 1):
            raise ParameterError(
                f"confidence must be a number > 1 (2 in the paper's experiments), got {self.confidence}"
            )
        if self.seed is not None and (not isinstance(self.seed, int | np.integer) or self.seed < 0):
            raise ParameterError(
                f"seed must be a whole number >= 0, or None for one from the system, got {self.seed!r}"
            )


def load(state: dict[str, Any]) -> Learner:
    """The learner that `state()` described; it goes on bit for bit as the saved one would have."""
    try:
        if state["format"] != FORMAT:
            raise StateError(f"state has format {state['format']!r}, this version reads {FORMAT}")
        cls = Learner.registry.get(state["learner"])
        if cls is None:
            raise StateError(f"unknown learner {state['learner']!r}; import the module that defines it first")
        learner = cls(space_from_state(state["space"]), **state["settings"])
        learner._restore(state)
    except KeyError as error:
        raise StateError(f"state lacks the entry {error}; pass what `learner.state()` returned") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, RandomistError):
            raise
        raise StateError(f"state does not describe a learner: {error}; pass what `learner.state()` returned") from error
    return learner


def _plain(value: Any) -> Any:
    """A Python number for a scalar, a read-only array otherwise."""
    if value.ndim == 0:
        return value.item()
    value = value.copy()
    value.flags.writeable = False
    return value


def _same(trial: Trial, other: Trial) -> bool:
    return np.array_equal(trial.decision, other.decision) and np.array_equal(trial.mediator, other.mediator)
