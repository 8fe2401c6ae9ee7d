"""One database: short transactions that are tried again while it is busy or away.

A transaction is a function of a connection. It may run more than once, also after a commit whose outcome nobody knows
(the connection died during it), so it must find out by itself whether it happened before.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from randomist.errors import StorageError
from randomist.study.forks import Gate, on_fork
from randomist.study.storages.base import PATIENCE
from randomist.study.storages.sql import schema

BUSY_MS = 200  # SQLite's own wait for a lock
SHOWN = ("host", "port")  # of a URL's query: anything else may be a password

fcntl: Any = import_module("fcntl") if os.name == "posix" else None

T = TypeVar("T")
Work = Callable[[sa.Connection, int], T]  # the connection, and how often it was tried before


class Database:
    """A SQLite file or a PostgreSQL server, by its URL. Safe for threads, and in a forked process."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        self.url = parse(url)
        self.name = shown(self.url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.patience = patience
        self._file: tuple[int, int] | None = None  # which one it is, once it was opened
        self._turns: set[int] = set()  # files by which threads wait for their turn, or have it
        self._transactions = Gate()  # SQLite keeps its locks in memory, too: a child would believe that it has them
        self._start()
        self._checked = False
        on_fork(self)

    def read(self, work: Callable[[sa.Connection], T], *, patience: float | None = None) -> T:
        """A transaction that changes nothing."""
        return self._run(lambda connection, _: work(connection), False, self.patience if patience is None else patience)

    def write(self, work: Work[T]) -> T:
        """A transaction that is on disk when this returns."""
        return self._run(work, True, self.patience)

    def open(self, *, create: bool) -> None:
        """Make sure that the tables are there, and of this version."""
        if self._checked:
            return
        if create:
            self.write(lambda connection, _: self._create(connection))
        elif self.sqlite:
            self._must_exist()
        schema.check(self.read(schema.version_of), self.name)
        self._file = self._identity() if self.sqlite else None
        self._checked = True

    def upgrade(self) -> tuple[int, int]:
        """Bring the tables to this version, in one transaction; the versions before and after."""
        from randomist.study.storages.sql import migrations

        def work(connection: sa.Connection, _: int) -> tuple[int, int]:
            self._take_turn(connection)
            return migrations.upgrade(connection, self.name)

        if self.sqlite:
            self._must_exist()
        return self.write(work)

    @property
    def clock(self) -> sa.ColumnElement[float]:
        """Seconds since 1970: the server's clock, which all workers share. A statement with it also takes `now()`."""
        if self.sqlite:
            return sa.bindparam("now", type_=sa.Double)
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)

    def now(self) -> dict[str, float]:
        return {"now": time.time()} if self.sqlite else {}

    def close(self) -> None:
        self._engine.dispose()

    def forked(self) -> None:
        """In a forked process: the parent's connections are not ours."""
        for file in self._turns:
            os.close(file)  # the parent still has it
        self._closing.detach()
        self._inherited = self._engine  # not to be closed here, nor asked: a lock in it may be held for ever
        self._turns = set()
        self._start()

    def _must_exist(self) -> None:
        if self._identity() is None:  # SQLite would make an empty one
            raise StorageError(f"{self.name} does not exist; create a study in it first")

    def _identity(self) -> tuple[int, int] | None:
        """Which file lies at the path."""
        try:
            found = os.stat(str(self.url.database))
        except OSError:
            return None
        return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None

    def _check_file(self) -> None:
        """What is written to a file that was removed is lost: SQLite would go on without a word."""
        if self._file not in (None, self._identity()):
            raise StorageError(
                f"{self.name} was removed or replaced while it was in use; put it back, or load the study again"
            )

    def _create(self, connection: sa.Connection) -> None:
        self._take_turn(connection)
        schema.create(connection)

    def _take_turn(self, connection: sa.Connection) -> None:
        """Until the transaction ends, nobody else makes or changes tables; on SQLite nobody else writes anyway."""
        if not self.sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(0x72616E64)))

    def _run(self, work: Work[T], write: bool, patience: float) -> T:
        started, tried = time.monotonic(), 0
        while True:
            try:
                with self._begin(write) as connection:
                    return work(connection, tried)
            except UnicodeDecodeError as error:  # what SQLite says of damaged tables need not be text
                raise StorageError(f"{self.name} is damaged ({_line(error)}); restore a backup") from error
            except (DBAPIError, PoolTimeoutError) as error:
                cause = error.orig if isinstance(error, DBAPIError) else error
                wait = self._wait(error, tried)
                if wait is None:
                    raise StorageError(f"{self.name} refused: {_line(cause)}") from error
                if time.monotonic() - started > patience:
                    raise StorageError(
                        f"{self.name} was busy or away for {patience:.0f} s: {_line(cause)}; is it running?"
                    ) from error
            tried += 1
            time.sleep(wait)

    @contextlib.contextmanager
    def _begin(self, write: bool) -> Iterator[sa.Connection]:
        self._check_file()
        turn = self._turn() if write and self.sqlite else contextlib.nullcontext()
        gate = self._transactions.inside() if self.sqlite else contextlib.nullcontext()
        with turn, gate, self._engine.connect() as connection:
            if not (self.sqlite or write):  # several statements that read must see one moment, as SQLite's do
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                if self.sqlite:
                    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
                yield connection
                self._check_file()

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """One writer at a time, by a lock on a file beside the database.

        SQLite would see to that as well, but those who wait would try and fail at a cost that slows the one who writes.
        """
        if fcntl is None:
            yield
            return
        path, started, pause = f"{self.url.database}-queue", time.monotonic(), 0.0005
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StorageError(f"{self.name} refused: unable to open {path}: {error.strerror}") from error
        self._turns.add(file)
        try:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() - started > self.patience:
                        raise StorageError(
                            f"{self.name} was busy or away for {self.patience:.0f} s: another process holds {path}"
                        ) from None
                time.sleep(random.uniform(0.5, 1.5) * pause)
                pause = min(1.5 * pause, 0.01)
            yield
        finally:
            self._turns.discard(file)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)  # a process that was forked meanwhile has it too
            os.close(file)

    def _wait(self, error: Exception, tried: int) -> float | None:
        """How long until the next try, or None if there is no point in it."""
        if not isinstance(error, DBAPIError):
            return 0.1
        if self.sqlite:
            code = getattr(error.orig, "sqlite_errorcode", None)
            busy = code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            return random.uniform(0.001, 0.02) if busy else None
        state = getattr(error.orig, "sqlstate", None)
        if state in ("40001", "40P01"):  # serialization failure, deadlock
            return random.uniform(0.001, 0.01)
        lost = error.connection_invalidated or state is None or state[:2] in ("08", "57", "53")
        return random.uniform(0.5, 1.0) * min(0.05 * 2**tried, 1.0) if lost and _operational(error) else None

    def _start(self) -> None:
        self._engine = self._new_engine()
        self._closing = weakref.finalize(self, self._engine.dispose)

    def _new_engine(self) -> sa.Engine:
        url = self.url
        options: dict[str, Any] = {"pool_size": 8, "max_overflow": 24, "pool_timeout": self.patience}
        if self.sqlite:
            options["connect_args"] = {"timeout": BUSY_MS / 1000, "check_same_thread": False}
            url = _readable(self.url)
        else:
            options["connect_args"] = {"connect_timeout": 10}
        try:
            engine = sa.create_engine(url, **options)
        except ImportError as missing:
            raise StorageError(f"{self.name} needs psycopg ({missing}); pip install 'randomist[study]'") from missing
        if self.sqlite:
            event.listen(engine, "connect", _set_up_sqlite if url == self.url else _set_up_read_only)
        return engine


