"""What a storage keeps of a study, as plain records. Texts and numbers are as stored: who reads them checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

State = Literal["asked", "told", "failed", "stale", "retracted"]
STATES: tuple[State, ...] = ("asked", "told", "failed", "stale", "retracted")


class StudyTrial(NamedTuple):
    """One trial of a study, as users read it. Times are seconds since 1970, by the storage's clock."""

    id: int
    state: State  # "stale": asked, and its lease is over; "retracted": told, and taken back
    decision: Any
    mediator: Any
    payoff: float | None  # what was told, also of one that was not feasible
    worker: str
    reason: str | None  # why it failed, or was retracted
    asked_at: float
    lease_until: float
    closed_at: float | None
    closing: int | None  # the place in the order of tells and fails, from 1
    feasible: bool | None  # False: "failed", for it broke a constraint; None where that was not said
    parameters: dict[str, Any] | None = None  # what the mediator stands for, where the space is `Parameters`
    log_likelihoods: dict[str, float] | None = None  # of what was done under every policy, where these were told
    closed_by: str | None = None  # who told it, or let it fail


class StudyRecord(NamedTuple):
    """What does not change about a study."""

    id: int
    name: str
    learner: str  # its class, space and settings as text
    lease: float  # seconds
    created_at: float


class Counters(NamedTuple):
    """How much has happened in a study."""

    asked: int
    closed: int  # told or failed
    told: int  # without those that were retracted
    checkpointed: int  # closings that the checkpoint covers
    changes: int  # how often a decision was added or retired
    retracted: int = 0  # closings that do not count any more

    @property
    def failed(self) -> int:
        return self.closed - self.told - self.retracted


# What is written.


class NewTrial(NamedTuple):
    """A trial that is about to be asked."""

    decision: str
    mediator: str
    search: str | None  # what the ask changed in the learner's search, where it has one
    stream: str | None  # the random numbers it drew from, where they are not the trial's own


class AskRequest(NamedTuple):
    """Who asks for trials, and how."""

    worker: str
    lease: float  # seconds
    ticket: str
    repeatable: bool  # whether the ticket may have been used before
    basis: int  # how many closings the asker knew
    expected: int | None  # the number that the first trial must get, or None for any


class NewClosing(NamedTuple):
    """What a tell or a fail is about to write."""

    payoff: float | None = None  # None where it failed
    reason: str | None = None  # why it failed
    extra: str | None = None  # JSON: what was told besides
    closed_by: str | None = None  # who writes it

    @property
    def state(self) -> str:
        return "failed" if self.payoff is None else "told"


class NewAsk(NamedTuple):
    """Trials that are about to be asked by one call."""

    trials: Sequence[NewTrial]
    request: AskRequest


class NewTell(NamedTuple):
    """A trial that is about to be closed by one call: see `Storage.close`."""

    number: int
    new: NewClosing
    ticket: tuple[str, str] | None = None
    changes: int | None = None


class NewChange(NamedTuple):
    """A decision that is about to come or go."""

    kind: str  # add or retire
    data: str  # JSON: the family's state of the new member, and its name; or the decision's number; see `changes`
    worker: str


class Checkpoint(NamedTuple):
    """What a learner has computed from the first `closed` closings."""

    closed: int
    digest: str  # of everything else here, of the learner, of the told trials among them and of the changes by then
    version: str  # of this format
    caches: str


# What is read.


class AskedRow(NamedTuple):
    """What an ask wrote."""

    number: int
    decision: str
    mediator: str
    search: str | None


class ClosedRow(NamedTuple):
    """What a tell or a fail wrote."""

    number: int
    closing: int
    state: str
    payoff: float | None
    reason: str | None
    extra: str | None


class ChangeRow(NamedTuple):
    """A decision that came or went, and how much had happened by then."""

    place: int  # among the changes, from 1
    kind: str
    data: str
    asked: int
    closed: int


class TrialRow(NamedTuple):
    """All that users may read of a trial."""

    number: int
    state: str  # asked, told or failed; whether an asked one is stale says the clock
    decision: str
    mediator: str
    payoff: float | None
    worker: str
    reason: str | None
    asked_at: float
    lease_until: float
    closed_at: float | None
    closing: int | None
    extra: str | None  # JSON: what was told besides a payoff
    closed_by: str | None = None
    retracted: str | None = None  # why it does not count any more


class WorkerRow(NamedTuple):
    """How many trials of one state a worker has, and the last times it asked and closed one of them."""

    worker: str
    state: str
    trials: int
    asked_at: float
    closed_at: float | None


class AuditRow(NamedTuple):
    """Something that was done to a study: to its name, its decisions, its tells."""

    at: float  # seconds since 1970, by the storage's clock
    who: str
    what: str  # create, add, retire, retract, archive, unarchive, rename, delete
    detail: str  # JSON


class AuditEntry(NamedTuple):
    """The same, as users read it."""

    at: float
    who: str
    what: str
    detail: dict[str, Any]


class Closed(NamedTuple):
    """The outcome of a tell or a fail."""

    place: int  # among the closings, from 1
    new: bool  # False where it had been written before


class News(NamedTuple):
    """What happened since a worker looked: trials by number, closings and changes in their order."""

    counters: Counters
    asks: Sequence[AskedRow]
    closings: Sequence[ClosedRow]
    changes: Sequence[ChangeRow]


class Page(NamedTuple):
    """Some trials by number, and the moment at which they were read."""

    now: float
    rows: Sequence[TrialRow]


class Bucket(NamedTuple):
    """Some consecutive closings, summed up; those that were retracted do not count."""

    place: int  # among the buckets of one size, from 0
    closed: int
    told: int
    total: float | None  # of the payoffs; None where none was told, as for the next two
    least: float | None
    largest: float | None
    at: float  # when the last of them was closed


class StudyLine(NamedTuple):
    """One study among all: what does not change, how much has happened, and when something happened last."""

    id: int
    name: str
    created_at: float
    archived_at: float | None
    counters: Counters
    asked_at: float | None  # the last ask
    closed_at: float | None  # the last tell or fail


class Columns(NamedTuple):
    """All trials of a study by number: a column for each field, for there may be a million rows."""

    number: Sequence[int]
    state: Sequence[str]
    decision: Sequence[str]
    mediator: Sequence[str]
    payoff: Sequence[float | None]
    reason: Sequence[str | None]
    closing: Sequence[int | None]
    extra: Sequence[str | None]
    retracted: Sequence[str | None] = ()  # as for `TrialRow`; none where a storage does not know of it


class Everything(NamedTuple):
    """All that a learner is rebuilt from."""

    counters: Counters
    checkpoint: Checkpoint | None
    trials: Columns
    search: str | None  # of the last trial
    changes: Sequence[ChangeRow]
    open: Mapping[int, str | None] = {}  # the searches of trials that are not closed, by number
