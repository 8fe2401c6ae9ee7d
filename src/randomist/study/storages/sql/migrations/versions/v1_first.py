"""Version 1 (0.1.0): where it all begins. `schema.create` makes new databases in the version of today."""

revision, down_revision = "1", None


def upgrade() -> None:
    raise NotImplementedError("there is nothing before version 1")
