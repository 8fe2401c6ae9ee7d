"""Decisions that come and go while a learner runs, their names, and what is known of them before."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import randomist as rd
from tests import problems
from tests.histories.helpers import assert_same_bits
from tests.problems import GAUSSIANS, LIKELIHOODS, payoff

SIXTH = rd.Gaussian([1.4], [0.7])
SIX = rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3, 1.4], [2, 2, 2, 0.1, 2, 0.7]))
LEARNERS = {
    "randomist": rd.Randomist,
    "realist": rd.Realist,
    "optimist computed": partial(rd.Optimist, divergence="mixture", bias_correction="computed"),
    "empirical": partial(rd.FollowTheLeader, estimator="self-normalised", divergence="empirical"),
    "window": partial(rd.Randomist, window=300),
    "window, forgetful": partial(rd.Randomist, window=300, keep_record=False),
    "discount": partial(rd.Randomist, discount=0.99),
    "refresh": partial(rd.Randomist, refresh=1.2, refresh_from=100),
    "prior": partial(rd.Randomist, prior=([0.1, 0.2, 0.3, 0.4, 0.5], 2)),
    "ucb1": rd.UCB1,
    "thompson": rd.ThompsonSampling,
    "gp-ucb": partial(rd.GPUCB, length_scale=1.0),
}


def answered(learner, rounds):
    trials = []
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, payoff(trial))
        trials.append(trial)
    return trials


@pytest.mark.parametrize("name", LEARNERS)
def test_a_sixth_is_estimated_as_if_it_had_always_been_there(name):
    learner = LEARNERS[name](GAUSSIANS, seed=0)
    trials = answered(learner, 1000)
    assert learner.add(SIXTH) == 5
    assert learner.space.size == 6
    assert GAUSSIANS.size == 5  # the user's own is as it was
    settings = {
        "prior": {"prior": ([0.1, 0.2, 0.3, 0.4, 0.5, 0.0], [2, 2, 2, 2, 2, 0])},
        "refresh": {"refresh": None},  # estimates are computed anew with the sixth
    }
    six = LEARNERS[name](SIX, seed=0, **settings.get(name, {}))
    for trial in trials:
        six.adopt(trial)
        six.tell(trial.id, payoff(trial))
    for entry, ours, theirs in zip(learner.estimates()._fields, learner.estimates(), six.estimates(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, err_msg=entry)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_load_goes_on_with_them(name):
    straight = LEARNERS[name](GAUSSIANS, seed=1)
    answered(straight, 40)
    straight.add(SIXTH, name="wide")
    straight.add(rd.Gaussian([-1.0], [0.3]))
    straight.retire(3)
    late = straight.ask(batch=2)
    loaded = rd.load(straight.state())
    assert_same_bits(straight.state(), loaded.state())
    assert loaded.names == ("0", "1", "2", "3", "4", "wide", "6")
    for learner in (straight, loaded):
        learner.tell(late[1].id, 0.25)
    assert_same_bits(answered(straight, 80), answered(loaded, 80))
    assert_same_bits(straight.state(), loaded.state())


@pytest.mark.parametrize("name", ["randomist", "ucb1", "realist"])
def test_a_retired_decision_is_neither_played_nor_recommended(name):
    learner = LEARNERS[name](GAUSSIANS, seed=2)
    answered(learner, 60)
    best = learner.recommend()
    asked = [trial for trial in learner.ask(batch=10) if trial.decision == best]
    learner.retire(best)
    assert learner.recommend() != best
    assert not learner.active[best]
    assert best not in {trial.decision for trial in answered(learner, 100)}
    before = learner.estimates().plays[best]
    for trial in asked:
        learner.tell(trial, 1.0)  # late, and still a sample
    assert learner.estimates().plays[best] == before + len(asked)
    assert learner.recommend() != best


def test_retired_decisions_are_left_out_of_the_opening():
    learner = rd.UCB1(GAUSSIANS, seed=0)
    learner.retire(2)
    assert [learner.ask().decision for _ in range(4)] == [0, 1, 3, 4]


def test_a_newcomer_that_no_other_informs_is_played_at_once():
    learner = rd.Randomist(rd.Finite(rd.Uniform([0.0, 0.5], [1.0, 1.5])), seed=0)
    answered(learner, 30)
    new = learner.add(rd.Uniform([7.0], [8.0]))
    assert learner.ask().decision == new


def test_the_bandits_play_a_newcomer_at_once():
    learner = rd.UCB1(GAUSSIANS, seed=0)
    answered(learner, 30)
    assert learner.ask(batch=2)[0].decision == learner.add(SIXTH) or learner.ask().decision == 5


def test_members_of_other_kinds():
    """A Categorical beside a Dirac: samples that were counted are stored from then on."""
    learner = rd.Randomist(problems.CATEGORIES, seed=0)
    trials = answered(learner, 50)
    pending = learner.ask()
    learner.add(rd.Dirac(2.0))
    both = rd.Randomist(rd.Finite([problems.CATEGORIES.family, rd.Dirac(2.0)]), seed=0)
    for trial in trials:
        both.adopt(trial)
        both.tell(trial.id, payoff(trial))
    np.testing.assert_allclose(learner.estimates().value, both.estimates().value, rtol=1e-12)
    learner.tell(pending, 0.5)
    answered(learner, 20)


# Likelihoods.


def told_likelihoods(learner, rounds, policies=4):
    """Actions of policies over eight categories; each learner is told of as many policies as it has."""
    rng = np.random.default_rng(5)
    table = np.log(rng.dirichlet(np.ones(8), size=policies))
    drawn = []
    for _ in range(rounds):
        trial = learner.ask()
        action = rng.choice(8, p=np.exp(table[trial.decision]))
        learner.tell(trial, action / 7, log_likelihoods=table[: learner.space.size, action])
        drawn.append(action)
    return table, np.array(drawn)


def test_a_policy_with_likelihoods_of_the_past():
    learner = rd.Randomist(LIKELIHOODS, seed=0)
    table, actions = told_likelihoods(learner, 60, policies=5)
    assert learner.add(name="new", log_likelihoods=table[4, actions]) == 4
    other = rd.Randomist(rd.Finite.likelihoods(5), seed=0)
    for decision, action in zip(learner.record.decisions.tolist(), actions.tolist(), strict=True):
        trial = rd.Trial(other.told, decision, None)
        other.adopt(trial)
        other.tell(trial, action / 7, log_likelihoods=table[:, action])
    assert_same_bits(tuple(learner.estimates()), tuple(other.estimates()))
    learner.tell(learner.ask(), 0.5, log_likelihoods=np.log(np.full(5, 0.2)))


@pytest.mark.parametrize("make", [rd.Randomist, rd.UCB1])
def test_a_policy_from_scratch_shares_nothing(make):
    learner = make(LIKELIHOODS, seed=0)
    told_likelihoods(learner, 60, policies=5)
    before = learner.estimates()
    new = learner.add()
    assert learner.estimates().effective_samples[new] == 0
    np.testing.assert_allclose(learner.estimates().value[:4], before.value, rtol=1e-12)
    trial = learner.ask()
    assert trial.decision == new  # nothing is known of it
    learner.tell(trial, 0.75, log_likelihoods=np.log(np.full(5, 0.2)))
    estimates = learner.estimates()
    assert estimates.effective_samples[new] == pytest.approx(1)
    if make is rd.Randomist:
        assert estimates.coverage[new] == pytest.approx(min(1, estimates.threshold[new] / learner.told))
        loaded = rd.load(learner.state())
        assert_same_bits(loaded.state(), learner.state())


def test_estimates_stay_unbiased_beside_a_policy_from_scratch():
    """Means over 400 runs lie within 4 standard errors of the truth: a false alarm in 3 of 10,000 seeds."""
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(6), size=4)
    payoffs = np.linspace(0, 1, 6)
    found = []
    for _ in range(400):
        learner = rd.FollowTheLeader(rd.Finite.likelihoods(3), estimator="paper", confidence=1.0001)
        for number, decision in enumerate([0] * 10 + [1] * 10 + [2] * 10 + [3] * 10 + [0] * 10):
            if number == 30:
                learner.add()
            trial = rd.Trial(number, decision, None)
            learner.adopt(trial)
            action = rng.choice(6, p=table[decision])
            learner.tell(trial, payoffs[action], log_likelihoods=np.log(table[: learner.space.size, action]))
        parts = list(learner.history.columns.parts())
        found.append(sum((part.weights * part.payoffs).sum(axis=1) for part in parts))  # without truncation
    found = np.array(found)
    error = found.std(axis=0) / math.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - table @ payoffs) < 4 * error).all()


def test_known_divergences_of_a_newcomer_count_as_infinite():
    learner = rd.Randomist(problems.LIKELIHOODS_KNOWN, seed=0)
    told_likelihoods(learner, 30)
    learner.add(log_likelihoods=np.zeros(30))
    assert learner.estimates().effective_samples[4] == 0
    np.testing.assert_array_equal(learner.space.family.log_divergences[:4, :4], problems.DIVERGENCES)


# What is refused, before anything has changed.


BAD_MEMBERS = {
    "another shape": (GAUSSIANS, {"member": rd.Gaussian([[0.0, 1.0]], 1.0)}, rd.errors.ShapeError),
    "two members": (GAUSSIANS, {"member": rd.Gaussian([0.0, 1.0], 1.0)}, rd.errors.ParameterError),
    "none": (GAUSSIANS, {}, rd.errors.ParameterError),
    "no family": (GAUSSIANS, {"member": 3.0}, rd.errors.ParameterError),
    "without a mean": (GAUSSIANS, {"member": rd.Gaussian(std=1.0)}, rd.errors.ParameterError),
    "likelihoods of a family": (GAUSSIANS, {"member": SIXTH, "log_likelihoods": [0.0]}, rd.errors.ParameterError),
    "a name twice": (GAUSSIANS, {"member": SIXTH, "name": "2"}, rd.errors.ParameterError),
    "a name that is none": (GAUSSIANS, {"member": SIXTH, "name": 7}, rd.errors.ParameterError),
    "loggers": (problems.LOGGED, {"member": SIXTH}, rd.errors.ParameterError),
    "a member of likelihoods": (LIKELIHOODS, {"member": SIXTH}, rd.errors.ParameterError),
    "too few likelihoods": (LIKELIHOODS, {"log_likelihoods": [0.0]}, rd.errors.ShapeError),
    "no likelihoods": (LIKELIHOODS, {"log_likelihoods": "none"}, rd.errors.MediatorError),
    "NaN": (LIKELIHOODS, {"log_likelihoods": [math.nan] * 12}, rd.errors.MediatorError),
    "policies": (problems.POLICIES, {"member": problems.POLICY_LIST[0]}, rd.errors.ParameterError),
}


@pytest.mark.parametrize("case", BAD_MEMBERS)
def test_bad_members(case):
    space, arguments, error = BAD_MEMBERS[case]
    name = next(key for key, value in problems.FINITE.items() if value is space)
    learner = rd.Randomist(space, seed=0, **problems.settings(name))
    for _ in range(12):
        problems.tell(learner, learner.ask(), name)
    before = learner.state()
    with pytest.raises(error):
        learner.add(**arguments)
    assert_same_bits(learner.state(), before)
    assert learner.space is space


def test_what_was_forgotten_cannot_be_weighed_anew():
    learner = rd.Randomist(problems.CATEGORIES, keep_record=False)
    learner.tell(learner.ask(), 0.5)
    with pytest.raises(rd.errors.ParameterError, match="keep_record"):
        learner.add(rd.Categorical([[0.25] * 4]))


def test_features_that_were_given_have_no_row_for_a_newcomer():
    learner = rd.GPUCB(GAUSSIANS, features=np.arange(5.0)[:, None])
    learner.tell(learner.ask(), 0.5)
    before = learner.state()
    with pytest.raises(rd.errors.ShapeError):
        learner.add(SIXTH)
    assert_same_bits(learner.state(), before)


@pytest.mark.parametrize("decision", [-1, 5, 1.0, True, "0", None])
def test_retire_takes_a_decision(decision):
    learner = rd.Randomist(GAUSSIANS)
    with pytest.raises(rd.errors.ParameterError):
        learner.retire(decision)


def test_one_decision_must_stay():
    learner = rd.Randomist(GAUSSIANS)
    for decision in (0, 1, 2, 4):
        learner.retire(decision)
    with pytest.raises(rd.errors.ParameterError, match="before"):
        learner.retire(1)
    with pytest.raises(rd.errors.ParameterError, match="last"):
        learner.retire(3)
    assert {trial.decision for trial in answered(learner, 10)} == {3}


# Names.


def test_names():
    called = ["a", "b", "c", "d", "e"]
    space = rd.Finite(GAUSSIANS.family, names=called)
    learner = rd.Randomist(space)
    assert learner.names == tuple(called)
    assert rd.load(learner.state()).names == tuple(called)
    learner.add(SIXTH)
    assert learner.names[5] == "5"
    assert rd.Finite.likelihoods(2, names=["old", "new"]).names == ("old", "new")
    assert rd.Finite.grid(rd.Gaussian(std=0.1), 0, 1, 2, names=["low", "high"]).names == ("low", "high")
    assert rd.Finite.policies(problems.POLICY_LIST, names=list("wxyz")).names == ("w", "x", "y", "z")
    assert rd.UCB1(GAUSSIANS).names == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("names", [["a"] * 5, ["a", "b"], "abcde", [1, 2, 3, 4, 5], 5, {"a": 1}], ids=str)
def test_bad_names(names):
    with pytest.raises((rd.errors.ParameterError, rd.errors.ShapeError)):
        rd.Finite(GAUSSIANS.family, names=names)


# What is known before.


def test_a_prior_is_samples_of_each_decision():
    values, plays = np.array([2.0, 3.0, 1.0, 4.0, 2.5]), np.array([0.0, 5.0, 1.0, 0.5, 100.0])
    plain = rd.Optimist(GAUSSIANS, payoff_range=(0, 8), seed=0)
    learner = rd.Optimist(GAUSSIANS, payoff_range=(0, 8), seed=0, prior=(values, plays))
    for trial in answered(plain, 50):
        learner.adopt(trial)
        learner.tell(trial.id, payoff(trial))
    before, after = plain.estimates(), learner.estimates()
    eta = before.effective_samples + plays
    np.testing.assert_allclose(after.effective_samples, eta, rtol=1e-12)
    np.testing.assert_allclose(
        after.value, (before.effective_samples * before.value + plays * values) / eta, rtol=1e-12
    )
    np.testing.assert_allclose(after.log_effective_samples, np.log(eta), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(after.width, 8 * np.sqrt(2 * np.log(50 + plays.sum() + 1) / eta), rtol=1e-12)


def test_a_good_prior_needs_no_opening_and_a_wrong_one_is_outvoted():
    space = rd.Finite(rd.Uniform([0.0, 2.0, 4.0], [1.0, 3.0, 5.0]))
    learner = rd.Randomist(space, prior=([0.9, 0.1, 0.1], 20), seed=0)
    assert learner.ask().decision == 0
    plays = np.zeros(3)
    for _ in range(3000):
        trial = learner.ask()
        learner.tell(trial, [0.2, 0.5, 0.8][trial.decision])
        plays[trial.decision] += 1
    assert learner.recommend() == 2
    assert plays[2] > 2000


@pytest.mark.parametrize("payoff_range", [(0, 1), (-math.inf, math.inf), "running"])
def test_one_unlucky_payoff_does_not_outvote_a_prior(payoff_range):
    """Realist weighs what the payoffs say by effective samples: a prior of 3,000 plays must not lend its weight to one
    payoff. Against told samples of the same number and mean."""
    space = rd.Finite(rd.Dirac([0.0, 1.0]))
    learner = rd.Realist(space, prior=([0.41, 0.40], 3000), payoff_range=payoff_range, seed=0)
    for decision, paid in ((0, 0.0), (1, 1.0)):
        trial = rd.Trial(decision, decision, float(decision))
        learner.adopt(trial)
        learner.tell(trial, paid)
    index = -learner.index(learner._unit_estimates(), learner._rng)
    if payoff_range == (0, 1):
        value, best = (3000 * 0.40 + 1) / 3001, (3000 * 0.41) / 3001
        binary = value * math.log(value / best) + (1 - value) * math.log((1 - value) / (1 - best))
        found = learner._divergences(np.arange(2), learner._unit_estimates(), best, 1.0)
        assert found == pytest.approx([0.0, binary], rel=1e-9, abs=1e-15)
    assert abs(index[0] - index[1]) < 20


def test_a_running_range_begins_with_the_prior():
    learner = rd.Randomist(GAUSSIANS, payoff_range="running", prior=([-5.0, 0, 0, 0, 20.0], 1), seed=0)
    answered(learner, 5)
    assert_same_bits(rd.load(learner.state()).state(), learner.state())
    assert learner.estimates().value.min() > -5.1


@pytest.mark.parametrize(
    "prior",
    [
        0.5,
        ([0.5] * 5,),
        ([0.5] * 4, [1] * 4),
        ([0.5] * 5, [-1, 1, 1, 1, 1]),
        ([0.5] * 5, [math.nan] * 5),
        ([0.5, math.inf, 0, 0, 0], 1),
        ([0.5, 1.5, 0, 0, 0], 1),
        ("a", "b"),
    ],
    ids=str,
)
def test_bad_priors(prior):
    with pytest.raises((rd.errors.ParameterError, rd.errors.ShapeError)):
        rd.Randomist(GAUSSIANS, prior=prior)


# Studies.


def test_a_study_keeps_the_set_that_it_began_with(tmp_path):
    learner = rd.Randomist(rd.Finite(GAUSSIANS.family, names=list("abcde")), seed=0)
    learner.add(SIXTH, name="new")
    learner.retire(1)
    url = f"sqlite:///{tmp_path}/a.db"
    with rd.create_study("s", learner, storage=url) as study:
        trials = [study.ask() for _ in range(30)]
        for trial in trials:
            study.tell(trial, payoff(trial))
        assert 1 not in {trial.decision for trial in trials}
    with rd.load_study("s", storage=url) as study:
        assert study.learner.names == ("a", "b", "c", "d", "e", "new")
        assert study.learner.active.tolist() == [True, False, True, True, True, True]
        assert study.recommend() != 1
        assert 1 not in {study.ask().decision for _ in range(30)}


def test_a_dashboard_shows_names():
    from randomist.study.dashboard.data import snapshot

    learner = rd.Randomist(rd.Finite(GAUSSIANS.family, names=list("abcde")), seed=0)
    with rd.create_study("named", learner, storage="memory://names") as study:
        for _ in range(5):
            trial = study.ask()
            study.tell(trial, payoff(trial))
        assert snapshot(study)["finite"]["name"] == list("abcde")
