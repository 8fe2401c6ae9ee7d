"""From the tables of an earlier version to those of this one: the steps in `versions`, by Alembic's operations.

A step is a module with `revision` (the schema's version after it, as text), `down_revision` (the version before) and
`upgrade()`. All steps and the new version number are one transaction, on SQLite as on PostgreSQL: when a process is
killed half-way, nothing has happened, and of two that upgrade at once the second finds nothing left to do.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from randomist.study.storages.sql import schema

SCRIPTS = Path(__file__).parent


def upgrade(connection: sa.Connection, database: str) -> tuple[int, int]:
    """Bring a database to this version, within the connection's transaction: the versions before and after."""
    before = schema.version_of(connection)
    if before is None or before > schema.VERSION:
        schema.check(before, database)
    assert before is not None
    scripts = ScriptDirectory(str(SCRIPTS))
    with Operations.context(MigrationContext.configure(connection)):
        for version in range(before + 1, schema.VERSION + 1):
            scripts.get_revision(str(version)).module.upgrade()
            connection.execute(sa.update(schema.schema).values(version=version))
    return before, schema.VERSION
