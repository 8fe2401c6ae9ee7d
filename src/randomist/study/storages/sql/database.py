"""One database: short transactions that are tried again while it is busy or away.

A transaction is a function of a connection. It may run more than once, also after a commit whose outcome nobody knows
(the connection died during it), so it must find out by itself whether it happened before.
"""

from __future__ import annotations

import contextlib
import random
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from randomist.errors import ReadOnlyStorageError, StorageError
from randomist.study.forks import Gate, on_fork
from randomist.study.storages.base import PATIENCE
from randomist.study.storages.sql import schema, sqlite
from randomist.study.storages.sql.urls import parse, shown

T = TypeVar("T")
Work = Callable[[sa.Connection, int], T]  # the connection, and how often it was tried before


class Database:
    """A SQLite file or a PostgreSQL server, by its URL. Safe for threads, and in a forked process."""

    def __init__(self, url: str, *, patience: float = PATIENCE) -> None:
        self.url = parse(url)
        self.name = shown(self.url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.patience = patience
        self._file = sqlite.File(str(self.url.database), self.name, patience) if self.sqlite else None
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
        if self._file is not None and not create:
            self._file.must_exist()
        version = self.read(schema.version_of)
        if version is None and create:
            self.write(lambda connection, _: self._create(connection))
            version = self.read(schema.version_of)
        schema.check(version, self.name)
        if self._file is not None:
            self._file.opened()
        self._checked = True

    def read_only(self) -> bool:
        """Whether nothing can be written now."""
        if self.sqlite:
            return sqlite.read_only(self.url) or sqlite.is_full(self.url)
        mode = sa.select(sa.func.current_setting("transaction_read_only"))
        return self.read(lambda connection: str(connection.execute(mode).scalar_one()), patience=1.0) == "on"

    def upgrade(self) -> tuple[int, int]:
        """Bring the tables to this version, in one transaction; the versions before and after."""
        from randomist.study.storages.sql import migrations

        def work(connection: sa.Connection, _: int) -> tuple[int, int]:
            self._take_turn(connection)
            return migrations.upgrade(connection, self.name)

        if self._file is not None:
            self._file.must_exist()
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
        if self._file is not None:
            self._file.forked()
        self._closing.detach()
        self._inherited = self._engine  # not to be closed here, nor asked: a lock in it may be held for ever
        self._start()

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
                    kind = ReadOnlyStorageError if _refuses_writes(cause) else StorageError
                    raise kind(f"{self.name} refused: {_line(cause)}") from error
                if time.monotonic() - started > patience:
                    raise StorageError(
                        f"{self.name} was busy or away for {patience:.0f} s: {_line(cause)}; is it running?"
                    ) from error
            tried += 1
            time.sleep(wait)

    @contextlib.contextmanager
    def _begin(self, write: bool) -> Iterator[sa.Connection]:
        if self._file is None:
            with self._engine.connect() as connection:
                if not write:  # several statements that read must see one moment, as SQLite's do
                    connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    yield connection
            return
        self._file.check()
        if self._version is not None and self._version != sqlite.version(self.url):
            self.close()
            self._closing.detach()
            self._start()
        turn = self._file.turn() if write else contextlib.nullcontext()
        with turn, self._transactions.inside(), self._engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
            yield connection
            self._file.check()

    def _wait(self, error: Exception, tried: int) -> float | None:
        """How long until the next try, or None if there is no point in it."""
        if not isinstance(error, DBAPIError):
            return 0.1
        if self.sqlite:
            return random.uniform(0.001, 0.02) if sqlite.is_busy(error.orig) else None
        state = getattr(error.orig, "sqlstate", None)
        if state in ("40001", "40P01"):  # serialization failure, deadlock
            return random.uniform(0.001, 0.01)
        lost = error.connection_invalidated or state is None or state[:2] in ("08", "57", "53")
        return random.uniform(0.5, 1.0) * min(0.05 * 2**tried, 1.0) if lost and _operational(error) else None

    def _start(self) -> None:
        self._version = sqlite.version(self.url) if self.sqlite else None
        self._engine = self._new_engine()
        self._closing = weakref.finalize(self, self._engine.dispose)

    def _new_engine(self) -> sa.Engine:
        url = self.url
        options: dict[str, Any] = {"pool_size": 8, "max_overflow": 24, "pool_timeout": self.patience}
        if self.sqlite:
            options["connect_args"] = {"timeout": sqlite.BUSY_MS / 1000, "check_same_thread": False}
            url = sqlite.readable(self.url)
        else:
            options["connect_args"] = {"connect_timeout": 10}
        try:
            engine = sa.create_engine(url, **options)
        except ImportError as missing:
            raise StorageError(f"{self.name} needs psycopg ({missing}); pip install 'randomist[study]'") from missing
        if self.sqlite:
            event.listen(engine, "connect", sqlite.set_up if url == self.url else sqlite.set_up_read_only)
        return engine


def _operational(error: DBAPIError) -> bool:
    """Whether the server is away or in trouble, not the password or the name of the database wrong."""
    words = str(error.orig)
    return not any(hint in words for hint in ("authentication failed", "does not exist", "no password supplied"))


def _refuses_writes(cause: Any) -> bool:
    """Whether it is read-only: a file, a disk that is full, a server that is a standby."""
    return sqlite.refuses_writes(cause) or getattr(cause, "sqlstate", None) == "25006"


def _line(error: Any) -> str:
    return " ".join(str(error).split())[:300]
