"""Payoffs over time, in a few hundred buckets of consecutive closings, however long a study is.

The storage sums them up. What is complete is kept, so a look at a study that has gone on reads the last bucket and what
came after it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from itertools import pairwise
from typing import Any

import numpy as np

from randomist.study.dashboard.numbers import number, numbers
from randomist.study.records import Bucket, Counters
from randomist.study.storages.base import Storage

MOST = 512  # buckets of a curve
SPARKS = 48  # points of a spark line
KEPT = 256  # curves that are kept, of 150 KB at most


class Curve:
    """The payoffs of one study. Safe for threads."""

    def __init__(self, storage: Storage, study: int) -> None:
        self.storage, self.study = storage, study
        self.learner: str | None = None  # what the study is of, where somebody has looked it up
        self._lock = threading.Lock()
        self._size, self._retracted = 1, 0
        self._buckets: list[Bucket] = []

    def columns(self, counters: Counters, size: int = 0, first: int = 0) -> dict[str, Any]:
        """From the bucket `first` on, where buckets still have that `size`; else all of them.

        `x` is how many had been told by the end of each; `average` and `best` are of all until then.
        """
        now, buckets = self._updated(counters)
        told = np.cumsum([bucket.told for bucket in buckets])
        total = np.array([bucket.total or 0.0 for bucket in buckets])
        largest = np.array([np.nan if bucket.largest is None else bucket.largest for bucket in buckets])
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            mean = total / [bucket.told for bucket in buckets]
            average = np.cumsum(total) / told
        begin = first if size == now else 0
        return {
            "size": now,
            "first": begin,
            "x": told[begin:].tolist(),
            "mean": numbers(mean[begin:]),
            "least": [number(bucket.least) for bucket in buckets[begin:]],
            "largest": numbers(largest[begin:]),
            "average": numbers(average[begin:]),
            "best": numbers(np.fmax.accumulate(largest)[begin:]),
            "at": [round(bucket.at, 3) for bucket in buckets[begin:]],
        }

    def spark(self, counters: Counters) -> dict[str, Any]:
        """What a line of all studies shows: some means in order, the best payoff, and the mean of all."""
        _, buckets = self._updated(counters)
        told = [bucket for bucket in buckets if bucket.told and bucket.largest is not None]
        ends = np.linspace(0, len(told), min(SPARKS, len(told)) + 1).astype(int).tolist()
        parts = [told[start:end] for start, end in pairwise(ends)]
        sums = [(sum(one.total or 0.0 for one in part), sum(one.told for one in part)) for part in parts]
        return {
            "spark": numbers([total / n for total, n in sums]),
            "best": number(max((bucket.largest or 0.0 for bucket in told), default=None)),
            "average": number(sum(total for total, _ in sums) / sum(n for _, n in sums)) if sums else None,
        }

    def _updated(self, counters: Counters) -> tuple[int, list[Bucket]]:
        """The size of a bucket, and all of them."""
        with self._lock:
            if counters.retracted != self._retracted:  # what was summed up has changed
                self._size, self._retracted, self._buckets = 1, counters.retracted, []
            while counters.closed > MOST * self._size:
                self._size, self._buckets = 2 * self._size, _in_pairs(self._buckets)
            known = max(len(self._buckets) - 1, 0)  # the last one may have grown
            if counters.closed > sum(bucket.closed for bucket in self._buckets):
                self._buckets[known:] = self.storage.buckets(self.study, self._size, known)
            return self._size, list(self._buckets)


class Curves:
    """Those of the studies that were looked at last."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Curve] = OrderedDict()

    def of(self, study: int) -> Curve:
        with self._lock:
            curve = self._kept.setdefault(study, Curve(self.storage, study))
            self._kept.move_to_end(study)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return curve


def _in_pairs(buckets: list[Bucket]) -> list[Bucket]:
    return [_sum(buckets[i : i + 2], i // 2) for i in range(0, len(buckets), 2)]


def _sum(buckets: list[Bucket], place: int) -> Bucket:
    counted = [bucket for bucket in buckets if bucket.told]
    return Bucket(
        place,
        sum(bucket.closed for bucket in buckets),
        sum(bucket.told for bucket in buckets),
        sum(bucket.total or 0.0 for bucket in counted) if counted else None,
        min((bucket.least for bucket in counted if bucket.least is not None), default=None),
        max((bucket.largest for bucket in counted if bucket.largest is not None), default=None),
        max(bucket.at for bucket in buckets),
    )
