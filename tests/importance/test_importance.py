"""Estimates against the naive definition: ill-scaled, asymmetric, disjoint, infinite; never a NaN."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import randomist as rd
from randomist import importance
from randomist.importance.perturbation import choose, coin_words, perturb
from tests import naive
from tests.histories.helpers import empty, told
from tests.problems import BESIDE_AN_ATOM, BOXES, CATEGORIES, GAUSSIANS, NARROW

FIELDS = ("value", "effective_samples", "threshold", "width", "coverage")


def assert_equals_definition(space, decisions, mediators, payoffs, confidence=2.0, rtol=1e-10):
    got = told(empty(space), decisions, mediators, payoffs).estimate(confidence)
    family = space.family
    want = naive.estimates(
        family.log_density(None, mediators), family.log_renyi(None, None), decisions, payoffs, confidence
    )
    for name in FIELDS:
        for x, (ours, exact) in enumerate(zip(getattr(got, name), want[name], strict=True)):
            assert not np.isnan(ours)
            if mpmath.isinf(exact):
                assert ours == np.inf, (name, x)
            elif exact > mpmath.mpf(10) ** 290:  # beyond float64, or nearly: anything as large will do
                assert ours >= 1e290, (name, x)
            elif exact < mpmath.mpf(10) ** -290:
                assert 0 <= ours <= 1e-290, (name, x)
            else:
                assert abs(mpmath.mpf(float(ours)) - exact) <= rtol * exact, (name, x, ours, float(exact))
    for x, eta in enumerate(want["effective_samples"]):
        log_eta = float(mpmath.log(eta)) if eta else -np.inf
        np.testing.assert_allclose(got.log_effective_samples[x], log_eta, rtol=1e-12, atol=1e-11)
    np.testing.assert_array_equal(got.plays, np.bincount(decisions, minlength=space.size))
    return got


def draw_history(space, rounds, seed, plays=None):
    rng = np.random.default_rng(seed)
    decisions = rng.choice(space.size, rounds, p=plays)
    return decisions, space.family.sample(decisions, rng), rng.random(rounds)


SPACES = {
    "illustrative (2, 0.1)": GAUSSIANS,
    "illustrative (0.1, 0.1)": NARROW,
    "three dimensions, ill-scaled": rd.Finite(
        rd.Gaussian(
            [[0, 1e3, -2e-6], [0.5, 1.1e3, 1e-6], [-1, 0.7e3, 0]], [[1, 200, 1e-6], [0.8, 300, 2e-6], [2, 150, 3e-6]]
        )
    ),
    "uniform boxes, partly disjoint": BOXES,
    "categories": CATEGORIES,
    "uniform against Dirac": BESIDE_AN_ATOM,
}  # fmt: skip


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("rounds", [1, 7, 60])
def test_estimates_equal_the_definition(name, rounds):
    space = SPACES[name]
    decisions, mediators, payoffs = draw_history(space, rounds, seed=rounds)
    assert_equals_definition(space, decisions, mediators, payoffs, confidence=1.7)


@pytest.mark.parametrize("seed", range(8))
def test_log_densities_of_ten_thousand_and_infinite_divergences(seed):
    rng = np.random.default_rng(seed)
    K, C = 6, 12
    log_table = rng.uniform(-1e4, 1e4, (K, C))
    log_table[rng.random((K, C)) < 0.3] = -np.inf
    log_table[:, 0] = rng.uniform(-5, 5, K)
    divergences = rng.uniform(0, 1e3, (K, K)) * rng.choice([1e-3, 1.0], (K, K))
    divergences[rng.random((K, K)) < 0.3] = np.inf
    np.fill_diagonal(divergences, 0)
    space = rd.Finite(naive.Table(log_table, divergences))
    decisions, mediators, payoffs = draw_history(space, 40, seed, plays=[0.5, 0.3, 0.2, 0, 0, 0])
    got = assert_equals_definition(space, decisions, mediators, payoffs)
    assert (got.effective_samples >= got.plays).all()


def test_many_samples_stay_exact():
    space = SPACES["illustrative (2, 0.1)"]
    decisions, mediators, payoffs = draw_history(space, 9_000, seed=3)  # three blocks
    got = told(empty(space), decisions, mediators, payoffs).estimate(2.0)
    log_density, divergence = space.family.log_density(None, mediators), space.family.log_renyi(None, None)
    log_eta = importance.log_effective_samples(divergence, got.plays)
    log_weight = importance.log_weights(log_density, importance.log_mixture(log_density, got.plays))
    log_threshold = importance.log_threshold(log_eta, len(payoffs), 2.0)
    value = importance.truncated_multiple_importance(log_weight, payoffs, log_threshold)
    np.testing.assert_allclose(got.value, value, rtol=1e-10)
    np.testing.assert_allclose(got.log_effective_samples, log_eta, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(got.threshold, np.exp(log_threshold), rtol=1e-10)
    np.testing.assert_allclose(got.width, importance.width(log_eta, len(payoffs), 2.0), rtol=1e-10)


def test_array_functions_equal_hand_computed_numbers():
    # Two decisions with densities (1/2, 1/4) and (1/4, 1/2) at two mediators, played 1 and 3 times.
    log_density = np.log([[0.5, 0.25, 0.5, 0.5], [0.25, 0.5, 0.25, 0.25]])
    counts, payoffs = np.array([1, 3]), np.array([1.0, 0.5, 0.0, 0.25])
    mixture = np.array([5, 7, 5, 5]) / 16  # (p_0 + 3 p_1) / 4
    np.testing.assert_allclose(np.exp(importance.log_mixture(log_density, counts)), mixture)
    weight = importance.log_weights(log_density, np.log(mixture))
    np.testing.assert_allclose(np.exp(weight[0]), [8 / 5, 4 / 7, 8 / 5, 8 / 5])
    np.testing.assert_allclose(importance.multiple_importance(weight, payoffs)[0], (8 / 5 * 1.25 + 2 / 7) / 4)
    cut = importance.truncated_multiple_importance(weight, payoffs, np.log([1.0, 1.0]))
    np.testing.assert_allclose(cut[0], (1.25 + 2 / 7) / 4)
    np.testing.assert_allclose(importance.monte_carlo(np.array([1.0, 0.75]), counts), [1.0, 0.25])
    divergence = np.log([[1.0, 2.0], [4.0, 1.0]])
    np.testing.assert_allclose(np.exp(importance.log_effective_samples(divergence, counts)), [2.5, 3.25])
    np.testing.assert_allclose(np.exp(importance.log_harmonic_divergence(divergence, counts)), [4 / 2.5, 4 / 3.25])


def test_harmonic_mean_bounds_the_divergence_to_the_mixture():
    """Papini et al. 2019, Theorem 5, by summation over categories."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        p = rng.dirichlet(np.ones(5), 4)
        counts = rng.integers(0, 6, 4) + np.array([1, 0, 0, 0])
        mixture = counts @ p / counts.sum()
        exact = (p**2 / mixture).sum(axis=1)
        log_divergence = rd.Categorical(p).log_renyi(None, None)
        bound = np.exp(importance.log_harmonic_divergence(log_divergence, counts))
        assert (bound >= exact * (1 - 1e-12)).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_laws(seed, rounds):
    """η >= T exactly; 0 <= coverage; weights of the played mixture average to one without truncation."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 7))
    space = rd.Finite(rd.Gaussian(rng.normal(0, 3, (K, 2)), rng.uniform(0.1, 3, (K, 2))))
    decisions, mediators, payoffs = draw_history(space, rounds, seed)
    got = told(empty(space), decisions, mediators, payoffs).estimate(2.0)
    assert (got.effective_samples >= got.plays).all()
    assert all(np.isfinite(field[got.effective_samples > 0]).all() for field in got)
    assert (got.value <= got.coverage * (1 + 1e-12)).all()
    log_density = space.family.log_density(None, mediators)
    weight = importance.log_weights(log_density, importance.log_mixture(log_density, got.plays))
    np.testing.assert_allclose(
        got.plays @ np.exp(weight) / rounds, 1.0, rtol=1e-9
    )  # Σ_k (T_k/m) ω_k(z) = 1 for every z


def test_choose_breaks_ties_evenly_and_orders_what_overflows():
    uniforms = (np.arange(3000) + 0.5) / 3000
    picks = [choose(np.array([1.0, 2.0, 2.0, 0.0, 2.0]), np.zeros(5), u) for u in uniforms]
    np.testing.assert_array_equal(np.bincount(picks), [0, 1000, 1000, 0, 1000])
    assert choose(np.array([np.inf, 1e305, 3.0]), np.array([-800.0, -870.0, 0.0]), 0.9) == 1  # e^870 beats e^800
    assert choose(np.array([5.0, 0.0]), np.array([1.0, -np.inf]), 0.5) == 1  # η = 0: index +inf
    assert choose(np.array([5.0, np.nan]), np.zeros(2), 0.5) == -1


def test_coins_are_binomial():
    """χ² of 20,000 sums of 5 and of 70 fair coins against the exact law; false alarms below 1e-6."""
    from scipy.stats import binom, chisquare

    rng = np.random.default_rng(5)
    for flips in (5, 70):
        effective = np.full(20_000, float(flips))
        words = rng.bit_generator.random_raw(coin_words(effective, 1.0))
        heads = perturb(np.zeros(20_000), effective, 1.0, words) * flips
        low, high = binom.ppf([1e-3, 1 - 1e-3], flips, 0.5).astype(int)
        seen = np.bincount(np.clip(np.rint(heads).astype(int), low, high), minlength=high + 1)[low:]
        law = binom.pmf(np.arange(low, high + 1), flips, 0.5)
        law[0], law[-1] = binom.cdf(low, flips, 0.5), binom.sf(high - 1, flips, 0.5)
        assert chisquare(seen, law * 20_000).pvalue > 1e-6


def test_a_mediator_that_its_decision_cannot_draw_is_refused_and_nothing_changes():
    history = empty(SPACES["uniform boxes, partly disjoint"])
    history.append(0, 0.7, 1.0)
    before = history.estimate(2.0)
    with pytest.raises(rd.errors.MediatorError, match=r"3\.5 has density 0 under decision 0"):
        history.append(0, 3.5, 1.0)
    for ours, theirs in zip(before, history.estimate(2.0), strict=True):
        np.testing.assert_array_equal(ours, theirs)
