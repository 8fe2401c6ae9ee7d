"""A study that is loaded goes on as if it had never stopped, whatever the learner; and a long one loads in seconds."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import randomist as rd
from randomist import _json
from randomist.study import replay, replica
from randomist.study.storages.sql import schema
from tests.problems import CATEGORIES, GAUSSIANS, LINE, RECTANGLE, payoff
from tests.study.helpers import edit, make, play, query, same


def lived(study: rd.Study, step: int) -> list[rd.Trial]:
    """A stretch of life: late tells, failures, a batch, a trial that stays open."""
    trials = play(study, 7)
    late = study.ask(batch=4)
    study.tell(late[2], payoff(late[2]))
    study.fail(late[0].id, f"lost {step}")
    study.tell(late[3], payoff(late[3]))
    if step % 2:
        study.tell(late[1].id, payoff(late[1]))
    return [*trials, *late]


def state(study: rd.Study) -> dict[str, Any]:
    """All of the learner but its generators, which every ask sets anew."""
    return {name: value for name, value in study.learner.state().items() if name != "generators"}


def equal(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(equal(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, np.ndarray):
        return np.array_equal(ours, theirs)
    return bool(ours == theirs)


@pytest.mark.parametrize("name", rd.LEARNERS)
def test_loading_changes_nothing(name, sqlite):
    straight = rd.create_study("straight", make(name, seed=7), storage=sqlite)
    rd.create_study("broken", make(name, seed=7), storage=sqlite)
    for step in range(4):
        broken = rd.load_study("broken", storage=sqlite)
        assert same(lived(straight, step), lived(broken, step))
    assert equal(state(straight), state(broken))
    assert equal(state(straight), state(rd.load_study("broken", storage=sqlite)))


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize("name", ["randomist", "mcmc-randomist", "pgpe"])
def test_loading_changes_nothing_in_postgresql(name, postgres):
    test_loading_changes_nothing(name, postgres.database())


@pytest.mark.parametrize("name", rd.LEARNERS)
def test_a_checkpoint_changes_nothing(name, sqlite, monkeypatch):
    straight = rd.create_study("straight", make(name, seed=7), storage=sqlite)
    rd.create_study("broken", make(name, seed=7), storage=sqlite)
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    for step in range(4):
        broken = rd.load_study("broken", storage=sqlite)
        assert same(lived(straight, step), lived(broken, step))
    covered = broken.counters.checkpointed
    assert 9 <= covered < broken.counters.closed
    restored = []
    monkeypatch.setattr(
        replay, "_restored", lambda *a, real=replay._restored: restored.append(real(*a)) or restored[-1]
    )
    loaded = rd.load_study("broken", storage=sqlite)
    assert equal(state(straight), state(loaded))
    assert restored[0] is not None
    assert same(play(loaded, 5), play(straight, 5))
    # the last one asked was told before the checkpoint: a chain goes on from there all the same
    for study in (loaded, straight):
        study.storage.save(
            study.record.id, replay.checkpoint_of(study.record.learner, study.learner, study.counters.closed)
        )
    assert same(play(rd.load_study("broken", storage=sqlite), 5), play(straight, 5))


@pytest.mark.parametrize(
    "change",
    [
        "update randomist_checkpoints set caches = '{}'",
        "update randomist_checkpoints set caches = 'x'",
        "update randomist_checkpoints set caches = replace(caches, '\"eta\"', '\"etas\"')",
        "update randomist_checkpoints set closed = closed - 1",
        "update randomist_checkpoints set closed = 10000",
        "update randomist_checkpoints set closed = 'x'",
        "update randomist_checkpoints set digest = 'x'",
        "update randomist_checkpoints set version = '0.0.0'",
        "update randomist_trials set payoff = 0.125 where number = 3",  # a correction by hand: its trials changed
    ],
)
def test_a_checkpoint_that_does_not_fit_is_left_aside(change, sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=7), storage=sqlite)
    play(study, 30)
    assert edit(sqlite, change) == 1
    payoffs = [t.payoff for t in study.trials()]
    loaded = rd.load_study("car", storage=sqlite).learner
    twin = rd.Randomist(GAUSSIANS, seed=7)
    for trial, value in zip(study.trials(), payoffs, strict=True):
        twin.adopt(rd.Trial(trial.id, trial.decision, trial.mediator))
        twin.tell(trial.id, value)
    assert all(map(np.array_equal, loaded.estimates(), twin.estimates()))


@pytest.mark.parametrize(("name", "cache"), [("randomist", "eta"), ("prospector", "log_mixture"), ("pgpe", "mean")])
def test_numbers_of_a_checkpoint_that_were_edited_are_not_used(name, cache, sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    study = rd.create_study("car", make(name, seed=7), storage=sqlite)
    play(study, 30)
    saved = _json.loads(query(sqlite, "select caches from randomist_checkpoints")[0][0])
    saved["caches"][cache] += 0.125
    edit(sqlite, "update randomist_checkpoints set caches = :caches", caches=_json.dumps(saved))
    assert equal(state(study), state(rd.load_study("car", storage=sqlite)))


def test_a_checkpoint_outlives_a_release(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=7), storage=sqlite)
    play(study, 30)
    for module in (rd, replay):
        monkeypatch.setattr(module, "__version__", "99.0.0", raising=False)
    found = []
    monkeypatch.setattr(replay, "_restored", lambda *a, real=replay._restored: found.append(real(*a)) or found[-1])
    assert equal(state(study), state(rd.load_study("car", storage=sqlite)))
    assert found[0] is not None


SHARED = {"columns": {"plays": "<i8", "eras": "int", "recent": "<i8"}, "eta": "<f8"}
MIXTURE = {"log_mixture": "<f8"}
CENTRED = MIXTURE | {"mean": "<f8"}
CACHES = dict.fromkeys(("ftl", "optimist", "randomist", "realist", "identify", "safe"), SHARED)
CACHES |= dict.fromkeys(("mcmc-randomist", "grid-optimist", "prospector"), MIXTURE)
CACHES |= dict.fromkeys(("pgpe", "pois"), CENTRED)


@pytest.mark.parametrize("name", rd.LEARNERS)
def test_what_checkpoints_of_this_format_hold(name):
    """If this fails, checkpoints of earlier releases no longer fit: count `replay.CHECKPOINT` up."""

    def kinds(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: kinds(entry) for name, entry in value.items()}
        return value.dtype.str if isinstance(value, np.ndarray) else type(value).__name__

    learner = make(name, seed=7)
    play(learner, 20)
    assert replay.CHECKPOINT == "1.2"
    assert kinds(learner.state()["caches"]) == CACHES.get(name, {})


def test_clipped_and_running_ranges_survive(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 9)
    for name, settings in (("clip", {"out_of_range": "clip"}), ("running", {"payoff_range": "running"})):
        study = rd.create_study(name, rd.Randomist(GAUSSIANS, seed=1, **settings), storage=sqlite)
        twin = rd.create_study(f"{name}-twin", rd.Randomist(GAUSSIANS, seed=1, **settings), storage=sqlite)
        for i in range(25):
            for one in (study, twin):
                trial = one.ask()
                one.tell(trial, 40 * payoff(trial) - i)
            study = rd.load_study(name, storage=sqlite)
        assert study.learner.clipped == twin.learner.clipped
        assert (study.learner.clipped > 0) == (name == "clip")
        assert all(map(np.array_equal, study.estimates(), twin.estimates()))


def test_estimates_in_a_box(sqlite):
    study = rd.create_study("car", rd.PGPE(RECTANGLE, seed=1, batch=3), storage=sqlite)
    play(study, 20)
    points = [[0.0, 3.0], [0.5, 11.0]]
    ours, loaded = study.estimate(points), rd.load_study("car", storage=sqlite).estimate(points)
    assert all(map(np.array_equal, ours, loaded))
    with pytest.raises(rd.errors.SpaceError, match="searches a box"):
        study.estimates()


def fill(url: str, name: str, learner: rd.Learner, n: int, seed: int = 0) -> None:
    """A long study, written straight into its tables."""
    study = rd.create_study(name, learner, storage=url)
    rng = np.random.default_rng(seed)
    decisions = rng.integers(learner.space.size, size=n)
    mediators, payoffs = learner.space.family.sample(decisions, rng), rng.random(n)
    rows = [
        {"study": study.record.id, "number": i, "ticket": f"{i}/0", "worker": f"w{i % 5}", "state": "told", "basis": i,
         "decision": str(int(x)), "mediator": json.dumps(z), "asked_at": 1e9 + i, "lease_until": 2e9, "payoff": y,
         "closing": i + 1, "closed_at": 1e9 + i + 0.5}
        for i, (x, z, y) in enumerate(zip(decisions, mediators.tolist(), payoffs.tolist(), strict=True))
    ]  # fmt: skip

    def work(connection: sa.Connection, _: int) -> None:
        connection.execute(sa.insert(schema.trials), rows)
        mine = sa.update(schema.studies).where(schema.studies.c.id == study.record.id)
        connection.execute(mine.values(asked=n, closed=n, told=n))

    study.storage.database.write(work)


@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_study_loads_in_two_seconds(n, sqlite):
    space = rd.Finite.grid(rd.Gaussian(std=0.15), -1, 1, 20)
    fill(sqlite, "short", rd.Randomist(space, seed=0), 100)
    fill(sqlite, "long", rd.Randomist(space, seed=0), n)
    rd.load_study("short", storage=sqlite).ask()  # compiled
    started = time.process_time()
    replayed = rd.load_study("long", storage=sqlite).learner
    alone = time.process_time() - started
    first = rd.load_study("long", storage=sqlite).ask()  # and it leaves a checkpoint
    started = time.process_time()
    restored = rd.load_study("long", storage=sqlite)
    assert all(map(np.array_equal, restored.estimates(), replayed.estimates()))
    checkpointed = time.process_time() - started
    assert restored.counters.checkpointed == n
    assert (restored.ask().id, first.id) == (n + 1, n)
    print(f"{n} trials at K=20: {alone:.1f} s from the trials alone, {checkpointed:.1f} s with the checkpoint")
    assert alone < 2
    assert checkpointed < 2
    assert query(sqlite, "select length(caches) from randomist_checkpoints")[0][0] < 11 * n + 10_000  # not K times that


def test_the_streams_of_trials_are_fixed(sqlite):
    """What a released version drew, every later one draws."""
    drawn = {}
    for name, learner in (
        ("finite", rd.Randomist(GAUSSIANS, seed=11)),
        ("classes", rd.ThompsonSampling(CATEGORIES, seed=11)),
        ("box", rd.MCMCRandomist(LINE, seed=11, density="one-step")),
    ):
        study = rd.create_study(name, learner, storage=sqlite)
        play(study, 11)
        drawn[name] = study.ask()
    assert drawn["finite"] == rd.Trial(11, *FIXED["finite"])
    assert drawn["classes"] == rd.Trial(11, *FIXED["classes"])
    assert drawn["box"][1:3] == pytest.approx(FIXED["box"], rel=1e-12)


FIXED = {"finite": (4, 2.3967498185007203), "classes": (1, 3), "box": (0.3835389443000082, 0.2930514170751163)}
