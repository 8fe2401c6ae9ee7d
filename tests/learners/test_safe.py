"""Safe: what is played never earns much less than the baseline, and all else is the learner's inside."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from tests.learners.test_identify import FAR, apart
from tests.learners.test_intervals import NEAR, play

MEANS = np.array([0.3, 0.6, 0.35, 0.2])  # of FAR under `apart`
LOW, HIGH = -10.0, 30.0


def lowest_share(decisions, means, baseline):
    """The least that the expected total payoff was, in units of the baseline's."""
    return (np.cumsum(means[decisions]) / (means[baseline] * np.arange(1, len(decisions) + 1))).min()


@pytest.mark.parametrize("baseline", [1, 2])
def test_it_stays_above_where_the_plain_learner_does_not(baseline):
    """15 runs of 300 rounds; each may fail with a probability of 5%, so 4 and more have one below 0.6%."""
    below, plain = 0, 0
    for seed in range(15):
        safe = play(rd.Safe(rd.UCB1(FAR, seed=seed), baseline=baseline), 300, seed=seed, pays=apart)
        below += lowest_share(safe.record.decisions, MEANS, baseline) < 0.9 - 1e-12
        alone = play(rd.UCB1(FAR, seed=seed), 300, seed=seed, pays=apart)
        plain += lowest_share(alone.record.decisions, MEANS, baseline) < 0.9
    assert plain == 15
    assert below <= 3


def test_it_learns_all_the_same():
    safe = play(rd.Safe(rd.Realist(NEAR, seed=0), baseline=0, fraction=0.2), 800)
    assert np.mean(safe.record.decisions[-200:] == 3) > 0.8
    assert lowest_share(safe.record.decisions, np.array([0.38, 0.52, 0.61, 0.75]), 0) > 0.8


def test_the_floor_is_that_of_the_payoff_range():
    """The same choices whatever the units: totals are measured above the floor."""
    unit = play(rd.Safe(rd.UCB1(FAR, seed=1), baseline=2), 150, pays=apart)
    scaled = rd.Safe(rd.UCB1(FAR, seed=1, payoff_range=(LOW, HIGH)), baseline=2)
    play(scaled, 150, pays=apart, low=LOW, high=HIGH)
    assert np.array_equal(unit.record.decisions, scaled.record.decisions)


def test_pending_trials_count_as_the_floor():
    """Nothing is told, so nothing was earned: however many are asked ahead, all are the baseline."""
    safe = rd.Safe(rd.UCB1(FAR, seed=0), baseline=3)
    assert {trial.decision for trial in safe.ask(batch=200)} == {3}
    told = rd.Safe(rd.UCB1(FAR, seed=0), baseline=1)
    for trial in told.ask(batch=9):
        told.tell(trial, 1.0)
    ahead = [trial.decision for trial in told.ask(batch=20)]
    assert ahead[0] != 1  # nine plays of the baseline pay for one of another
    assert ahead.count(1) == 19


def test_failed_trials_of_others_count_as_the_floor():
    def first_other(fail):
        safe = rd.Safe(rd.UCB1(FAR, seed=0), baseline=1)
        others = []
        for i in range(200):
            trial = safe.ask()
            if trial.decision != 1:
                others.append(i)
                if fail:
                    safe.fail(trial, "burnt")
                    continue
            safe.tell(trial, 1.0)
        return others

    assert len(first_other(fail=True)) < len(first_other(fail=False))


def test_fraction_0_never_risks_and_1_never_minds():
    never = play(rd.Safe(rd.UCB1(FAR, seed=0), baseline=1, fraction=0.0), 100, pays=apart)
    assert set(never.record.decisions.tolist()) == {1}
    free = play(rd.Safe(rd.UCB1(FAR, seed=0), baseline=1, fraction=1.0), 100, pays=apart)
    plain = play(rd.UCB1(FAR, seed=0), 100, pays=apart)
    assert np.array_equal(free.record.decisions, plain.record.decisions)


# It is a learner: the contract suite runs on it too.


