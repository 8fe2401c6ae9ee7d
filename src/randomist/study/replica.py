"""This process's copy of a study's learner, and how it keeps up with the storage."""

from __future__ import annotations

from collections import deque

from randomist.learners import states as saved_states
from randomist.learners.base import Learner, Proposal
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.trial import Trial
from randomist.study import changes, replay
from randomist.study.records import ChangeRow, ClosedRow, Counters, NewChange, News, StudyRecord
from randomist.study.rows import Shapes
from randomist.study.storages.base import Storage

CHECKPOINT = 2000  # closings between checkpoints, or a quarter of all if that is more


class Replica:
    """A learner that knows the first asks, closings and changes of a study, as many as `known` says, and no more.

    Both change together, one step at a time, so they agree even where a row turns out to be bad. Not safe for threads:
    who uses it holds the study's lock.
    """

    def __init__(self, storage: Storage, record: StudyRecord, shapes: Shapes) -> None:
        self.storage, self.record, self.shapes = storage, record, shapes
        self.known = Counters(0, 0, 0, 0, 0)
        self._learner: Learner | None = None
        self._changes: list[ChangeRow] = []  # those that are known

    def synced(self) -> Learner:
        """The learner, with everything that is in the storage now."""
        if self._learner is None:
            return self._load()
        known = self.known
        news = self.storage.news(self.record.id, known.asked, known.closed, known.changes)
        now = news.counters
        if now.retracted != known.retracted:
            return self._load()  # what was told is not what this learner knows
        if (len(news.asks), len(news.closings), len(news.changes)) != (
            *(now.asked - known.asked, now.closed - known.closed),
            now.changes - known.changes,
        ):
            return self._load()  # rows are not where they should be: reading all of them shows which
        if news.changes:
            changes.check(self.shapes, news.changes, known, now)
            if news.changes[0].asked < known.asked or news.changes[0].closed < known.closed:
                return self._load()  # this learner went on before it knew of a change
        self._follow(self._learner, news)
        self.known = now
        return self._learner

    def commit(self, proposal: Proposal) -> None:
        """The learner's own proposal was written, as the next asks of the study."""
        assert self._learner is not None
        self._learner.commit(proposal)
        self.known = self.known._replace(asked=self.known.asked + len(proposal.trials))

    def close(self, row: ClosedRow, changes: int | None = None) -> None:
        """A trial was closed by this process; if others closed some before, it comes with the next news.

        So it does where it was checked against other `changes` than this learner knows.
        """
        learner = self._learner
        if learner is None or changes not in (None, self.known.changes):
            return
        if row.closing == self.known.closed + 1 and learner.is_pending(row.number):
            self._close(learner, row)

    def changed(self, change: NewChange) -> Learner:
        """Another learner, with all that this one knows and one change more, if that can be made."""
        assert self._learner is not None
        learner = saved_states.load(self._learner.state())
        changes.make(learner, change.kind, change.data)
        return learner

    def adopt(self, learner: Learner, row: ChangeRow) -> None:
        """A change was written; if others asked or closed before it, it comes with the next news."""
        if (row.asked, row.closed, row.place) == (self.known.asked, self.known.closed, self.known.changes + 1):
            self._learner = learner
            self._made(learner, row)

    def save_checkpoint(self) -> None:
        """Keep what the learner has computed, where that is worth it: of likelihoods, telling again is as quick."""
        if not self.shapes.drawn:
            return
        closed = self.known.closed
        if self._learner is not None and closed - self.known.checkpointed >= max(CHECKPOINT, closed // 4):
            checkpoint = replay.checkpoint_of(self.record.learner, self._learner, closed, self._changes)
            self.storage.save(self.record.id, checkpoint)
            self.known = self.known._replace(checkpointed=closed)

    def _load(self) -> Learner:
        self._learner = None
        found = self.storage.everything(self.record.id)
        self._learner = replay.rebuild(self.shapes, self.record.learner, found)
        self.known, self._changes = found.counters, list(found.changes)
        return self._learner

    def _follow(self, learner: Learner, news: News) -> None:
        if isinstance(learner, FiniteLearner):
            self.shapes.follow(learner.arrivals, news.changes)
        trials, closings = deque(self.shapes.asked(news.asks)), deque(news.closings)
        if news.asks:
            replay.resume_search(learner, self.shapes, news.asks[-1].number, news.asks[-1].search)
        for row in news.changes:
            self._catch_up(learner, trials, closings, row.asked, row.closed)
            with changes.naming(self.shapes, row):
                changes.make(learner, row.kind, row.data)
            self._made(learner, row)
        self._catch_up(learner, trials, closings, news.counters.asked, news.counters.closed)

    def _catch_up(
        self, learner: Learner, trials: deque[Trial], closings: deque[ClosedRow], asked: int, closed: int
    ) -> None:
        """As much of the news as makes it so many asks and closings in all."""
        while self.known.asked < asked:
            learner.enter(trials.popleft())
            self.known = self.known._replace(asked=self.known.asked + 1)
        while self.known.closed < closed:
            row = closings.popleft()
            self.shapes.check_closed(row, self.known.closed + 1)
            self._close(learner, row)

    def _made(self, learner: Learner, row: ChangeRow) -> None:
        self._changes.append(row)
        self.known = self.known._replace(changes=row.place)
        if isinstance(learner, FiniteLearner):
            self.shapes.follow(learner.arrivals, ())

    def _close(self, learner: Learner, row: ClosedRow) -> None:
        if row.payoff is not None:
            observed = self.shapes.extra(row.number, row.state, row.extra).observed
            replay.tell(learner, self.shapes, row.number, row.payoff, observed)
        elif row.extra is not None:
            replay.exclude(learner, self.shapes, row.number)
        else:
            learner.fail(row.number, row.reason or "")
        known = self.known
        self.known = known._replace(closed=known.closed + 1, told=known.told + (row.payoff is not None))
