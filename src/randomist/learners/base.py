"""The protocol of every learner: ask for a trial, tell its payoff; propose and commit; save.

What an ask changes is small and replaced as a whole: the generators, the next id, and the position of a search, which
is a frozen record (`Search` of the learner). So `propose` can compute trials and leave the learner as it was.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, overload

import numpy as np

from randomist import _html
from randomist._checks import flag, shown, whole_number
from randomist._json import frozen
from randomist._lookup import Named
from randomist._types import Array
from randomist.errors import (
    ClosedTrialError,
    MediatorError,
    ParameterError,
    RandomistError,
    ShapeError,
    StateError,
    UnknownTrialError,
)
from randomist.families.location_scale import LocationScale
from randomist.histories.record import Record
from randomist.importance.divergences import Divergence
from randomist.importance.estimators import Estimator
from randomist.importance.parts import described
from randomist.learners.payoffs import PayoffScale, number
from randomist.learners.registry import name_of
from randomist.learners.trial import PURPOSES, Trial
from randomist.spaces import Finite, Space

MOST_ASKED = 2**62  # trials; ids are saved in 64 bits
FORMAT = 2  # of the saved state; `states` reads the earlier ones


class Asking(NamedTuple):
    """What asks change in a learner, besides the trials that are pending."""

    next_id: int
    generators: tuple[Mapping[str, Any], Mapping[str, Any]]  # states: what decides, and what draws mediators
    search: Any


class Proposal(NamedTuple):
    """Trials that a learner would ask next. Nothing has changed until `commit`."""

    trials: tuple[Trial, ...]
    searches: tuple[dict[str, Any] | None, ...]  # what each ask leaves of the search, as plain data
    asking: Asking


@dataclass(eq=False, repr=False)
class Learner(Named, ABC):
    """What all learners share: tickets, payoffs mapped to [0, 1], randomness from one seed, exact save and load.

    Settings are dataclass fields, so a subclass adds its own by annotation and `state()` finds them; they stay as they
    were given. A subclass says in `_decide` what to play next and in `_absorb` what a told payoff changes.

    Parameters
    ----------
    space
        Where to search: a `Finite` set or a `Box`.
    confidence
        α: thresholds and widths are made of α log t. 2 in all of the paper's experiments; larger explores more.
    payoff_range
        The smallest and the largest payoff, in your units: (0, 1) by default. "running" learns it from what is told;
        (-inf, inf) takes payoffs as they are.
    out_of_range
        What happens to a payoff outside of the range: "refuse" raises an error, "clip" clips and counts it.
    first
        The first decision; drawn from the seed by default.
    seed
        A whole number. The same seed gives the same run; None takes one from the system, which `entropy` then names.
    """

    _ours: ClassVar[str] = "randomist.learners.registry:NAMES"

    space: Space
    _: KW_ONLY
    confidence: float = 2.0  # α
    payoff_range: tuple[float, float] | Literal["running"] = (0.0, 1.0)
    out_of_range: Literal["refuse", "clip"] = "refuse"
    first: Any = None  # x_1; drawn from the seed by default
    seed: int | None = 0

    learns_range: ClassVar[bool] = False  # whether the range of payoffs is better learned than taken from the task
    Search: ClassVar[type | None] = None  # a frozen dataclass: where the learner's search is, replaced by each ask

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        made: Any = cls
        if "__repr__" not in vars(cls):
            made.__repr__ = Learner.__repr__  # not the one that @dataclass would make

    def __post_init__(self) -> None:
        self._check_settings()
        # The seed in use: a run that cannot be named cannot be repeated.
        self.entropy = self.seed if self.seed is not None else secrets.randbits(128)
        self._rng, self._mediator_rng = _generators(self.entropy)  # what the learner draws, and what the family does
        self.search: Any = None
        self.guard: Callable[[Any], Any] | None = None  # sees each decision, and says what is asked instead: see Safe
        family, finite = self.space.family, isinstance(self.space, Finite)
        self._drawn = family.drawn  # whether `ask` draws the mediator
        self.record = Record(
            () if finite else family.decision_shape,
            family.shape,
            (np.int64 if finite else float, family.dtype),
            keep=self._keeps_record(),
            last=self._remembered(),
        )
        self._scale = PayoffScale(self.payoff_range, self.out_of_range)
        self.failures: dict[int, str] = {}  # why each failed trial failed
        self.failed: dict[int, Any] = {}  # the decision of each failed trial
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
        whole_number(batch, "batch")
        if one_decision:
            decision = self._decide()
            return [self._ask(decision) for _ in range(batch)]
        return [self._ask(self._decide()) for _ in range(batch)]

    def propose(
        self, n: int = 1, *, streams: Sequence[tuple[int, ...]] | None = None, confirm: bool = False
    ) -> Proposal:
        """The next `n` trials and what asking them would change; the learner stays as it is until `commit`.

        `streams` gives each trial random numbers of its own: spawn keys of the learner's seed, one per trial. With
        `confirm=True` they are those of `confirm(n)`, of a learner that has it.
        """
        if streams is not None and len(streams) != n:
            raise ParameterError(f"streams must have one spawn key per trial, {n} of them, got {len(streams)}")
        before, trials, searches = self._asking(), list[Trial](), list[dict[str, Any] | None]()
        try:
            if confirm:
                self._confirm(whole_number(n, "n"))
            for i in range(whole_number(n, "n")):
                if streams is not None:
                    self._rng, self._mediator_rng = _generators(self.entropy, streams[i])
                trials.append(self._ask(self._decide()))
                searches.append(self.search_state())
            return Proposal(tuple(trials), tuple(searches), self._asking())
        finally:
            for trial in trials:
                del self._pending[trial.id]
            self._resume(before)

    def commit(self, proposal: Proposal) -> None:
        """Ask the trials of a proposal, the last one that was made."""
        if not proposal.trials or proposal.trials[0].id != self._next_id:
            raise ParameterError(
                f"the proposal begins with trial {[t.id for t in proposal.trials][:1]}, and this learner is at "
                f"{self._next_id}; propose again"
            )
        self._pending.update((trial.id, trial) for trial in proposal.trials)
        self._resume(proposal.asking)

    def adopt(self, trial: Trial, search: dict[str, Any] | None = None) -> None:
        """A trial that was asked elsewhere enters as if this learner had asked it; each once.

        `search` is what that ask left of the search (`Proposal.searches`); None leaves the search as it is.
        """
        ticket = self._checked_trial(trial)
        if self._asked_before(ticket.id):
            raise ClosedTrialError(f"trial {ticket.id} was asked or adopted before: each is adopted once")
        if search is not None:
            self.resume_search(search)
        self.enter(ticket)

    def replace(self, trial: Trial) -> None:
        """A pending trial turns out to play something else: another machine, whose file a run follows, asked that."""
        ticket = self._checked_trial(trial)
        self._ticket(ticket.id)
        self.enter(ticket)

    def enter(self, trial: Trial) -> None:
        """`adopt` without its checks, for rows of a study, which are checked all at once."""
        self._pending[trial.id] = trial
        self._next_id = max(self._next_id, trial.id + 1)

    def tell(self, trial: Trial | int, payoff: float | None = None, *, feasible: bool = True) -> None:
        """The payoff of an asked trial, in the user's units; in any order, each trial once.

        `feasible=False` says that its mediator broke a constraint: it enters no estimate, with or without a payoff, and
        the search keeps away from there.
        """
        ticket = self._ticket(trial)
        if flag(feasible, "feasible"):
            self._tell(ticket, ticket.mediator, payoff)
            return
        if payoff is not None:
            number(payoff)
        self._exclude(ticket)
        del self._pending[ticket.id]

    def tell_all(self, trials: Sequence[Trial | int], payoffs: Sequence[float]) -> None:
        """Many trials told at once, in this order: the same as one by one, in one pass where the learner can.

        Where one of them is refused, none is told.
        """
        for ticket, value in zip(*self._checked_tells(trials, payoffs), strict=True):
            self.tell(ticket, value)

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        """An asked trial that will never be answered: it leaves no trace in the estimates."""
        ticket = self._ticket(trial)
        self.failures[ticket.id] = str(reason)
        self.failed[ticket.id] = ticket.decision
        del self._pending[ticket.id]

    @property
    def pending(self) -> list[Trial]:
        """Asked, neither told nor failed."""
        return list(self._pending.values())

    def is_pending(self, id_: int) -> bool:
        return id_ in self._pending

    @property
    def clipped(self) -> int:
        """How many payoffs were outside the range and were clipped."""
        return self._scale.clipped

    @property
    def told(self) -> int:
        """How many payoffs have been told; the next round is t = told + 1."""
        return len(self.record)

    def __repr__(self) -> str:
        return f"<{self._title()}>"

    def _repr_html_(self) -> str:
        settings = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "space"}
        changed = [(name, repr(value)) for name, value in settings.items() if value is not None]
        return _html.table(self._title(), changed)

    def _title(self) -> str:
        kind = type(self.space).__name__ if getattr(self.space, "meaning", None) is None else "Parameters"
        size = self.space.size if isinstance(self.space, Finite) else self.space.dimension
        what = "decisions" if isinstance(self.space, Finite) else "coordinates"
        waiting = f", {len(self.pending):,} pending" if self.pending else ""
        return f"{type(self).__name__} on a {kind} of {size} {what}: {self.told:,} told{waiting}"

    # Save and load.

    def disown_seed(self) -> None:
        """The seed came from the system, not from the user: it is `entropy`, and no setting."""
        self.seed = None

    def state(self) -> dict[str, Any]:
        """Everything that the future depends on, as plain arrays, numbers and strings."""
        pending = self.pending
        return {
            "format": FORMAT,
            "learner": name_of(type(self)),
            "space": self.space.state(),
            "settings": {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "space"},
            "entropy": int(self.entropy),
            "record": self.record.state(),
            "pending": {
                "ids": np.array([trial.id for trial in pending], np.int64),
                "decisions": np.array([trial.decision for trial in pending]),
                "mediators": np.array(
                    [trial.mediator for trial in pending] if self._drawn else np.empty((len(pending), 0))
                ),
                **({"purposes": [trial.purpose for trial in pending]} if hasattr(self.Search, "purpose") else {}),
            },
            "next_id": self._next_id,
            "running_range": [self._scale.low, self._scale.high] if self._scale.running else None,
            "clipped": self.clipped,
            "failures": {
                "ids": np.array(list(self.failures), np.int64),
                "reasons": list(self.failures.values()),
                "decided": np.array(list(self.failed), np.int64),
                "decisions": np.array(list(self.failed.values())),
            },
            "generators": {
                "decision": self._rng.bit_generator.state,
                "mediator": self._mediator_rng.bit_generator.state,
            },
            "search": self.search_state(),
            "caches": self._caches(),
        }

    def search_state(self) -> dict[str, Any] | None:
        """Where the search is, as plain data; None where the learner has none, or has not begun."""
        return None if self.search is None else {f.name: getattr(self.search, f.name) for f in fields(self.search)}

    def resume_search(self, state: dict[str, Any] | None) -> None:
        """Undo `search_state`."""
        self.search = None if state is None else self.check_search(state)

    def check_search(self, state: Any) -> Any:
        """The search that plain data describes; refused where that is not of this learner."""
        if self.Search is None:
            raise StateError(f"{type(self).__name__} has no search to resume, got {state!r:.80}")
        names = [f.name for f in fields(self.Search)]
        if not isinstance(state, dict) or set(state) != set(names):
            raise StateError(f"a search of {type(self).__name__} has {', '.join(names)}; got {state!r:.80}")
        d = math.prod(self.space.family.shape)
        for name, value in state.items():
            if not isinstance(value, np.ndarray | int | float) or not np.isfinite(value).all():
                raise StateError(f"{name} must be finite, got {value!r:.80}")
            if np.shape(value) not in ((), (d,)):
                raise StateError(f"{name} must be a number or have shape ({d},), got {np.shape(value)}")
        return self.Search(**state)

    def _caches(self) -> dict[str, Any]:
        """What the subclass adds to the state."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state` on a fresh learner; a subclass rebuilds its caches after calling this."""
        self.entropy = whole_number(state["entropy"], "the entropy of a state", 0)
        self.resume_search(state["search"])
        self.record.restore(state["record"])
        if self._scale.running:
            payoffs = [self.record.payoffs] if self.record.keep and len(self.record) else []
            seen = [float(end) for told in payoffs for end in (told.min(), told.max())]
            seen += [end for end in map(float, state["running_range"] or ()) if math.isfinite(end)]
            if seen:
                self._scale.widen(min(seen), max(seen))
        pending = state["pending"]
        decisions, mediators = np.asarray(pending["decisions"]), np.asarray(pending["mediators"])
        purposes = pending.get("purposes") or [None] * len(decisions)
        for id_, decision, mediator, purpose in zip(pending["ids"], decisions, mediators, purposes, strict=True):
            drawn = frozen(mediator) if self._drawn else None
            trial = Trial.of(self.space, int(id_), frozen(decision), drawn)
            self._pending[int(id_)] = trial._replace(purpose=purpose)
        self._next_id = whole_number(state["next_id"], "next_id of a state", 0, most=MOST_ASKED)
        self._scale.clipped = whole_number(state["clipped"], "clipped of a state", 0)
        failures = state["failures"]
        self.failures = dict(zip(map(int, failures["ids"]), failures["reasons"], strict=True))
        decided, decisions = failures.get("decided", ()), np.asarray(failures.get("decisions", ()))  # not in 0.1.0
        self.failed = dict(zip(map(int, decided), map(frozen, decisions), strict=True))
        self._rng.bit_generator.state = state["generators"]["decision"]
        self._mediator_rng.bit_generator.state = state["generators"]["mediator"]

    # Inside.

    def _ask(self, decision: Any) -> Trial:
        decision = decision if self.guard is None else self.guard(decision)
        mediator = self.space.family.draw(decision, self._mediator_rng)
        if isinstance(mediator, np.ndarray):
            mediator.flags.writeable = False  # it is what will be recorded
        trial = Trial.of(self.space, self._next_id, decision, mediator)
        if (purpose := getattr(self.search, "purpose", None)) is not None:
            trial = trial._replace(purpose=PURPOSES[purpose])
        self._pending[trial.id] = trial
        self._next_id += 1
        return trial

    @classmethod
    def check_excludes(cls, id_: int) -> None:
        """Raise unless this learner can be told that a trial broke a constraint."""
        if cls._exclude is Learner._exclude:
            raise ParameterError(
                f"{cls.__name__} cannot keep away from what is infeasible, only Auto can; tell trial {id_} a payoff "
                "all the same, or fail it"
            )

    def _exclude(self, ticket: Trial) -> None:
        """A trial that broke a constraint enters the caches; raises before it changes anything."""
        self.check_excludes(ticket.id)

    def _confirm(self, n: int) -> None:
        """The next `n` trials are to play what is recommended; raises before it changes anything."""
        raise ParameterError(f"{type(self).__name__} cannot confirm what it recommends, only Auto can")

    def _tell(self, ticket: Trial, mediator: Any, payoff: Any) -> None:
        value = number(payoff)
        if self._scale.running and not self._scale.covers(value):
            self._widen(value, value)
        self._absorb(ticket.decision, mediator, self._scale.unit(value))
        self.record.append(ticket.decision, mediator, value, ticket.id)
        del self._pending[ticket.id]

    def _checked_tells(
        self, trials: Sequence[Trial | int], payoffs: Sequence[float]
    ) -> tuple[list[Trial], list[float]]:
        """What `tell_all` was given: tickets and numbers, refused before anything has changed."""
        tickets, values = [self._ticket(trial) for trial in trials], [number(payoff) for payoff in payoffs]
        if len(tickets) != len(values):
            raise ShapeError(f"give one payoff per trial, got {len(tickets)} trials and {len(values)} payoffs")
        if len({ticket.id for ticket in tickets}) < len(tickets):
            raise ClosedTrialError("a trial is among those told twice; each trial is told once")
        if values and not self._scale.running and not self._scale.clip:
            self._scale.unit(min(values)), self._scale.unit(max(values))
        return tickets, values

    def _asking(self) -> Asking:
        states = self._rng.bit_generator.state, self._mediator_rng.bit_generator.state
        return Asking(self._next_id, states, self.search)

    def _resume(self, asking: Asking) -> None:
        self._next_id, (decision, mediator), self.search = asking
        self._rng.bit_generator.state = decision
        self._mediator_rng.bit_generator.state = mediator

    def _checked_trial(self, trial: Trial) -> Trial:
        """A trial from elsewhere, of this space, read-only; refused before anything has changed."""
        if not isinstance(trial, Trial):
            raise ParameterError(f"a trial is what ask() gave, got {shown(trial)}")
        id_, family = whole_number(trial.id, "the id of a trial", 0), self.space.family
        if id_ > MOST_ASKED:
            raise ParameterError(f"the id of a trial must be at most {MOST_ASKED}, got {id_}")
        decision, mediator = trial.decision, trial.mediator
        if isinstance(self.space, Finite):
            if whole_number(decision, "a decision", 0) >= self.space.size:
                raise ParameterError(f"a decision must be in 0..{self.space.size - 1}, got {decision}")
        else:
            decision = _numbers(decision, family.decision_shape, float, "a decision", ParameterError)
            if not self.space.contains(decision)[0]:
                raise ParameterError(f"a decision must be in the box, got {shown(decision)}")
        if not self._drawn:
            if mediator is not None:
                raise MediatorError(f"the mediator is what is told here, and None before, got {shown(mediator)}")
            return trial
        mediator = _numbers(mediator, family.shape, family.dtype, "a mediator", MediatorError)
        if isinstance(family, LocationScale) and not isinstance(self.space, Finite):
            low, high = self.space.corners  # other families have densities, which say what is impossible
            if not ((low <= np.ravel(mediator)) & (np.ravel(mediator) <= high)).all():
                raise MediatorError(f"a mediator must be in the box, got {shown(mediator)}")
        return trial._replace(decision=decision, mediator=mediator)

    def _asked_before(self, id_: int) -> bool:
        """Whether a trial was asked here; of a record that forgets, whether one after it was."""
        record = self.record
        if not record.keep or record.last is not None:
            return id_ < self._next_id
        closed = id_ in self.failures or id_ in getattr(self, "infeasible", ())
        return id_ in self._pending or closed or bool((record.ids == id_).any())

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

    def _remembered(self) -> int | None:
        """How many of the last trials are kept even where the record is not."""
        return None

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
        if self.seed is not None:
            whole_number(self.seed, "seed", 0, ", or None for one from the system")


