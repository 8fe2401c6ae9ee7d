"""Sixteen processes on one study: nothing lost, nothing twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import sqlalchemy as sa

import randomist as rd
from randomist.study.storages.sql.database import Database
from tests.problems import payoff

WORKERS, TRIALS = 16, 25  # benchmarks/studies.py does 500 each
CODE = """
import os, sys
sys.path.insert(0, sys.argv[1])
from tests.study.helpers import *
rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sys.argv[2]).close()
children = []
for i in range(int(sys.argv[3])):
    pid = os.fork()
    if pid == 0:
        learner = rd.Randomist(GAUSSIANS, seed=0)
        study = rd.create_study("car", learner, storage=sys.argv[2], worker=f"w{i}", exist_ok=True)
        assert len(play(study, int(sys.argv[4]))) == int(sys.argv[4])
        os._exit(0)
    children.append(pid)
assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
"""


def test_sixteen_processes(url):
    arguments = [str(Path(__file__).parents[2]), url, str(WORKERS), str(TRIALS)]
    done = subprocess.run([sys.executable, "-c", CODE, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    study = rd.load_study("car", storage=url)
    trials = study.trials()
    assert study.counters[:3] == (WORKERS * TRIALS,) * 3
    assert [t.id for t in trials] == list(range(WORKERS * TRIALS))
    assert Counter(t.worker for t in trials) == {f"w{i}": TRIALS for i in range(WORKERS)}
    assert {t.state for t in trials} == {"told"}
    assert all(t.payoff == payoff(t) for t in trials)
    assert sorted(t.closing for t in trials) == list(range(1, WORKERS * TRIALS + 1))
    assert len({t.mediator for t in trials}) == WORKERS * TRIALS, "two workers drew the same numbers"
    order = sorted(trials, key=lambda t: t.closing)
    assert np.array_equal(study.learner.record.mediators, [t.mediator for t in order])


def test_a_read_sees_one_moment(url):
    """What others tell between two statements of a read is not in it, or counters and rows would disagree."""
    learner = rd.Randomist(rd.Finite(rd.Gaussian([0, 1], 1)), seed=0)
    study = rd.create_study("car", learner, storage=url)
    reader = Database(url)

    def rows(connection):
        return connection.execute(sa.text("SELECT count(*) FROM randomist_trials")).scalar()

    def twice(connection):
        before = rows(connection)
        study.tell(study.ask(), 0.5)
        return before, rows(connection)

    assert reader.read(twice) == (0, 0)
    assert reader.read(rows) == 1
    reader.close()
