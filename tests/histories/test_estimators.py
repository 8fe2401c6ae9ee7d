"""Beyond the paper's estimates: optimistic and self-normalised values, exact divergences, computed biases, REALIST."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate

import randomist as rd
from randomist.errors import ParameterError
from randomist.histories.finite import SharedHistory
from tests import naive
from tests.problems import BESIDE_AN_ATOM, CATEGORIES, GAUSSIANS, NARROW

SPACES = {
    "stds that differ": rd.Finite(rd.Gaussian([0.0, 0.4, -0.3, 1.0], [1.0, 0.8, 1.3, 0.75])),
    "illustrative (2, 0.1)": GAUSSIANS,
    "illustrative (0.1, 2)": rd.Finite(rd.Gaussian([0, 1, 2, 2.95, 3], [0.1, 0.1, 0.1, 2, 0.1])),
    "illustrative (0.1, 0.1)": NARROW,
    "uniform boxes, partly disjoint": rd.Finite(rd.Uniform([0, 0.5, 3, 0.2], [1, 2, 4, 0.9])),
    "categories": CATEGORIES,
    "uniform against Dirac": BESIDE_AN_ATOM,
    "Gaussian, Uniform and Dirac": rd.Finite([rd.Gaussian(0.3, 0.7), rd.Uniform(-0.5, 1), rd.Dirac(0.25)]),
    "two dimensions": rd.Finite(rd.Gaussian([[0, 10], [0.5, 8], [-0.4, 14]], [[1, 3], [0.9, 4], [1.2, 5]])),
}


def history_of(space, counts, seed=0, nodes=True):
    """A history with these plays of every decision, in a shuffled order, and payoffs that depend on the mediator."""
    rng = np.random.default_rng(seed)
    decisions = rng.permutation(np.repeat(np.arange(space.size), counts))
    mediators = space.family.sample(decisions, rng)
    payoffs = 0.5 + 0.5 * np.sin(3 * mediators.reshape(len(decisions), -1).sum(axis=1))
    history = SharedHistory(space, nodes=nodes)
    for decision, mediator, payoff in zip(decisions.tolist(), mediators, payoffs.tolist(), strict=True):
        history.append(decision, mediator, payoff)
    return history, decisions, mediators, payoffs


def fed(cls, space, decisions, mediators, payoffs, **settings):
    """A learner whose history is this one, whatever it would have played."""
    learner = cls(space, **settings)
    for id_, (decision, mediator, payoff) in enumerate(zip(decisions.tolist(), mediators, payoffs, strict=True)):
        learner._adopt(rd.Trial(id_, decision, mediator))
        learner.tell(id_, float(payoff))
    return learner


def weights_by_definition(space, decisions, mediators):
    """ω_x(z_i) = p_x(z_i) / Φ(z_i), a loop for each.  (K, m)"""
    density = np.exp(space.family.log_density(None, mediators))
    m = len(decisions)
    weights = np.empty((space.size, m))
    for i in range(m):
        mixture = sum(density[j, i] for j in decisions) / m
        for x in range(space.size):
            weights[x, i] = density[x, i] / mixture
    return weights


# Values


@pytest.mark.parametrize("name", SPACES)
def test_values_equal_their_definitions(name):
    """The optimistic value is 1 minus the paper's estimate of the loss, in 60 digits; the other a weighted mean."""
    space = SPACES[name]
    counts = np.random.default_rng(5).integers(0, 12, space.size)
    _, decisions, mediators, payoffs = history_of(space, counts)
    family = space.family
    table = family.log_density(None, mediators), family.log_renyi(None, None), decisions
    loss, gain = naive.estimates(*table, 1 - payoffs, 1.7), naive.estimates(*table, payoffs, 1.7)
    optimistic = fed(
        rd.FollowTheLeader, space, decisions, mediators, payoffs, estimator="optimistic", confidence=1.7
    ).estimates()
    mean = fed(
        rd.FollowTheLeader, space, decisions, mediators, payoffs, estimator="self-normalised", confidence=1.7
    ).estimates()
    for x in range(space.size):
        want = 1 - loss["value"][x] if loss["effective_samples"][x] else mpmath.mpf(1)
        assert abs(optimistic.value[x] - want) <= 1e-11 * max(1, abs(want)), (x, optimistic.value[x], want)
        weighed = gain["value"][x] / gain["coverage"][x] if gain["coverage"][x] > 1e-300 else 0
        assert abs(mean.value[x] - weighed) <= 1e-9, (x, mean.value[x], weighed)
        assert 0 <= mean.value[x] <= 1  # a mean of payoffs


