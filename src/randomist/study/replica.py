"""This process's copy of a study's learner, and how it keeps up with the storage."""

from __future__ import annotations

from randomist.learners.base import Learner, Proposal, Trial
from randomist.study import replay
from randomist.study.records import Counters, News, StudyRecord
from randomist.study.rows import Shapes
from randomist.study.storages.base import Storage

CHECKPOINT = 2000  # closings between checkpoints, or a quarter of all if that is more


class Replica:
    """A learner that knows the first `known.asked` asks and `known.closed` closings of a study, and no more.

    Both change together, one ask or closing at a time, so they agree even where a row turns out to be bad. Not safe for
    threads: who uses it holds the study's lock.
    """

    def __init__(self, storage: Storage, record: StudyRecord, shapes: Shapes) -> None:
        self.storage, self.record, self.shapes = storage, record, shapes
        self.known = Counters(0, 0, 0, 0)
        self._learner: Learner | None = None

    def synced(self) -> Learner:
        """The learner, with everything that is in the storage now."""
        if self._learner is None:
            return self._load()
        known = self.known
        news = self.storage.news(self.record.id, known.asked, known.closed)
        now = news.counters
        if (len(news.asks), len(news.closings)) != (now.asked - known.asked, now.closed - known.closed):
            return self._load()  # rows are not where they should be: reading all of them shows which
        self._follow(self._learner, news)
        self.known = now
        return self._learner

    def commit(self, proposal: Proposal) -> None:
        """The learner's own proposal was written, as the next asks of the study."""
        assert self._learner is not None
        self._learner.commit(proposal)
        self.known = self.known._replace(asked=self.known.asked + len(proposal.trials))

    def close(self, number: int, payoff: float | None, reason: str, place: int) -> None:
        """A trial was closed by this process; if others closed some before, it comes with the next news."""
        if self._learner is not None and place == self.known.closed + 1 and self._learner.is_pending(number):
            self._close(self._learner, number, payoff, reason)

    def save_checkpoint(self) -> None:
        """Keep what the learner has computed, where that is worth it."""
        closed = self.known.closed
        if self._learner is not None and closed - self.known.checkpointed >= max(CHECKPOINT, closed // 4):
            self.storage.save(self.record.id, replay.checkpoint_of(self._learner, closed))
            self.known = self.known._replace(checkpointed=closed)

    def _load(self) -> Learner:
        self._learner = None
        found = self.storage.everything(self.record.id)
        self._learner = replay.rebuild(self.shapes, self.record.learner, found)
        self.known = found.counters
        return self._learner

    def _follow(self, learner: Learner, news: News) -> None:
        trials: list[Trial] = self.shapes.asked(news.asks)
        if news.asks:
            replay.resume_search(learner, self.shapes, news.asks[-1].number, news.asks[-1].search)
        for trial in trials:
            learner.adopt(trial)
            self.known = self.known._replace(asked=trial.id + 1)
        for place, row in enumerate(news.closings, start=self.known.closed + 1):
            self.shapes.check_closed(row, place)
            self._close(learner, row.number, row.payoff, row.reason or "")

    def _close(self, learner: Learner, number: int, payoff: float | None, reason: str) -> None:
        if payoff is None:
            learner.fail(number, reason)
        else:
            replay.tell(learner, self.shapes, number, payoff)
        known = self.known
        self.known = known._replace(closed=known.closed + 1, told=known.told + (payoff is not None))
