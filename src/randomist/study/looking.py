"""What is looked at of a study's rows from the end: the part of `Study` that dashboards read."""

from __future__ import annotations

from collections.abc import Sequence

from randomist._checks import whole_number
from randomist.errors import ParameterError
from randomist.study.reader import Reader
from randomist.study.records import STATES, State, StudyRecord, StudyTrial
from randomist.study.storages.base import Storage

WINDOW = 20_000  # trials that one look goes through


class Looked:
    """A study whose last trials can be paged through."""

    storage: Storage
    record: StudyRecord
    _reader: Reader

    def latest(
        self,
        states: Sequence[State] | State = STATES,
        *,
        before: int | None = None,
        limit: int = 100,
        worker: str | None = None,
    ) -> tuple[list[StudyTrial], int | None]:
        """The last trials, the newest first: `limit` at most, in certain states, or of one worker; and where to go on.

        One call looks at 20,000 trials below `before` at most, so it may find fewer than there are: go on with
        `before` = the number that comes second, until that is None.
        """
        wanted = (states,) if isinstance(states, str) else tuple(states)
        if not set(wanted) <= set(STATES):
            raise ParameterError(f"states are {', '.join(STATES)}; got {states!r}")
        asked = self.storage.counters(self.record.id).asked
        end = asked if before is None else min(whole_number(before, "before", 0), asked)
        first, most = max(end - WINDOW, 0), whole_number(limit, "limit", 1)
        page = self.storage.latest(self.record.id, first=first, before=end, limit=most, states=wanted, worker=worker)
        found = self._reader.trials(page)
        after = found[-1].id if len(found) == most else first
        return found, after or None
