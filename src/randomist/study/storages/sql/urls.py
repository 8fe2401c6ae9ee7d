"""URLs of databases: which ones studies can live in, and how they are shown."""

from __future__ import annotations

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from randomist.errors import StorageError

SHOWN = ("host", "port")  # of a URL's query: anything else may be a password


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
