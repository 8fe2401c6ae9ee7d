"""The standard error of a weighted mean, and REALIST, which decides by it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import randomist as rd
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


def k_inf(payoffs, shares, level):
    """min of KL to a distribution on [0, 1] with this mean, by its dual and a solver without derivatives."""
    gain = (payoffs - level) / (1 - level)
    found = minimize_scalar(
        lambda stake: -np.sum(shares * np.log(np.maximum(1 - stake * gain, 1e-300))),
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-13},
    )
    return max(-found.fun, float(shares @ np.log(np.maximum(1 - gain, 1e-300))), 0.0)


@pytest.mark.parametrize("name", ["stds that differ", "illustrative (2, 0.1)", "uniform against Dirac"])
def test_realists_index_is_its_equation(name):
    """-η K_inf(F̂, μ*) - log η for all that may be played; those that cannot are below the leader's, by a bound."""
    space, exact = SPACES[name], 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        _, decisions, mediators, _ = history_of(space, rng.integers(1, 9, space.size), seed)
        payoffs = rng.choice([0.0, 0.3, 0.6, 0.9], len(decisions))  # each has a bin of its own
        learner = fed(rd.Realist, space, decisions, mediators, payoffs)
        estimates = learner.estimates()
        index = learner.index(estimates, None)
        weights, best = weights_by_definition(space, decisions, mediators), estimates.value.max()
        for x in range(space.size):
            w, eta = np.minimum(estimates.threshold[x], weights[x]), estimates.effective_samples[x]
            assert estimates.value[x] == pytest.approx((w * payoffs).sum() / w.sum(), rel=1e-9)
            behind = estimates.value[x] < best
            want = -eta * (k_inf(payoffs, w / w.sum(), best) if behind else 0.0) - math.log(eta)
            if index[x] == pytest.approx(want, rel=1e-6):
                exact += behind
            else:
                assert behind
                assert want < index[x] < index.max()
    assert exact >= 2  # the equation itself was tested


def test_realist_plays_what_it_knows_least_of_first():
    space = rd.Finite(rd.Gaussian([0.0, 5.0, 50.0], 1.0))
    learner = rd.Realist(space, first=0)
    played = []
    for _ in range(3):
        trial = learner.ask()
        played.append(trial.decision)
        learner.tell(trial, 0.5)
    assert played == [0, 2, 1]  # e^-2500 effective samples before e^-25


def test_settings_of_the_first_version_are_no_more():
    for setting in ("deviation", "caution", "minimum"):
        with pytest.raises(TypeError, match=setting):
            rd.Realist(SPACES["stds that differ"], **{setting: 0.5})
    learner = fed(rd.Realist, *(SPACES["categories"], *history_of(SPACES["categories"], [3, 4, 2])[1:]))
    state = learner.state()
    state["settings"] = state["settings"] | {"deviation": 0.7, "caution": 0.1, "minimum": 0.3}
    np.testing.assert_array_equal(rd.load(state).estimates(), learner.estimates())


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_most_likely_decisions_are_enough(at_once, monkeypatch):
    """K_inf in portions, until no bound is below what was found: the same choice as of all of them."""
    space = rd.Finite.grid(rd.Gaussian(std=0.15), low=-1, high=1, points=40)
    learner, rng = rd.Realist(space, seed=1), np.random.default_rng(2)
    for _ in range(60):
        whole = learner.index(learner._unit_estimates(), rng) if learner.told else None
        if whole is not None:
            with monkeypatch.context() as patched:
                patched.setattr("randomist.learners.finite.realist.AT_ONCE", at_once)
                part = learner.index(learner._unit_estimates(), rng)
            assert np.argmax(part) == np.argmax(whole)
            assert part.max() == whole.max()
            assert (part >= whole - 1e-9).all()  # what was not computed has a bound
        trial = learner.ask()
        learner.tell(trial, float(np.clip(0.6 - trial.mediator**2 + 0.2 * rng.standard_normal(), 0, 1)))
