"""Version 3 (0.2.0): tells can be taken back, studies deleted, and there is a record of who did what."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "3", "2"


def upgrade() -> None:
    op.add_column("randomist_trials", sa.Column("closed_by", sa.String(64)))
    op.add_column("randomist_trials", sa.Column("retracted", sa.Text))
    op.add_column("randomist_studies", sa.Column("retracted", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("randomist_studies", sa.Column("deleted_at", sa.Double))
    op.create_table(
        "randomist_audit",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study", sa.Integer, sa.ForeignKey("randomist_studies.id"), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.String(64), nullable=False),
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
    op.create_index("randomist_audit_study", "randomist_audit", ["study"])
