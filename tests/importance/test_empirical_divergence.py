"""K_inf against its dual by another solver and against kl; binned distributions of payoffs against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr

import randomist as rd
from randomist.importance.divergences import find_divergence
from randomist.importance.empirical_divergence import k_gaussian, k_inf
from randomist.importance.estimators import find_estimator
from randomist.importance.passes.layout import BINS
from randomist.importance.passes.numba import payoff_bin
from tests import problems


def kl(p, q):
    return rel_entr(p, q) + rel_entr(1 - p, 1 - q)


def dual(payoffs, shares, level):
    """max over λ of E log(1 - λ (Y - μ)/(1 - μ)), by a solver that needs no derivative."""
    gain = (payoffs - level) / (1 - level)

    def loss(stake):
        return -np.sum(shares * np.log(np.maximum(1 - stake * gain, 1e-300)))

    found = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-13})
    return max(-found.fun, -loss(1.0), 0.0)


def binned(payoffs, shares):
    weight, sums = np.zeros((2, 1, BINS))
    for y, share in zip(payoffs, shares, strict=True):
        weight[0, payoff_bin(y)] += share
        sums[0, payoff_bin(y)] += share * y
    return weight, sums


@pytest.mark.parametrize("seed", range(12))
def test_k_inf_is_its_dual(seed):
    rng = np.random.default_rng(seed)
    payoffs = np.append(np.linspace(0.01, 0.99, 20)[rng.permutation(20)[:6]], rng.choice([0.0, 1.0], 2))
    shares = rng.dirichlet(np.ones(8))
    for level in (shares @ payoffs + np.array([1e-4, 0.05, 0.3])).clip(0, 0.999):
        got = k_inf(*binned(payoffs, 7.3 * shares), level)[0]  # weights need not add up to 1
        assert got == pytest.approx(dual(payoffs, shares, level), rel=1e-7, abs=1e-12)
        assert got >= 2 * max(level - shares @ payoffs, 0) ** 2 - 1e-12  # Pinsker


@pytest.mark.parametrize("mean", [0.0, 0.02, 0.5, 0.93])
def test_for_zeros_and_ones_it_is_kl(mean):
    for level in (0.01, 0.03, 0.6, 0.97, 0.999):
        got = k_inf(*binned([0.0, 1.0], [1 - mean, mean]), level)[0]
        assert got == pytest.approx(kl(mean, level) if level > mean else 0.0, rel=1e-8, abs=1e-12)


def test_the_ends():
    sure = binned([0.4], [3.0])
    assert k_inf(*sure, 0.4)[0] == 0.0
    assert k_inf(*sure, 0.7)[0] == pytest.approx(np.log(0.6 / 0.3))
    assert k_inf(*sure, 1.0)[0] == np.inf
    assert k_inf(*binned([1.0], [2.0]), 1.0)[0] == 0.0
    assert k_inf(np.zeros((1, BINS)), np.zeros((1, BINS)), 0.5)[0] == 0.0
    almost = 0.4 + 1e-17  # so close that nothing is left of the difference
    assert k_inf(*sure, almost)[0] == pytest.approx(0.0, abs=1e-12)


def test_among_normal_distributions():
    gap, variance = np.array([-1.0, 0.0, 0.5, 2.0]), np.array([1.0, 0.0, 0.25, 4.0])
    np.testing.assert_allclose(k_gaussian(gap, variance), [0, 0, 0.5 * np.log(2), 0.5 * np.log(2)])


@pytest.mark.parametrize("space", ["gaussians", "plane", "mixed", "logged"])
def test_distributions_of_stored_samples_are_weighted_payoffs(space):
    learner = problems.make("realist", space, seed=3)
    for _ in range(90):
        problems.tell(learner, learner.ask(), space)
    where, history, estimates = learner.space, learner.history, learner.history.estimate(2.0)
    rows = np.array([where.size - 1, 0])
    weight, sums = history.payoff_distributions(rows, estimates)
    log_density = where.family.log_density(None, learner.record.mediators)  # (S, t)
    log_mixture = np.logaddexp.reduce(log_density[learner.record.decisions], axis=0)
    payoffs = learner.record.payoffs
    bins = np.array([payoff_bin(y) for y in payoffs])
    for n, k in enumerate(rows):
        w = np.minimum(np.exp(log_density[k] - log_mixture), estimates.threshold[k] / 90)
        np.testing.assert_allclose(weight[n], np.bincount(bins, w, BINS), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sums[n], np.bincount(bins, w * payoffs, BINS), rtol=1e-9, atol=1e-12)


def test_counted_samples_have_the_mean_and_variance_that_were_seen():
    """Zeros and ones are exact; of others an atom at 1 and one below it have the same two moments."""
    space = rd.Finite(rd.Dirac([0.0, 1.0, 2.0]))
    history = space.history(find_divergence("mixture"), find_estimator("self-normalised"))
    rng = np.random.default_rng(0)
    told = {0: rng.integers(0, 2, 40).astype(float), 1: np.full(40, 0.3), 2: rng.random(40) ** 2}
    for decision, payoffs in told.items():
        for y in payoffs:
            history.append(decision, float(decision), float(y))
    weight, sums = history.payoff_distributions(np.arange(3), history.estimate(2.0))
    share = weight / weight.sum(axis=1, keepdims=True)
    at = np.divide(sums, weight, out=np.zeros_like(sums), where=weight > 0)
    for decision, payoffs in told.items():
        mean = share[decision] @ at[decision]
        assert mean == pytest.approx(payoffs.mean(), rel=1e-12)
        assert share[decision] @ (at[decision] - mean) ** 2 == pytest.approx(payoffs.var(), rel=1e-9, abs=1e-12)
    assert share[0, 0] == pytest.approx(1 - told[0].mean())
    assert share[0, -1] == pytest.approx(told[0].mean())
    level = told[2].mean() + 0.1
    exact = dual(told[2], np.full(40, 1 / 40), level)
    assert k_inf(weight[2:], sums[2:], level)[0] <= exact + 1e-12  # never more certain than the payoffs themselves
