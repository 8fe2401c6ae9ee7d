"""What is done to a study as a whole, and to tells that were wrong: the part of `Study` that keeps house."""

from __future__ import annotations

from randomist.learners.trial import Trial
from randomist.study.audits import read_audit
from randomist.study.checks import check_id, check_name, check_worker, clean
from randomist.study.records import AuditEntry, StudyRecord, StudyTrial
from randomist.study.storages.base import Storage


class Kept:
    """A study in a storage. `worker` says under which name something is done, by default the study's own."""

    name: str
    storage: Storage
    record: StudyRecord
    _worker: str | None

    def retract(self, trial: Trial | StudyTrial | int, reason: str = "", *, worker: str | None = None) -> None:
        """Take a tell back: the row stays, marked, and does not count any more. Again changes nothing.

        Estimates are from now on as if it had never been told; decisions that were made with it stay. `intervals` count
        it as a trial that failed, the worst for either side, so they hold whatever made you take it back. `log` leaves
        it out: if you chose it by its payoff, evaluations of the log do not hold.
        """
        id_ = check_id(trial.id if isinstance(trial, Trial | StudyTrial) else trial)
        self.storage.retract(self.record.id, id_, clean(reason), self._who(worker))

    # The study as a whole.

    @property
    def archived(self) -> bool:
        """Whether the study may only be read."""
        return self.storage.archived_at(self.record.id) is not None

    def archive(self, *, worker: str | None = None) -> None:
        """Make the study read-only for everybody: asks, tells and changes raise `ArchivedStudyError`."""
        self.storage.archive(self.record.id, True, self._who(worker))

    def unarchive(self, *, worker: str | None = None) -> None:
        """Open an archived study again."""
        self.storage.archive(self.record.id, False, self._who(worker))

    def rename(self, name: str, *, worker: str | None = None) -> None:
        """Give the study another name. Workers that have it go on; who loads it needs the new name."""
        self.storage.rename(self.record.id, check_name(name), self._who(worker))
        self.name, self.record = name, self.record._replace(name=name)

    def audit(self) -> list[AuditEntry]:
        """Who did what to the study as a whole, its decisions and its tells, in order. Trials name who closed them."""
        return [read_audit(self.name, row) for row in self.storage.audit(self.record.id)]

    def _who(self, worker: str | None) -> str:
        return check_worker(worker or self._worker)
