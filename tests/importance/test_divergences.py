"""Divergences to the mixture, and the bias of truncation, against quadrature and sums."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

import randomist as rd
from tests.histories.cases import SPACES, fed, history_of, weights_by_definition

COUNTS = {
    "stds that differ": [2, 7, 0, 4],
    "illustrative (2, 0.1)": [3, 0, 5, 20, 2],
    "illustrative (0.1, 2)": [3, 1, 5, 2, 0],
    "illustrative (0.1, 0.1)": [2, 0, 0, 6, 3],
    "uniform boxes, partly disjoint": [5, 1, 2, 3],
    "Gaussian, Uniform and Dirac": [3, 2, 1],
}


def integral(space, counts, x, function):
    """E_{p_x}[function(Φ/p_x)] by scipy's quadrature between all the edges there are; atoms by hand."""
    family, m = space.family, sum(counts)
    played = np.flatnonzero(counts)
    parts = family._groups if isinstance(family, rd.Mixed) else (family,)
    own = family._groups[family._group[x]] if isinstance(family, rd.Mixed) else family
    row = family._within[x] if isinstance(family, rd.Mixed) else x

    def ratio(z):
        log_density = family.log_density(None, np.array([z]))[:, 0]
        if log_density[x] == -np.inf:
            return -np.inf, 0.0
        log_mixture = np.logaddexp.reduce(np.log(np.array(counts)[played] / m) + log_density[played])
        return log_density[x], math.exp(min(log_mixture - log_density[x], 600))

    def integrand(z):
        log_own, share = ratio(z)
        return math.exp(log_own) * function(share) if log_own > -np.inf else 0.0

    if isinstance(own, rd.Dirac):
        return function(ratio(own.atoms[row].item())[1])
    edges = set()
    for part in parts:
        if isinstance(part, rd.Gaussian):
            edges |= {
                (mu + j * s).item() for mu, s in zip(part._mean, part._std, strict=True) for j in (-9, -3, 0, 3, 9)
            }
        elif isinstance(part, rd.Uniform):
            edges |= {*part._low.ravel().tolist(), *part._high.ravel().tolist()}
    if isinstance(own, rd.Gaussian):
        low, high = (own._mean[row] + j * own._std[row] for j in (-25, 25))
    else:
        low, high = own._low[row], own._high[row]
    inner = sorted(e for e in edges if low.item() < e < high.item())
    ends = [low.item(), *inner, high.item()]
    return sum(
        integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-9, limit=400)[0] for a, b in itertools.pairwise(ends)
    )


@pytest.mark.parametrize("name", COUNTS)
def test_the_mixture_divergence_equals_quadrature(name):
    """Smooth ratios to 1e-6; the jumps of Uniforms and spikes narrower than the nodes' distance to 1%."""
    space, counts = SPACES[name], COUNTS[name]
    got, harmonic = (history_of(space, counts, divergence=d)[0].estimate(2.0) for d in ("mixture", "harmonic"))
    pairs = space.family.log_renyi(None, None)
    exact = name == "stds that differ"
    for x in range(space.size):
        if np.isinf(pairs[x][np.flatnonzero(counts)]).all():
            assert got.effective_samples[x] == 0
            assert got.log_effective_samples[x] == -np.inf
            continue
        log_harmonic = harmonic.log_effective_samples[x]
        if log_harmonic < -100:  # nobody plays near it: the closed form is all there is
            assert got.log_effective_samples[x] == log_harmonic
            continue
        want = sum(counts) / integral(space, counts, x, lambda share: 1 / share)
        assert got.effective_samples[x] == pytest.approx(want, rel=1e-6 if exact else 1e-2), x


def test_the_mixture_divergence_of_categories_is_exact_also_where_every_pair_diverges():
    mass = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.7, 0.3], [0.2, 0.2, 0.6]])
    space, counts = rd.Finite(rd.Categorical(mass)), np.array([0, 3, 2, 0])
    got = history_of(space, counts, divergence="mixture")[0].estimate(2.0)
    mixture = counts @ mass / 5
    want = 5 / (mass**2 / mixture).sum(axis=1)
    np.testing.assert_allclose(got.effective_samples, want, rtol=1e-13)
    harmonic = history_of(space, counts)[0].estimate(2.0)
    assert harmonic.effective_samples[0] == 0  # neither (1, 0, 0) nor (0, 0.7, 0.3) covers (0.5, 0.5, 0)
    assert want[0] > 1  # but together they do


