"""What the rows of a study mean, typed."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

Row: TypeAlias = Any  # of SQLAlchemy: the columns are its attributes
State = Literal["asked", "told", "failed", "stale"]


class StudyTrial(NamedTuple):
    """One trial of a study as its row says. Times are seconds since 1970, by the database's clock."""

    id: int
    state: State  # "stale": asked, and its lease is over
    decision: Any
    mediator: Any
    payoff: float | None
    worker: str
    reason: str | None  # why it failed
    asked_at: float
    lease_until: float
    closed_at: float | None
    closing: int | None  # the place in the order of tells and fails, from 1


class StudyRow(NamedTuple):
    """What does not change about a study."""

    id: int
    name: str
    learner: str
    lease: float
    created_at: float


class Counters(NamedTuple):
    """What changed last."""

    asked: int
    closed: int
    told: int
    checkpointed: int


class Order(NamedTuple):
    """How trials are asked."""

    ticket: str
    repeated: bool  # whether the ticket may have been used before
    worker: str
    lease: float


class Draft(NamedTuple):
    """A trial to be asked."""

    decision: str
    mediator: str
    marks: str | None
    stream: str | None


class Checkpoint(NamedTuple):
    """What a learner summed up of the first `closed` closings."""

    closed: int
    digest: str
    version: str
    caches: str
