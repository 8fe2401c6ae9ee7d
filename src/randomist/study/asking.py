"""How trials are asked: proposed by the learner, outside of any transaction, then written; several calls at once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from randomist.errors import RandomistError, StorageError
from randomist.learners.base import Proposal
from randomist.learners.trial import Trial
from randomist.study import replay
from randomist.study.checks import LARGEST_BATCH
from randomist.study.reader import Reader
from randomist.study.records import AskRequest, NewAsk, NewTrial, StudyRecord
from randomist.study.replica import Replica
from randomist.study.rows import Shapes
from randomist.study.storages.base import Raced, Storage
from randomist.study.streams import Stream, Streams


class Wish(NamedTuple):
    """What one call asks for."""

    n: int  # trials
    worker: str
    lease: float  # seconds
    ticket: str | None = None  # that may have been used before
    confirm: bool = False  # trials that play the recommended point

    def request(self, basis: int, expected: int | None) -> AskRequest:
        ticket = self.ticket or uuid.uuid4().hex
        return AskRequest(self.worker, self.lease, ticket, self.ticket is not None, basis, expected)


class Asker:
    """A study's learner in this process, and how it is asked. Who uses the learner holds `lock`."""

    def __init__(self, storage: Storage, record: StudyRecord, reader: Reader) -> None:
        self.storage, self.record, self.reader = storage, record, reader
        self.lock = threading.RLock()
        self._begin()

    def forked(self) -> None:
        """In a forked process: where a thread of the parent was at work, its copy of the learner is half done."""
        if not self.lock.acquire(blocking=False):
            self._begin()
        self.lock = threading.RLock()

    def ask(self, wishes: Sequence[Wish]) -> list[list[Trial] | Exception]:
        """What each of several calls gets, or the error that it raises; on disk when this returns.

        One proposal serves all of them, and one transaction. Where it cannot be made, a call whose ticket was used
        before gets its trials all the same.
        """
        answers: dict[int, list[Trial] | Exception] = {}
        with self.lock:
            while len(answers) < len(wishes):
                some = _together({i: wish for i, wish in enumerate(wishes) if i not in answers})
                try:
                    answers |= self._ask(some)
                except RandomistError as error:
                    answers |= {i: self._before(wish, error) for i, wish in some.items()}
        return [answers[i] for i in range(len(wishes))]

    def _ask(self, wishes: dict[int, Wish]) -> dict[int, list[Trial] | Exception]:
        """What some of the calls get, by their numbers; those that lost a race are not among them."""
        learner, known = self.replica.synced(), self.replica.known
        sizes = [wish.n for wish in wishes.values()]
        total, offsets = sum(sizes), [0, *accumulate(sizes)]
        streams = self.streams.take(known.asked, total)
        confirm = any(wish.confirm for wish in wishes.values())
        with replay.going_on(self.record.name):
            proposal = learner.propose(total, streams=[stream.key for stream in streams], confirm=confirm)
        trials = self._new_trials(proposal, streams)
        # a search that names the plays of a confirmation must have their numbers
        anywhere = self.streams.own and not confirm
        asks = [
            NewAsk(trials[at : at + wish.n], wish.request(known.closed, None if anywhere else known.asked + at))
            for wish, at in zip(wishes.values(), offsets, strict=False)
        ]
        written = self.storage.ask_all(self.record.id, asks)
        answers: dict[int, list[Trial] | Exception] = {}
        for (i, wish), at, first in zip(wishes.items(), offsets, written, strict=False):
            if isinstance(first, int):
                self.streams.asked(wish.n)
                answers[i] = [trial._replace(id=first + j) for j, trial in enumerate(proposal.trials[at : at + wish.n])]
            elif isinstance(first, Raced):
                self.streams.lost_race()
            else:  # an error, or somebody used the ticket in between
                answers[i] = first if isinstance(first, Exception) else self.reader.asked(first)
        if written == [known.asked + at for at in offsets[:-1]]:
            self.replica.commit(proposal)  # else the next news has these and those of others, in order
        self.replica.save_checkpoint()
        return answers

    def _before(self, wish: Wish, error: Exception) -> list[Trial] | Exception:
        """The trials that were asked with a call's ticket before, or the error where there are none."""
        if wish.ticket is None or isinstance(error, StorageError):
            return error
        try:
            rows = self.storage.with_ticket(self.record.id, wish.ticket, wish.n)
            return self.reader.asked(rows) if rows else error
        except RandomistError as another:
            return another

    def _new_trials(self, proposal: Proposal, streams: Sequence[Stream]) -> list[NewTrial]:
        return [
            NewTrial(*self.reader.texts(trial), replay.search_text(search), stream.text)
            for trial, search, stream in zip(proposal.trials, proposal.searches, streams, strict=True)
        ]

    def _begin(self) -> None:
        self.replica = Replica(self.storage, self.record, Shapes(self.record.name, self.reader.began))
        self.streams = Streams()


def _together(left: dict[int, Wish]) -> dict[int, Wish]:
    """Those calls that one proposal serves: the first, and those like it, as many as make up a batch."""
    number, first = next(iter(left.items()))
    if first.confirm:
        return {number: first}
    alike = {i: wish for i, wish in left.items() if not wish.confirm}
    sizes = accumulate(wish.n for wish in alike.values())
    return {
        i: wish for (i, wish), size in zip(alike.items(), sizes, strict=True) if size <= max(LARGEST_BATCH, first.n)
    }