def test_the_mixture_divergence_in_two_dimensions():
    """Draws, so loosely: within 10% of a fine grid, and infinite only where it is."""
    space, counts = SPACES["two dimensions"], np.array([3, 8, 2])
    got = history_of(space, counts, divergence="mixture")[0].estimate(2.0)
    x, y = np.meshgrid(np.linspace(-12, 12, 1201), np.linspace(-30, 50, 1201), indexing="ij")
    density = np.exp(space.family.log_density(None, np.stack([x.ravel(), y.ravel()], axis=1)))
    area = (24 / 1200) * (80 / 1200)
    want = 13 / ((density**2 / (counts @ density / 13)).sum(axis=1) * area)
    np.testing.assert_allclose(got.effective_samples, want, rtol=0.1)
    beside = rd.Finite(rd.Gaussian([[0.0, 0.0], [0.1, 0.0]], [[1, 2], [1, 1.3]]))
    assert history_of(beside, [0, 9], divergence="mixture")[0].estimate(2.0).effective_samples == pytest.approx(
        [0, 9]
    )  # 2 · 1.3² < 2²


@pytest.mark.parametrize("divergence", ["harmonic", "mixture", "empirical"])
@pytest.mark.parametrize("name", SPACES)
def test_effective_samples_are_never_below_the_plays_and_the_mixture_never_below_the_harmonic(name, divergence):
    space = SPACES[name]
    for seed in range(4):
        counts = np.random.default_rng(seed).integers(0, 9, space.size)
        counts[seed % space.size] += 1
        got, harmonic = (history_of(space, counts, seed, d)[0].estimate(2.0) for d in (divergence, "harmonic"))
        assert (got.effective_samples >= counts).all()
        assert (got.effective_samples <= counts.sum() * (1 + 1e-9)).all() or divergence == "empirical"
        unknown = got.log_effective_samples == -np.inf
        assert (np.isinf(got.threshold) == unknown).all()
        assert not np.isnan(got).any()
        if divergence == "mixture":
            assert (got.log_effective_samples >= harmonic.log_effective_samples - 1e-12).all()
        elif divergence == "empirical":
            assert (unknown == (harmonic.log_effective_samples == -np.inf)).all()


def test_a_divergence_of_e_to_900_stays_large_and_finite_under_the_mixture():
    space = rd.Finite(rd.Gaussian([0.0, 3.0], 0.1))
    got = history_of(space, [5, 0], divergence="mixture")[0].estimate(2.0)
    assert got.log_effective_samples[1] == pytest.approx(math.log(5) - 900)


@pytest.mark.parametrize("name", ["stds that differ", "illustrative (2, 0.1)", "categories", "two dimensions"])
def test_the_empirical_divergence_equals_its_definition(name):
    """η = 1 / (Σ (ω/m)² + (1 - Σ ω/m)₊²), what no sample saw being one weight of its own; never below T."""
    space = SPACES[name]
    counts = np.random.default_rng(11).integers(1, 9, space.size)
    counts[-1] = 0
    history, decisions, mediators, _ = history_of(space, counts, divergence="empirical")
    got = history.estimate(2.0).effective_samples
    weights = weights_by_definition(space, decisions, mediators) / len(decisions)
    for x in range(space.size):
        missing = max(1 - weights[x].sum(), 0)
        want = 1 / ((weights[x] ** 2).sum() + missing**2)
        if not np.isinf(space.family.log_renyi([x], np.flatnonzero(counts))).all():
            assert got[x] == pytest.approx(max(want, counts[x]), rel=1e-10)


# The truncation's bias


@pytest.mark.parametrize("divergence", ["harmonic", "mixture"])
@pytest.mark.parametrize("name", COUNTS)
def test_the_computed_bias_is_the_mass_beyond_the_threshold(name, divergence):
    """E_{p_x}[(1 - M Φ/p_x)₊] by quadrature, to 1% of a payoff (0.1% where all is smooth); 1 if nothing is known."""
    space, counts = SPACES[name], COUNTS[name]
    _, decisions, mediators, payoffs = history_of(space, counts)
    learner = fed(rd.Optimist, space, decisions, mediators, payoffs, divergence=divergence, bias_correction="computed")
    estimates = learner.estimates()
    bias = learner.bias(estimates)
    for x in range(space.size):
        threshold = estimates.threshold[x]
        if np.isinf(threshold):
            assert bias[x] == 1
            continue
        if estimates.log_effective_samples[x] < -100:  # p_x lies where Φ has nothing: all of its mass is cut
            assert bias[x] == pytest.approx(1)
            continue
        want = integral(space, counts, x, lambda share, M=threshold: max(0.0, 1 - M * share))
        assert bias[x] == pytest.approx(want, abs=1e-3 if name == "stds that differ" else 1e-2), x
        assert 0 <= bias[x] <= estimates.width[x] + 1e-2  # sqrt(α log t/η) is a bound on it
    np.testing.assert_allclose(
        learner.index(estimates, None)[~np.isinf(estimates.width)],
        (estimates.value + bias + math.sqrt(2) * estimates.width)[~np.isinf(estimates.width)],
    )