def test_made_of_a_learner_of_a_space_and_by_name():
    inside = {"perturbation_scale": 2.0, "seed": 3, "payoff_range": (0, 2)}
    made = [
        rd.Safe(rd.Randomist(NEAR, **inside), baseline=2, fraction=0.3),
        rd.Safe(learner=rd.Randomist(NEAR, **inside), baseline=2, fraction=0.3),
        rd.make(
            "safe", NEAR, learner="randomist", settings={"perturbation_scale": 2.0}, seed=3, payoff_range=(0, 2),
            baseline=2, fraction=0.3,
        ),
    ]  # fmt: skip
    for learner in made:
        play(learner, 60)
    assert all(np.array_equal(made[0].record.decisions, other.record.decisions) for other in made[1:])
    assert made[0].payoff_range == (0, 2)
    assert made[2].state()["settings"]["learner"] == "randomist"
    loaded = rd.load(made[0].state())
    assert isinstance(loaded, rd.Safe)
    assert loaded.inner.perturbation_scale == 2.0
    play(loaded, 90), play(made[0], 90)
    assert np.array_equal(loaded.record.decisions, made[0].record.decisions)


def test_in_a_study():
    study = rd.create_study("safe", rd.Safe(rd.UCB1(FAR, seed=0), baseline=1), storage="memory://safe")
    alone, rng = rd.Safe(rd.UCB1(FAR, seed=0), baseline=1), np.random.default_rng(0)
    for _ in range(50):
        trial = study.ask()
        study.tell(trial, float(rng.random() < apart(trial.mediator)))
    again = rd.load_study("safe", storage="memory://safe")
    assert again.learner_name == "Safe"
    assert lowest_share(again.learner.record.decisions, MEANS, 1) > 0.9 - 1e-12
    assert again.learner.inner.guard is not None
    assert all(map(np.array_equal, again.intervals(), study.intervals()))
    assert alone.ask().decision == 1


def test_likelihoods_and_proposals():
    space = rd.Finite.likelihoods(3)
    safe = rd.Safe(rd.UCB1(space, seed=0), baseline=2)
    for _ in range(30):
        proposal = safe.propose(1)
        assert safe.propose(1).trials == proposal.trials
        safe.commit(proposal)
        trial = proposal.trials[0]
        safe.tell(trial, 0.5, log_likelihoods=[0.0, 0.0, 0.0])
    assert safe.told == 30
    assert safe.record.decisions[:9].tolist() == [2] * 9


def test_decisions_come_and_go_and_the_guard_stays():
    safe = play(rd.Safe(rd.UCB1(FAR, seed=0), baseline=1), 30, pays=apart)
    added = safe.add(rd.Gaussian(mean=[80.0], std=1.0))
    assert safe.space.size == 5 == safe.inner.space.size
    assert safe.inner.guard is not None
    play(safe, 60, pays=apart)
    with pytest.raises(ParameterError, match="baseline"):
        safe.retire(1)
    safe.retire(added)
    assert not safe.active[added]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"baseline": 4}, "0..3"),
        ({"baseline": -1}, "0..3"),
        ({"baseline": 1.5}, "decision"),
        ({"fraction": -0.1}, "fraction"),
        ({"fraction": 1.1}, "fraction"),
        ({"level": 1.0}, "level"),
        ({"payoff_range": "running"}, "payoff_range"),
        ({"learner": "auto"}, "finite set"),
        ({"learner": "safe"}, "finite set"),
        ({"learner": "nobody"}, "unknown learner"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(ParameterError, match=words):
        rd.Safe(FAR, **settings)


def test_settings_that_belong_inside():
    with pytest.raises(ParameterError, match="given to it"):
        rd.Safe(rd.UCB1(FAR, seed=0), seed=5)
    with pytest.raises(ParameterError, match="given to it"):
        rd.Safe(rd.UCB1(FAR), settings={"confidence": 3.0})
    learner = rd.UCB1(FAR)
    rd.Safe(learner)
    with pytest.raises(ParameterError, match="guarded already"):
        rd.Safe(learner)
    with pytest.raises(ParameterError, match="keep_record"):
        rd.Safe(rd.Randomist(rd.Finite(rd.Categorical(np.eye(2))), keep_record=False))
