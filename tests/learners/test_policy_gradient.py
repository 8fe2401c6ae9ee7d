"""PGPE and PB-POIS as learners: batches, late tells, settings, and learning."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats

import randomist as rd
from randomist.errors import ParameterError, PayoffOutOfRangeError
from randomist.learners.box import pgpe, pois
from tests.problems import LINE, RECTANGLE


def test_equal_payoffs_move_nobody():
    for make in (rd.PGPE, partial(rd.POIS, batch=10)):
        learner = make(RECTANGLE, first=[0.2, 3.0])
        for trial in learner.ask(batch=20):
            learner.tell(trial, 0.5)
        np.testing.assert_allclose(learner.mean, [0.2, 3.0], rtol=1e-12)


@pytest.mark.parametrize("make", [rd.PGPE, partial(rd.POIS, batch=10)])
def test_contract_with_a_running_range(make):
    """The range grows while batches are filled; payoffs enter a step on the scale of the moment."""
    ours, theirs = (make(RECTANGLE, payoff_range="running", seed=2) for _ in range(2))
    for i in range(45):
        for learner in (ours, theirs):
            trial = learner.ask()
            learner.tell(trial, (1 + i) * float(np.sin(trial.mediator[0] + trial.mediator[1])))
        theirs = rd.load(theirs.state())
        assert np.array_equal(ours.mean, theirs.mean)
    assert np.array_equal(ours.ask().mediator, theirs.ask().mediator)


def payoff_of(trial):
    return float(np.exp(-0.5 * ((trial.mediator[0] - 0.3) ** 2 / 0.1 + (trial.mediator[1] - 9) ** 2 / 50)))


@pytest.mark.parametrize("natural", [True, False])
def test_pgpe_steps_along_the_gradient_and_stays_in_the_box(natural):
    learner = rd.PGPE(
        RECTANGLE, first=[-0.4, 4.0], step_size=0.2, batch=6, natural=natural, payoff_range=(-2, 3), seed=1
    )
    trials = learner.ask(batch=6)
    for trial in trials:
        assert np.array_equal(learner.mean, [-0.4, 4.0])
        learner.tell(trial, 5 * payoff_of(trial) - 2)
    mediators, payoffs = np.array([t.mediator for t in trials]), np.array([payoff_of(t) for t in trials])
    slope = pgpe.gradient(np.tile([-0.4, 4.0], (6, 1)), mediators, payoffs, np.array([0.15, 3.0]))
    rate = 0.2 * np.array([0.15, 3.0]) ** 2 if natural else 0.2
    np.testing.assert_allclose(learner.mean, [-0.4, 4.0] + rate * slope, rtol=1e-9)
    assert np.array_equal(learner.ask().decision, learner.mean)
    assert not learner.mean.flags.writeable

    huge = rd.PGPE(RECTANGLE, first=[-0.4, 4.0], step_size=1e308, batch=6, natural=natural, seed=1)
    for trial in huge.ask(batch=6):
        huge.tell(trial, payoff_of(trial))
    np.testing.assert_array_equal(huge.mean, np.where(slope > 0, [1, 20], [-1, 0]))


def test_pois_moves_to_the_end_of_its_ascent():
    learner = rd.POIS(RECTANGLE, first=[-0.4, 4.0], batch=30, failure_probability=0.2, iterations=4, payoff_bound=0.5)
    trials = learner.ask(batch=30)
    for trial in trials:
        learner.tell(trial, payoff_of(trial))
    mediators, payoffs = np.array([t.mediator for t in trials]), np.array([payoff_of(t) for t in trials])
    batch = pois.gather(np.tile([-0.4, 4.0], (30, 1)), mediators, payoffs, np.array([0.15, 3.0]))
    path = pois.ascend(np.array([-0.4, 4.0]), batch, RECTANGLE.low, RECTANGLE.high, 0.2, 0.5, 4)
    assert len(path) == 5
    np.testing.assert_array_equal(learner.mean, path[-1])


@pytest.mark.parametrize("make", [partial(rd.PGPE, step_size=10.0), partial(rd.POIS, batch=10)])
def test_late_and_failed_tells(make):
    """A batch is the next ten payoffs, whoever drew them; failures are in none; trials come from the current mean."""
    learner = make(RECTANGLE, first=[-0.4, 4.0], seed=3)
    start = learner.mean
    trials = learner.ask(batch=25)
    assert all(np.array_equal(t.decision, start) for t in trials)
    for trial in trials[:4]:
        learner.fail(trial, "lost")
    for trial in trials[4:13]:
        learner.tell(trial, payoff_of(trial))
    assert np.array_equal(learner.mean, start)
    learner.tell(trials[13], payoff_of(trials[13]))
    second = learner.mean
    assert not np.array_equal(second, start)

    fresh = learner.ask(batch=5)
    assert all(np.array_equal(t.decision, second) for t in fresh)
    batch = [*trials[14:19], *fresh]  # five that are late and five that are not
    saved = None
    for i, trial in enumerate(batch):
        if i == 7:
            saved = learner.state()
        learner.tell(trial, payoff_of(trial))
    assert saved is not None
    third = learner.mean

    decisions, mediators = np.array([t.decision for t in batch]), np.array([t.mediator for t in batch])
    payoffs, std = np.array([payoff_of(t) for t in batch]), np.array([0.15, 3.0])
    if isinstance(learner, rd.PGPE):
        moved = second + 10 * std**2 * pgpe.gradient(decisions, mediators, payoffs, std)
        expected = np.clip(moved, RECTANGLE.low, RECTANGLE.high)
    else:
        gathered = pois.gather(decisions, mediators, payoffs, std)
        assert len(gathered.decisions) == 2
        expected = pois.ascend(second, gathered, RECTANGLE.low, RECTANGLE.high)[-1]
    np.testing.assert_allclose(third, expected, rtol=1e-12)

    resumed = rd.load(saved)  # in the middle of the batch, with trials pending
    assert np.array_equal(resumed.mean, second)
    for trial in batch[7:]:
        resumed.tell(trial.id, payoff_of(trial))
    assert np.array_equal(resumed.mean, third)
    assert len(resumed.pending) == 6
    assert np.array_equal(resumed.ask().mediator, learner.ask().mediator)


@pytest.mark.parametrize("make", [rd.PGPE, partial(rd.POIS, batch=10)])
def test_a_refused_payoff_ends_no_batch(make):
    learner = make(LINE, first=0.5)
    trials = learner.ask(batch=10)
    for trial in trials[:9]:
        learner.tell(trial, 0.5 + 0.1 * np.tanh(trial.mediator))
    with pytest.raises(PayoffOutOfRangeError):
        learner.tell(trials[9], 2.0)
    assert learner.mean == 0.5
    learner.tell(trials[9], 0.9)
    assert learner.mean != 0.5
    assert type(learner.mean) is float


def test_recommend_is_the_best_played_decision_and_mean_the_next():
    learner = rd.PGPE(LINE, first=0.5, batch=2, step_size=50.0)
    for _ in range(20):
        trial = learner.ask()
        learner.tell(trial, np.exp(-(trial.mediator**2)))
    played = np.unique(learner.record.decisions)
    assert learner.recommend() == pytest.approx(played[learner.estimate(played).value.argmax()])
    assert learner.mean == learner.ask().decision


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (rd.PGPE, {"step_size": 0}, "step_size must be a (finite )?number > 0, got 0"),
        (rd.PGPE, {"step_size": -0.1}, "step_size"),
        (rd.PGPE, {"step_size": np.nan}, "step_size"),
        (rd.PGPE, {"step_size": "large"}, "step_size"),
        (rd.PGPE, {"batch": 1}, "batch must be a whole number >= 2 .*got 1"),
        (rd.PGPE, {"batch": 0, "baseline": "none"}, "batch must be a whole number >= 1, got 0"),
        (rd.PGPE, {"batch": 2.5}, "batch"),
        (rd.PGPE, {"baseline": "median"}, "baseline"),
        (rd.PGPE, {"natural": "yes"}, "natural"),
        (rd.POIS, {"batch": 1}, "batch must be a whole number >= 2"),
        (rd.POIS, {"failure_probability": 0.0}, r"failure_probability must lie in \(0, 1\), got 0.0"),
        (rd.POIS, {"failure_probability": 1.0}, "failure_probability"),
        (rd.POIS, {"failure_probability": np.nan}, "failure_probability"),
        (rd.POIS, {"failure_probability": None}, "failure_probability"),
        (rd.POIS, {"iterations": 0}, "iterations must be a whole number >= 1, got 0"),
        (rd.POIS, {"iterations": 1.5}, "iterations"),
        (rd.POIS, {"payoff_bound": 0}, "payoff_bound"),
        (rd.POIS, {"payoff_bound": np.inf}, "payoff_bound"),
    ],
)
def test_bad_settings(make, settings, message):
    with pytest.raises(ParameterError, match=message):
        make(LINE, **settings)


@pytest.mark.parametrize("make", [rd.PGPE, rd.POIS])
def test_a_finite_space_is_refused(make):
    with pytest.raises(ParameterError, match="searches a Box"):
        make(rd.Finite(rd.Gaussian([0.0, 1.0], 0.5)))


def test_settings_of_numpy_are_saved_as_plain_numbers():
    given = rd.POIS(LINE, batch=np.int64(5), iterations=np.int32(3), payoff_range=(np.float32(-1), np.int8(2)))
    assert (type(given.batch), type(given.iterations)) == (np.int64, np.int32)  # as they were given
    learner = rd.load(given.state())
    assert (type(learner.batch), type(learner.iterations)) == (int, int)
    assert learner.payoff_range == (-1.0, 2)
    assert [type(end) for end in learner.payoff_range] == [float, int]
    assert type(rd.POIS(LINE, seed=np.int64(7)).state()["entropy"]) is int
    assert rd.PGPE(LINE, batch=1, baseline="none").batch == 1


# Learning.


def p_value_of_improvement(make, rounds, seeds=8):
    """Paired one-sided t-test over seeds: payoffs of the last hundred rounds against those of the first."""
    runs = [rd.optimize("lqg", make, rounds, seed, space=rd.task("lqg", space="box").space) for seed in range(seeds)]
    gains = [run.payoffs[-100:].mean() - run.payoffs[:100].mean() for run in runs]
    return stats.ttest_1samp(gains, 0, alternative="greater").pvalue, np.mean([r.payoffs[-100:].mean() for r in runs])


@pytest.mark.parametrize(
    ("make", "rounds"),
    [
        (partial(rd.PGPE, first=1.0, step_size=1.0), 1000),
        (partial(rd.PGPE, first=1.0, step_size=0.1, natural=False), 800),
        (partial(rd.POIS, first=1.0), 1500),
    ],
)
def test_both_improve_lqg_from_its_worst_gain(make, rounds):
    """A learner that does not improve passes with probability 1e-6; J* = 0.984, J(1) = 0.12."""
    p, last = p_value_of_improvement(make, rounds)
    assert p < 1e-6
    assert last > 0.9


def test_a_learner_that_stands_still_does_not_pass():
    p, _ = p_value_of_improvement(partial(rd.PGPE, first=1.0, step_size=1e-9), 300)
    assert p > 1e-3


@pytest.mark.parametrize("name", ["pgpe", "pois"])
def test_by_name(name):
    run = rd.optimize(rd.task("lqg", space="box"), name, rounds=30, batch=10)
    assert len(run.payoffs) == 30
    assert run.regret is not None
