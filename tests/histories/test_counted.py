"""Counted samples: what repeats is summed up, and the estimates are those of storing every sample."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import randomist as rd
from randomist.importance import perturbation
from tests.histories.helpers import columns, empty

RNG = np.random.default_rng(5)
TABLE = RNG.dirichlet(np.full(6, 0.5), size=4)
TABLE[1, 2], TABLE[1, 3] = 0.0, TABLE[1, 2] + TABLE[1, 3]


@dataclass(frozen=True, eq=False)
class Stored(rd.Categorical):
    """A Categorical whose samples are stored one by one: the oracle."""

    discrete: ClassVar[bool] = False


def grown(space, rounds, seed=0, **settings):
    """Histories of the same samples, counted and stored, and what these samples were."""
    rng = np.random.default_rng(seed)
    counted, stored = empty(space, **settings), empty(rd.Finite(Stored(TABLE)), **settings)
    told = []
    for decision in rng.integers(4, size=rounds).tolist():
        told.append((decision, space.family.draw(decision, rng), float(rng.random())))
        counted.append(*told[-1])
        stored.append(*told[-1])
    return counted, stored, told


def effective_samples(plays, weights, divergence):
    """η of every decision by its definition, exact sums over the atoms of `TABLE`.  (4,), (4, m) -> (4,)"""
    if divergence == "harmonic":  # Σ_j T_j / d2(p_x || p_j)
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = np.nansum(TABLE[:, None] ** 2 / TABLE, axis=2)  # d2, 0/0 = 0  (4, 4)
        return (plays / pairs).sum(axis=1)
    if divergence == "empirical":  # what no sample saw is one more weight
        shares = weights / plays.sum()
        return np.maximum(1 / ((shares**2).sum(axis=1) + np.maximum(1 - shares.sum(axis=1), 0) ** 2), plays)
    mixture = plays @ TABLE / plays.sum()  # Φ at every atom
    with np.errstate(divide="ignore", invalid="ignore"):
        return plays.sum() / np.nansum(TABLE**2 / mixture, axis=1)  # m / d2(p_x || Φ), 0 where that is infinite


def by_definition(told, divergence, confidence=2.0):
    """The fields of an estimate but for log η, written out."""
    decisions, mediators, payoffs = map(np.array, zip(*told, strict=True))
    plays, m = np.bincount(decisions, minlength=4), len(told)
    weights = TABLE[:, mediators] / (plays @ TABLE / m)[mediators]  # ω = p_x/Φ  (4, m)
    eta = effective_samples(plays, weights, divergence)
    term = confidence * math.log(m + 1)
    with np.errstate(divide="ignore"):
        threshold, width = m / np.sqrt(eta * term), np.sqrt(term / eta)
    cut = np.minimum(weights, threshold[:, None])
    return {"value": cut @ payoffs / m, "effective_samples": eta, "threshold": threshold, "width": width,
            "plays": plays, "coverage": cut.sum(axis=1) / m}  # fmt: skip


@pytest.mark.parametrize("rounds", [1, 7, 5000])
@pytest.mark.parametrize("divergence", ["harmonic", "empirical", "mixture"])
def test_counted_estimates_are_those_of_the_definition(divergence, rounds):
    counted, _, told = grown(rd.Finite(rd.Categorical(TABLE)), rounds, divergence=divergence)
    ours = counted.estimate(2.0)
    for name, exact in by_definition(told, divergence).items():
        np.testing.assert_allclose(getattr(ours, name), exact, rtol=1e-10, err_msg=name)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(ours.log_effective_samples, np.log(ours.effective_samples), atol=1e-10)


@pytest.mark.parametrize("rounds", [1, 7, 5000])
@pytest.mark.parametrize("divergence", ["harmonic", "empirical"])
def test_counted_estimates_are_those_of_stored_samples(divergence, rounds):
    counted, stored, _ = grown(rd.Finite(rd.Categorical(TABLE)), rounds, divergence=divergence)
    assert columns(counted) <= 6
    assert columns(stored) == rounds
    ours, theirs = counted.estimate(2.0), stored.estimate(2.0)
    for name, a, b in zip(ours._fields, ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, err_msg=name)
    cut = np.minimum(ours.threshold / rounds, 1e150)
    np.testing.assert_allclose(counted.columns.moments(cut), stored.columns.moments(cut), rtol=1e-10)


def test_equal_likelihoods_are_one_whatever_the_mediator_is_called():
    space = rd.Finite(rd.Categorical([[0.2, 0.2, 0.6], [0.3, 0.3, 0.4]]))
    history = empty(space)
    for category in (0, 1, 2, 1, 0):
        history.append(0, category, 0.5)
    assert [count for part in history.columns.parts() for count in part.counts.tolist()] == [4.0, 1.0]


def test_diracs_are_counted_too():
    learner = rd.FollowTheLeader(rd.Finite(rd.Dirac([[0.0, 1.0], [2.0, 3.0]])), keep_record=False)
    for _ in range(50):
        trial = learner.ask()
        learner.tell(trial, 0.25 * (1 + trial.decision))
    assert columns(learner.history) == 2
    np.testing.assert_allclose(learner.estimates().value[1], 0.5)


def test_a_block_of_distinct_samples_overflows_into_the_next():
    space = rd.Finite.likelihoods(3, log_divergences=np.zeros((3, 3)))
    history, rng = empty(space, size=64), np.random.default_rng(0)
    vectors = rng.normal(size=(150, 3))
    told = [(int(rng.integers(3)), i) for i in rng.integers(150, size=900)]
    payoffs = rng.random(900)
    for (source, i), payoff in zip(told, payoffs, strict=True):
        history.append(source, vectors[i], payoff)
    plays = np.bincount([source for source, _ in told], minlength=3)
    likelihood = np.exp(vectors[[i for _, i in told]])  # (900, 3)
    weight = likelihood / (likelihood @ plays)[:, None]
    cut = 1 / math.sqrt(900 * 2 * math.log(901))
    estimates = history.estimate(2.0)
    assert [part.payoffs.size for part in history.columns.parts() if part.payoffs.size] == [
        64,
        64,
        21,
    ]  # one of the 150 was not seen
    np.testing.assert_allclose(estimates.value, (np.minimum(weight, cut) * payoffs[:, None]).sum(axis=0), rtol=1e-10)
    restored = empty(space, size=64)
    restored.restore(history.state(), *(np.empty(0, np.int64),) * 3)
    for a, b in zip(estimates, restored.estimate(2.0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_running_range_maps_the_sums_anew():
    """Payoffs that are forgotten are known by their sums; so the map is applied to these."""
    space = rd.Finite(rd.Categorical(TABLE))
    rng = np.random.default_rng(3)
    growing = 2.0 ** rng.uniform(-3, 9, size=400) * rng.choice([-1, 1], size=400)
    forgets = rd.Realist(space, payoff_range="running", keep_record=False, seed=1)
    keeps = rd.Realist(space, payoff_range="running", seed=1)
    low, high = growing.min(), growing.max()
    knows = rd.Realist(space, payoff_range=(low, high), seed=1)
    for payoff in growing.tolist():
        trial, same = forgets.ask(), keeps.ask()
        assert trial == same
        forgets.tell(trial, payoff)
        keeps.tell(same, payoff)
        knows.adopt(trial)
        knows.tell(trial.id, payoff)
    np.testing.assert_allclose(forgets.estimates().value, knows.estimates().value, rtol=1e-10)
    np.testing.assert_allclose(
        forgets.history.columns.moments(np.full(4, 0.01)), knows.history.columns.moments(np.full(4, 0.01)), rtol=1e-9
    )
    for a, b in zip(forgets.estimates(), keeps.estimates(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_forgetting_changes_no_decision_and_survives_a_round_trip():
    space = rd.Finite(rd.Categorical(TABLE))
    keeps, forgets = rd.Randomist(space, seed=2), rd.Randomist(space, seed=2, keep_record=False)
    for n in range(300):
        one, two = keeps.ask(), forgets.ask()
        assert one == two
        for learner, trial in ((keeps, one), (forgets, two)):
            learner.tell(trial, 0.1 + 0.1 * trial.mediator)
        if n == 150:
            forgets = rd.load(forgets.state())
    assert forgets.told == 300
    assert forgets.state()["record"] == {"told": 300}
    with pytest.raises(rd.RandomistError, match="keep_record=False"):
        _ = forgets.record.payoffs


def test_a_state_of_a_version_that_stored_samples_can_be_loaded():
    learner = rd.Optimist(rd.Finite(rd.Categorical(TABLE)), seed=0)
    for _ in range(50):
        trial = learner.ask()
        learner.tell(trial, 0.1 * trial.mediator)
    state, eta = learner.state(), learner.history.eta
    state |= {"format": 1, "caches": {"effective": eta[0], "log_effective": eta[1]}}
    loaded = rd.load(state)
    assert columns(loaded.history) == columns(learner.history)
    np.testing.assert_allclose(loaded.estimates().value, learner.estimates().value, rtol=1e-12)
    assert loaded.ask() == learner.ask()


def test_one_draw_is_what_many_draws_are():
    family = rd.Categorical(TABLE)
    one, many = np.random.default_rng(0), np.random.default_rng(0)
    decisions = np.tile(np.arange(4), 50)
    drawn = [family.draw(int(k), one) for k in decisions]
    assert drawn == family.sample(decisions, many).tolist()


@pytest.mark.slow
def test_many_coins_at_once_are_binomial():
    """Beyond `MANY` the number of heads is drawn, not counted: a chi-squared test against the exact law."""
    from scipy import stats

    n, draws = perturbation.MANY + 1, 200_000
    words = np.random.default_rng(0).bit_generator.random_raw((draws, 2 * perturbation.TRIES))
    heads = np.array([perturbation._many_heads(row, n) for row in words])
    edges = stats.binom.ppf(np.linspace(0, 1, 41)[1:-1], n, 0.5)
    expected = np.diff(np.concatenate([[0.0], stats.binom.cdf(edges, n, 0.5), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, heads, side="left"), minlength=40)
    assert stats.chisquare(seen, draws * expected).pvalue > 1e-3


def test_a_million_coins_cost_no_more_words_than_a_few():
    few, many = (
        perturbation.coin_words(np.array([float(perturbation.MANY)]), 1.0),
        perturbation.coin_words(np.array([1e9]), 1.0),
    )
    assert few == perturbation.MANY // 64 + 1
    assert many == 2 * perturbation.TRIES + 1
    words = np.random.default_rng(0).bit_generator.random_raw(many)
    index = perturbation.perturb(np.zeros(1), np.array([1e9]), 1.0, words)
    assert abs(index[0] - 0.5) < 1e-4
