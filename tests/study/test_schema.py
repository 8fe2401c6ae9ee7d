"""Databases of every released version open, newer ones are refused, older ones are upgraded when told to."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import randomist as rd
from randomist.errors import SchemaVersionError, StorageError
from randomist.study.storages import open_storage
from randomist.study.storages.sql import migrations, schema
from randomist.study.storages.sql.database import Database
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.helpers import at_once, edit, play, query, same

DATA = Path(__file__).parent / "data"
GOLDEN = {int(path.stem.split("-v")[1]): path for path in DATA.glob("study-v*.db")}


def make_golden(path: Path) -> None:
    """How the golden file of this version was made: `python tests/study/test_schema.py`."""
    finite = rd.create_study("finite", rd.Randomist(GAUSSIANS, seed=5), storage=f"sqlite:///{path}", worker="golden")
    play(finite, 20)
    finite.fail(finite.ask(), "a failure")
    finite.ask(lease=0.001)
    box = rd.create_study("box", rd.MCMCRandomist(RECTANGLE, seed=5), storage=f"sqlite:///{path}", worker="golden")
    play(box, 12)
    for study in (finite, box):
        study.close()
    edit(f"sqlite:///{path}", "PRAGMA journal_mode=DELETE")


def test_there_is_a_golden_file_for_every_version():
    assert set(GOLDEN) == set(range(1, schema.VERSION + 1))


@pytest.mark.parametrize("version", GOLDEN)
def test_a_golden_database_opens_and_goes_on(version, tmp_path):
    shutil.copy(GOLDEN[version], tmp_path / "study.db")
    url = f"sqlite:///{tmp_path}/study.db"
    assert Database(url).upgrade() == (version, schema.VERSION)
    finite, box = rd.load_study("finite", storage=url), rd.load_study("box", storage=url)
    rd.create_study("finite", rd.Randomist(GAUSSIANS, seed=5), storage=url, exist_ok=True)  # the same learner
    assert [t.state for t in finite.trials()] == ["told"] * 20 + ["failed", "stale"]
    assert finite.trials()[20].reason == "a failure"
    assert box.counters[:3] == (12, 12, 12)
    for study, learner in ((finite, rd.Randomist(GAUSSIANS, seed=5)), (box, rd.MCMCRandomist(RECTANGLE, seed=5))):
        fresh = rd.create_study(f"{study.name}-again", learner, storage=url)
        replayed = play(fresh, 20 if study is finite else 12)
        if study is finite:
            fresh.fail(fresh.ask())
            fresh.ask()
        assert same([rd.Trial(t.id, t.decision, t.mediator) for t in study.trials()][: len(replayed)], replayed)
        assert same(play(study, 5), play(fresh, 5))


def test_the_tables_of_a_new_database_are_those_of_the_golden_one(sqlite):
    rd.create_study("car", rd.UCB1(GAUSSIANS), storage=sqlite)
    tables = "select name, sql from sqlite_master order by name"
    assert query(sqlite, tables) == query(f"sqlite:///{GOLDEN[schema.VERSION]}", tables)


def test_other_versions_are_refused_until_upgraded(url):
    play(rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url), 3)
    edit(url, "update randomist_schema set version = 99")
    for refused in (
        lambda: rd.load_study("car", storage=url),
        lambda: rd.create_study("bus", rd.UCB1(GAUSSIANS), storage=url),
        lambda: open_storage(url).upgrade(),
    ):
        with pytest.raises(
            SchemaVersionError, match=f"version 99, this randomist knows up to {schema.VERSION}; install a newer"
        ):
            refused()
    edit(url, "update randomist_schema set version = 1")
    with pytest.raises(SchemaVersionError, match="run `randomist study upgrade"):
        rd.load_study("car", storage=url)
    edit(url, f"update randomist_schema set version = {schema.VERSION}")
    assert open_storage(url).upgrade() == (schema.VERSION, schema.VERSION)
    assert rd.load_study("car", storage=url).told == 3


STEP = """
import sqlalchemy as sa
from alembic import op
revision, down_revision = "{after}", "{before}"
def upgrade():
    {what}
