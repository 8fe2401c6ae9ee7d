"""What goes over the wire, with examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from randomist.learners import LEARNERS
from randomist.study.checks import LARGEST_BATCH, LONGEST_LEASE, NAME, REASON, TICKET
from randomist.study.opening import LEASE
from randomist.study.records import State

Name = Annotated[str, Field(pattern=NAME, examples=["car"], description="A study's name.")]
DecisionName = Annotated[str, Field(pattern=r"^[^<>\x00-\x1f\x7f]{1,64}$", description="What a decision is called.")]
Lease = Annotated[float, Field(gt=0, le=LONGEST_LEASE, allow_inf_nan=False, description="Seconds.")]
Worker = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[ -~]*$")]
SAME = "Asking again with the same ticket gives the same trials: a lost answer can be repeated."
Ticket = Annotated[str, Field(pattern=TICKET, description=SAME)]
Point = int | float | list[float]
Values = dict[str, str | bool | int | float | None]
VALUES = "What the mediator stands for, where parameters have names."
Number = Annotated[float, Field(allow_inf_nan=False)]
TrialId = Annotated[str, Field(pattern=r"^[0-9]{1,18}$")]
Likelihoods = dict[str, Number | None]
MOST_DECISIONS = 1000


LearnerName = Annotated[
    str,
    Field(
        max_length=200,
        examples=["randomist"],
        description=f"{', '.join(LEARNERS)}; or module:Class, of a module that the service was started --with.",
    ),
]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(Model):
    """What went wrong: the error's name in the library, and the remedy in words."""

    error: str = Field(examples=["UnknownTrialError"])
    message: str = Field(examples=["trial 7 was never asked of this study"])


class Health(Model):
    status: Literal["ok", "read-only", "away"] = Field(
        examples=["ok"], description="read-only: what is there can be read, and asks and tells answer 503."
    )
    version: str = Field(examples=["0.2.0"])


class Whoami(Model):
    scope: Literal["read", "work", "admin"] = Field(examples=["work"])


