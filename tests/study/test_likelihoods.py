"""Studies of policies that act elsewhere: what was done comes with the payoff, by the policies' names."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist import _json
from randomist.errors import (
    ClosedTrialError,
    MediatorError,
    NoDataError,
    ParameterError,
    ShapeError,
    SpaceError,
    StudyDataError,
    UnknownTrialError,
)
from randomist.study import replica
from tests.problems import GAUSSIANS, RECTANGLE
from tests.study.helpers import at_once, edit, play, same

NAMES = ("old", "new", "bold")
ODDS = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])  # of three actions, under each policy
PAYS = np.array([0.2, 0.5, 0.8])  # what an action pays on average
FOURTH = np.array([0.05, 0.9, 0.05])  # the odds of a policy that comes later
SPACE = rd.Finite.likelihoods(3, names=NAMES)


def learner(cls=rd.Randomist, **settings):
    return cls(SPACE, **{"seed": 0} | settings)


def act(trial, odds=ODDS):
    """What the policy did: the likelihoods of it, and what that paid. The same for the same trial."""
    rng = np.random.default_rng([7, trial.id])
    action = int(rng.choice(3, p=odds[trial.decision]))
    return np.log(odds[:, action]), float(rng.random() < PAYS[action])


def live(study, rounds, odds=ODDS, names=NAMES):
    """Rounds of a study or a learner: the trials."""
    trials = []
    for _ in range(rounds):
        trials.append(study.ask())
        likelihoods, payoff = act(trials[-1], odds)
        named = likelihoods if isinstance(study, rd.Learner) else dict(zip(names, likelihoods, strict=True))
        study.tell(trials[-1], payoff, log_likelihoods=named)
    return trials


def state(one):
    found = one.state()
    return _json.dumps({name: value for name, value in found.items() if name != "generators"})


@pytest.mark.parametrize("cls", [rd.Randomist, rd.Optimist, rd.UCB1, rd.Realist])
def test_a_study_lives_through_what_its_learner_would(cls, place):
    study = rd.create_study("ads", learner(cls), storage=place)
    ours = live(study, 15)
    study.fail(study.ask(), "lost")
    loaded = rd.load_study("ads", storage=place)
    ours += live(loaded, 15)
    alone = learner(cls)
    for trial in loaded.trials():  # the same asks, told to a learner that nobody interrupted
        alone.adopt(rd.Trial(trial.id, trial.decision, None))
        if trial.state == "failed":
            alone.fail(trial.id, "lost")
        else:
            alone.tell(trial.id, trial.payoff, log_likelihoods=[trial.log_likelihoods[name] for name in NAMES])
    again = rd.load_study("ads", storage=place)
    assert state(again.learner) == state(loaded.learner) == state(alone)
    assert same(study.ask(ticket="next"), again.ask(ticket="next"))
    assert {trial.mediator for trial in ours} == {None}
    assert [trial.name for trial in ours] == [NAMES[trial.decision] for trial in ours]
    assert again.pending()[0].name == NAMES[again.pending()[0].decision]


def test_decisions_are_the_same_with_and_without_interruptions(sqlite, memory):
    one = rd.create_study("ads", learner(), storage=memory)
    steady = live(one, 40)
    rd.create_study("ads", learner(), storage=sqlite)
    broken = [trial for _ in range(8) for trial in live(rd.load_study("ads", storage=sqlite), 5)]
    assert same(steady, broken)


def test_likelihoods_are_told_by_name_or_in_order(place):
    study = rd.create_study("ads", learner(), storage=place)
    first, second, third = study.ask(3)
    study.tell(first, 0.5, log_likelihoods={"bold": -3.0, "old": -1.0, "new": -2.0})
    study.tell(second.id, 0.5, log_likelihoods=(-1.0, -2.0, -3.0))
    study.tell(third, 1.0, log_likelihoods=[-1.0, -1.0, -1.0] if third.decision == 2 else [-1.0, -1.0, -math.inf])
    told = study.trials("told")
    assert told[0].log_likelihoods == told[1].log_likelihoods == {"old": -1.0, "new": -2.0, "bold": -3.0}
    study.tell(first, 0.5, log_likelihoods={"old": -1.0, "new": -2.0, "bold": -3.0})  # the same again
    for payoff, last in ((0.5, -4.0), (0.75, -3.0)):
        with pytest.raises(ClosedTrialError):
            study.tell(first, payoff, log_likelihoods={"old": -1.0, "new": -2.0, "bold": last})
    assert rd.load_study("ads", storage=place).learner.told == 3


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        (None, MediatorError, "one per policy"),
        ({"old": -1, "new": -1}, MediatorError, "that of 'bold' is missing"),
        ({"old": -1, "new": -1, "bold": -1, "odd": -1}, MediatorError, "no policy 'odd'"),
        ({"old": -1, "new": "x", "bold": -1}, MediatorError, "must be numbers"),
        ({"old": math.nan, "new": math.nan, "bold": math.nan}, MediatorError, "numbers or -inf"),
        ({"old": math.inf, "new": 0, "bold": 0}, MediatorError, "numbers or -inf"),
        (dict.fromkeys(NAMES, -math.inf), MediatorError, "must be finite"),
        ([0.0, 0.0], ShapeError, r"\(3,\)"),
        ("abc", MediatorError, "numbers"),
        (7, ShapeError, r"\(3,\)"),
    ],
)
def test_what_cannot_be_is_refused_and_written_nowhere(given, error, said, place):
    study = rd.create_study("ads", learner(), storage=place)
    trial = study.ask()
    for ticket in (trial, trial.id):
        with pytest.raises(error, match=said):
            study.tell(ticket, 0.5, log_likelihoods=given)
    assert study.counters[:5] == (1, 0, 0, 0, 0)
    for payoff in (math.nan, 7.0, None, "x"):
        with pytest.raises(rd.errors.PayoffError):
            study.tell(trial, payoff, log_likelihoods=[0, 0, 0])
    with pytest.raises(ParameterError, match="infeasible"):
        study.tell(trial, feasible=False)
    with pytest.raises(UnknownTrialError):
        study.tell(9, 0.5, log_likelihoods=[0, 0, 0])
    with pytest.raises(UnknownTrialError):
        study.tell(trial._replace(decision=17), 0.5, log_likelihoods=[0, 0, 0])
    with pytest.raises(UnknownTrialError):
        study.tell(trial._replace(decision=(trial.decision + 1) % 3), 0.5, log_likelihoods=[0, 0, 0])
    with pytest.raises(UnknownTrialError):
        study.tell(trial._replace(mediator=1.5), 0.5, log_likelihoods=[0, 0, 0])
    study.tell(trial, 0.5, log_likelihoods=[0, 0, 0])
    assert study.counters[:5] == (1, 1, 1, 0, 0)


def test_where_the_family_knows_none_are_taken(sqlite):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=sqlite)
    with pytest.raises(ParameterError, match="the family knows them"):
        study.tell(study.ask(), 0.5, log_likelihoods=[0] * 5)
    with pytest.raises(ParameterError, match="the family knows them"):
        study.add(rd.Gaussian([1.4], [0.7]), log_likelihoods={})
    with pytest.raises(ParameterError, match="space of policies"):
        study.tell_episode(0, None)
    ads = rd.create_study("ads", learner(), storage=sqlite)
    with pytest.raises(ParameterError, match="act elsewhere"):
        ads.optimize(lambda x: 0.5, 3)


def test_workers_at_once(url):
    rd.create_study("ads", learner(), storage=url)
    trials = [t for one in at_once(lambda _: live(rd.load_study("ads", storage=url), 12), range(4)) for t in one]
    assert sorted(trial.id for trial in trials) == list(range(48))
    study = rd.load_study("ads", storage=url)
    assert study.told == 48
    assert state(rd.load_study("ads", storage=url).learner) == state(study.learner)


# Policies come and go.


def four(names=(*NAMES, "calm")):
    return np.vstack([ODDS, FOURTH]), names


def test_a_policy_from_scratch(place):
    study, other = rd.create_study("ads", learner(), storage=place), rd.load_study("ads", storage=place)
    live(study, 10)
    early = study.ask()
    assert other.add(name="calm") == 3
    assert study.names == (*NAMES, "calm")
    likelihoods, payoff = act(early)
    study.tell(early, payoff, log_likelihoods=dict(zip(NAMES, likelihoods, strict=True)))  # it did not know of it
    study.tell(early, payoff, log_likelihoods=dict(zip(NAMES, likelihoods, strict=True)))
    with pytest.raises(MediatorError, match="that of 'calm' is missing"):
        study.tell(study.ask(), 0.5, log_likelihoods=dict.fromkeys(NAMES, -1.0))
    later = live(study, 30, *four())
    assert 3 in {trial.decision for trial in later}
    assert {trial.name for trial in later} <= {*NAMES, "calm"}
    study.retire("old")
    assert 0 not in {trial.decision for trial in live(study, 10, *four())}
    for one in (study, other, rd.load_study("ads", storage=place)):
        assert state(one.learner) == state(study.learner)
    assert study.trials()[-1].log_likelihoods.keys() == {*NAMES, "calm"}


def test_a_policy_with_the_likelihoods_of_what_was_done(place):
    study = rd.create_study("ads", learner(), storage=place)
    trials = live(study, 12)
    actions = [int(np.argmax(np.isclose(np.log(ODDS), act(t)[0][:, None]).all(axis=0))) for t in trials]
    column = {trial.id: float(np.log(FOURTH[action])) for trial, action in zip(trials, actions, strict=True)}
    with pytest.raises(MediatorError, match="that of trial 11 is missing"):
        study.add(name="calm", log_likelihoods={i: column[i] for i in range(11)})
    with pytest.raises(MediatorError, match="one entry per trial told so far, 12, got 3"):
        study.add(name="calm", log_likelihoods=[0.0] * 3)
    for odd in ("x", 7):
        with pytest.raises(ParameterError, match="by trial id"):
            study.add(name="calm", log_likelihoods=odd)
    with pytest.raises(ParameterError, match="no member to add"):
        study.add(rd.Gaussian([0.0], [1.0]), "calm")
    assert study.counters.changes == 0
    early = study.ask()
    study.add(name="calm", log_likelihoods=column)
    with pytest.raises(MediatorError, match="that of 'calm' is missing"):  # it shares all, so it needs to be known
        study.tell(early, 0.5, log_likelihoods=dict.fromkeys(NAMES, -1.0))
    study.tell(early, 0.5, log_likelihoods=dict.fromkeys((*NAMES, "calm"), -1.0))
    alone = learner()
    for trial in study.trials()[:12]:
        alone.adopt(rd.Trial(trial.id, trial.decision, None))
        alone.tell(trial.id, trial.payoff, log_likelihoods=[trial.log_likelihoods[name] for name in NAMES])
    alone.adopt(rd.Trial(early.id, early.decision, None))
    alone.add(None, "calm", [column[i] for i in range(12)])
    alone.tell(early.id, 0.5, log_likelihoods=[-1.0] * 4)
    assert state(rd.load_study("ads", storage=place).learner) == state(alone)
    assert study.estimates().effective_samples[3] > 1


def test_a_policy_that_comes_while_others_tell(url):
    """Whoever was faster, no row has too few likelihoods, and what was acknowledged is there."""
    study = rd.create_study("ads", learner(), storage=url)
    live(study, 4)

    def work(number):
        mine, told = rd.load_study("ads", storage=url), 0
        for i in range(12):
            if number == 0 and i == 6:
                mine.add(name="calm")
            trial = mine.ask()
            odds, names = four() if "calm" in mine.names else (ODDS, NAMES)
            try:
                mine.tell(
                    trial, act(trial, odds)[1], log_likelihoods=dict(zip(names, act(trial, odds)[0], strict=True))
                )
            except MediatorError:  # it came between ask and tell
                mine.tell(trial, 0.5, log_likelihoods=dict.fromkeys(mine.names, -1.0))
            told += 1
        return told

    assert sum(at_once(work, range(4))) == 48
    loaded = rd.load_study("ads", storage=url)
    assert loaded.learner.told == loaded.told == 52
    assert loaded.learner.space.size == 4


def test_a_policy_before_anything_was_told(sqlite):
    study = rd.create_study("ads", learner(), storage=sqlite)
    study.add(name="calm")
    live(study, 8, *four())
    assert np.isfinite(rd.load_study("ads", storage=sqlite).estimates().value).all()
    assert not rd.load_study("ads", storage=sqlite).learner.state()["decisions"]["alone"].size


# The log.


def test_the_log_of_a_study(place):
    study = rd.create_study("ads", learner(payoff_range=(0, 1)), storage=place)
    with pytest.raises(NoDataError, match="nothing has been told"):
        study.log()
    trials = live(study, 60)
    study.fail(study.ask())
    study.ask()
    log = study.log()
    assert (len(log), log.adaptive, log.weights, log.candidates) == (60, True, "own", NAMES)
    assert log.loggers == {name: [t.name for t in trials].count(name) for name in {t.name for t in trials}}
    rows = log.arrays()
    told = study.trials("told")
    assert np.array_equal(rows.payoffs, [t.payoff for t in told])
    assert np.array_equal(rows.log_likelihoods, [[t.log_likelihoods[name] for name in NAMES] for t in told])
    assert np.array_equal(rows.log_own, [t.log_likelihoods[NAMES[t.decision]] for t in told])
    weights = np.exp(rows.log_likelihoods - rows.log_own[:, None])
    found = log.evaluate()
    assert found.mis == pytest.approx((weights * rows.payoffs[:, None]).mean(axis=0))
    assert (found.low <= ODDS @ PAYS).all()
    assert (found.high >= ODDS @ PAYS).all()
    for wrong in ({"weights": "balance"}, {"adaptive": False}):
        with pytest.raises(ParameterError, match="chosen by looking at payoffs"):
            study.log(**wrong)
    assert study.log(["new"]).candidates == ("new",)
    for wrong in (["nobody"], "new", []):
        with pytest.raises(ParameterError, match="polic"):
            study.log(wrong)


def test_the_log_knows_from_when_a_policy_was_there(sqlite):
    study = rd.create_study("ads", learner(), storage=sqlite)
    live(study, 20)
    early = study.ask()
    study.add(name="calm")
    study.tell(early, 1.0, log_likelihoods=dict.fromkeys(NAMES, -1.0))
    live(study, 40, *four())
    whole, late = study.log(), study.log(["new", "calm"])
    assert (whole.candidates, len(whole)) == (NAMES, 61)
    assert (late.candidates, len(late)) == (("new", "calm"), 40)
    assert whole.loggers["calm"] == late.loggers["calm"] > 0
    truth = np.array([ODDS[1] @ PAYS, FOURTH @ PAYS])
    found = late.evaluate(level=0.99)
    assert ((found.low <= truth) & (truth <= found.high)).all()


def test_the_log_of_a_policy_that_was_known_before(sqlite):
    study = rd.create_study("ads", learner(), storage=sqlite)
    trials = live(study, 5)
    study.add(name="calm", log_likelihoods={trial.id: -2.0 - trial.id for trial in trials})
    live(study, 5, *four())
    rows = study.log().arrays()
    assert rows.log_likelihoods[:5, 3].tolist() == [-2.0, -3.0, -4.0, -5.0, -6.0]
    assert len(rows.payoffs) == 10


def test_the_log_where_mediators_are_drawn(place):
    study = rd.create_study("car", rd.Randomist(GAUSSIANS, seed=0), storage=place)
    trials = play(study, 8)
    study.add(rd.Gaussian([1.4], [0.7]), name="wide")
    trials += play(study, 8)
    log = study.log()
    assert (log.candidates, len(log), log.adaptive) == (("0", "1", "2", "3", "4", "wide"), 16, True)
    rows, family = log.arrays(), study.space.family
    assert np.array_equal(rows.log_likelihoods.T, family.log_density(None, [t.mediator for t in trials]))
    box = rd.create_study("box", rd.PGPE(RECTANGLE, seed=0), storage=place)
    with pytest.raises(SpaceError, match="logs of finite sets only"):
        box.log()


@pytest.mark.parametrize("ends", ["running", (-math.inf, math.inf)])
def test_a_log_needs_a_range(ends, sqlite):
    study = rd.create_study("ads", learner(payoff_range=ends), storage=sqlite)
    live(study, 6)
    with pytest.raises(ParameterError, match=r"give log\(payoff_range="):
        study.log()
    assert study.log(payoff_range=(0, 2)).payoff_range == (0, 2)


def test_payoffs_that_were_clipped_are_so_in_the_log(sqlite):
    study = rd.create_study("ads", learner(payoff_range=(0, 1), out_of_range="clip"), storage=sqlite)
    study.tell(study.ask(), 3.0, log_likelihoods=[-1, -1, -1])
    assert study.log().arrays().payoffs.tolist() == [1.0]


# Policies over trajectories.


def walkers(weights="trajectory"):
    policy = rd.SoftmaxPolicy(rd.Linear(2, 3, discrete=True))
    pairs = [(policy, np.linspace(-k, k, 6)) for k in (0.0, 0.5, 1.0)]
    return rd.Finite.policies(pairs, weights=weights, horizon=4, average=True, names=NAMES)


def walk(trial, steps=3):
    rng = np.random.default_rng([3, trial.id])
    return rd.Episode(rng.normal(size=(steps, 2)), rng.integers(0, 3, steps), rng.random(steps))


@pytest.mark.parametrize("weights", ["trajectory", "per-decision"])
def test_episodes(weights, place):
    study = rd.create_study("walk", rd.Randomist(walkers(weights), seed=0), storage=place)
    alone = rd.Randomist(walkers(weights), seed=0)
    for i in range(12):
        study = study if i % 4 else rd.load_study("walk", storage=place)
        trial = study.ask()
        alone.adopt(rd.Trial(trial.id, trial.decision, None))
        alone.tell_episode(trial.id, walk(trial))
        study.tell_episode(trial if i % 2 else trial.id, walk(trial))
        study.tell_episode(trial, walk(trial))  # again changes nothing
    assert state(rd.load_study("walk", storage=place).learner) == state(alone)
    with pytest.raises(MediatorError, match="tell_episode"):
        study.tell(study.ask(), 0.5, log_likelihoods=[0, 0, 0])
    with pytest.raises(MediatorError, match="takes an Episode"):
        study.tell_episode(study.ask(), 0.5)
    with pytest.raises(ClosedTrialError):
        study.tell_episode(trial, walk(trial._replace(id=99)))
    with pytest.raises(ParameterError, match="cannot be added"):
        study.add(name="calm")
    log = study.log()
    assert (len(log), log.candidates) == (12, NAMES)
    assert study.trials("told")[0].log_likelihoods.keys() == set(NAMES)


# Rows that were edited.


@pytest.mark.parametrize("extra", [
    None, "", "x", "[]", "{}", '{"log_likelihoods":[0,0]}', '{"log_likelihoods":[0,0,0,0]}', '{"log_likelihoods":"x"}',
    '{"log_likelihoods":[null,null,null]}', '{"log_likelihoods":[NaN,NaN,NaN]}', '{"log_likelihoods":[1e999,0,0]}',
    '{"log_likelihoods":["0",0,0]}', '{"log_likelihoods":[true,0,0]}', '{"feasible":false}', "[" * 3000,
])  # fmt: skip
def test_likelihoods_that_were_edited(extra, sqlite):
    live(rd.create_study("ads", learner(), storage=sqlite), 6)
    edit(sqlite, "update randomist_trials set extra = :extra where number = 3", extra=extra)
    with pytest.raises(StudyDataError, match="trial 3 of study 'ads'"):
        rd.load_study("ads", storage=sqlite).ask()


@pytest.mark.parametrize("change", ["mediator = '1.5'", "mediator = ''", "decision = '7'"])
def test_an_ask_that_was_edited(change, sqlite):
    live(rd.create_study("ads", learner(), storage=sqlite), 6)
    edit(sqlite, f"update randomist_trials set {change} where number = 3")
    with pytest.raises(StudyDataError, match="trial 3 of study 'ads'"):
        rd.load_study("ads", storage=sqlite).ask()


@pytest.mark.parametrize(
    "data",
    [
        "x",
        "{}",
        '{"member":null,"name":"calm"}',
        '{"member":null,"name":"old","alone":true,"log_likelihoods":null}',
        '{"member":null,"name":"calm","alone":false,"log_likelihoods":{"ids":[],"values":[]}}',
    ],
)
def test_a_new_policy_that_was_edited(data, sqlite):
    study = rd.create_study("ads", learner(), storage=sqlite)
    live(study, 6)
    study.add(name="calm")
    live(study, 3, *four())
    edit(sqlite, "update randomist_changes set data = :data", data=data)
    with pytest.raises(StudyDataError, match="change 1 of study 'ads'"):
        rd.load_study("ads", storage=sqlite).ask()


def test_no_checkpoint_is_needed(sqlite, monkeypatch):
    monkeypatch.setattr(replica, "CHECKPOINT", 5)
    live(rd.create_study("ads", learner(), storage=sqlite), 20)
    assert rd.load_study("ads", storage=sqlite).counters.checkpointed == 0
