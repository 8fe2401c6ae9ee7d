"""The studies that a service holds in memory: to ask and tell, and, apart from those, to read."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any

import anyio
import anyio.to_thread

from randomist.study.opening import load_study
from randomist.study.records import Counters
from randomist.study.storages import Storage
from randomist.study.study import Study

MOST_STUDIES = 64  # that are held in memory
MOST_ANSWERS = 64
READERS = 2  # threads


class Studies:
    """The studies in memory: those used last, each once."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Study] = OrderedDict()

    def get(self, name: str) -> Study:
        with self._lock:
            study = self._open.get(name)
            if study is not None:
                self._open.move_to_end(name)
                return study
        return self.keep(load_study(name, storage=self.storage))

    def forget(self, name: str) -> None:
        """A study of that name is gone, or has another one."""
        with self._lock:
            self._open.pop(name, None)

    def keep(self, study: Study) -> Study:
        with self._lock:
            study = self._open.setdefault(study.name, study)
            while len(self._open) > MOST_STUDIES:
                self._open.popitem(last=False)
            return study


class Reads:
    """Answers that take a learner some computing, kept until something happens in the study.

    They come from learners of their own, in threads of their own: a read holds no lock that an ask or a tell needs.
    """

    def __init__(self, storage: Storage) -> None:
        self._studies = Studies(storage)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], tuple[Counters, float, Any]] = OrderedDict()

    def forget(self, name: str) -> None:
        """A study of that name is gone, or has another one."""
        self._studies.forget(name)
        with self._lock:
            for key in [key for key in self._kept if key[0] == name]:
                del self._kept[key]

    async def get(self, name: str, question: str, answer: Callable[[Study], Any], seconds: float = math.inf) -> Any:
        """What `answer` says of a study; kept under its question for `seconds`, or until something happens."""
        return await anyio.to_thread.run_sync(self._get, name, question, answer, seconds, limiter=self.threads)

    @cached_property
    def threads(self) -> anyio.CapacityLimiter:
        """Those that read."""
        return anyio.CapacityLimiter(READERS)

    def _get(self, name: str, question: str, answer: Callable[[Study], Any], seconds: float) -> Any:
        study = self._studies.get(name)
        now = study.counters._replace(checkpointed=0)
        with self._lock:
            known, asked_at, found = self._kept.get((name, question), (None, 0.0, None))
        if known == now and time.monotonic() - asked_at < seconds:
            return found
        found = answer(study)
        with self._lock:
            self._kept[name, question] = now, time.monotonic(), found
            self._kept.move_to_end((name, question))
            if len(self._kept) > MOST_ANSWERS:
                self._kept.popitem(last=False)
        return found
