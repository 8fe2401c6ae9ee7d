"""Version 2 (0.2.0): `marks` becomes `search`; room for contexts, for what is told besides payoffs, for archiving;
decisions that come and go.

The column is renamed by a statement, for Alembic would copy the whole table on SQLite, which can rename since 3.25.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "2", "1"

TRIALS = sa.table("randomist_trials", sa.column("search", sa.Text))


def upgrade() -> None:
    op.execute("ALTER TABLE randomist_trials RENAME COLUMN marks TO search")
    op.add_column("randomist_trials", sa.Column("context", sa.Text))
    op.add_column("randomist_trials", sa.Column("extra", sa.Text))
    op.add_column("randomist_studies", sa.Column("archived_at", sa.Double))
    op.add_column("randomist_studies", sa.Column("changes", sa.BigInteger, nullable=False, server_default="0"))
    op.create_table(
        "randomist_changes",
        sa.Column("study", sa.Integer, sa.ForeignKey("randomist_studies.id"), primary_key=True, autoincrement=False),
        sa.Column("place", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("asked", sa.BigInteger, nullable=False),
        sa.Column("closed", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("worker", sa.String(64), nullable=False),
        sa.Column("written_at", sa.Double, nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.CheckConstraint("kind in ('add', 'retire')", name="randomist_changes_kind"),
    )
    _rename_parts_of_searches()


def _rename_parts_of_searches() -> None:
    """0.1.0 wrote the names of private attributes, and null where a search had not begun.

    No text but a name begins with an underscore: values are numbers and base64.
    """
    search = TRIALS.c.search
    renamed = sa.func.replace(sa.func.replace(search, '"_', '"'), '"scale_now"', '"scale"')
    op.execute(sa.update(TRIALS).where(search.is_not(None)).values(search=renamed))
    op.execute(sa.update(TRIALS).where(search.like("%:null%")).values(search=None))
