"""Windows and discounts: what is forgotten counts no more, and what counts is what the definition says."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist.histories.window import LEAST_WEIGHT, span
from tests import problems
from tests.histories.cases import samples
from tests.histories.helpers import assert_same_bits, empty, told

NAMES = ["gaussians", "plane", "boxes", "categories", "mixed", "logged"]


def naive(space, decisions, mediators, payoffs, weights, confidence=2.0):
    """The estimate with weights of samples, by its definition: value, η, threshold and coverage.  (S,) each"""
    density = np.exp(space.family.log_density(None, mediators))  # (S, n)
    plays = np.bincount(decisions, weights, minlength=space.sources)
    m = plays.sum()
    divergence = np.exp(space.family.log_renyi(None, None))  # (S, S)
    eta = (plays / divergence).sum(axis=1)
    term = confidence * math.log(m + 1)
    with np.errstate(divide="ignore"):
        threshold = np.sqrt(m * (m / eta) / term)
    weight = np.minimum(threshold[:, None], density / (plays @ density / m))
    return (weight * weights * payoffs).sum(axis=1) / m, eta, threshold, (weight * weights).sum(axis=1) / m


def faded(count, window, discount):
    """What each of the samples told so far counts, the oldest first; none of those that are dropped."""
    if window is not None:
        return np.ones(min(count, window))
    weights = discount ** np.arange(count)[::-1]
    return weights[weights >= LEAST_WEIGHT]


@pytest.mark.parametrize("settings", [{"window": 37}, {"discount": 0.9}, {"discount": 0.5}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_those_of_the_definition(name, settings):
    space, (decisions, mediators, payoffs) = problems.DRAWN[name], samples(name, 200)
    history = empty(space, size=16, **settings)
    for count in range(1, 201):
        at = count - 1
        history.append(int(decisions[at]), mediators[at], float(payoffs[at]))
        if count not in (1, 36, 37, 38, 100, 200):
            continue
        weights = faded(count, settings.get("window"), settings.get("discount"))
        part = slice(count - len(weights), count)
        oracle = naive(space, decisions[part], mediators[part], payoffs[part], weights)
        estimates, K = history.estimate(2.0), space.size
        found = estimates.value, estimates.effective_samples, estimates.threshold, estimates.coverage
        for ours, theirs in zip(found, oracle, strict=True):
            np.testing.assert_allclose(ours, theirs[:K], rtol=1e-11, atol=1e-300)
        plays = np.bincount(decisions[part], weights, minlength=space.sources)
        np.testing.assert_allclose(history.plays, plays, rtol=1e-12)


@pytest.mark.parametrize("divergence", ["harmonic", "mixture", "empirical"])
@pytest.mark.parametrize("name", ["gaussians", "categories"])
def test_a_window_is_a_history_of_its_samples(name, divergence):
    space, (decisions, mediators, payoffs) = problems.DRAWN[name], samples(name, 300)
    window = told(empty(space, divergence, window=80), decisions, mediators, payoffs)
    fresh = told(empty(space, divergence), decisions[-80:], mediators[-80:], payoffs[-80:])
    for ours, theirs in zip(window.estimate(2.0), fresh.estimate(2.0), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11)
    ours, theirs = window.estimate(2.0), fresh.estimate(2.0)
    np.testing.assert_allclose(
        window.standard_error(ours.value, ours), fresh.standard_error(theirs.value, theirs), rtol=1e-9
    )


def test_the_standard_error_counts_the_squares_of_discounts():
    """Of one decision's own payoffs it is sqrt(Σ g² (y - ȳ)²) / Σ g."""
    space, gamma = rd.Finite(rd.Gaussian([0.0], 1.0)), 0.8
    payoffs = np.random.default_rng(0).random(50)
    history = told(empty(space, estimator="self-normalised", discount=gamma), np.zeros(50), np.zeros(50), payoffs)
    estimates, weights = history.estimate(2.0), gamma ** np.arange(50)[::-1]
    mean = weights @ payoffs / weights.sum()
    assert estimates.value[0] == pytest.approx(mean, rel=1e-12)
    error = math.sqrt(np.sum(weights**2 * (payoffs - mean) ** 2)) / weights.sum()
    assert history.standard_error(estimates.value, estimates)[0] == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("settings", [{"window": 30}, {"window": 500}, {"discount": 0.7}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_many_at_once_and_a_load_are_the_same_bits(name, settings):
    space, (decisions, mediators, payoffs) = problems.DRAWN[name], samples(name, 120)
    one = told(empty(space, size=8, **settings), decisions, mediators, payoffs)
    several, loaded = empty(space, size=8, **settings), empty(space, size=8, **settings)
    for part in np.split(np.arange(120), [1, 20, 95]):
        several.extend(decisions[part], mediators[part], payoffs[part])
    loaded.restore(one.state(), decisions[-60:] if settings.get("window") == 30 else decisions, *(
        (mediators[-60:], payoffs[-60:]) if settings.get("window") == 30 else (mediators, payoffs)
    ))  # fmt: skip
    for other in (several, loaded):
        assert_same_bits(tuple(one.estimate(2.0)), tuple(other.estimate(2.0)))
        assert_same_bits(one.state(), other.state())
    for history in (one, several, loaded):
        history.append(int(decisions[0]), mediators[0], 0.5)
    assert_same_bits(tuple(one.estimate(2.0)), tuple(loaded.estimate(2.0)))


def test_memory_is_bounded():
    space = problems.GRID
    rng = np.random.default_rng(0)
    decisions = rng.integers(space.size, size=5000)
    history = empty(space, window=100)
    history.extend(decisions, space.family.sample(decisions, rng), rng.random(5000))
    for _ in range(300):
        history.append(3, 0.0, 0.5)
    assert sum(block.ratios.size for block in history.columns.earlier) == 100 * space.size
    assert len(history) == 5300
    assert history.samples == 100
    assert history.plays.sum() == 100


def test_a_sample_beyond_float64_is_capped():
    space = problems.NEAR_SINGULAR
    history = told(empty(space, window=5), [0, 0, 2], [5.0, 0.0, 3.0], [1.0, 0.25, 0.5])
    estimates = history.estimate(2.0)
    assert all(np.isfinite(entry).all() for entry in (estimates.value, estimates.coverage))


@pytest.mark.parametrize(
    ("window", "discount", "samples_"),
    [(None, None, None), (1, None, 1), (7, None, 7), (None, 0.5, 20), (None, 0.999, 13809)],
)
def test_span(window, discount, samples_):
    assert span(window, discount) == samples_
    if discount is not None:
        assert discount ** (samples_ - 1) >= LEAST_WEIGHT > discount**samples_


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 0},
        {"window": -3},
        {"window": 2.5},
        {"window": True},
        {"discount": 0.0},
        {"discount": 1.0},
        {"discount": 1.5},
        {"discount": "much"},
        {"discount": 1 - 1e-12},
        {"window": 10**12},
        {"window": 5, "discount": 0.9},
    ],
    ids=str,
)
def test_bad_settings(settings):
    with pytest.raises(rd.errors.ParameterError):
        rd.Randomist(problems.GAUSSIANS, **settings)
