"""What each learner plays, against its equation written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, kstest, norm

import randomist as rd
from randomist.histories.estimates import Estimates
from tests.problems import GAUSSIANS, NARROW

PERFECT = rd.Finite(rd.Gaussian([0.0, 0.4, -0.3, 1.0], [1.0, 0.9, 1.2, 1.1]))


def fed(cls, space, rounds=200, seed=0, **settings):
    """A learner that played by its own rule against a payoff of the mediator."""
    learner = cls(space, seed=seed, **settings)
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, float(np.clip(trial.mediator / 4, 0, 1)))
    return learner


def estimates(value, effective, told=50, alpha=2.0, plays=None):
    effective = np.asarray(effective, float)
    plays = np.floor(effective).astype(int) if plays is None else np.asarray(plays)
    with np.errstate(divide="ignore"):
        width = np.sqrt(alpha * math.log(told + 1) / effective)
        log_effective = np.log(effective)
    return Estimates(np.asarray(value, float), effective, width, width, plays, width, log_effective)


def test_follow_the_leader_and_optimist_are_their_equations():
    seen = estimates([0.2, 0.5, 0.4], [3.0, 50.0, 0.1])
    np.testing.assert_array_equal(rd.FollowTheLeader(PERFECT).index(seen, None), seen.value)
    want = seen.value + (1 + math.sqrt(2)) * np.sqrt(2 * math.log(51) / seen.effective_samples)
    np.testing.assert_allclose(rd.Optimist(PERFECT).index(seen, None), want, rtol=1e-15)


@pytest.mark.parametrize(("a", "b", "factor"), [(8.1, "paper", 1.0), (1.1, 0, 0.0), (0.3, 0.5, 0.5)])
def test_randomist_index_has_the_papers_law(a, b, factor):
    """Draws of U against Binomial(⌈aη⌉, 1/2)/η + b for each decision: mean and variance at 5 sigma, support exactly."""
    learner = rd.Randomist(PERFECT, perturbation_scale=a, bias_correction=b)
    seen = estimates([0.2, 0.5, 0.4], [3.0, 51.3, 0.1])
    rng, n = np.random.default_rng(1), 40_000
    draws = np.array([learner.index(seen, rng) for _ in range(n)])
    for x, eta in enumerate(seen.effective_samples):
        flips = math.ceil(a * eta)
        sums = (draws[:, x] - seen.value[x] - factor * seen.width[x]) * eta
        np.testing.assert_allclose(sums, np.rint(sums), atol=1e-9)
        assert sums.min() >= -1e-9
        assert sums.max() <= flips + 1e-9
        law = binom(flips, 0.5)
        assert abs(sums.mean() - law.mean()) <= 5 * law.std() / math.sqrt(n)
        kurtosis = law.stats("k") + 3
        assert abs(sums.var() - law.var()) <= 5 * law.var() * (math.sqrt((kurtosis - 1) / n) + 25 / n)


def test_gaussian_perturbation_has_the_stated_law():
    """Kolmogorov–Smirnov on 20,000 draws, false alarms 1e-6 a decision."""
    learner = rd.Randomist(PERFECT, perturbation_scale=3.0, perturbation="gaussian", bias_correction=0)
    seen, rng = estimates([0.2, 0.5], [3.0, 51.3]), np.random.default_rng(2)
    draws = np.array([learner.index(seen, rng) for _ in range(20_000)]) - seen.value
    for x, eta in enumerate(seen.effective_samples):
        assert kstest(draws[:, x], norm(1.5, math.sqrt(3.0 / (4 * eta))).cdf).pvalue > 1e-6


def test_follow_the_leader_is_randomist_without_perturbation():
    for space in (GAUSSIANS, PERFECT):
        plain = fed(rd.FollowTheLeader, space, seed=4)
        randomist = fed(rd.Randomist, space, seed=4, perturbation_scale=0, bias_correction=0)
        np.testing.assert_array_equal(plain.record.decisions, randomist.record.decisions)


def test_bandits_are_their_equations():
    space = rd.Finite(rd.Gaussian([0, 1, 2], 1.0))
    plays, sums = np.array([3, 10, 1]), np.array([1.2, 7.0, 0.4])
    for cls in (rd.UCB1, rd.PerturbedHistory, rd.ThompsonSampling):
        learner = cls(space)
        for decision, (count, total) in enumerate(zip(plays, sums, strict=True)):
            for _ in range(count):
                learner._absorb(decision, 0.0, total / count)
                learner.record.append(decision, 0.0, total / count)
        rng, n = np.random.default_rng(0), 30_000
        draws = np.array([learner.index(learner.estimates(), rng) for _ in range(n)])
        if cls is rd.UCB1:
            want = sums / plays + np.sqrt(2 * math.log(15) / plays)
            np.testing.assert_allclose(draws, np.broadcast_to(want, draws.shape), rtol=1e-12)
        else:
            if cls is rd.PerturbedHistory:
                pseudo = np.ceil(2.1 * plays)
                mean, std = (sums + pseudo / 2) / (plays + pseudo), np.sqrt(pseudo / 4) / (plays + pseudo)
            else:
                mean, std = sums / (plays + 1), 1 / np.sqrt(plays + 1)
            assert (np.abs(draws.mean(axis=0) - mean) < 5 * std / math.sqrt(n)).all()
            np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.03)


def test_gp_ucb_equals_scikit_learn():
    gp = pytest.importorskip("sklearn.gaussian_process")
    from sklearn.gaussian_process.kernels import RBF

    space = rd.Finite.grid(rd.Gaussian(std=[0.15, 1.0]), low=[-1, 0], high=[1, 10], points=[5, 4])
    learner = fed_plane(rd.GPUCB, space, rounds=40)
    played = learner.plays > 0
    scale = np.array([0.4, 2.0])  # a fifth of the range
    oracle = gp.GaussianProcessRegressor(RBF(scale), alpha=0.1**2 / learner.plays[played], optimizer=None)
    oracle.fit(space.points[played], learner.payoff_sums[played] / learner.plays[played])
    mean, std = oracle.predict(space.points, return_std=True)
    ours = learner.posterior()
    np.testing.assert_allclose(ours[0], mean, atol=1e-9)
    np.testing.assert_allclose(ours[1], std, atol=1e-7)
    beta = 2 * math.log(20 * 41**2 * math.pi**2 / (6 * 0.1))
    np.testing.assert_allclose(learner.index(learner.estimates(), None), mean + math.sqrt(beta) * std, atol=1e-6)


def fed_plane(cls, space, rounds, **settings):
    learner = cls(space, seed=0, **settings)
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, float(0.5 + 0.5 * math.sin(trial.mediator[0] + trial.mediator[1])))
    return learner


def test_remark_1_plays_the_uninformed_once_in_index_order():
    for cls in (rd.Optimist, rd.Randomist, rd.FollowTheLeader):
        learner = fed(cls, GAUSSIANS, rounds=4)
        np.testing.assert_array_equal(learner.record.decisions, [0, 1, 2, 4])  # N(2.95, 0.1²) says nothing about these
    assert fed(rd.FollowTheLeader, GAUSSIANS, rounds=5, start="each").record.decisions.tolist() == [0, 1, 2, 3, 4]


def test_first_decision_is_drawn_from_the_seed_unless_it_is_given():
    assert {fed(rd.Optimist, PERFECT, rounds=1, seed=s).record.decisions[0] for s in range(40)} == {0, 1, 2, 3}
    assert fed(rd.Optimist, PERFECT, rounds=1, first=2).record.decisions.tolist() == [2]


def test_an_asked_decision_counts_as_visited_in_the_opening_and_a_failed_one_does_not():
    learner = rd.Optimist(GAUSSIANS, seed=0)
    assert [trial.decision for trial in learner.ask(batch=4)] == [0, 1, 2, 4]
    learner.fail(2, "lost")
    assert learner.ask().decision == 2
    for id_ in (4, 0, 3, 1):
        learner.tell(id_, 0.5)
    assert learner.estimates().plays.tolist() == [1, 1, 1, 0, 1]


def test_shared_estimates_know_unplayed_decisions():
    learner = fed(rd.Optimist, PERFECT, rounds=30)
    seen = learner.estimates()
    assert (seen.effective_samples > 0).all()
    assert (seen.effective_samples >= seen.plays).all()
    assert learner.recommend() == int(np.argmax(seen.value))


def test_estimates_are_a_snapshot_that_cannot_be_changed():
    learner = fed(rd.Randomist, PERFECT, rounds=10)
    before = learner.estimates()
    kept = before.plays.copy()
    for entry in before:
        with pytest.raises(ValueError, match="read-only"):
            entry[0] = 1
    learner.tell(learner.ask(), 0.5)
    np.testing.assert_array_equal(before.plays, kept)
    assert learner.estimates().plays.sum() == 11
    with pytest.raises(ValueError, match="read-only"):
        learner.record.payoffs[0] = 1.0


def test_divergence_of_e_to_900_is_large_not_infinite():
    learner = rd.Randomist(NARROW, first=0, seed=0)
    learner.tell(learner.ask(), 0.0)
    seen = learner.estimates()
    np.testing.assert_allclose(seen.log_effective_samples, [0, -100, -400, -870.25, -900], rtol=1e-12)
    np.testing.assert_allclose(np.log(seen.width[4]), 450 + 0.5 * math.log(2 * math.log(2)), rtol=1e-12)
    index = learner.index(seen, np.random.default_rng(0))
    assert np.isfinite(index).all()


def test_unbounded_payoffs_are_taken_as_they_are():
    learner = rd.Optimist(PERFECT, payoff_range=(-math.inf, math.inf), seed=0)
    for payoff in (-30.0, 1e6, 0.25):
        learner.tell(learner.ask(), payoff)
    np.testing.assert_array_equal(learner.record.payoffs, [-30.0, 1e6, 0.25])


def test_a_seed_from_the_system_is_remembered():
    learner = rd.UCB1(PERFECT, seed=None)
    again = rd.UCB1(PERFECT, seed=learner.entropy)
    assert learner.seed is None  # as it was given
    assert learner.state()["entropy"] == learner.entropy
    assert rd.load(learner.state()).entropy == learner.entropy
    assert learner.ask() == again.ask()
    assert learner.entropy != rd.UCB1(PERFECT, seed=None).entropy


@pytest.mark.parametrize("cls", [rd.Optimist, rd.Randomist, rd.UCB1, rd.GPUCB])
def test_a_running_range_ends_as_if_it_had_been_known(cls):
    """The same told samples, with the range known before or seen in the end: the same estimates."""
    space = rd.Finite(rd.Gaussian([0.0, 0.4, 1.0], 1.0))
    known, running = cls(space, payoff_range=(-3.0, 5.0), seed=0), cls(space, payoff_range="running", seed=0)
    payoffs = [0.5, 5.0, -1.0, 2.0, -3.0, 4.0, 0.0]
    for learner in (known, running):
        for i, payoff in enumerate(payoffs):
            ticket = rd.Trial(i, i % 3, 0.1 * i)
            learner._pending[i] = ticket
            learner.tell(ticket, payoff)
    for ours, theirs in zip(running.estimates(), known.estimates(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_batch_at_one_decision():
    learner = fed(rd.Randomist, PERFECT, rounds=20)
    trials = learner.ask(batch=6, one_decision=True)
    assert len({trial.decision for trial in trials}) == 1
    assert len({trial.mediator for trial in trials}) == 6
    assert [trial.id for trial in learner.pending] == [trial.id for trial in trials]


def test_gaussian_perturbation_keeps_its_law_where_effective_samples_underflow():
    """log d2 = 900: std and b are both of the order e^450; their ratio decides how often the unknown is played."""
    space = rd.Finite(rd.Gaussian([0.0, 3.0], 0.1))
    plays = []
    for seed in range(300):
        learner = rd.Randomist(space, perturbation="gaussian", first=1, seed=seed)
        learner.tell(learner.ask(), 0.5)
        plays.append(learner.ask().decision == 0)
    want = norm.cdf(math.sqrt(2 * math.log(2)) / math.sqrt(1.1 / 4))
    assert abs(np.mean(plays) - want) < 5 * math.sqrt(want * (1 - want) / 300)
    still = rd.Randomist(space, perturbation="gaussian", perturbation_scale=0, first=1, seed=0)
    still.tell(still.ask(), 0.5)
    assert still.ask().decision == 0


def test_a_mediator_cannot_be_changed_and_trials_are_equal_entry_by_entry():
    learner = rd.Auto(low=[0, 0], high=[10, 10], seed=0)
    trial, twin = learner.ask(), rd.load(learner.state()).pending[0]
    with pytest.raises(ValueError, match="read-only"):
        trial.mediator /= 10
    assert trial == twin
    assert trial in [twin]
    assert hash(trial) == hash(twin)
    assert trial != learner.ask()
    finite = rd.Realist(rd.Finite(rd.Gaussian(mean=[[0.0, 1.0], [1.0, 3.0]], std=1.0)), seed=0)
    with pytest.raises(ValueError, match="read-only"):
        finite.ask().mediator[0] = 0.0
    assert repr(rd.Safe(finite.space, seed=0)) == "<Safe on a Finite of 2 decisions: 0 told>"