def _generators(entropy: int, key: tuple[int, ...] = ()) -> tuple[np.random.Generator, np.random.Generator]:
    """Two streams of a seed: what the learner draws to decide, and what the family draws."""
    decision, mediator = np.random.SeedSequence(entropy, spawn_key=key).spawn(2)
    return np.random.default_rng(decision), np.random.default_rng(mediator)


def _numbers(value: Any, shape: tuple[int, ...], dtype: type, what: str, error: type[RandomistError]) -> Any:
    """A number or an array of numbers as a trial has it: of this shape and kind, finite and read-only."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        raise ShapeError(f"{what} must have shape {shape}, got {shown(value)}") from None
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise error(f"{what} must be of finite numbers, got {shown(value)}")
    if array.shape != shape:
        raise ShapeError(f"{what} must have shape {shape}, got {array.shape}")
    with np.errstate(invalid="ignore"):
        entries: np.typing.NDArray[Any] = array.astype(dtype)
    if (entries != array).any():
        raise error(f"{what} must be of whole numbers, got {shown(value)}")
    return frozen(entries)


def _plain(setting: Any) -> Any:
    """A setting as data: numbers of NumPy become Python's, and classes and objects are named."""
    if isinstance(setting, list | tuple):
        return type(setting)(map(_plain, setting))
    if isinstance(setting, type | Estimator | Divergence):
        return described(setting)
    return setting.item() if isinstance(setting, np.generic) else setting


def _same(trial: Trial, other: Trial) -> bool:
    return np.array_equal(trial.decision, other.decision) and np.array_equal(trial.mediator, other.mediator)
