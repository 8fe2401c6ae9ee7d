"""What users read of a study's rows, without its learner: trials, and the decisions that were added meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from randomist.errors import StudyDataError
from randomist.learners.trial import Trial
from randomist.spaces import Finite, Space
from randomist.study import changes
from randomist.study.records import AskedRow, Counters, Page, StudyRecord, StudyTrial, TrialRow
from randomist.study.rows import Shapes
from randomist.study.storages.base import Storage

T = TypeVar("T")


class Known(NamedTuple):
    """What is known of the decisions that came and went."""

    changes: int
    space: Space
    shapes: Shapes
    alone: frozenset[int] = frozenset()  # policies that share nothing with others


class Reader:
    """Rows as trials, and the space as it is now. Safe for threads: what it knows is replaced as a whole."""

    def __init__(self, storage: Storage, record: StudyRecord, began: Space) -> None:
        self.storage, self.record, self.began = storage, record, began
        self._known = Known(0, began, Shapes(record.name, began))

    @property
    def space(self) -> Space:
        self._look()
        return self._known.space

    @property
    def known(self) -> Known:
        """What was known at the last look."""
        return self._known

    def look(self) -> bool:
        """Look again: whether there is something new."""
        return self._look()

    def texts(self, trial: Trial) -> tuple[str, str]:
        return self._known.shapes.texts(trial)

    def asked(self, rows: Sequence[AskedRow]) -> list[Trial]:
        return self._read(lambda shapes: shapes.asked(rows))

    def trials(self, page: Page) -> list[StudyTrial]:
        return self._read(lambda shapes: shapes.study_trials(page))

    def decisions(self, rows: Sequence[TrialRow]) -> dict[int, Any]:
        """The decisions of some trials, by their numbers."""
        numbers, texts = [row.number for row in rows], [row.decision for row in rows]
        return dict(zip(numbers, self._read(lambda shapes: shapes.decisions(numbers, texts)).tolist(), strict=True))

    def _read(self, read: Callable[[Shapes], T]) -> T:
        """Where one of the rows cannot be, its decision may be one that was added meanwhile."""
        try:
            return read(self._known.shapes)
        except StudyDataError:
            if not self._look():
                raise
        return read(self._known.shapes)

    def _look(self) -> bool:
        """Which decisions came and went; whether any did since the last look."""
        if not isinstance(self.began, Finite):
            return False
        counters = self.storage.counters(self.record.id)
        if counters.changes == self._known.changes:
            return False
        now, *_, rows = self.storage.news(self.record.id, counters.asked, counters.closed, 0)
        shapes = Shapes(self.record.name, self.began)
        changes.check(shapes, rows, Counters(0, 0, 0, 0, 0), now)
        shapes.follow(np.zeros(self.began.size, np.int64), rows)
        shapes.space = space = changes.space_after(shapes, self.began, rows)
        self._known = Known(now.changes, space, shapes, changes.alone_after(shapes, rows, self.began.size))
        return True
