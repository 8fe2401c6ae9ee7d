"""Databases of version 0.1.0 are upgraded and go on without losing a trial (`tests/golden/record_saved.py`)."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

import randomist as rd
from randomist.study.storages.sql.database import Database
from tests import problems
from tests.golden.record import FOLDER, plain
from tests.golden.record_saved import STUDIES

LARGE = {"checkpointed", "checkpointed-auto"}  # not in the dump of PostgreSQL


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql"))])
def old_database(request, tmp_path):
    """A database that version 0.1.0 left behind."""
    if request.param == "sqlite":
        shutil.copy(FOLDER / "studies-0.1.0.db", tmp_path / "study.db")
        return f"sqlite:///{tmp_path}/study.db"
    if shutil.which("psql") is None:
        pytest.skip("needs psql")
    url = request.getfixturevalue("postgres").database()
    script = (FOLDER / "studies-0.1.0.sql").read_text()
    subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", url], input=script, text=True, check=True, timeout=60)
    return url


def test_databases_are_upgraded_and_go_on(old_database):
    Database(old_database).upgrade()
    known = json.loads((FOLDER / "studies.json").read_text())
    names = rd.study.study_names(old_database)
    assert set(names) == set(STUDIES) - (set() if old_database.startswith("sqlite") else LARGE)
    for name in names:
        _, space, told = STUDIES[name]
        with rd.load_study(name, storage=old_database) as study:
            trials = study.trials()
            assert [t.state for t in trials] == ["told"] * told + ["failed", "stale"]
            assert trials[told].reason == "a failure"
            assert [plain(t.decision) for t in trials][-50:] == known[name]["decisions"]
            following = [study.ask()]
            for _ in range(20):
                problems.tell(study, following[-1], space)
                following.append(study.ask())
            assert [plain(t.decision) for t in following] == known[name]["next"]
