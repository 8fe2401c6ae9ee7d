"""The standard error of a weighted mean, and REALIST, which decides by it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from tests.histories.cases import SPACES, fed, history_of, weights_by_definition
from tests.histories.helpers import empty


@pytest.mark.parametrize("name", ["stds that differ", "illustrative (2, 0.1)", "categories", "two dimensions"])
def test_the_standard_error_equals_its_definition(name):
    """sqrt(Σ w² (y - ȳ)²) / Σ w with w = min(M, ω), sample by sample."""
    space = SPACES[name]
    counts = np.random.default_rng(12).integers(1, 12, space.size)
    history, decisions, mediators, payoffs = history_of(space, counts, divergence="mixture")
    weights = weights_by_definition(space, decisions, mediators)
    estimates = history.estimate(2.0)
    mean = np.array([estimates.value[x] / estimates.coverage[x] for x in range(space.size)])
    got = history.standard_error(mean, estimates)
    for x in range(space.size):
        w = np.minimum(estimates.threshold[x], weights[x])
        average = (w * payoffs).sum() / w.sum()
        want = math.sqrt((w**2 * (payoffs - average) ** 2).sum()) / w.sum()
        assert got[x] == pytest.approx(want, rel=1e-7)


def test_the_standard_error_of_own_samples_is_the_textbooks():
    """Disjoint mediators, and so many plays that nothing is cut: the standard deviation over sqrt(T)."""
    space = rd.Finite(rd.Dirac([0.0, 1.0]))
    history, rng = empty(space, "mixture"), np.random.default_rng(0)
    payoffs = rng.random(60)
    for i, payoff in enumerate(payoffs):
        history.append(i % 2, float(i % 2), float(payoff))
    estimates = history.estimate(2.0)
    own = [payoffs[0::2], payoffs[1::2]]
    mean = np.array([y.mean() for y in own])
    want = [y.std() / math.sqrt(30) for y in own]
    np.testing.assert_allclose(history.standard_error(mean, estimates), want, rtol=1e-9)


@pytest.mark.parametrize("name", ["stds that differ", "illustrative (2, 0.1)", "uniform against Dirac"])
def test_realists_index_is_its_equation(name):
    space = SPACES[name]
    counts = np.random.default_rng(3).integers(1, 9, space.size)
    _, decisions, mediators, payoffs = history_of(space, counts)
    settings = {"deviation": 0.9, "caution": 0.2, "minimum": 1.3}
    learner = fed(rd.Realist, space, decisions, mediators, payoffs, **settings)
    estimates = learner.estimates()
    index = learner.index(estimates, None)
    weights, t = weights_by_definition(space, decisions, mediators), len(decisions) + 1
    few = 0
    for x in range(space.size):
        w, eta = np.minimum(estimates.threshold[x], weights[x]), estimates.effective_samples[x]
        mean = (w * payoffs).sum() / w.sum()
        error = math.sqrt((w**2 * (payoffs - mean) ** 2).sum()) / w.sum()
        room = math.log(1 + t / eta)
        caution = 0.2 + 0.8 * math.exp(-eta * error**2 / 0.01**2)
        want = mean + math.sqrt(0.9 * room) * error + caution * room / eta
        few += eta < 1.3 * math.log(t)
        assert index[x] == pytest.approx(math.inf if eta < 1.3 * math.log(t) else want, rel=1e-6)
    assert few < space.size  # the equation itself was tested


def test_realist_plays_what_it_knows_least_of_first():
    space = rd.Finite(rd.Gaussian([0.0, 5.0, 50.0], 1.0))
    learner = rd.Realist(space, first=0, minimum=1.0)
    played = []
    for _ in range(3):
        trial = learner.ask()
        played.append(trial.decision)
        learner.tell(trial, 0.5)
    assert played == [0, 2, 1]  # e^-2500 effective samples before e^-25


@pytest.mark.parametrize("setting", ["deviation", "caution", "minimum"])
def test_realists_settings_are_checked(setting):
    for bad in (-1.0, math.nan, math.inf, "much"):
        with pytest.raises(ParameterError, match=rf"{setting} must be a (finite )?number >= 0"):
            rd.Realist(SPACES["stds that differ"], **{setting: bad})
