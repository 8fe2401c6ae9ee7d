"""Supplied likelihoods: a family's decisions where divergences are given, the same claims where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist.importance import log_mixture, log_weights

FIGURE_2 = ((2, 2), (2, 0.1), (0.1, 2), (0.1, 0.1))


def play(learner, family, rounds, seed=0, payoff=lambda z: min(max(z / 4, 0.0), 1.0)):
    """Mediators drawn as the learner itself would draw them, told by their likelihoods."""
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[1])
    mediators = []
    for _ in range(rounds):
        trial = learner.ask()
        assert trial.mediator is None
        mediator = family.draw(trial.decision, rng)
        learner.tell(trial, payoff(mediator), log_likelihoods=family.log_densities(mediator))
        mediators.append(mediator)
    return mediators


@pytest.mark.parametrize(("sigma", "lambda_"), FIGURE_2)
@pytest.mark.parametrize(
    ("make", "settings"),
    [
        (rd.FollowTheLeader, {}),
        (rd.Optimist, {}),
        (rd.Randomist, {"perturbation_scale": 8.1}),
        (rd.Randomist, {"estimator": "optimistic"}),
        (rd.Realist, {"divergence": "empirical"}),
    ],
)
def test_given_divergences_make_the_decisions_of_the_family(make, settings, sigma, lambda_):
    task = rd.task("illustrative", sigma=sigma, lambda_=lambda_)
    family = task.space.family
    known = rd.Finite.likelihoods(5, log_divergences=family.log_renyi(None, None))
    for seed in (0, 7):
        run = rd.optimize(task, make, rounds=600, seed=seed, **settings)
        learner = make(known, seed=seed, **settings)
        mediators = play(learner, family, 600, seed)
        np.testing.assert_array_equal(learner.record.decisions, run.decisions)
        np.testing.assert_array_equal(mediators, run.mediators)


def test_the_estimates_are_those_of_the_family_bit_for_bit():
    task = rd.task("illustrative", sigma=2, lambda_=0.1)
    one, two = (
        rd.Optimist(task.space),
        rd.Optimist(rd.Finite.likelihoods(5, log_divergences=task.space.family.log_renyi(None, None))),
    )
    play(two, task.space.family, 500)
    for _ in range(500):
        trial = one.ask()
        one.tell(trial, min(max(trial.mediator / 4, 0.0), 1.0))
    for ours, theirs in zip(one.estimates(), two.estimates(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_empirical_divergence_is_the_second_moment_of_the_weights():
    family = rd.Gaussian([0.0, 1.0, 2.5], [1.0, 0.7, 1.3])
    learner = rd.Optimist(rd.Finite.likelihoods(3), seed=1)
    mediators = play(learner, family, 200, seed=1)
    counts = np.bincount(learner.record.decisions, minlength=3)
    log_density = family.log_density(None, mediators)
    omega = np.exp(log_weights(log_density, log_mixture(log_density, counts)))  # (3, 200)
    missing = np.maximum(1 - omega.mean(axis=1), 0)
    eta = np.maximum(1 / ((omega**2).sum(axis=1) / 200**2 + missing**2), counts)
    estimates = learner.estimates()
    assert learner.divergence == "harmonic"  # as it was given: where divergences are not known,
    assert learner.history.divergence.name == "empirical"  # they are estimated
    np.testing.assert_allclose(estimates.effective_samples, eta, rtol=1e-10)
    cut = 200 / np.sqrt(eta * 2 * math.log(201))  # M = sqrt(m d2 / (α log t)), d2 = m/η
    payoffs = np.clip(np.array(mediators) / 4, 0, 1)
    np.testing.assert_allclose(estimates.value, (np.minimum(omega, cut[:, None]) * payoffs).mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(estimates.coverage, np.minimum(omega, cut[:, None]).mean(axis=1), rtol=1e-10)


def test_factors_that_all_policies_share_cancel():
    family = rd.Gaussian([0.0, 1.0, 2.5], [1.0, 0.7, 1.3])
    plain, shifted = (rd.Randomist(rd.Finite.likelihoods(3), seed=2) for _ in range(2))
    rng = np.random.default_rng(0)
    for n in range(150):
        one, two = plain.ask(), shifted.ask()
        assert one.decision == two.decision
        z = family.draw(one.decision, rng)
        likelihoods = family.log_densities(z)
        plain.tell(one, min(max(z / 4, 0), 1), log_likelihoods=likelihoods)
        shifted.tell(two, min(max(z / 4, 0), 1), log_likelihoods=likelihoods - 3.0 * n - 1e4)
    np.testing.assert_allclose(plain.estimates().value, shifted.estimates().value, rtol=1e-8)


@pytest.mark.slow
def test_the_papers_claims_hold_with_estimated_divergences():
    """Figure 2 at (2, 2) and (0.1, 0.1): who wins is the same as with given ones."""
    regret = {}
    for sigma in (2, 0.1):
        task = rd.task("illustrative", sigma=sigma, lambda_=sigma)
        gaps = task.optimum - task.expected_payoff()
        for name, make, settings in (
            ("ftl", rd.FollowTheLeader, {}),
            ("optimist", rd.Optimist, {}),
            ("randomist", rd.Randomist, {"perturbation_scale": 1.1}),
        ):
            runs = []
            for seed in range(8):
                learner = make(rd.Finite.likelihoods(5), seed=seed, **settings)
                play(learner, task.space.family, 2000, seed)
                runs.append(np.cumsum(gaps[learner.record.decisions])[[999, 1999]])
            regret[name, sigma] = np.mean(runs, axis=0)
    assert regret["ftl", 2][1] < 15  # claim 1: constant where all share
    assert regret["ftl", 2][1] - regret["ftl", 2][0] < 2
    assert regret["ftl", 0.1][1] > 1.7 * regret["ftl", 0.1][0] > 100  # and near-linear where nothing is shared
    assert regret["optimist", 2][1] < regret["optimist", 0.1][1]
    for sigma in (2, 0.1):  # claim 2: RANDOMIST with a = 1.1 is sublinear everywhere
        first, both = regret["randomist", sigma]
        assert both - first < 0.8 * first


def test_what_was_told_survives_a_round_trip():
    family = rd.Categorical([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    for keep in (True, False):
        learner = rd.Randomist(rd.Finite.likelihoods(2), seed=3, payoff_range="running", keep_record=keep)
        play(learner, family, 40, payoff=lambda z: 3.0 * z - 1)
        pending = learner.ask(batch=2)
        state = learner.state()
        resumed = rd.load(state)
        assert resumed.pending == pending
        assert resumed.told == 40
        for late in (learner, resumed):
            late.tell(pending[1].id, 11.0, log_likelihoods=[0.0, -0.5])  # widens the range
            late.fail(pending[0].id, "lost")
        for _ in range(20):
            one, two = learner.ask(), resumed.ask()
            assert one == two
            for late, trial in ((learner, one), (resumed, two)):
                late.tell(trial, 0.1 * one.id, log_likelihoods=family.log_densities(one.id % 3))
        for ours, theirs in zip(learner.estimates(), resumed.estimates(), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_sample_beyond_float64_is_kept_in_log_space():
    learner = rd.FollowTheLeader(rd.Finite.likelihoods(2), seed=0, first=0, keep_record=False)
    learner.tell(learner.ask(), 1.0, log_likelihoods=[-900.0, 0.0])
    learner = rd.load(learner.state())
    np.testing.assert_allclose(learner.estimates().coverage[0], 1 / math.sqrt(2 * math.log(2)))  # ω = 1, cut at M
    assert learner.history.columns.distant[0].log_ratios.tolist() == [0.0, 900.0]


@pytest.mark.parametrize(
    ("likelihoods", "message"),
    [
        (None, "log_likelihoods"),
        ([0.0], r"shape \(2,\)"),
        ([0.0, math.nan], "nan for policy 1"),
        ([0.0, math.inf], "inf for policy 1"),
        ([-math.inf, 0.0], "policy 0 acted"),
        (["a", "b"], "must be numbers"),
    ],
)
def test_bad_likelihoods_are_refused_and_change_nothing(likelihoods, message):
    learner = rd.Optimist(rd.Finite.likelihoods(2), first=0)
    trial = learner.ask()
    with pytest.raises(rd.RandomistError, match=message):
        learner.tell(trial, 0.5, log_likelihoods=likelihoods)
    assert learner.told == 0
    assert learner.pending == [trial]


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(rd.RandomistError, match="whole number"):
        rd.Finite.likelihoods(0)
    with pytest.raises(rd.RandomistError, match=r"shape \(2, 2\)"):
        rd.Finite.likelihoods(2, log_divergences=[0.0])
    with pytest.raises(rd.RandomistError, match="diagonal"):
        rd.Finite.likelihoods(2, log_divergences=[[1.0, 0], [0, 0]])
    with pytest.raises(rd.RandomistError, match="computed"):
        rd.Optimist(rd.Finite.likelihoods(2), bias_correction="computed")
    with pytest.raises(rd.RandomistError, match="per-step"):
        rd.Optimist(rd.Finite.likelihoods(2), divergence="per-step")
    with pytest.raises(rd.RandomistError, match="keep_record"):
        rd.Optimist(rd.Finite(rd.Gaussian([0, 1], 1)), keep_record=False)
    learner = rd.Optimist(rd.Finite(rd.Gaussian([0, 1], 1)))
    with pytest.raises(rd.RandomistError, match="the family knows them"):
        learner.tell(learner.ask(), 0.5, log_likelihoods=[0, 0])


def test_poor_coverage_is_warned_of():
    learner = rd.FollowTheLeader(rd.Finite.likelihoods(2), first=0)
    for _ in range(20):
        trial = learner.ask()
        learner.tell(trial, 0.9, log_likelihoods=[0.0, -3.0] if trial.decision == 0 else [-3.0, 0.0])
    assert (1 - learner.estimates().coverage).max() > 0.5
    with pytest.warns(rd.errors.CoverageWarning, match=r"decision 1 \(\d\d% unseen\)"):
        assert learner.recommend() == 0
    wide = rd.Gaussian([0.0, 0.3], 1.0)
    learner = rd.Optimist(rd.Finite.likelihoods(2), seed=0)
    play(learner, wide, 200)
    learner.recommend()  # warnings are errors here
