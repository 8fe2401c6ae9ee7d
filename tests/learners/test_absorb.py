"""`absorb`: rows of a log are samples like told ones, and the loggers' densities are in every denominator."""

from __future__ import annotations

import math

import numpy as np
import pytest

import randomist as rd
from tests.histories.helpers import assert_same_bits

pytest.importorskip("polars")

FAMILY = rd.Gaussian([0.0, 1.0, 2.5], [1.0, 0.8, 1.2])
OTHER = rd.Gaussian([0.7], [1.5])  # a logger that is no candidate
NAMES = ("a", "b", "c")


def rows(counts, seed, *, other=0):
    """Mediators, payoffs and who acted, shuffled; log-likelihoods under a, b, c and the other."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(4), [*counts, other]))
    every = rd.Gaussian([0.0, 1.0, 2.5, 0.7], [1.0, 0.8, 1.2, 1.5])
    z = every.sample(who, rng)
    return who, z, np.clip(z / 4, 0, 1), every.log_density(None, z)


def log_of(counts, seed=0, *, other=0, **settings):
    who, _, payoffs, log_density = rows(counts, seed, other=other)
    names = np.array([*NAMES, "other"])
    columns = dict(zip([*NAMES, "other"] if other else NAMES, log_density, strict=False))
    return rd.Log.from_arrays(payoffs, columns, loggers=names[who], **settings)


def naive(plays, log_density, payoffs, eta, confidence=2.0):
    """TMIS by its definition; plays of every source, log-densities of every source at every sample."""
    m = plays.sum()
    density = np.exp(log_density)  # (S, m)
    omega = density / (plays @ density / m)
    cut = m / np.sqrt(eta * confidence * math.log(m + 1))
    return (np.minimum(omega[: len(eta)], cut[:, None]) * payoffs).mean(axis=1)


@pytest.mark.parametrize("make", [rd.Optimist, rd.Randomist, rd.Realist])
@pytest.mark.parametrize("family", ["likelihoods", "known", "gaussian"])
def test_absorbing_is_telling(make, family):
    who, z, payoffs, log_density = rows((30, 20, 10), seed=4)
    space = {
        "likelihoods": rd.Finite.likelihoods(3),
        "known": rd.Finite.likelihoods(3, log_divergences=FAMILY.log_renyi(None, None)),
        "gaussian": rd.Finite(FAMILY),
    }[family]
    absorbed, told = make(space, seed=0), make(space, seed=0)
    absorbed.absorb(log_of((30, 20, 10), seed=4))
    for i in range(60):
        trial = rd.Trial(i, int(who[i]), None if family != "gaussian" else float(z[i]))
        told.adopt(trial)
        told.tell(trial, payoffs[i], **({} if family == "gaussian" else {"log_likelihoods": log_density[:3, i]}))
    assert absorbed.told == told.told == 60
    for name, ours, theirs in zip(told.estimates()._fields, absorbed.estimates(), told.estimates(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, err_msg=name)
    assert absorbed.ask().decision == told.ask().decision
    assert len(absorbed.record) == 0


@pytest.mark.parametrize("when", [0, 25])
def test_loggers_that_are_no_candidates_are_in_the_denominator(when):
    """Before and between asks, told samples included; against the definition."""
    space = rd.Finite.likelihoods(3, loggers=["other"])
    learner = rd.FollowTheLeader(space, seed=1)
    every = rd.Gaussian([0.0, 1.0, 2.5, 0.7], [1.0, 0.8, 1.2, 1.5])
    rng, mediators = np.random.default_rng(9), []
    z = rows((15, 0, 5), seed=2, other=40)[1]
    log = log_of((15, 0, 5), seed=2, other=40, candidates=NAMES)
    for n in range(50):
        if n == when:
            learner.absorb(log)
        trial = learner.ask()
        mediators.append(every.draw(trial.decision, rng))
        learner.tell(trial, min(max(mediators[-1] / 4, 0), 1), log_likelihoods=every.log_densities(mediators[-1]))
    plays = np.bincount(learner.record.decisions, minlength=4) + np.array([15, 0, 5, 40])
    samples = np.concatenate([mediators, z])
    estimates = learner.estimates()
    expected = naive(plays, every.log_density(None, samples), np.clip(samples / 4, 0, 1), estimates.effective_samples)
    np.testing.assert_allclose(estimates.value, expected, rtol=1e-10)
    assert estimates.plays.tolist() == plays[:3].tolist()
    assert learner.told == 110


def test_a_family_with_loggers_knows_their_divergences():
    space = rd.Finite(FAMILY, loggers={"other": OTHER})
    assert space.size == 3
    assert space.sources == 4
    every = rd.Gaussian([0.0, 1.0, 2.5, 0.7], [1.0, 0.8, 1.2, 1.5])
    for settings in ({}, {"divergence": "mixture", "bias_correction": "computed"}):
        learner = rd.Optimist(space, seed=0, **settings)
        trial = learner.ask()
        learner.tell(trial, 0.5)
        learner.absorb(log_of((15, 0, 5), seed=2, other=40, candidates=NAMES))
        learner.tell(learner.ask(), 0.25)
        learner = rd.load(learner.state())
        plays = np.bincount(learner.record.decisions, minlength=4) + np.array([15, 0, 5, 40])
        estimates = learner.estimates()
        if not settings:
            eta = np.exp(-every.log_renyi(None, None)[:3]) @ plays
            np.testing.assert_allclose(estimates.effective_samples, eta, rtol=1e-12)
        _, z, payoffs, _ = rows((15, 0, 5), seed=2, other=40)
        samples, paid = np.concatenate([learner.record.mediators, z]), np.concatenate([[0.5, 0.25], payoffs])
        expected = naive(plays, every.log_density(None, samples), paid, estimates.effective_samples)
        np.testing.assert_allclose(estimates.value, expected, rtol=1e-10)
        assert learner.index(estimates, learner._rng).shape == (3,)


def test_absorbed_rows_are_saved_and_go_on():
    space = rd.Finite(FAMILY)
    learner = rd.Randomist(space, seed=5, payoff_range="running")
    for n in range(30):
        if n == 10:
            learner.absorb(log_of((10, 10, 10), seed=3))
        trial = learner.ask()
        learner.tell(trial, 2.0 * trial.mediator)
    resumed = rd.load(learner.state())
    assert resumed.told == 60
    for _ in range(10):
        one, two = learner.ask(), resumed.ask()
        assert one == two
        learner.tell(one, 3.0 * one.mediator)
        resumed.tell(two, 3.0 * two.mediator)
    for a, b in zip(learner.estimates(), resumed.estimates(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_decision_that_was_logged_needs_no_opening():
    learner = rd.FollowTheLeader(rd.Finite(rd.Dirac([0.0, 1.0, 2.0])))
    log = rd.Log.from_arrays(
        [0.5, 0.9],
        {"a": [0.0, -np.inf], "b": [-np.inf, 0.0], "c": [-np.inf, -np.inf]},
        loggers=["a", "b"],
    )
    learner.absorb(log)
    assert learner.ask().decision == 2


def test_logs_that_do_not_fit_are_refused_and_change_nothing():
    learner = rd.Optimist(rd.Finite.likelihoods(3))
    before = learner.state()
    with pytest.raises(rd.RandomistError, match="other, neither among the 3 decisions"):
        learner.absorb(log_of((5, 5, 5), other=5, candidates=NAMES))
    with pytest.raises(rd.RandomistError, match="3 decisions"):
        learner.absorb(rd.Log.from_arrays([0.5], {"a": [0.0]}, loggers=["a"]))
    with pytest.raises(rd.RandomistError, match="3 decisions"):
        learner.absorb(rd.Log.from_arrays([0.5], {"a": [0.0]}, log_propensities=[-0.5]))
    high = rd.Log.from_arrays([7.0], {name: [-0.5] for name in NAMES}, log_propensities=[-0.5], payoff_range=(0, 9))
    with pytest.raises(rd.RandomistError, match=r"7\.0\.\.7\.0, outside payoff_range \(0\.0, 1\.0\)"):
        learner.absorb(high)
    wide = rd.Log.from_arrays([0.5, 7.0], {name: [0.0, 0.0] for name in NAMES}, loggers=["a", "b"], payoff_range=(0, 9))
    with pytest.raises(rd.errors.PayoffOutOfRangeError, match=r"7\.0"):
        learner.absorb(wide)
    named = rd.Optimist(rd.Finite.likelihoods(3, loggers=["other"]))
    with pytest.raises(rd.RandomistError, match="lacks likelihoods of the space's logger other"):
        named.absorb(log_of((5, 5, 5)))
    after = learner.state()
    assert learner.told == 0
    assert_same_bits(before, after)
    clipping = rd.Optimist(rd.Finite.likelihoods(3), out_of_range="clip")
    clipping.absorb(wide)
    assert clipping.clipped == 1


def propensities(rows, seed=0):
    """Three policies over four actions, logged by a fourth that is known by its propensities only."""
    rng = np.random.default_rng(seed)
    policies = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.5, 0.5]])
    logger = np.array([0.4, 0.3, 0.2, 0.1])
    action = rng.choice(4, size=rows, p=logger)
    payoffs = (rng.random(rows) < np.array([0.2, 0.4, 0.5, 0.9])[action]).astype(float)
    with np.errstate(divide="ignore"):
        columns = dict(zip(NAMES, np.log(policies[:, action]), strict=True))
    log = rd.Log.from_arrays(payoffs, columns, log_propensities=np.log(logger[action]))
    return log, policies[:, action] / logger[action], payoffs


def test_a_log_of_propensities_counts_as_its_effective_rows():
    """Before and between tells, twice, beside a prior: against the definition, and to the bit after loading."""
    (log, weight, payoffs), (more, other, paid) = propensities(500, 1), propensities(300, 2)
    for given in (None, ([0.5, 0.2, 0.1], [3, 0, 5])):
        learner = rd.Realist(rd.Finite(FAMILY), seed=0, prior=given)
        alone = rd.Realist(rd.Finite(FAMILY), seed=0)
        learner.absorb(log)
        for payoff in (0.25, 0.75, 0.5):
            trial = learner.ask()
            learner.tell(trial, payoff)
            alone.adopt(trial)
            alone.tell(trial, payoff)
        learner.absorb(more)
        worth = [w.sum(axis=1) ** 2 / (w**2).sum(axis=1) for w in (weight, other)]
        values = [(w * y).sum(axis=1) / w.sum(axis=1) for w, y in ((weight, payoffs), (other, paid))]
        told = alone.estimates()
        parts = [(told.effective_samples, told.value), *zip(worth, values, strict=True)]
        parts += [] if given is None else [(np.array(given[1]), np.array(given[0]))]
        plays = sum(n for n, _ in parts)
        found = learner.estimates()
        np.testing.assert_allclose(found.effective_samples, plays, rtol=1e-9)
        np.testing.assert_allclose(found.value, sum(n * v for n, v in parts) / plays, rtol=1e-9)
        assert learner.told == 3
        resumed = rd.load(learner.state())
        assert_same_bits(resumed.estimates()._asdict(), found._asdict())
        assert resumed.ask() == learner.ask()


def test_a_running_range_learns_from_a_log_of_propensities():
    learner = rd.Optimist(rd.Finite(FAMILY), seed=0, payoff_range="running")
    learner.tell(learner.ask(), 40.0)
    learner.absorb(propensities(200)[0])
    assert (learner.estimates().value <= 40.0).all()
    assert rd.load(learner.state()).estimates().value.tolist() == learner.estimates().value.tolist()


def test_bad_rows_that_are_skipped_stay_out():
    who, _, payoffs, log_density = rows((10, 10, 10), seed=1)
    payoffs = payoffs.copy()
    payoffs[[3, 8]] = np.nan
    log = rd.Log.from_arrays(
        payoffs, dict(zip(NAMES, log_density, strict=False)), loggers=np.array(NAMES)[who], skip_bad_rows=True
    )
    learner = rd.Optimist(rd.Finite.likelihoods(3))
    learner.absorb(log)
    assert learner.told == 28
    assert np.isfinite(learner.estimates().value).all()
