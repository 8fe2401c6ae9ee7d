"""What is read of a study's learner or of many of its rows; the former is kept until something happens in the study.

It comes from a process of its own with learners of its own, which is started by the first question. So a read takes
neither a lock nor the interpreter from those who ask and tell, and one that takes too long can be ended. Where the
storage is in this process alone, or a class of the study is, reads are answered here, in a thread.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from fastapi import Response
from sqlalchemy import URL

from randomist._lookup import REMEDY
from randomist.errors import ParameterError, RandomistError, ServiceError, StudyDataError
from randomist.learners.base import Learner
from randomist.study.describe import learner_from
from randomist.study.records import Counters
from randomist.study.service.records import LOGGER
from randomist.study.service.studies import Studies
from randomist.study.storages import open_storage
from randomist.study.storages.sql.storage import SQLStorage
from randomist.study.study import Study

MOST_ANSWERS = 64
NICE = 10  # how much less urgent reads are than asks and tells
READ_SECONDS = 60.0  # for one answer
START = 60.0  # seconds until the process must be there
CREATION_SECONDS = 20.0  # for trying a learner: what takes longer would take so long for its first ask
CREATION_BYTES = 2**30  # of memory for that, beside what the process has

Question = Callable[[Study], Any]  # a function of a module, or a partial of one: it is sent to another process


class Reads:
    """What is read of studies, one question at a time."""

    def __init__(self, studies: Studies, seconds: float = READ_SECONDS) -> None:
        self._studies = studies
        self._here = Studies(studies.storage)  # with learners of their own
        storage = studies.storage
        self._apart: Apart | None = None
        if isinstance(storage, SQLStorage) and os.name == "posix":  # another process can open it, and be talked to
            self._apart = Apart(storage.database.url, seconds)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[Counters, float, bytes]] = OrderedDict()

    def forget(self, name: str) -> None:
        """A study of that name is gone, or has another one."""
        self._here.forget(name)
        with self._lock:
            for key in [key for key in self._kept if key[0] == name]:
                del self._kept[key]

    def close(self) -> None:
        """End the process that reads."""
        if self._apart is not None:
            self._apart.close()

    async def get(self, name: str, question: Question, keep: float = math.inf) -> Response:
        """What a study says to a question, as JSON; kept for some seconds, or until something happens in the study."""
        found = await anyio.to_thread.run_sync(self._get, name, question, keep, limiter=self._threads)
        return Response(found, media_type="application/json")

    async def page(self, name: str, question: Question) -> Response:
        """As `get`, and not kept."""
        return Response(await self.once(name, question), media_type="application/json")

    async def once(self, name: str, question: Question) -> bytes:
        """What a study says to a question, as JSON, and not kept."""
        return await anyio.to_thread.run_sync(self._once, name, question, limiter=self._threads)

    @cached_property
    def _threads(self) -> anyio.CapacityLimiter:
        return anyio.CapacityLimiter(1)

    def _once(self, name: str, question: Question) -> bytes:
        study = self._studies.get(name)
        _ = study.counters  # raises where the study is gone
        return self._answer(study, question)

    def _get(self, name: str, question: Question, keep: float) -> bytes:
        study, key = self._studies.get(name), (name, repr(_words(question)))
        now = study.counters._replace(checkpointed=0)
        with self._lock:
            known, asked_at, found = self._kept.get(key, (None, 0.0, b""))
        if known == now and time.monotonic() - asked_at < keep:
            return found
        found = self._answer(study, question)
        with self._lock:
            self._kept[key] = now, time.monotonic(), found
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_ANSWERS:
                self._kept.popitem(last=False)
        return found

    def _answer(self, study: Study, question: Question) -> bytes:
        if self._apart is not None:
            try:
                return self._apart.get(study, question)
            except StudyDataError as error:
                if REMEDY not in str(error):
                    raise
        return said(self._here, study.name, study.record.id, question)


class Tries:
    """Learners that are to be made are asked and told elsewhere first: that may take all time and memory."""

    def __init__(self) -> None:
        self._apart = Apart(None, CREATION_SECONDS, CREATION_BYTES) if os.name == "posix" else None
        self.close = self._apart.close if self._apart is not None else (lambda: None)

    def learner(self, name: str, space: Any, settings: Any) -> Learner:
        """What `learner_from` makes; a class that this process alone knows is the keeper's own, and tried here."""
        if self._apart is not None:
            try:
                self._apart.call(works, name, space, settings)
                return learner_from(name, space, settings, tried=True)
            except ServiceError as error:
                raise ParameterError(f"{name} cannot be tried with this space and these settings: {error}") from error
            except ParameterError as error:
                if REMEDY not in str(error):
                    raise
        return learner_from(name, space, settings)


