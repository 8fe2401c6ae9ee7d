"""Quantiles and CVaR: against brute force on the bands, and the truth on many logs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import randomist as rd
from randomist import errors

LOGGER, NEW = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
SHAPES = np.array([[2.0, 5.0], [3.0, 3.0], [0.6, 0.5]])  # of beta distributions: the last one is risky


def log(rows, seed, payoff_range=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    action = rng.choice(3, size=rows, p=LOGGER)
    low, high = payoff_range
    payoff = low + (high - low) * rng.beta(*SHAPES[action].T)
    likelihoods = {"new": np.log(NEW)[action]}
    return rd.Log.from_arrays(payoff, likelihoods, log_propensities=np.log(LOGGER)[action], payoff_range=payoff_range)


def true_cvar(share, count=400_001):
    grid = np.linspace(0.0, 1.0, count)
    distribution = sum(p * stats.beta.cdf(grid, *shape) for p, shape in zip(NEW, SHAPES, strict=True))
    levels = (np.arange(100_000) + 0.5) / 100_000 * share
    return float(np.interp(levels, distribution, grid).mean())


def test_bands_quantiles_and_cvar_hold_the_truth():
    """60 logs at level 0.8: all of it in most; if it held 80% of the time, fewer would be seen 1 time in 1,000."""
    held, right = 0, true_cvar(0.1)
    for seed in range(60):
        found = log(1500, seed).risk(level=0.8, thresholds=24, weight_bounds=2.5)
        truth = sum(p * stats.beta.cdf(found.thresholds, *shape) for p, shape in zip(NEW, SHAPES, strict=True))
        low, high = found.cvar(0.1)
        inside = ((found.low[0] <= truth + 1e-12) & (truth <= found.high[0] + 1e-12)).all()
        held += bool(inside and low[0] <= right <= high[0])
    assert held >= stats.binom.ppf(1e-3, 60, 0.8)
    assert high[0] - low[0] < 0.2
    median = found.quantile(0.5)
    assert median[0][0] < np.interp(0.5, truth, found.thresholds) < median[1][0]


def brute(values, distribution, share, samples=200_001):
    """The mean of the worst share, by its quantile function at many levels."""
    levels = (np.arange(samples) + 0.5) / samples * share
    full = distribution.copy()
    full[-1] = 1.0
    return values[np.minimum(np.searchsorted(full, levels - 1e-15), len(values) - 1)].mean()


def test_cvar_is_the_mean_of_the_worst_quantiles():
    found = log(2000, 1, payoff_range=(-2.0, 3.0)).risk(thresholds=16)
    before = np.concatenate([[-2.0], found.thresholds[:-1]])
    for share in (0.05, 0.1, 0.5):
        low, high = found.cvar(share)
        assert low[0] == pytest.approx(brute(before, found.high[0], share), abs=1e-3)
        assert high[0] == pytest.approx(brute(found.thresholds, found.low[0], share), abs=1e-3)
        assert (found.quantile(share)[0] >= low).all()
        assert (found.quantile(share)[1] >= high).all()
    assert (np.diff(found.low, axis=1) >= 0).all()
    assert (np.diff(found.high, axis=1) >= 0).all()
    weight = (NEW / LOGGER)[0]
    assert weight < 1
    assert found.estimate[0, -1] == pytest.approx(1.0)


def test_wrong_settings():
    with pytest.raises(errors.ParameterError, match="share"):
        log(100, 0).risk(thresholds=4).cvar(1.5)
    with pytest.raises(errors.ParameterError, match="thresholds"):
        log(100, 0).risk(thresholds=1)
