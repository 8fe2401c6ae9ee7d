"""Databases of every released version open, newer ones are refused, older ones are upgraded when told to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa

import randomist as rd
from randomist.errors import SchemaVersionError
from randomist.study.storages.sql import schema
from randomist.study.storages.sql.database import Database
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.helpers import edit, play, query, same

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


def test_other_versions_are_refused_until_upgraded(url, monkeypatch):
    play(rd.create_study("car", rd.UCB1(GAUSSIANS), storage=url), 3)
    edit(url, "update randomist_schema set version = 99")
    with pytest.raises(SchemaVersionError, match="version 99, this randomist knows up to 1; install a newer one"):
        rd.load_study("car", storage=url)
    with pytest.raises(SchemaVersionError, match="99"):
        rd.create_study("bus", rd.UCB1(GAUSSIANS), storage=url)
    with pytest.raises(SchemaVersionError, match="99"):
        Database(url).upgrade()
    edit(url, "update randomist_schema set version = 1")

    monkeypatch.setattr(schema, "VERSION", 3)
    monkeypatch.setitem(
        schema.MIGRATIONS, 1, lambda c: c.execute(sa.text("alter table randomist_studies add column note text"))
    )
    monkeypatch.setitem(schema.MIGRATIONS, 2, lambda c: c.execute(sa.text("update randomist_studies set nothing = 1")))
    with pytest.raises(SchemaVersionError, match="run `randomist study upgrade"):
        rd.load_study("car", storage=url)
    with pytest.raises(rd.errors.StorageError, match="nothing"):  # the second step fails: neither happens
        Database(url).upgrade()
    assert query(url, "select version from randomist_schema") == [(1,)]
    with pytest.raises(sa.exc.DBAPIError):
        query(url, "select note from randomist_studies")
    monkeypatch.setitem(schema.MIGRATIONS, 2, lambda c: c.execute(sa.text("update randomist_studies set note = 'x'")))
    assert Database(url).upgrade() == (1, 3)
    assert query(url, "select note from randomist_studies") == [("x",)]
    assert rd.load_study("car", storage=url).told == 3
    assert Database(url).upgrade() == (3, 3)


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
