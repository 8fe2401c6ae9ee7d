"""Databases of version 0.1.0 are upgraded and go on without losing a trial (`tests/golden/record_saved.py`)."""

from __future__ import annotations

import json

import numpy as np

import randomist as rd
from randomist.study.storages import open_storage
from randomist.study.storages.sql import schema
from tests import problems
from tests.golden.record import FOLDER, plain
from tests.golden.record_saved import STUDIES

LARGE = {"checkpointed", "checkpointed-auto"}  # not in the dump of PostgreSQL
CHANGED = {"realist", "auto", "checkpointed-auto"}  # which decide in another way since 0.2.0


def test_databases_are_upgraded_and_go_on(old_database):
    assert open_storage(old_database).upgrade() == (1, schema.VERSION)
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
            if name not in CHANGED:
                assert [plain(t.decision) for t in following] == known[name]["next"]


def test_auto_of_an_old_database_stays_in_its_box_from_now_on(old_database):
    """0.1.0 played mediators outside of the box, at scales from 0.01 on; they stay as they are, and inform it."""
    open_storage(old_database).upgrade()
    for name in {"auto", "checkpointed-auto"} & set(rd.study.study_names(old_database)):
        _, space, told = STUDIES[name]
        study = rd.load_study(name, storage=old_database)
        low, high = study.space.corners
        old = study.trials()
        assert any((np.ravel(t.mediator) < low).any() or (np.ravel(t.mediator) > high).any() for t in old)
        assert min(t.decision[-1] for t in old) >= 0.01
        assert study.learner.told == told
        assert not study.learner.infeasible
        assert {t.feasible for t in old} == {True, None}
        study.tell(old[-1].id, feasible=False)  # asked by 0.1.0
        later = []
        for i in range(25):
            study = study if i % 5 else rd.load_study(name, storage=old_database)  # it resumes
            later.append(study.ask())
            problems.tell(study, later[-1], space)
        later += study.confirm(3)
        loaded = rd.load_study(name, storage=old_database)
        assert list(loaded.learner.infeasible) == [old[-1].id]
        assert loaded.learner.search.confirms == 3
        points = np.array([np.ravel(t.mediator) for t in later])
        assert ((low <= points) & (points <= high)).all()
        assert np.isfinite(loaded.estimate([loaded.recommend()]).value).all()
