"""What SQLite needs beside SQL: a file that stays where it is, turns to write, settings of connections."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from randomist.errors import ReadOnlyStorageError, StorageError

BUSY_MS = 200  # SQLite's own wait for a lock
FULL = 2**20  # bytes: a disk with less is full, as a transaction with its log may need that much

fcntl: Any = import_module("fcntl") if os.name == "posix" else None


class File:
    """The file of a database: still the one that was opened, and written by one at a time."""

    def __init__(self, path: str, name: str, patience: float) -> None:
        self._path, self._name, self._patience = path, name, patience
        self._opened: tuple[int, int] | None = None  # which one it is, once it was opened
        self._turns: set[int] = set()  # files by which threads wait for their turn, or have it

    def must_exist(self) -> None:
        if self._identity() is None:  # SQLite would make an empty one
            raise StorageError(f"{self._name} does not exist; create a study in it first")

    def opened(self) -> None:
        """From now on it must stay the same file."""
        self._opened = self._identity()

    def check(self) -> None:
        """What is written to a file that was removed is lost: SQLite would go on without a word."""
        if self._opened not in (None, self._identity()):
            raise StorageError(
                f"{self._name} was removed or replaced while it was in use; put it back, or load the study again"
            )

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One writer at a time, by a lock on a file beside the database.

        SQLite would see to that as well, but those who wait would try and fail at a cost that slows the one who writes.
        """
        if fcntl is None:
            yield
            return
        path, started, pause = f"{self._path}-queue", time.monotonic(), 0.0005
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            denied = error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC)
            kind = ReadOnlyStorageError if denied else StorageError
            raise kind(f"{self._name} refused: unable to open {path}: {error.strerror}") from error
        self._turns.add(file)
        try:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() - started > self._patience:
                        raise StorageError(
                            f"{self._name} was busy or away for {self._patience:.0f} s: another process holds {path}"
                        ) from None
                time.sleep(random.uniform(0.5, 1.5) * pause)
                pause = min(1.5 * pause, 0.01)
            yield
        finally:
            self._turns.discard(file)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile has it too
            os.close(file)

    def forked(self) -> None:
        """In a forked process: the parent's turns are not ours."""
        for file in self._turns:
            os.close(file)  # the parent still has it
        self._turns = set()

    def _identity(self) -> tuple[int, int] | None:
        """Which file lies at the path."""
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def read_only(url: sa.URL) -> bool:
    """Whether a file must not be written, or lies where nothing can be."""
    path = Path(str(url.database))
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def is_full(url: sa.URL) -> bool:
    return shutil.disk_usage(Path(str(url.database)).parent).free < FULL


def version(url: sa.URL) -> tuple[sa.URL, int, int] | None:
    """Of a file that is read only: changes when somebody else writes it, of which SQLite would not hear."""
    if not read_only(url):
        return None
    found = os.stat(str(url.database))
    return readable(url), found.st_mtime_ns, found.st_size


def readable(url: sa.URL) -> sa.URL:
    """The URL under which SQLite can read a file that must not be written, or lies where nothing can be written.

    With its log beside it SQLite needs to write there, or the log's index must be there too; without a log the file is
    complete by itself, and nobody changes it.
    """
    if not read_only(url):
        return url
    path = Path(str(url.database))
    log = Path(f"{path}-wal")
    alone = not log.is_file() or log.stat().st_size == 0
    options = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if alone else {})
    return url.set(database=f"file:{quote(str(path))}", query=options)


def set_up_read_only(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA cache_size=-512")


def set_up(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `Database` says so
    for attempt in range(1000):
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-512"):  # KiB
                connection.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:  # the switch to WAL does not wait for its lock
            if attempt == 999 or not is_busy(error):
                raise
            time.sleep(0.005)


def is_busy(error: BaseException | None) -> bool:
    """Whether somebody else holds a lock, so that it can be tried again."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def refuses_writes(error: BaseException | None) -> bool:
    """Whether nothing can be written, however often it is tried."""
    return _code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL)


def _code(error: BaseException | None) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
