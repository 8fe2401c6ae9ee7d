"""Calls that come while others are being written are written together: one proposal, one commit for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, Generic, TypeVar

import anyio
import anyio.to_thread

from randomist.learners.trial import Trial
from randomist.study.service.studies import Studies
from randomist.study.study import Study

C = TypeVar("C")
A = TypeVar("A")
Do = Callable[[Sequence[C]], Sequence[A | Exception]]  # of several calls: what each gets, or its error
Prepare = Callable[[Study], C]  # a call, checked by the study that it is for

THREADS = 8  # for asks, and as many for tells: one that computes keeps no tell waiting
SHARE = 4  # of these, for the studies of one token: others find some that are free
MOST = 500  # calls in one commit


class Group(Generic[C, A]):
    """Calls of one kind for one study. They wait without a thread; while some are being written, others gather."""

    def __init__(self, do: Do[C, A], threads: anyio.CapacityLimiter) -> None:
        self._do, self._threads = do, threads
        self._waiting: list[tuple[C, asyncio.Future[A], anyio.CapacityLimiter]] = []
        self._running: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return self._running is None

    async def get(self, call: C, share: anyio.CapacityLimiter) -> A:
        answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, answer, share))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                async with self._waiting[0][2]:
                    some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                    answers = await self._answers([call for call, *_ in some])
                for (_, answer, _), given in zip(some, answers, strict=True):
                    if answer.done():  # whoever called is gone
                        continue
                    if isinstance(given, Exception):
                        answer.set_exception(given)
                    else:
                        answer.set_result(given)
        finally:
            self._running = None

    async def _answers(self, calls: Sequence[C]) -> Sequence[A | Exception]:
        try:
            answers = await anyio.to_thread.run_sync(self._do, calls, limiter=self._threads)
            assert len(answers) == len(calls), "one answer per call"
            return answers
        except Exception as error:
            return [error] * len(calls)


class Together:
    """Asks and tells of all studies."""

    def __init__(self, studies: Studies) -> None:
        self._studies = studies
        self._groups: dict[tuple[str, str], Group[Any, Any]] = {}
        self._shares: dict[tuple[str, str], anyio.CapacityLimiter] = {}  # by token

    async def ask(self, name: str, wish: Prepare[Any], who: str) -> list[Trial]:
        """Trials of a study, on disk: `wish` makes a `Wish` of it; `who` is the token."""
        trials: list[Trial] = await self._get(name, "ask", wish, who)
        return trials

    async def tell(self, name: str, tells: Prepare[Any], who: str) -> list[Exception | None]:
        """Close some trials of a study, on disk: `tells` makes them of it. Of each the error, if there is one."""
        errors: list[Exception | None] = await self._get(name, "tell", tells, who)
        return errors

    async def _get(self, name: str, kind: str, call: Any, who: str) -> Any:
        share = self._shares.setdefault((who, kind), anyio.CapacityLimiter(SHARE))
        group = self._groups.get((name, kind))
        if group is None:
            do = partial(self._ask if kind == "ask" else self._tell, name)
            group = self._groups[name, kind] = Group(do, self._askers if kind == "ask" else self._tellers)
        try:
            return await group.get(call, share)
        finally:
            if group.idle:
                self._groups.pop((name, kind), None)

    def _ask(self, name: str, calls: Sequence[Prepare[Any]]) -> list[list[Trial] | Exception]:
        return _done(self._studies.get(name), calls, lambda study, wishes: study.ask_all(wishes))

    def _tell(self, name: str, calls: Sequence[Prepare[Any]]) -> list[list[Exception | None] | Exception]:
        def close(study: Study, groups: Sequence[Sequence[Any]]) -> list[list[Exception | None]]:
            errors = iter(study.close_all([tell for tells in groups for tell in tells]))
            return [[next(errors) for _ in tells] for tells in groups]

        return _done(self._studies.get(name), calls, close)

    @cached_property
    def _askers(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(THREADS)

    @cached_property
    def _tellers(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(THREADS)


def _done(study: Study, calls: Sequence[Prepare[Any]], do: Callable[[Study, Sequence[Any]], Sequence[A]]) -> list[Any]:
    """What each call gets: those that the study refuses as they are get its error, the others are done together."""
    answers: dict[int, Any] = {}
    ready: dict[int, Any] = {}
    for i, prepare in enumerate(calls):
        try:
            ready[i] = prepare(study)
        except Exception as error:
            answers[i] = error
    if ready:
        answers |= dict(zip(ready, do(study, [*ready.values()]), strict=True))
    return [answers[i] for i in range(len(calls))]
