"""Databases of version 0.1.0 are upgraded and go on without losing a trial (`tests/golden/record_saved.py`)."""

from __future__ import annotations

import json

import pytest

import randomist as rd
from randomist.errors import StudyDataError
from randomist.study.storages import open_storage
from randomist.study.storages.sql import schema
from tests import problems
from tests.golden.record import FOLDER, plain
from tests.golden.record_saved import STUDIES

LARGE = {"checkpointed", "checkpointed-auto"}  # not in the dump of PostgreSQL
CHANGED = {"realist"}  # which decides in another way since 0.2.0
UNREADABLE = {"auto", "checkpointed-auto"}  # whose searches an unreleased version wrote


def test_databases_are_upgraded_and_go_on(old_database):
    assert open_storage(old_database).upgrade() == (1, schema.VERSION)
    known = json.loads((FOLDER / "studies.json").read_text())
    names = rd.study.study_names(old_database)
    assert set(names) == set(STUDIES) - (set() if old_database.startswith("sqlite") else LARGE)
    for name in sorted(set(names) - UNREADABLE):
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
            if name not in CHANGED:
                assert [plain(t.decision) for t in following] == known[name]["next"]


def test_a_search_of_an_old_auto_is_refused_by_its_row(old_database):
    open_storage(old_database).upgrade()
    for name in UNREADABLE & set(rd.study.study_names(old_database)):
        with pytest.raises(StudyDataError, match="its search cannot be read"):
            rd.load_study(name, storage=old_database).ask()
