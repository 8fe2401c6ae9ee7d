"""What a storage must do for studies: a few short operations on plain records.

Every operation happens as a whole or not at all, and is durable (as far as the storage is) when it returns. Writes to
one study follow one another: trials are numbered from 0 in the order in which asks were written, closings (tells and
fails) and changes of the set of decisions from 1. A read sees one moment. `randomist.testing.check_storage` checks all
of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from randomist._lookup import Named
from randomist.errors import (
    ArchivedStudyError,
    ClosedTrialError,
    RandomistError,
    RetractionError,
    StorageError,
    StudyExistsError,
    TicketError,
    UnknownStudyError,
    UnknownTrialError,
)
from randomist.study.records import (
    STATES,
    AskedRow,
    AskRequest,
    AuditRow,
    Bucket,
    ChangeRow,
    Checkpoint,
    Closed,
    Counters,
    Everything,
    NewAsk,
    NewChange,
    NewClosing,
    News,
    NewTell,
    NewTrial,
    Page,
    State,
    StudyLine,
    StudyRecord,
    TrialRow,
    WorkerRow,
)
from randomist.study.storages import looking

PATIENCE = 60.0  # seconds to wait for a storage that is busy or away
T = TypeVar("T")


class Raced(Exception):  # noqa: N818 (it never leaves `Study`)
    """The next trial or change has another number than was expected: somebody was faster."""


class Storage(Named, ABC):
    """All studies of one place. A class is called with its URL and `patience`; its methods are safe for threads.

    `study` is the id that `create` and `find` gave. What cannot be reached raises `StorageError`.
    """

    _ours: ClassVar[str] = "randomist.study.storages:STORAGES"

    name: str  # where it is, without a password: for messages

    @abstractmethod
    def __init__(self, url: str, *, patience: float = PATIENCE) -> None: ...

    # The place itself.

    @abstractmethod
    def prepare(self) -> None:
        """Make the place ready for studies, where it is not yet."""

    @abstractmethod
    def ping(self, patience: float = 1.0) -> None:
        """Raise `StorageError` unless the place answers within `patience` seconds."""

    def read_only(self) -> bool:
        """Whether nothing can be written there at the moment, though it answers."""
        return False

    @abstractmethod
    def upgrade(self) -> tuple[int, int]:
        """Bring what an earlier version wrote to this one: the versions before and after."""

    @abstractmethod
    def disconnect(self) -> None:
        """Let go of connections; the next operation opens them again."""

    # Studies.

    @abstractmethod
    def create(self, name: str, learner: str, lease: float) -> StudyRecord:
        """A new study; `StudyExistsError` where the name is taken."""

    @abstractmethod
    def find(self, name: str) -> StudyRecord:
        """The study of that name, or `UnknownStudyError`."""

    @abstractmethod
    def names(self) -> list[str]:
        """All studies, the oldest first."""

    @abstractmethod
    def totals(self) -> dict[str, Counters]:
        """The counters of every study, the oldest first."""

    @abstractmethod
    def counters(self, study: int) -> Counters:
        """How much has happened in a study."""

    # Trials.

    @abstractmethod
    def ask(self, study: int, trials: Sequence[NewTrial], request: AskRequest) -> int | list[AskedRow]:
        """Write asked trials: the first one's number.

        Where `request.repeatable` and the ticket was used before, the trials of that time instead. Raises `Raced` where
        the first number would not be `request.expected`, and `TicketError` for a ticket of another number of trials.
        """

    @abstractmethod
    def with_ticket(self, study: int, ticket: str, n: int) -> list[AskedRow]:
        """The `n` trials that were asked with this ticket before, in order; none where it is new."""

    @abstractmethod
    def close(
        self,
        study: int,
        number: int,
        new: NewClosing,
        ticket: tuple[str, str] | None = None,
        changes: int | None = None,
    ) -> Closed:
        """Tell a trial or fail it. The same again changes nothing.

        Raises `Raced` unless so many `changes` were written before, where that is given.

        `ticket` is the decision and the mediator that the trial should have. `UnknownTrialError` where there is none
        such, `ClosedTrialError` where it was closed in another way before: with another payoff or `extra`.
        """

    @abstractmethod
    def change(self, study: int, change: NewChange, expected: int, closed: int | None = None) -> ChangeRow:
        """Write that a decision comes or goes: the row, with the counters of this moment.

        Raises `Raced` unless `expected` changes were written before, and as many trials `closed` where that is given,
        so that what was checked against those is true.
        """

    @abstractmethod
    def news(self, study: int, asked: int, closed: int, changes: int) -> News:
        """What happened beyond the first `asked` asks, `closed` closings and `changes` changes."""

    @abstractmethod
    def rows(
        self,
        study: int,
        *,
        first: int = 0,
        limit: int | None = None,
        states: Sequence[State] = STATES,
        worker: str | None = None,
    ) -> Page:
        """Trials by number from `first` on, `limit` at most: those in some states, or of one worker."""

    @abstractmethod
    def workers(self, study: int) -> list[WorkerRow]:
        """What each worker has done, by name."""

    # Many at once. A storage of your own need not have these: without, it does one after the other.

    def ask_all(self, study: int, asks: Sequence[NewAsk]) -> list[int | list[AskedRow] | Exception]:
        """What several calls ask, written together: of each what `ask` gives, or the error that it raises."""
        return [_outcome(self.ask, study, *one) for one in asks]

    def close_all(self, study: int, tells: Sequence[NewTell]) -> list[Closed | Exception]:
        """What several calls close, written together: of each what `close` gives, or the error that it raises."""
        given = (tell[:3] if tell.changes is None else tell for tell in tells)
        return [_outcome(self.close, study, *one) for one in given]

    def some(self, study: int, numbers: Sequence[int]) -> list[TrialRow]:
        """Those of these trials that there are."""
        pages = (self.rows(study, first=number, limit=1).rows for number in numbers)
        return [row for number, rows in zip(numbers, pages, strict=True) for row in rows if row.number == number]

    # Looking. A storage of your own need not have it: without, `rows` are read, which takes longer.

    def lines(self) -> list[StudyLine]:
        """Every study, the oldest first."""
        return looking.lines(self)

    def buckets(self, study: int, size: int, first: int = 0) -> list[Bucket]:
        """Closings in buckets of `size` consecutive ones, from the bucket `first` on."""
        return looking.buckets(self, study, size, first)

    def latest(
        self,
        study: int,
        *,
        first: int,
        before: int,
        limit: int,
        states: Sequence[State] = STATES,
        worker: str | None = None,
    ) -> Page:
        """Trials by number, the largest first, from below `before` down to `first`; else as `rows`."""
        return looking.latest(self, study, first, before, limit, states, worker)

    def workers_since(self, study: int, first: int) -> list[WorkerRow]:
        """As `workers`, of the trials from the number `first` on."""
        return looking.workers_since(self, study, first)

    # Housekeeping. A storage of your own need not have it: without, it says so.

    def retract(self, study: int, number: int, reason: str, who: str) -> bool:
        """Mark a closed trial as one that does not count; whether it was not marked before.

        `told` of the counters goes down where it was told, `retracted` goes up, and a checkpoint goes. Raises
        `RetractionError` where there is nothing to take back, and `ArchivedStudyError`.
        """
        raise self._cannot("take tells back")

    def archived_at(self, study: int) -> float | None:
        """When a study was archived; None if it is not. What would change one raises `ArchivedStudyError`."""
        return None

    def archive(self, study: int, archived: bool, who: str) -> bool:
        """Make a study read-only, or open it again; whether that changed anything."""
        raise self._cannot("archive studies")

    def rename(self, study: int, name: str, who: str) -> None:
        """Give a study another name; `StudyExistsError` where that is taken."""
        raise self._cannot("rename studies")

    def delete(self, study: int, who: str) -> None:
        """Forget a study and its trials. Its id is not used again, and the name is free."""
        raise self._cannot("delete studies")

    def audit(self, study: int) -> list[AuditRow]:
        """Who did what to a study, besides asking and closing, in order."""
        return []

    def note(self, study: int, who: str, what: str, detail: dict[str, Any]) -> None:
        """Write a line of that record, where there is one."""
        return

    def _cannot(self, what: str) -> StorageError:
        return StorageError(f"{self.name} cannot {what}: {type(self).__name__} does not say how")

    # Loading.

    @abstractmethod
    def everything(self, study: int) -> Everything:
        """All that a learner is rebuilt from."""

    @abstractmethod
    def save(self, study: int, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint, unless there is one that covers as much."""