"""


def test_all_steps_happen_or_none(url, monkeypatch, tmp_path):
    play(rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url), 3)
    shutil.copytree(migrations.SCRIPTS / "versions", tmp_path / "versions")
    monkeypatch.setattr(migrations, "SCRIPTS", tmp_path)
    now = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", now + 2)
    steps = ('op.add_column("randomist_studies", sa.Column("note", sa.Text))', "op.execute('update {} set {} = 1')")
    first, second = tmp_path / "versions/first.py", tmp_path / "versions/second.py"
    first.write_text(STEP.format(before=now, after=now + 1, what=steps[0]))
    wrong, right = (steps[1].format("randomist_studies", column) for column in ("nothing", "lease"))
    second.write_text(STEP.format(before=now + 1, after=now + 2, what=wrong))
    with pytest.raises(StorageError, match="nothing"):  # the second step fails: neither happens
        open_storage(url).upgrade()
    assert query(url, "select version from randomist_schema") == [(now,)]
    with pytest.raises(sa.exc.DBAPIError):
        query(url, "select note from randomist_studies")
    second.write_text(STEP.format(before=now + 1, after=now + 2, what=right))
    assert open_storage(url).upgrade() == (now, now + 2)
    assert query(url, "select note, lease from randomist_studies") == [(None, 1.0)]
    assert open_storage(url).upgrade() == (now + 2, now + 2)


def test_an_upgraded_database_has_the_tables_of_a_new_one(old_database):
    """Columns, types, keys and constraints, as Alembic compares them."""
    database = Database(old_database)
    assert database.upgrade() == (1, schema.VERSION)
    options = {"compare_type": True, "target_metadata": schema.metadata}
    assert database.read(lambda c: compare_metadata(MigrationContext.configure(c, opts=options), schema.metadata)) == []
    checks = database.read(lambda c: [x["name"] for x in sa.inspect(c).get_check_constraints("randomist_trials")])
    assert sorted(checks) == ["randomist_trials_closed", "randomist_trials_payoff", "randomist_trials_state"]
    database.close()


def test_searches_of_old_rows_are_renamed(old_database):
    def searches(column):
        rows = query(old_database, f"select study, number, {column} from randomist_trials where {column} is not null")
        return {(study, number): json.loads(text) for study, number, text in rows}

    before = searches("marks")
    open_storage(old_database).upgrade()
    begun = {at: search for at, search in before.items() if None not in search.values()}
    assert 0 < len(begun) < len(before)
    names = {"_scale_now": "scale"}
    assert searches("search") == {
        at: {names.get(name, name.lstrip("_")): value for name, value in search.items()} for at, search in begun.items()
    }


def test_many_upgrade_at_once(old_database):
    gate = threading.Barrier(4)

    def work(_):
        storage = open_storage(old_database)
        gate.wait()
        versions = storage.upgrade()
        storage.disconnect()
        return versions

    assert sorted(at_once(work, range(4))) == [(1, schema.VERSION), *[(schema.VERSION, schema.VERSION)] * 3]


KILLED = """
import os, signal, sys
from alembic.operations import Operations
from randomist.study.storages import open_storage
real, steps = Operations.add_column, []
def add_column(self, *arguments, **options):
    real(self, *arguments, **options)
    steps.append(1)
    if len(steps) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
Operations.add_column = add_column
import alembic.op
alembic.op.add_column = lambda *a, **o: add_column(alembic.op._proxy, *a, **o)
open_storage(sys.argv[1]).upgrade()
"""


def test_a_killed_upgrade_has_changed_nothing(old_database):
    killed = subprocess.run([sys.executable, "-c", KILLED, old_database], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert query(old_database, "select version from randomist_schema") == [(1,)]
    assert query(old_database, "select count(*) from randomist_trials where marks is not null")[0][0] > 0
    for column in ("context", "extra", "search"):
        with pytest.raises(sa.exc.DBAPIError):
            query(old_database, f"select {column} from randomist_trials")
    assert open_storage(old_database).upgrade() == (1, schema.VERSION)


def test_a_database_without_tables_or_with_two_versions(url):
    edit(url, "create table something (x integer)")
    with pytest.raises(SchemaVersionError, match="has no tables of randomist"):
        rd.load_study("car", storage=url)
    rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url)
    edit(url, "insert into randomist_schema values (7)")
    with pytest.raises(SchemaVersionError, match="must hold one version number"):
        rd.load_study("car", storage=url)


if __name__ == "__main__":
    make_golden(DATA / f"study-v{schema.VERSION}.db")
