"""Estimates that are computed now and then: when, and that nothing else changes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.learners.finite.refresh import Refresh
from tests import problems
from tests.histories.helpers import assert_same_bits

MAKERS = {
    "randomist": rd.Randomist,
    "optimist computed": partial(rd.Optimist, divergence="mixture", bias_correction="computed"),
    "realist": rd.Realist,
    "window": partial(rd.Randomist, window=90),
    "discount": partial(rd.Optimist, discount=0.9),
    "prior": partial(rd.Randomist, prior=(0.5, 3)),
}


def answered(learner, rounds):
    trials = []
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, problems.payoff(trial))
        trials.append(trial)
    return trials


def grid(growth, start, until):
    times = [start]
    while times[-1] <= until:
        times.append(max(times[-1] + 1, math.ceil(growth * times[-1])))
    return times


@pytest.mark.parametrize(("growth", "start"), [(1.05, 10_000), (1.3, 20), (1.01, 7), (2.0, 1)])
def test_the_grid(growth, start):
    schedule, times = Refresh(growth, start), grid(growth, start, 200_000)
    for told in [*range(1, 300), 9_999, 10_000, 10_499, 10_500, 123_456]:
        expected = told if told < start else max(time for time in times if time <= told)
        assert schedule.last(told) == expected
        assert schedule.exact(told) == (told < start)


def test_a_window_is_computed_anew_when_a_part_of_it_is():
    schedule = Refresh(1.05, 1_000, span=2_000)
    times = sorted({schedule.last(told) for told in range(5_000, 6_000)})
    assert set(np.diff(times)) == {100}
    assert all(Refresh(1.05, 1_000, span=1_000).exact(told) for told in (10, 10**6))  # as cheap as it was


@pytest.mark.parametrize("setting", ["auto", 1.05])
def test_the_default_begins_after_ten_thousand(setting):
    schedule = Refresh(setting, rd.Randomist(problems.GAUSSIANS).refresh_from)
    assert [schedule.last(told) for told in (9_999, 10_499, 10_500)] == [9_999, 10_000, 10_500]


@pytest.mark.parametrize("name", MAKERS)
def test_values_are_those_of_the_last_time(name):
    """Told the same, values are those that an exact learner had then; plays, η and widths are counted on."""
    seldom = MAKERS[name](problems.GAUSSIANS, seed=1, refresh=1.3, refresh_from=20)
    often = MAKERS[name](problems.GAUSSIANS, seed=1)
    times = Refresh(1.3, 20, {"window": 90, "discount": 132}.get(name))
    values = {}
    for told in range(1, 151):
        trial = seldom.ask()
        often.adopt(trial)
        for learner in (often, seldom):
            learner.tell(trial.id, problems.payoff(trial))
        kept, exact = seldom.estimates(), often.estimates()
        values[told] = exact.value, exact.threshold, exact.coverage
        assert_same_bits((kept.value, kept.threshold, kept.coverage), values[times.last(told)])
        np.testing.assert_array_equal(kept.plays, exact.plays)
        assert (kept.effective_samples >= kept.plays).all()
        if learner.history.divergence.name == "harmonic":
            for entry in ("effective_samples", "width", "log_effective_samples"):
                np.testing.assert_allclose(getattr(kept, entry), getattr(exact, entry), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("off", [None, 1, 1.0])
def test_never(off):
    ours, theirs = rd.Randomist(problems.GAUSSIANS, refresh=off, refresh_from=1), rd.Randomist(problems.GAUSSIANS)
    assert_same_bits(answered(ours, 60), answered(theirs, 60))


@pytest.mark.parametrize("space", ["gaussians", "categories"])
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("payoffs", [(0.0, 1.0), "running"])
def test_batches_and_loads_are_the_same_bits(name, space, payoffs):
    make = partial(MAKERS[name], problems.DRAWN[space], refresh=1.3, refresh_from=20, payoff_range=payoffs)
    straight, batched = make(seed=2), make(seed=2)
    trials = answered(straight, 100)
    for trial in trials:
        batched.adopt(trial)
    for part in np.split(np.arange(100), [3, 22, 60, 61]):
        batched.tell_all([trials[i].id for i in part], [problems.payoff(trials[i]) for i in part])
    loaded = rd.load(straight.state())
    for other in (batched, loaded):
        assert_same_bits(tuple(straight.estimates()), tuple(other.estimates()))
        assert straight.recommend() == other.recommend()
    assert_same_bits(straight.state()["caches"], batched.state()["caches"])
    assert_same_bits(answered(straight, 40), answered(loaded, 40))
    assert_same_bits(straight.state(), loaded.state())


def test_a_study_that_is_loaded_goes_on(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    learner = partial(rd.Randomist, problems.GAUSSIANS, refresh=1.3, refresh_from=20)
    study = rd.create_study("s", learner(seed=3), storage=url)
    answered(study, 50)
    loaded = rd.load_study("s", storage=url)
    assert_same_bits(tuple(study.estimates()), tuple(loaded.estimates()))
    assert study.learner.state()["caches"]["refreshed"]["at"] == 45  # the times are 20, 26, 34, 45, 59
    study.close(), loaded.close()


def test_pending_trials_work_on_the_kept_estimates():
    """A pending trial adds to what is kept, and telling it changes no value before the next time."""
    learner = rd.Optimist(problems.GAUSSIANS, seed=0, refresh=2.0, refresh_from=16)
    answered(learner, 20)
    kept = learner.estimates()
    trials = learner.ask(batch=6)
    assert len({trial.decision for trial in trials}) > 1
    learner.tell_all(trials, [0.5] * 6)
    assert_same_bits(learner.estimates().value, kept.value)
    assert learner.estimates().plays.sum() == kept.plays.sum() + 6


@pytest.mark.parametrize("name", ["likelihoods", "policies", "per-decision"])
def test_where_divergences_are_not_known_a_play_informs_itself(name):
    learner = rd.Optimist(problems.FINITE[name], seed=0, refresh=2.0, refresh_from=16, **problems.settings(name))
    for _ in range(20):
        problems.tell(learner, learner.ask(), name)
    before, trial = learner.estimates(), learner.ask()
    problems.tell(learner, trial, name)
    more = learner.estimates().effective_samples - before.effective_samples
    np.testing.assert_allclose(more, np.arange(4) == trial.decision, atol=1e-12)


def test_absorbed_rows_count_at_once():
    pytest.importorskip("polars")
    space = rd.Finite(rd.Gaussian([0.0, 1.0], 1.0))
    z = np.linspace(-1, 2, 30)
    columns = dict(zip("ab", space.family.log_density(None, z), strict=True))
    log = rd.Log.from_arrays(np.clip(z / 4, 0, 1), columns, loggers=np.array(["a", "b"] * 15))
    learner = rd.Optimist(space, refresh=2.0, refresh_from=8)
    answered(learner, 20)
    learner.absorb(log)
    assert learner.state()["caches"]["refreshed"]["at"] == 50


def test_a_state_without_kept_estimates_is_estimated_when_it_is_loaded():
    learner = rd.Randomist(problems.GAUSSIANS, seed=0, refresh=2.0, refresh_from=16)
    answered(learner, 20)
    state = learner.state()
    del state["caches"]["refreshed"]
    loaded, exact = rd.load(state), rd.load(state | {"settings": state["settings"] | {"refresh": None}})
    assert_same_bits(tuple(loaded.estimates()), tuple(exact.estimates()))


@pytest.mark.parametrize("settings", [
    {"refresh": 0.9}, {"refresh": "often"}, {"refresh": math.nan}, {"refresh": math.inf}, {"refresh": True},
    {"refresh_from": 0}, {"refresh_from": 2.5},
], ids=str)  # fmt: skip
def test_bad_settings(settings):
    with pytest.raises(rd.errors.ParameterError):
        rd.Randomist(problems.GAUSSIANS, **settings)


def test_regret_is_hardly_larger():
    """Reduced from `benchmarks.long_runs`: with refreshes from 200 samples on, regret at 3,000 rounds.

    The bar of the benchmark, 1.15 at 20,000 rounds, is not one for ten runs; here it is at most half as much again.
    """
    task = rd.task("lqg", points=30)
    expected = task.expected_payoff(None)
    gap = expected.max() - expected
    regrets = {}
    for refresh in (None, 1.05):
        total = 0.0
        for seed in range(6):
            learner = rd.Randomist(
                task.space, seed=seed, refresh=refresh, refresh_from=200, payoff_range=task.payoff_range
            )
            rng = np.random.default_rng(seed)
            for _ in range(3000):
                trial = learner.ask()
                learner.tell(trial, float(task.payoff(np.array([trial.mediator]), rng)[0]))
                total += gap[trial.decision]
        regrets[refresh] = total / 6
    assert regrets[1.05] <= 1.5 * regrets[None]
