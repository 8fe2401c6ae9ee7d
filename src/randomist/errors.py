"""One tree of errors, raised at the border: each names the value, the bound and the remedy."""

from __future__ import annotations

from typing import Any


class RandomistError(Exception):
    """Base of every error that randomist raises on purpose."""


class ParameterError(RandomistError, ValueError):
    """A setting is outside its bound: a std that is not positive, an unknown option, an empty range."""


class ShapeError(RandomistError, ValueError):
    """An array has the wrong number of dimensions or entries."""


class EmptySpaceError(RandomistError, ValueError):
    """A space without a single decision."""


class PayoffError(RandomistError, ValueError):
    """A payoff that is not a finite number."""


class PayoffOutOfRangeError(PayoffError):
    """A payoff outside `payoff_range` while `out_of_range="refuse"`."""


class UnknownTrialError(RandomistError, LookupError):
    """A trial that this learner never asked."""


class ClosedTrialError(RandomistError, ValueError):
    """A trial that was told or failed before."""


class MediatorError(RandomistError, ValueError):
    """A mediator that cannot have come from the decision it is told for."""


class CoverageWarning(UserWarning):
    """Policies about which the history says little: much of what they do has hardly been seen."""


class ContradictionWarning(UserWarning):
    """Bounds that contradict each other: payoffs drift, or likelihoods are not those of the policies."""


class DriftWarning(UserWarning):
    """Recent payoffs of a decision contradict its older ones: estimates from all of them are of a mixture of times."""


class TrackingWarning(UserWarning):
    """MLflow or TensorBoard could not be written to: the run goes on, and what follows is not tracked."""


class StateError(RandomistError, ValueError):
    """A saved state that does not describe a learner of this version."""


class TaskError(RandomistError, ValueError):
    """An unknown task, or one that does not fit the learner."""


class SavedRunError(RandomistError, ValueError):
    """A file with which a run cannot go on: it is of another run, in use, damaged, or something else."""


class NoDataError(RandomistError, ValueError):
    """A question that needs at least one told payoff."""


class StudyError(RandomistError):
    """Base of what can go wrong with a study: its name, its rows, its database, its service."""


class UnknownStudyError(StudyError, LookupError):
    """A study that this storage does not have."""


class StudyExistsError(StudyError, ValueError):
    """A study of this name exists already."""


class StudyDataError(StudyError, ValueError):
    """A row of a study's database that does not hold what was written there."""


class ArchivedStudyError(StudyError, ValueError):
    """A study that may only be read, because it was archived."""


class RetractionError(StudyError, ValueError):
    """A trial that has nothing to take back: it was never told."""


class TicketError(StudyError, ValueError):
    """A ticket that was used before, for something else."""


class SpaceError(StudyError, TypeError):
    """A question about a box to a study of a finite set, or the other way round."""


class StorageError(StudyError):
    """A database that cannot be opened or reached, or that refuses to write."""


class ReadOnlyStorageError(StorageError):
    """A database that can be read and not written: its files or its folder are read-only, or the disk is full."""


class SchemaVersionError(StorageError):
    """A database whose schema is newer than this version reads, or older and not upgraded yet."""


class ServiceError(StudyError):
    """What a service answered where it did not do what was asked: `status` is its HTTP status."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class LogError(RandomistError, ValueError):
    """A log that cannot be read as one: columns are missing, or hold something else than they should."""


class NoSuchLogError(LogError, FileNotFoundError):
    """A log that is not where its path says."""


class BadRowsError(LogError):
    """Rows of a log that would make an estimate wrong; `problems` says what is wrong, how often, and where."""

    def __init__(self, message: str, problems: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems


class SelectionError(BadRowsError):
    """Bad rows that must not be left out: their payoffs are unlike the others', and what is left would be biased."""