class Apart:
    """A process that answers calls: of functions of modules, which are given the studies of a storage."""

    def __init__(self, url: URL | None, seconds: float, memory: int | None = None) -> None:
        self._url, self._seconds, self._memory = url, seconds, memory
        self._lock = threading.Lock()
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None

    def get(self, study: Study, question: Question) -> bytes:
        """What a study says."""
        return self.call(said, study.name, study.record.id, question)

    def call(self, function: Callable[..., bytes], *given: Any) -> bytes:
        """What it says; one that ended meanwhile (out of memory, for one) is started again, once."""
        with self._lock:
            for last in (False, True):
                try:
                    return self._ask((function, given))
                except (EOFError, OSError) as error:
                    self._end()
                    logging.getLogger(LOGGER).error("the process that reads ended: %r", error)
                    if last:
                        raise ServiceError("the process that reads ended over this; ask for less", 500) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        with self._lock:
            self._end()

    def _ask(self, message: tuple[Callable[..., bytes], tuple[Any, ...]]) -> bytes:
        connection = self._connection()
        connection.send(message)
        if not connection.poll(self._seconds):
            self._end()
            raise ServiceError(f"this takes longer than {self._seconds:g} s, more than it may; ask for less", 503)
        answer: bytes | RandomistError = connection.recv()
        if isinstance(answer, RandomistError):
            raise answer
        return answer

    def _connection(self) -> Connection:
        if self._running is None:
            ours, theirs = Pipe()
            code = f"from randomist.study.service.reading import main; main({theirs.fileno()})"
            process = subprocess.Popen(
                [sys.executable, "-c", code], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
            )
            theirs.close()
            self._running = process, ours
            url = None if self._url is None else self._url.render_as_string(hide_password=False)
            ours.send((url, self._memory))
            if not ours.poll(START):
                raise OSError(f"the process that reads was not ready within {START:g} s")
            ours.recv()
        return self._running[1]

    def _end(self) -> None:
        if self._running is not None:
            process, connection = self._running
            self._running = None
            connection.close()
            process.kill()
            process.wait()


def said(studies: Studies, name: str, id_: int, question: Question) -> bytes:
    """What a study says, as JSON."""
    study = studies.get(name)
    if study.record.id != id_:  # another one has that name now
        studies.forget(name)
        study = studies.get(name)
    return json.dumps(question(study), allow_nan=False, separators=(",", ":")).encode()


def works(_: Studies | None, name: str, space: Any, settings: Any) -> bytes:
    """Nothing, where a learner of this description works."""
    learner_from(name, space, settings)
    return b""


def main(file: int) -> None:
    """Answer calls, which come over a pipe, until nobody is there to ask."""
    os.nice(NICE)
    connection = Connection(file)
    with contextlib.suppress(EOFError, OSError):
        url, memory = connection.recv()
        studies = None if url is None else Studies(open_storage(url))
        if memory is not None:
            _limit(memory)
        connection.send("ready")
        while True:
            function, given = connection.recv()
            try:
                answer: bytes | RandomistError = function(studies, *given)
            except RandomistError as error:
                answer = error
            connection.send(answer)


def _limit(more: int) -> None:
    """No more memory from now on than so many bytes."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _words(question: Question) -> tuple[Any, ...]:
    """What makes a question another one: its name and arguments."""
    function, given = getattr(question, "func", question), getattr(question, "keywords", {})
    return function.__module__, function.__qualname__, *getattr(question, "args", ()), *sorted(given.items())
