"""What a forked process must not share with its parent: locks that its threads hold, connections, transactions.

The threads that hold them do not exist in the child, so nobody would ever let go of them there.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Protocol
from weakref import WeakSet

LONGEST = 5.0  # seconds that a fork waits for those who are inside a gate


class Forkable(Protocol):
    """Something that has to start anew in a forked process."""

    def forked(self) -> None: ...


class Gate:
    """A process is not forked while one of its threads is inside."""

    def __init__(self) -> None:
        self._changed, self._inside = threading.Condition(), 0
        _gates.add(self)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        with self._changed:
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        self._changed.acquire()
        self._changed.wait_for(lambda: self._inside == 0, LONGEST)

    def open(self) -> None:
        self._changed.release()

    def forked(self) -> None:
        self._changed, self._inside = threading.Condition(), 0


_everything: WeakSet[Forkable] = WeakSet()
_gates: WeakSet[Gate] = WeakSet()
_shut: list[Gate] = []


def on_fork(thing: Forkable) -> None:
    """From now on `thing.forked()` is called in every forked process, before anything else happens there."""
    _everything.add(thing)


def _before() -> None:
    for gate in list(_gates):
        gate.shut()
        _shut.append(gate)


def _in_parent() -> None:
    while _shut:
        _shut.pop().open()


def _in_child() -> None:
    _shut.clear()
    for thing in [*_gates, *_everything]:
        thing.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