class NewStudy(Model):
    """A learner, a space and settings as in the library."""

    name: Name
    learner: LearnerName
    space: dict[str, JsonValue] = Field(
        examples=[{"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 1, 2], "std": 2}}],
        description="kind Finite (family, or families), Likelihoods (names), Box (family, low, high), Grid (family, "
        "low, high, points) or Parameters (parameters).",
    )
    settings: dict[str, JsonValue] = Field(default={}, examples=[{"payoff_range": [0, 1], "seed": 0}])
    lease: Lease = Field(default=LEASE, examples=[3600.0])


class Names(Model):
    studies: list[str] = Field(examples=[["car", "bus"]])


class StudyInfo(Model):
    name: str = Field(examples=["car"])
    learner: str = Field(examples=["Randomist"])
    lease: float = Field(examples=[3600.0])
    created_at: float = Field(examples=[1.8e9], description="Seconds since 1970.")
    asked: int = Field(examples=[12])
    told: int = Field(examples=[10])
    failed: int = Field(examples=[1])
    retracted: int = Field(examples=[0], description="Told, and taken back.")
    archived: bool = Field(examples=[False], description="Whether it may only be read.")


class Rename(Model):
    name: Name


class Retract(Model):
    reason: str = Field(default="", max_length=REASON, examples=["the wrong units"])


class Retracted(Model):
    id: int = Field(examples=[12])
    state: Literal["retracted"] = Field(examples=["retracted"])


class Deleted(Model):
    deleted: str = Field(examples=["car"])


class AuditEntry(Model):
    at: float = Field(examples=[1.8e9], description="Seconds since 1970.")
    who: str = Field(examples=["token 1f3a9c02 at 127.0.0.1"])
    what: str = Field(examples=["retract"])
    detail: dict[str, JsonValue] = Field(examples=[{"trial": 12, "reason": "the wrong units"}])


class Audit(Model):
    entries: list[AuditEntry]


class Ask(Model):
    batch: int = Field(default=1, ge=1, le=LARGEST_BATCH, examples=[1])
    worker: Worker | None = Field(default=None, examples=["bench-1"])
    lease: Lease | None = Field(default=None, examples=[600.0])
    ticket: Ticket | None = Field(default=None, examples=["bench-1:42"])


class NewDecision(Model):
    """A member of the study's family, or of another `kind`; what it is called."""

    member: dict[str, JsonValue] | None = Field(
        default=None, examples=[{"mean": 1.4, "std": 0.7}], description="None where policies are known by likelihoods."
    )
    name: DecisionName | None = Field(default=None, examples=["in between"])
    log_likelihoods: dict[TrialId, Number | None] | None = Field(
        default=None,
        examples=[None],
        description="Of all that was told, by trial id, under a new policy; without them it begins from scratch.",
    )


class Decision(Model):
    decision: int = Field(examples=[5])
    name: str = Field(examples=["in between"])
    active: bool = Field(examples=[True], description="Whether it has not been retired.")


class DecisionList(Model):
    decisions: list[Decision]


class Retire(Model):
    decision: Annotated[int, Field(ge=0, lt=2**62)] | DecisionName = Field(examples=[3], description="Number or name.")


class AskedTrial(Model):
    id: int = Field(examples=[12])
    decision: Point = Field(examples=[1])
    mediator: Point | None = Field(examples=[0.73], description="Null where the environment produces it.")
    parameters: Values | None = Field(default=None, examples=[None], description=VALUES)
    name: str | None = Field(default=None, examples=["new"], description="What the decision is called.")
    purpose: str | None = Field(default=None, examples=["cloud"], description="What Auto asked it for.")


class Asked(Model):
    trials: list[AskedTrial]


class Confirm(Model):
    n: int = Field(ge=1, le=LARGEST_BATCH, examples=[20], description="How often to play the recommended point.")
    worker: Worker | None = Field(default=None, examples=["bench-1"])
    lease: Lease | None = Field(default=None, examples=[600.0])
    ticket: Ticket | None = Field(default=None, examples=["bench-1:43"])


class Tell(Model):
    payoff: Number | None = Field(default=None, examples=[0.5])
    feasible: bool = Field(
        default=True,
        examples=[True],
        description="False: it broke a constraint, and enters no estimate; `payoff` may be left out.",
    )

    log_likelihoods: Likelihoods | None = Field(
        default=None,
        examples=[None],
        description="Of what was done under every policy, by its name; null is -inf. Where they are not known here.",
    )


class OneTell(Model):
    id: int = Field(ge=0, lt=2**62, examples=[12])
    payoff: Number = Field(examples=[0.5])
    log_likelihoods: Likelihoods | None = Field(default=None, examples=[None], description="As of a single tell.")


class Tells(Model):
    tells: list[OneTell] = Field(min_length=1, max_length=LARGEST_BATCH, examples=[[{"id": 12, "payoff": 0.5}]])


class Refused(Model):
    id: int = Field(examples=[12])
    error: str = Field(examples=["ClosedTrialError"])
    message: str = Field(examples=["trial 12 was told 0.5 before, and cannot be told 0.7 now"])


class Told(Model):
    told: int = Field(examples=[49], description="How many of the trials have what was told, now or before.")
    refused: list[Refused] = Field(examples=[[]], description="The others, and why.")


class Episode(Model):
    """What a policy saw before each action, did and earned, in a study of policies over trajectories."""

    observations: list[list[Number]] = Field(min_length=1, examples=[[[0.1, -0.2], [0.3, 0.1]]])
    actions: list[int] | list[list[Number]] = Field(min_length=1, examples=[[1, 0]])
    rewards: list[Number] = Field(min_length=1, examples=[[0.0, 1.0]])
    payoff: Number | None = Field(default=None, examples=[None], description="By default what the rewards sum up to.")


class Fail(Model):
    reason: str = Field(default="", max_length=REASON, examples=["the simulator crashed"])


class Closed(Model):
    id: int = Field(examples=[12])
    state: Literal["told", "failed"] = Field(examples=["told"])
    feasible: bool | None = Field(default=None, examples=[None], description="False where it broke a constraint.")


class TrialInfo(Model):
    id: int = Field(examples=[12])
    state: Literal["asked", "told", "failed", "stale", "retracted"] = Field(examples=["told"])
    decision: Point = Field(examples=[1])
    mediator: Point | None = Field(examples=[0.73])
    payoff: float | None = Field(examples=[0.5])
    worker: str = Field(examples=["bench-1"])
    reason: str | None = Field(examples=[None])
    asked_at: float = Field(examples=[1.8e9])
    lease_until: float = Field(examples=[1.8e9])
    closed_at: float | None = Field(examples=[1.8e9])
    closing: int | None = Field(examples=[11])
    feasible: bool | None = Field(
        examples=[True], description="False: failed, for it broke a constraint; null where that was not said."
    )
    parameters: Values | None = Field(default=None, examples=[None], description=VALUES)
    log_likelihoods: Likelihoods | None = Field(
        default=None, examples=[None], description="Of what was done, by policy; null is -inf."
    )
    closed_by: str | None = Field(default=None, examples=["bench-1"], description="Who told it, or let it fail.")


class Trials(Model):
    trials: list[TrialInfo]
    next: int | None = Field(examples=[100], description="`first` of the next page, or null where there is none.")


class Decisions(Model):
    decisions: list[Number | list[Number]] = Field(min_length=1, max_length=MOST_DECISIONS, examples=[[[0.1, 5.0]]])


class EstimateList(Model):
    """Per decision; what is infinite is null."""

    value: list[float | None] = Field(examples=[[0.2, 0.6]])
    effective_samples: list[float | None] = Field(examples=[[24.0, 88.5]])
    threshold: list[float | None] = Field(examples=[[3.1, 2.2]])
    width: list[float | None] = Field(examples=[[0.6, 0.3]])
    plays: list[int] = Field(examples=[[11, 48]])
    coverage: list[float | None] = Field(examples=[[0.98, 1.0]])


class Recommendation(Model):
    decision: Point = Field(examples=[4])
    told: int = Field(examples=[100])


class Where(Model):
    point: Number | list[Number] | None = Field(
        default=None, examples=[[0.1, 5.0]], description="By default the recommended one."
    )
    level: float = Field(default=0.95, gt=0, lt=1, examples=[0.95])


class Interval(Model):
    """Bounds on a mean payoff, or a median; what is infinite or unknown is null."""

    mean: float | None = Field(examples=[0.7])
    low: float | None = Field(examples=[0.65])
    high: float | None = Field(examples=[0.75])
    level: float = Field(examples=[0.95])
    basis: str = Field(examples=["surface"], description="surface, range, seen, asymptotic, order or unsupported.")


class Confirmation(Model):
    point: Point = Field(examples=[[0.1, 5.0]])
    plays: int = Field(examples=[20])
    mean: Interval
    median: Interval


class Counts(Model):
    asked: int = Field(examples=[12])
    told: int = Field(examples=[10])
    failed: int = Field(examples=[1])
    retracted: int = Field(examples=[0])
    pending: int = Field(examples=[1])


class StudyLine(Model):
    """One study among all."""

    name: str = Field(examples=["car"])
    learner: str = Field(examples=["Randomist"])
    created_at: float = Field(examples=[1.8e9], description="Seconds since 1970.")
    active_at: float = Field(examples=[1.8e9], description="When something happened last.")
    archived: bool = Field(examples=[False])
    counts: Counts
    spark: list[float | None] = Field(examples=[[0.2, 0.5, 0.6]], description="Means of consecutive payoffs, in order.")
    best: float | None = Field(examples=[0.9], description="The largest payoff.")
    average: float | None = Field(examples=[0.5])
    problem: str | None = Field(examples=[None], description="Why its payoffs cannot be shown.")


class Overview(Model):
    """Studies that the token is for, the one where something happened last first."""

    studies: list[StudyLine]
    of: int = Field(examples=[1], description="How many there are.")
    next: int | None = Field(examples=[50], description="`first` of the next page, or null where there is none.")
    at: float = Field(examples=[1.8e9], description="Now, in seconds since 1970.")


class Row(Model):
    """A trial as a line of the dashboard's table."""

    id: int = Field(examples=[12])
    state: State = Field(examples=["told"])
    name: str | None = Field(examples=["old"], description="Of the decision, where it has one.")
    decision: Point = Field(examples=[4])
    mediator: Point | None = Field(examples=[2.7])
    parameters: Values | None = Field(examples=[None], description=VALUES)
    payoff: float | None = Field(examples=[0.8])
    feasible: bool | None = Field(examples=[True])
    worker: str = Field(examples=["bench-1"])
    closed_by: str | None = Field(examples=["bench-1"])
    reason: str | None = Field(examples=[None], description="Why it failed, or was retracted.")
    asked_at: float = Field(examples=[1.8e9])
    lease_until: float = Field(examples=[1.8e9])
    closed_at: float | None = Field(examples=[1.8e9])


class Rows(Model):
    trials: list[Row]
    next: int | None = Field(examples=[100], description="`before` of the next page, or null where there is none.")
    at: float = Field(examples=[1.8e9])


class Snapshot(BaseModel):
    """What the dashboard shows."""

    model_config = ConfigDict(extra="allow")
