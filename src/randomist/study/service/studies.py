"""The studies that a service holds in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict

from randomist.study.opening import load_study
from randomist.study.storages import Storage
from randomist.study.study import Study

MOST_STUDIES = 64  # that are held in memory


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
