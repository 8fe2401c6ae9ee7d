"""Calls in processes that can be killed: a call that hangs, or that ends its process, costs one trial.

Each worker is a process of its own, started fresh (not forked, which would copy locks that other threads hold), with
one pipe. A free worker is given the next trial at once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from randomist.errors import ParameterError, TaskError
from randomist.simulation.calls import Answer, Arguments, Catch, answer

if TYPE_CHECKING:
    from randomist.learners.trial import Trial

READY = "ready"


class Worker:
    """A process and its pipe; `deadline` is when its call has taken too long."""

    def __init__(self, payload: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, payload), name="randomist-worker")
        self.process.start()
        theirs.close()
        self.ready = False
        self.trial: Trial | None = None
        self.deadline = float("inf")

    def end(self) -> None:
        """Kill the process, and what it has started itself."""
        if self.process.is_alive() and self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
                os.killpg(self.process.pid, signal.SIGKILL)  # no process group of its own yet, or none on this system
            self.process.kill()
        self.process.join()
        self.connection.close()


class Workers:
    """`jobs` processes that call one function; answers come in the order in which calls end."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Callable[[Trial], Arguments],
        catch: Catch,
        jobs: int,
        timeout: float | None,
    ) -> None:
        self._payload = _packed(function, catch)
        self._arguments, self._jobs, self._timeout = arguments, jobs, timeout
        self._workers: list[Worker] = []

    @property
    def free(self) -> int:
        return self._jobs - sum(worker.trial is not None for worker in self._workers)

    def begin(self, trial: Trial) -> None:
        idle = [worker for worker in self._workers if worker.trial is None and worker.process.is_alive()]
        worker = idle[0] if idle else Worker(self._payload)
        if not idle:
            self._workers.append(worker)
        worker.trial = trial
        with contextlib.suppress(BrokenPipeError):  # it died while it was idle: `finished` will see that
            worker.connection.send(self._arguments(trial))
        if worker.ready:
            self._set_deadline(worker)

    def finished(self) -> list[tuple[Trial, Answer]]:
        """At least one trial; waits for it."""
        answers: list[tuple[Trial, Answer]] = []
        while not answers:
            soonest = min(worker.deadline for worker in self._workers)
            patience = max(0.0, soonest - time.monotonic()) if soonest < float("inf") else None
            ready = wait([worker.connection for worker in self._workers], patience)
            for worker in list(self._workers):
                if worker.connection in ready:
                    answers += self._received(worker)
                elif time.monotonic() > worker.deadline:
                    answers += self._ended(worker, f"no answer within {self._timeout:g} s")
        return answers

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _received(self, worker: Worker) -> list[tuple[Trial, Answer]]:
        try:
            message = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join()
            if not worker.ready:
                raise TaskError(
                    f"a worker process ended before it began (exit code {worker.process.exitcode}); in a script, call "
                    'under `if __name__ == "__main__":`, since workers import the script too'
                ) from None
            return self._ended(worker, f"its process ended (exit code {worker.process.exitcode})")
        if message == READY:
            worker.ready = True
            if worker.trial is not None:
                self._set_deadline(worker)
            return []
        if isinstance(message, str):
            raise ParameterError(f"the function cannot be called in another process: {message}; {_REMEDY}")
        trial, worker.trial, worker.deadline = worker.trial, None, float("inf")
        assert trial is not None
        return [(trial, Answer(*message))]

    def _ended(self, worker: Worker, reason: str) -> list[tuple[Trial, Answer]]:
        self._workers.remove(worker)
        worker.end()
        return [] if worker.trial is None else [(worker.trial, Answer(None, reason))]

    def _set_deadline(self, worker: Worker) -> None:
        if self._timeout is not None:
            worker.deadline = time.monotonic() + self._timeout


_REMEDY = "define it at the top of a module that can be imported, or take jobs=1 without timeout="


def _packed(function: Callable[..., Any], catch: Catch) -> bytes:
    """The function as bytes; with cloudpickle, where it is installed, also one of a notebook or inside of another."""
    try:
        from cloudpickle import dumps
    except ImportError:
        from pickle import dumps
    try:
        packed: bytes = dumps((function, catch))
    except Exception as error:  # whatever the pickling of somebody's object raises
        raise ParameterError(f"the function cannot be sent to another process: {error}; {_REMEDY}") from error
    return packed


# In the worker.


def _serve(connection: Connection, payload: bytes) -> None:
    """Answer calls until there are no more; never outlive the process that asks."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the process that asks; and one signal ends all that a call has started
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        function, catch = pickle.loads(payload)
    except Exception as error:
        connection.send(f"{type(error).__name__}: {error}")
        return
    connection.send(READY)
    while True:
        try:
            args, named = connection.recv()
        except (EOFError, OSError):
            return
        connection.send(_portable(answer(function, args, named, catch)))


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        if hasattr(os, "killpg"):
            os.killpg(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGTERM)


def _portable(found: Answer) -> tuple[Any, ...]:
    """An answer that can be sent, even if its error cannot."""
    if found.error is not None:
        try:
            pickle.loads(pickle.dumps(found.error))
        except Exception:
            found = found._replace(error=RuntimeError(found.reason))
    return tuple(found)
