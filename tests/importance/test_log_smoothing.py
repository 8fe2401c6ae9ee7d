"""Logarithmic smoothing against its definition, (1/m) Σ_i M log(1 + ω_i y_i / M), for every kind of samples."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from tests import naive, problems
from tests.histories.cases import SPACES, fed, history_of, samples
from tests.histories.helpers import columns, empty, told


def smoothed(log_density, thresholds, sources, payoffs):
    """The definition and MIS in 60 digits, of log-densities of S sources at m samples, and a threshold for each x."""
    m, values, untruncated = len(payoffs), [], []
    p = [[mpmath.exp(mpmath.mpf(float(v))) if np.isfinite(v) else mpmath.mpf(0) for v in row] for row in log_density]
    phi = [mpmath.fsum(p[j][i] for j in sources) / m for i in range(m)]
    for x, M in enumerate(thresholds):
        gains = [p[x][i] / phi[i] * mpmath.mpf(float(payoffs[i])) for i in range(m)]  # ω y
        values.append(mpmath.fsum(M * mpmath.log1p(gain / M) for gain in gains) / m)
        untruncated.append(mpmath.fsum(gains) / m)
    return values, untruncated


def assert_smoothed(space, decisions, mediators, payoffs, divergence="harmonic", rtol=1e-10):
    """Of a history of these samples: the definition, and never above what importance sampling without a cut says."""
    estimates = told(empty(space, divergence, "log-smoothing"), decisions, mediators, payoffs).estimate(1.7)
    known = np.flatnonzero(np.isfinite(estimates.threshold))
    log_density = space.family.log_density(None, mediators)
    order = [*known, *(k for k in range(len(log_density)) if k not in known)]  # those with a threshold first
    sources = [order.index(decision) for decision in decisions]
    thresholds = [mpmath.mpf(float(estimates.threshold[x])) for x in known]
    want, untruncated = smoothed(log_density[order], thresholds, sources, payoffs)
    for x, exact, most in zip(known, want, untruncated, strict=True):
        assert abs(float(estimates.value[x]) - exact) <= rtol * exact + mpmath.mpf(10) ** -290, (x, estimates.value[x])
        assert estimates.value[x] <= most * (1 + rtol)
    assert len(known)
    return estimates


@pytest.mark.parametrize("divergence", ["harmonic", "mixture", "empirical"])
@pytest.mark.parametrize("name", SPACES)
def test_values_equal_the_definition(name, divergence):
    counts = np.random.default_rng(5).integers(1, 12, SPACES[name].size)
    _, *sampled = history_of(SPACES[name], counts)
    assert_smoothed(SPACES[name], *sampled, divergence)


@pytest.mark.parametrize("seed", range(4))
def test_samples_beyond_float64(seed):
    """Log-ratios of thousands between those that were played; weights stay below e^600, as they do in practice."""
    rng = np.random.default_rng(seed)
    log_table = rng.uniform(-1e4, 1e4, (5, 9))
    log_table[rng.random((5, 9)) < 0.3] = -np.inf
    log_table[:, 0] = rng.uniform(-5, 5, 5)
    log_table[3:] = np.minimum(log_table[3:], log_table[:3].min(axis=0) + 600)
    divergences = rng.uniform(0, 50, (5, 5))
    np.fill_diagonal(divergences, 0)
    space = rd.Finite(naive.Table(log_table, divergences))
    decisions = rng.choice(5, 40, p=[0.5, 0.3, 0.2, 0, 0])
    mediators = space.family.sample(decisions, rng)
    assert_smoothed(space, decisions, mediators, rng.random(40))
    history = told(empty(space, "harmonic", "log-smoothing"), decisions, mediators, rng.random(40))
    assert len(history.columns.distant) > 3


def test_repeated_mediators_with_other_payoffs_are_not_averaged():
    """The logarithm of a mean is not the mean of logarithms: samples are one where their payoffs are equal, too."""
    decisions, mediators, _ = samples("categories", 150)
    payoffs = np.random.default_rng(1).choice([0.0, 0.1, 0.9], size=150)
    estimates = assert_smoothed(problems.CATEGORIES, decisions, mediators, payoffs)
    history = told(empty(problems.CATEGORIES, "harmonic", "log-smoothing"), decisions, mediators, payoffs)
    pairs = {(int(z), float(y)) for z, y in zip(mediators, payoffs, strict=True)}
    assert columns(history) == len(pairs) == 12  # four categories, three payoffs
    averaged = {z: np.mean(payoffs[mediators == z]) for z in range(4)}
    mean = told(
        empty(problems.CATEGORIES, "harmonic", "log-smoothing"), decisions, mediators, [averaged[z] for z in mediators]
    )
    assert (mean.estimate(1.7).value > estimates.value * 1.001).all()  # which would have shown


@pytest.mark.parametrize("keep", [True, False])
def test_a_range_that_grows_does_not_take_new_payoffs_for_old_ones(keep):
    """A payoff of 1 is the best of [0, 1] before, and the middle of [0, 2] after it grew, where 2 is the best."""
    decisions, mediators, _ = samples("categories", 60)
    payoffs = np.where(np.arange(60) < 30, 1.0, 2.0) * (np.arange(60) % 3 > 0)
    settings = {"estimator": "log-smoothing", "seed": 0}
    known = fed(rd.FollowTheLeader, problems.CATEGORIES, decisions, mediators, payoffs, payoff_range=(0, 2), **settings)
    running = rd.FollowTheLeader(problems.CATEGORIES, payoff_range="running", keep_record=keep, **settings)
    for n, told_ in enumerate(zip(decisions.tolist(), mediators.tolist(), payoffs.tolist(), strict=True)):
        running.adopt(rd.Trial(n, *told_[:2]))
        running.tell(n, told_[2])
        if n in (10, 31, 45):
            running = rd.load(running.state())
    np.testing.assert_allclose(running.estimates().value, known.estimates().value, rtol=1e-10)
    assert columns(running.history) < 60


@pytest.mark.parametrize("density", ["full", "one-step"])
@pytest.mark.parametrize("name", ["line", "rectangle"])
def test_in_a_box(name, density):
    space, rng = problems.BOXED[name], np.random.default_rng(0)
    learner = rd.MCMCRandomist(space, estimator="log-smoothing", density=density, payoff_range=(-1, 3), seed=2)
    for _ in range(25):
        trial = learner.ask()
        learner.tell(trial, 4 * problems.payoff(trial) - 1)
    record = learner.record
    points = np.concatenate([record.decisions, rng.uniform(space.low, space.high, (5, *space.family.shape))])
    got = learner.estimate(points)
    family = space.family.at(points)
    want, most = smoothed(
        family.log_density(None, record.mediators),
        [mpmath.mpf(float(M)) for M in got.threshold],
        list(range(25)),
        (record.payoffs + 1) / 4,
    )
    for x in range(len(points)):
        value = (got.value[x] + 1) / 4
        assert abs(value - want[x]) <= 1e-10 + 1e-9 * want[x]
        assert value <= most[x] * (1 + 1e-9) + 1e-10


@pytest.mark.parametrize("divergence", ["harmonic", "mixture"])
@pytest.mark.parametrize("seed", range(6))
def test_what_it_lacks_in_expectation_is_at_most_half_a_width(seed, divergence):
    """Every outcome of a few plays, fixed in advance, with its probability: no draw, no tolerance but rounding."""
    rng = np.random.default_rng(seed)
    mass, payoffs = rng.dirichlet(np.full(3, 0.7), 3), rng.random(3) ** 0.3
    plays = [0, 0, 1, 1] if seed % 2 else [0, 1, 1, 2]
    space, expected = rd.Finite(rd.Categorical(mass)), np.zeros(3)
    for outcome in itertools.product(range(3), repeat=len(plays)):
        probability = math.prod(mass[x, z] for x, z in zip(plays, outcome, strict=True))
        history = told(empty(space, divergence, "log-smoothing"), plays, outcome, payoffs[list(outcome)])
        estimates = history.estimate(2.0)
        expected += probability * estimates.value
    lack = mass @ payoffs - expected
    assert (lack >= -1e-12).all()
    assert (lack <= 0.5 * estimates.width + 1e-12).all()
    assert lack.max() > 0.05  # there is something to see


def test_where_payoffs_have_no_range_it_is_refused():
    for make, space in ((rd.Optimist, problems.GAUSSIANS), (rd.MCMCRandomist, problems.LINE)):
        with pytest.raises(ParameterError, match="log-smoothing estimator needs to know the range of payoffs"):
            make(space, estimator="log-smoothing", payoff_range=(-math.inf, math.inf))
        assert make(space, estimator="log-smoothing", payoff_range="running").payoff_range == "running"


def test_with_per_decision_weights_it_is_refused():
    with pytest.raises(ParameterError, match=r"log-smoothing estimator is no sum over steps.*trajectory"):
        rd.Randomist(problems.PER_DECISION, estimator="log-smoothing")
