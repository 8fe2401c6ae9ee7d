"""Identify: the right answer, soon; and runs, studies and commands that end when they are sure."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError, SpaceError
from tests.learners.test_intervals import NEAR, play

FAR = rd.Finite(rd.Gaussian([0.0, 20.0, 40.0, 60.0], 1.0))
MEANS = np.array([0.3, 0.6, 0.35, 0.2])


def apart(z):
    return MEANS[np.clip(np.round(np.asarray(z) / 20.0), 0, 3).astype(int)]


def until_finished(learner, seed, pays, most=20_000):
    rng = np.random.default_rng([seed, 8])
    while not learner.finished and learner.told < most:
        for _ in range(10):
            trial = learner.ask()
            learner.tell(trial, float(rng.random() < pays(trial.mediator)))
    return learner.told


def in_turn(means, seed):
    """Rounds until one survives, all played in turn, where no sample informs another decision."""
    K, rng = len(means), np.random.default_rng([seed, 9])
    learner = rd.UCB1(rd.Finite(rd.Categorical(np.eye(K))))
    while len(learner.surviving()) > 1:
        more = K * max(1, learner.told // 100 // K)
        trials = [rd.Trial(learner.told + i, i % K, i % K) for i in range(more)]
        for trial in trials:
            learner.adopt(trial)
        learner.tell_all(trials, (rng.random(more) < np.resize(means, more)).astype(float).tolist())
    return learner.told


def test_the_answer_is_right_and_takes_less_than_playing_all_in_turn():
    """8 runs of each: more than 2 wrong ones have a probability below 0.6%. The benchmark has 200 of six problems."""
    near_means = np.array([0.38, 0.52, 0.61, 0.75])  # about those of NEAR
    for space, pays, best, share, means in (
        (NEAR, lambda z: 1 / (1 + np.exp(-z)), 3, 1 / 3, near_means),
        (FAR, apart, 1, 1.0, MEANS),
    ):
        learners = [rd.Identify(space, seed=seed) for seed in range(8)]
        rounds = [until_finished(learner, seed, pays) for seed, learner in enumerate(learners)]
        assert sum(learner.recommend() != best for learner in learners) <= 2
        assert np.mean(rounds) < share * np.mean([in_turn(means, seed) for seed in range(3)])


def test_finished_means_that_one_survives():
    learner = rd.Identify(NEAR, seed=0, level=0.9)
    assert not learner.finished
    until_finished(learner, 0, lambda z: 1 / (1 + np.exp(-z)))
    assert learner.surviving(0.9).tolist() == [learner.recommend()]
    assert rd.load(learner.state()).finished


def test_retired_decisions_are_not_played():
    learner = play(rd.Identify(NEAR, seed=0), 20)
    learner.retire(3)
    played = learner.record.decisions.size
    play(learner, 80, seed=2)
    assert 3 not in learner.record.decisions[played:]


@pytest.mark.parametrize("level", [0, 1, "sure"])
def test_a_level_that_is_none(level):
    with pytest.raises(ParameterError, match="level"):
        rd.Identify(NEAR, level=level)


# Runs that end when they are sure.


def test_optimize_until_sure():
    task = rd.task("illustrative", sigma=2, lambda_=2)
    for learner in (rd.Identify, rd.Realist, "thompson"):
        run = rd.optimize(task, learner, rounds=300, seed=0, until="sure", level=0.5)
        assert run.surviving is not None
        assert len(run.payoffs) <= 300
        if len(run.payoffs) < 300:
            assert run.surviving == (run.recommendation,)
    assert rd.optimize(task, rd.Realist, rounds=20, seed=0).surviving is None
    kept = rd.optimize(task, rd.Identify, rounds=30, until="sure", level=0.8, seed=1)
    assert len(kept.payoffs) == 30
    assert len(kept.surviving or ()) > 1


def test_optimize_passes_the_level_on():
    """`Identify` has a level of its own, which is the run's."""
    with pytest.raises(ParameterError, match="level"):
        rd.optimize(rd.task("illustrative"), rd.Identify, rounds=5, level=1.5)
    run = rd.optimize(rd.task("illustrative"), rd.Identify, rounds=5, level=0.7)
    assert len(run.payoffs) == 5


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"until": "bored"}, "until"),
        ({"until": "sure", "level": 2.0}, "level"),
        ({"level": 0.9}, "until"),
        ({"until": "sure", "payoff_range": "running"}, "running"),
    ],
)
def test_optimize_until_something_else(settings, words):
    with pytest.raises(ParameterError, match=words):
        rd.optimize(rd.task("illustrative"), rd.Randomist, rounds=5, **settings)


def test_a_box_is_never_sure():
    with pytest.raises(ParameterError, match="finite sets"):
        rd.optimize(rd.task("mountain-car"), rd.MCMCRandomist, rounds=2, until="sure")


# Studies and commands.


def test_studies_say_how_sure_they_are():
    study = rd.create_study("sure", rd.Identify(NEAR, seed=0), storage="memory://sure")
    rng = np.random.default_rng(0)
    assert study.surviving().tolist() == [0, 1, 2, 3]
    assert study.rounds_left() == math.inf
    for _ in range(40):
        trial = study.ask()
        study.tell(trial, float(rng.random() < 1 / (1 + np.exp(-trial.mediator))))
    assert all(map(np.array_equal, study.intervals(0.9), study.learner.intervals(0.9)))
    box = rd.create_study("box", rd.MCMCRandomist(rd.Box(rd.Gaussian(std=0.3), -1, 1)), storage="memory://sure")
    for call in (box.intervals, box.surviving, box.rounds_left):
        with pytest.raises(SpaceError, match="finite"):
            call()


def test_commands_say_how_sure_they_are(tmp_path):
    from typer.testing import CliRunner

    import randomist.cli
    from randomist.cli.app import app

    assert randomist.cli.main

    def call(*words):
        result = CliRunner().invoke(app, [*map(str, words)])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout.strip().splitlines()[-1])

    url = f"sqlite:///{tmp_path}/studies.db"
    space = {"kind": "Finite", "family": {"kind": "Gaussian", "mean": [0, 30], "std": 1}}
    call("study", "create", "two", "--learner", "identify", "--space", json.dumps(space), "--storage", url)
    with rd.load_study("two", storage=url) as study:
        for _ in range(60):
            trial = study.ask()
            study.tell(trial, float(trial.decision))
    assert call("study", "ask", "two", "--until", "sure", "--storage", url) == {"sure": True, "recommendation": 1}
    shown = call("study", "show", "two", "--level", "0.9", "--storage", url)
    assert shown["surviving"] == [1]
    assert shown["rounds_left"] == 0
    assert shown["intervals"]["low"][1] > shown["intervals"]["high"][0]
    run = call("run", "illustrative", "--learner", "identify", "--rounds", 40, "--until", "sure", "--json")
    assert run["rounds_played"] == [40]
    assert len(run["surviving"][0]) > 1
