"""Nothing that was acknowledged is lost, whoever is killed: a worker at any moment, or the database under load."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import randomist as rd
from tests.problems import GAUSSIANS, payoff
from tests.study.helpers import play, query, same

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("moments", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_a_worker_killed_at_random_moments(moments, url, tmp_path):
    driver = [sys.executable, "-m", "tests.study.kill_driver", url, str(moments), "17"]
    done = subprocess.run(driver, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    acknowledged = dict(map(tuple, said["acknowledged"]))
    assert len(acknowledged) == len(said["acknowledged"]), "a tell was acknowledged twice"
    assert len(said["rounds"]) == moments
    assert sum(n > 0 for n in said["rounds"]) > moments / 4, "most were killed before they did anything"

    study = rd.load_study("killed", storage=url)
    trials = study.trials()
    assert [t.id for t in trials] == list(range(study.counters.asked)), "no gap, no duplicate"
    told = {t.id: t.payoff for t in trials if t.state == "told"}
    assert acknowledged.items() <= told.items(), "an acknowledged tell is lost"
    assert all(value == payoff(trials[id_]) for id_, value in told.items())
    assert len(told) - len(acknowledged) <= moments  # told, and killed before it could say so
    assert [t.state for t in trials[:-1]] == ["told"] * (len(trials) - 1), "half-written, or skipped"
    orphans = query(url, "select count(*) from randomist_trials where closing is null and state != 'asked'")
    assert orphans == [(0,)]

    uninterrupted = rd.create_study(
        "straight", rd.Randomist(GAUSSIANS, seed=4), storage=f"sqlite:///{tmp_path}/twin.db"
    )
    for trial in study.pending():
        study.tell(trial, payoff(trial))
    play(study, 5)
    straight = play(uninterrupted, study.told)
    assert same([rd.Trial(t.id, t.decision, t.mediator) for t in study.trials()], straight)


def grows(collected, seconds=20):
    """Whether something more is collected, however busy the machine is."""
    before, end = len(collected), time.monotonic() + seconds
    while len(collected) == before and time.monotonic() < end:
        time.sleep(0.01)
    return len(collected) > before


@pytest.mark.xdist_group("postgresql")
def test_postgresql_killed_and_restarted_under_load(postgres):
    url = postgres.database()
    rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=url)
    acknowledged, errors = [], []
    stop = threading.Event()

    def worker(name):
        try:
            study = rd.load_study("car", storage=url, worker=name)
            while not stop.is_set():
                trial = study.ask()
                study.tell(trial, payoff(trial))
                acknowledged.append((trial.id, payoff(trial)))
        except BaseException as error:  # the test must know
            errors.append(error)
            raise

    threads = [threading.Thread(target=worker, args=(f"w{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    went_on = []
    for _ in range(3):
        went_on.append(grows(acknowledged))
        time.sleep(0.7)
        postgres.kill()
        time.sleep(0.3)
        postgres.start()
    went_on.append(grows(acknowledged))
    stop.set()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert went_on == [True] * 4, "before the first kill, and after each"
    study = rd.load_study("car", storage=url)
    told = {t.id: t.payoff for t in study.trials("told")}
    assert max(Counter(id_ for id_, _ in acknowledged).values()) == 1
    assert dict(acknowledged).items() <= told.items()
    assert len(told) == len(acknowledged), "each was told once, and said so"
    states = Counter(t.state for t in study.trials())
    assert states["told"] == study.counters.told
    assert states["failed"] == states["asked"] == 0  # an ask whose commit was in doubt was found again, not asked twice
    assert len({t.mediator for t in study.trials()}) == study.counters.asked