def parse(url: Any) -> sa.URL:
    """A URL of a database that studies can live in."""
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError, ValueError, TypeError, AttributeError):
        parsed, backend = None, None
    if parsed is None or backend not in ("sqlite", "postgresql", "postgres"):
        kind = "" if parsed is None else f" for {parsed.drivername}"
        raise StorageError(
            f"no storage is known{kind}; give a URL such as sqlite:///study.db or postgresql://user:password@host/name"
        )
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
            raise StorageError(f"{shown(parsed)} is no file that outlives the process; give one as sqlite:///study.db")
        return parsed.set(drivername="sqlite+pysqlite")
    return parsed.set(drivername="postgresql+psycopg")


def shown(url: sa.URL) -> str:
    """A URL for messages, without a password, wherever it was given."""
    safe = url.set(query={name: value for name, value in url.query.items() if name in SHOWN})
    return re.sub(r"^(\w+)\+\w+", r"\1", safe.render_as_string(hide_password=True))


def _readable(url: sa.URL) -> sa.URL:
    """The URL under which SQLite can read a file that must not be written, or lies where nothing can be written.

    With its log beside it SQLite needs to write there, or the log's index must be there too; without a log the file is
    complete by itself, and nobody changes it.
    """
    path = Path(str(url.database))
    if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return url
    log = Path(f"{path}-wal")
    alone = not log.is_file() or log.stat().st_size == 0
    options = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if alone else {})
    return url.set(database=f"file:{quote(str(path))}", query=options)


def _set_up_read_only(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA cache_size=-512")


def _set_up_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where this module says so
    for attempt in range(1000):
        try:
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "cache_size=-512"):  # KiB
                connection.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:  # the switch to WAL does not wait for its lock
            if attempt == 999 or error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            time.sleep(0.005)


def _operational(error: DBAPIError) -> bool:
    """Whether the server is away or in trouble, not the password or the name of the database wrong."""
    words = str(error.orig)
    return not any(hint in words for hint in ("authentication failed", "does not exist", "no password supplied"))


def _line(error: Any) -> str:
    return " ".join(str(error).split())[:300]