def _outcome(do: Callable[..., T], *arguments: Any) -> T | Exception:
    try:
        return do(*arguments)
    except (RandomistError, Raced) as error:
        return error


# The errors that every storage raises, said once.


def name_taken(name: str, place: str) -> StudyExistsError:
    return StudyExistsError(f"a study {name!r} exists in {place}; take another name, or load_study")


def no_study(name: str, place: str, known: Sequence[str]) -> UnknownStudyError:
    return UnknownStudyError(f"no study {name!r} in {place}; it has: {', '.join(known[:10]) or 'none'}")


def study_gone() -> UnknownStudyError:
    return UnknownStudyError("the study is gone from its storage; create it again")


def study_archived() -> ArchivedStudyError:
    return ArchivedStudyError("the study is archived, and may only be read; unarchive it to go on")


def nothing_told(number: int, state: str) -> RetractionError:
    what = "was not answered yet; fail it instead" if state == "asked" else "failed, and counts for nothing anyway"
    return RetractionError(f"trial {number} has nothing to take back: it {what}")


def other_size(ticket: str) -> TicketError:
    return TicketError(f"the ticket {ticket!r} was used for a batch of another size; take a new one")


def never_asked(number: int) -> UnknownTrialError:
    return UnknownTrialError(f"trial {number} was never asked of this study")


def other_trial(number: int, has: tuple[str, str], given: tuple[str, str]) -> UnknownTrialError:
    return UnknownTrialError(
        f"trial {number} of this study has decision {has[0]} and mediator {has[1]}, not {given[0]} and {given[1]}; "
        "tell the trial that it gave"
    )


def closed_before(
    number: int, before: tuple[float | None, str | None], now: tuple[float | None, str | None]
) -> ClosedTrialError:
    """Of a trial that has another payoff and `extra` than it is given now."""
    said = (payoff if payoff is not None else extra for payoff, extra in (before, now))
    was, wanted = ("failed" if x is None else f"told {x}" for x in said)
    return ClosedTrialError(
        f"trial {number} was {was} before, and cannot be {wanted} now; each trial is closed once: ask again"
    )
