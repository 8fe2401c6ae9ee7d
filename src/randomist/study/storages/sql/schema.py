"""The tables of a study, and the version that a database says it has.

A study's row counts what happened: `asked` trials, `closed` ones (told or failed), `told` ones without the `retracted`,
`changes` of the set of decisions. Every write changes that row, so writes to one study follow one another, and the
counters number trials (`number`, from 0), closings (`closing`, from 1) and changes (`place`, from 1) in the order of
the commits.

The version is one number in `randomist_schema`, and not in the table that Alembic would keep: databases of 0.1.0 have
it, and workers of 0.1.0 look there and refuse a newer one. Two tables could disagree.
"""

from __future__ import annotations

import sqlalchemy as sa

from randomist.errors import SchemaVersionError

VERSION = 3  # 1: 0.1.0. `migrations` has the way from each to the next, tests/study/data a database of each

metadata = sa.MetaData()

schema = sa.Table(
    "randomist_schema",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)

studies = sa.Table(
    "randomist_studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
    sa.Column("token", sa.String(32), nullable=False),  # who created it, so that creating can be repeated
    sa.Column("learner", sa.Text, nullable=False),  # its name, space and settings (`_json`)
    sa.Column("lease", sa.Double, nullable=False),  # seconds
    sa.Column("created_at", sa.Double, nullable=False),  # seconds since 1970, by the database's clock
    sa.Column("asked", sa.BigInteger, nullable=False, default=0),
    sa.Column("closed", sa.BigInteger, nullable=False, default=0),
    sa.Column("told", sa.BigInteger, nullable=False, default=0),
    sa.Column("checkpointed", sa.BigInteger, nullable=False, default=0),  # closings that the checkpoint covers
    sa.Column("archived_at", sa.Double),  # seconds since 1970
    sa.Column("changes", sa.BigInteger, nullable=False, default=0, server_default="0"),
    sa.Column("retracted", sa.BigInteger, nullable=False, default=0, server_default="0"),  # closings taken back
    sa.Column("deleted_at", sa.Double),  # the row stays, so that its number is not used again
)

trials = sa.Table(
    "randomist_trials",
    metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("randomist_studies.id"), primary_key=True, autoincrement=False),
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),  # the trial's id
    sa.Column("ticket", sa.String(70), nullable=False),  # makes an ask repeatable
    sa.Column("worker", sa.String(64), nullable=False),
    sa.Column("state", sa.String(8), nullable=False),  # asked, told, failed; stale is an asked one of the past
    sa.Column("decision", sa.Text, nullable=False),  # JSON: an index, a number, or a list of numbers
    sa.Column("mediator", sa.Text, nullable=False),
    sa.Column("search", sa.Text),  # what the ask changed in the learner's search (`_json`)
    sa.Column("basis", sa.BigInteger, nullable=False),  # how many closings the asker knew
    sa.Column("stream", sa.String(64)),  # of random numbers, where it is not the trial's own
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("lease_until", sa.Double, nullable=False),
    sa.Column("payoff", sa.Double),
    sa.Column("reason", sa.Text),
    sa.Column("closing", sa.BigInteger),
    sa.Column("closed_at", sa.Double),
    sa.Column("context", sa.Text),  # what was known when it was asked (`_json`)
    sa.Column("extra", sa.Text),  # what was told besides the payoff (JSON): a failed trial was infeasible
    sa.Column("closed_by", sa.String(64)),  # who told it or let it fail
    sa.Column("retracted", sa.Text),  # why it does not count any more
    sa.UniqueConstraint("study", "ticket", name="randomist_trials_ticket"),
    sa.UniqueConstraint("study", "closing", name="randomist_trials_closing"),
    sa.CheckConstraint("state in ('asked', 'told', 'failed')", name="randomist_trials_state"),
    sa.CheckConstraint("(state = 'told') = (payoff is not null)", name="randomist_trials_payoff"),
    sa.CheckConstraint("(state = 'asked') = (closing is null)", name="randomist_trials_closed"),
)

changes = sa.Table(
    "randomist_changes",
    metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("randomist_studies.id"), primary_key=True, autoincrement=False),
    sa.Column("place", sa.BigInteger, primary_key=True, autoincrement=False),  # from 1, in the order of the commits
    sa.Column("asked", sa.BigInteger, nullable=False),  # how many trials had been asked and closed by then
    sa.Column("closed", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(8), nullable=False),
    sa.Column("data", sa.Text, nullable=False),  # the new member and its name, or the decision that went (`_json`)
    sa.Column("worker", sa.String(64), nullable=False),
    sa.Column("written_at", sa.Double, nullable=False),
    sa.Column("token", sa.String(32), nullable=False),  # of the call that wrote it, so that it can be repeated
    sa.CheckConstraint("kind in ('add', 'retire')", name="randomist_changes_kind"),
)

audit = sa.Table(
    "randomist_audit",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.Integer, sa.ForeignKey("randomist_studies.id"), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.String(64), nullable=False),
    sa.Column("what", sa.String(16), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),  # JSON
    sa.Index("randomist_audit_study", "study"),
)

checkpoints = sa.Table(
    "randomist_checkpoints",
    metadata,
    sa.Column("study", sa.Integer, sa.ForeignKey("randomist_studies.id"), primary_key=True, autoincrement=False),
    sa.Column("closed", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),  # of what it holds and sums up
    sa.Column("version", sa.String(32), nullable=False),  # of its format
    sa.Column("caches", sa.Text, nullable=False),  # what the learner computed from them (`_json`)
)


def version_of(connection: sa.Connection) -> int | None:
    """The schema's version, or None where there is none yet."""
    if not sa.inspect(connection).has_table(schema.name):
        return None
    versions = connection.execute(sa.select(schema.c.version)).scalars().all()
    if len(versions) != 1 or not isinstance(versions[0], int) or versions[0] < 1:
        raise SchemaVersionError(f"{schema.name} must hold one version number, got {list(versions)}; restore a backup")
    return versions[0]


def create(connection: sa.Connection) -> None:
    """The tables, where the database has none."""
    if version_of(connection) is None:
        metadata.create_all(connection)
        connection.execute(sa.insert(schema).values(version=VERSION))


def check(version: int | None, database: str) -> None:
    """Refuse a database that this version cannot work on."""
    if version is None:
        raise SchemaVersionError(f"{database} has no tables of randomist; create a study in it first")
    if version > VERSION:
        raise SchemaVersionError(
            f"{database} has schema version {version}, this randomist knows up to {VERSION}; install a newer one"
        )
    if version < VERSION:
        raise SchemaVersionError(
            f"{database} has schema version {version}, this randomist works on {VERSION}; stop the workers, make a "
            "backup, and run `randomist study upgrade --storage ...`"
        )