def test_the_optimistic_value_is_one_where_nothing_is_known_and_no_opening_is_needed():
    space = SPACES["illustrative (2, 0.1)"]
    learner = rd.FollowTheLeader(space, estimator="optimistic", first=3)
    np.testing.assert_array_equal(learner.estimates().value, 1.0)  # before the first payoff too
    trial = learner.ask()
    assert trial.decision == 3
    learner.tell(trial, 0.2)
    estimates = learner.estimates()
    assert estimates.log_effective_samples[:3].tolist() == [-np.inf] * 3  # N(2.95, 0.1²) says nothing of the others
    assert estimates.value[[0, 1, 2, 4]].tolist() == [1.0] * 4
    assert estimates.value[3] == pytest.approx(1 - 0.8 * min(1 / math.sqrt(2 * math.log(2)), 1))
    assert {rd.FollowTheLeader(space, estimator="optimistic", seed=s).ask().decision for s in range(60)} == {*range(5)}
    for settings in ({}, {"estimator": "self-normalised"}):  # these do need Remark 1's
        assert [t.decision for t in rd.FollowTheLeader(space, **settings).ask(batch=4)] == [0, 1, 2, 4]


@pytest.mark.parametrize("cls", [rd.FollowTheLeader, rd.Optimist, rd.Randomist])
def test_optimistic_learners_reach_every_decision_that_nothing_is_known_of(cls):
    """Disjoint mediators, losses wherever one plays: unknown decisions are worth 1, so all are played.

    RANDOMIST's only coin for such a decision decides it: 50 rounds leave one out with probability below 1e-12.
    """
    space = rd.Finite(rd.Dirac(np.arange(6.0)))
    learner = cls(space, estimator="optimistic", seed=3)
    for _ in range(50 if cls is rd.Randomist else 6):
        learner.tell(learner.ask(), 0.0)
    assert (learner.estimates().plays >= 1).all()


def test_the_optimistic_value_is_not_confused_by_the_scale_of_payoffs():
    """The same losses on another scale have the same values: 1 is the top of the range."""
    space = SPACES["stds that differ"]
    _, decisions, mediators, payoffs = history_of(space, [4, 0, 7, 2])
    unit = fed(rd.Optimist, space, decisions, mediators, payoffs, estimator="optimistic")
    other = fed(
        rd.Optimist, space, decisions, mediators, 30 * payoffs - 7, estimator="optimistic", payoff_range=(-7, 23)
    )
    np.testing.assert_allclose(unit.estimates().value, other.estimates().value, rtol=1e-12)


# Divergences

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
    history = history_of(space, counts)[0]
    got, harmonic = history.estimate(2.0, "mixture"), history.estimate(2.0)
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
    got = history_of(space, counts)[0].estimate(2.0, "mixture")
    mixture = counts @ mass / 5
    want = 5 / (mass**2 / mixture).sum(axis=1)
    np.testing.assert_allclose(got.effective_samples, want, rtol=1e-13)
    harmonic = history_of(space, counts)[0].estimate(2.0)
    assert harmonic.effective_samples[0] == 0  # neither (1, 0, 0) nor (0, 0.7, 0.3) covers (0.5, 0.5, 0)
    assert want[0] > 1  # but together they do


def test_the_mixture_divergence_in_two_dimensions():
    """Draws, so loosely: within 10% of a fine grid, and infinite only where it is."""
    space, counts = SPACES["two dimensions"], np.array([3, 8, 2])
    got = history_of(space, counts)[0].estimate(2.0, "mixture")
    x, y = np.meshgrid(np.linspace(-12, 12, 1201), np.linspace(-30, 50, 1201), indexing="ij")
    density = np.exp(space.family.log_density(None, np.stack([x.ravel(), y.ravel()], axis=1)))
    area = (24 / 1200) * (80 / 1200)
    want = 13 / ((density**2 / (counts @ density / 13)).sum(axis=1) * area)
    np.testing.assert_allclose(got.effective_samples, want, rtol=0.1)
    alone = history_of(rd.Finite(rd.Gaussian([[0.0, 0.0], [0.1, 0.0]], [[1, 2], [1, 1.3]])), [0, 9])[0]
    assert alone.estimate(2.0, "mixture").effective_samples == pytest.approx([0, 9])  # 2 · 1.3² < 2²


@pytest.mark.parametrize("divergence", ["harmonic", "mixture", "empirical"])
@pytest.mark.parametrize("name", SPACES)
def test_effective_samples_are_never_below_the_plays_and_the_mixture_never_below_the_harmonic(name, divergence):
    space = SPACES[name]
    for seed in range(4):
        counts = np.random.default_rng(seed).integers(0, 9, space.size)
        counts[seed % space.size] += 1
        history = history_of(space, counts, seed)[0]
        got, harmonic = history.estimate(2.0, divergence), history.estimate(2.0)
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
    got = history_of(space, [5, 0])[0].estimate(2.0, "mixture")
    assert got.log_effective_samples[1] == pytest.approx(math.log(5) - 900)


@pytest.mark.parametrize("name", ["stds that differ", "illustrative (2, 0.1)", "categories", "two dimensions"])
def test_the_empirical_divergence_equals_its_definition(name):
    """η = 1 / (Σ (ω/m)² + (1 - Σ ω/m)₊²), what no sample saw being one weight of its own; never below T."""
    space = SPACES[name]
    counts = np.random.default_rng(11).integers(1, 9, space.size)
    counts[-1] = 0
    history, decisions, mediators, _ = history_of(space, counts)
    got = history.estimate(2.0, "empirical").effective_samples
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


def test_the_bias_correction_is_what_the_estimator_needs_by_default():
    space = SPACES["stds that differ"]
    _, *told = history_of(space, [4, 0, 7, 2])
    for estimator, factor in (("paper", 1.0), ("optimistic", 0.0), ("self-normalised", 0.0)):
        learner = fed(rd.Randomist, space, *told, estimator=estimator)
        np.testing.assert_allclose(learner.bias(learner.estimates()), factor * learner.estimates().width)
    for given, factor in (("paper", 1.0), (0.3, 0.3), (0, 0.0)):
        learner = fed(rd.Randomist, space, *told, estimator="optimistic", bias_correction=given)
        np.testing.assert_allclose(learner.bias(learner.estimates()), factor * learner.estimates().width)


# The standard error and REALIST


@pytest.mark.parametrize("name", ["stds that differ", "illustrative (2, 0.1)", "categories", "two dimensions"])
def test_the_standard_error_equals_its_definition(name):
    """sqrt(Σ w² (y - ȳ)²) / Σ w with w = min(M, ω), sample by sample."""
    space = SPACES[name]
    counts = np.random.default_rng(12).integers(1, 12, space.size)
    history, decisions, mediators, payoffs = history_of(space, counts)
    weights = weights_by_definition(space, decisions, mediators)
    estimates = history.estimate(2.0, "mixture")
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
    history, rng = SharedHistory(space, nodes=True), np.random.default_rng(0)
    payoffs = rng.random(60)
    for i, payoff in enumerate(payoffs):
        history.append(i % 2, float(i % 2), float(payoff))
    estimates = history.estimate(2.0, "mixture")
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
        with pytest.raises(ParameterError, match=rf"{setting} must be a number >= 0"):
            rd.Realist(SPACES["stds that differ"], **{setting: bad})


# Save and load, and errors


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (rd.Realist, {}),
        (rd.Optimist, {"divergence": "mixture", "bias_correction": "computed"}),
        (rd.Randomist, {"estimator": "optimistic", "divergence": "mixture"}),
        (rd.Randomist, {"bias_correction": "computed"}),
    ],
)
@pytest.mark.parametrize("name", ["stds that differ", "Gaussian, Uniform and Dirac", "categories"])
def test_a_loaded_learner_with_nodes_goes_on_bit_for_bit(cls, settings, name):
    task, rng = SPACES[name], np.random.default_rng(4)
    payoffs = rng.random(80)
    learner = cls(task, seed=5, **settings)
    for payoff in payoffs[:40]:
        learner.tell(learner.ask(), float(payoff))
    state = learner.state()
    np.testing.assert_array_equal(state["caches"]["node_mixture"], learner.history.nodes.mixture)
    loaded = rd.load(state)
    assert loaded.history.nodes is not learner.history.nodes
    for payoff in payoffs[40:]:
        trials = [each.ask() for each in (learner, loaded)]
        assert trials[0] == trials[1]
        for each, trial in zip((learner, loaded), trials, strict=True):
            each.tell(trial, float(payoff))
    np.testing.assert_array_equal(learner.estimates(), loaded.estimates())
    np.testing.assert_array_equal(learner.history.nodes.mixture, loaded.history.nodes.mixture)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "pessimistic"}, "estimator must be one of 'paper', 'optimistic', 'self-normalised', got"),
        ({"estimator": None}, "estimator must be one of"),
        ({"divergence": "exact"}, "divergence must be one of 'harmonic', 'mixture', 'empirical'"),
        ({"bias_correction": "none"}, "bias_correction must be"),
        ({"bias_correction": -0.1}, "bias_correction must be"),
        ({"bias_correction": math.nan}, "bias_correction must be"),
        ({"bias_correction": True}, "bias_correction must be"),
        ({"estimator": "optimistic", "payoff_range": (-math.inf, math.inf)}, "needs to know the best payoff"),
    ],
)
@pytest.mark.parametrize("cls", [rd.FollowTheLeader, rd.Optimist, rd.Randomist, rd.Realist])
def test_settings_that_make_no_sense_are_refused(cls, settings, message):
    with pytest.raises(ParameterError, match=message):
        cls(SPACES["stds that differ"], **settings)


def test_an_unknown_range_is_no_obstacle_when_it_is_learned():
    learner = rd.FollowTheLeader(SPACES["stds that differ"], estimator="optimistic", payoff_range="running")
    for payoff in (-3.0, 40.0, 12.0, 7.0):
        learner.tell(learner.ask(), payoff)
    assert np.isfinite(learner.estimates().value).all()
