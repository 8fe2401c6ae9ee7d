"""Auto: where it plays, what it says of a point, and how it goes where payoffs are hard to read."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import randomist as rd
from randomist.learners.box import turns
from randomist.learners.box.climbing import LARGEST
from randomist.learners.box.samples import REMEMBERED, remembered
from tests.learners.playing import averages, fed, hill, noisy

# Where it plays.


SHAPES = {
    "corner": lambda u, rng: -float(np.sum(u)) + 0.1 * rng.standard_normal(),
    "far corner": lambda u, rng: float(np.sum(u)),
    "noise": lambda u, rng: rng.standard_cauchy(),
    "flat": lambda u, rng: 1.0,
    "steps": lambda u, rng: float(np.floor(3 * u[0])),
    "spike": lambda u, rng: float(np.all(np.abs(u - 0.3) < 0.2)),
    "wild": lambda u, rng: float(rng.choice([-1e150, 0.0, 1e-300, 1e150])),
}


@given(
    d=st.integers(1, 6),
    low=st.floats(-1e6, 1e6),
    log_width=st.floats(-6, 6),
    shape=st.sampled_from(sorted(SHAPES)),
    batch=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_all_mediators_and_recommendations_lie_in_the_box(d, low, log_width, shape, batch, seed):
    lows = np.full(d, low)
    highs = lows + 10**log_width * np.arange(1, d + 1)
    learner, rng = rd.Auto(low=lows, high=highs, seed=seed), np.random.default_rng(seed)
    for _ in range(30 // batch + 1):
        for trial in learner.ask(batch=batch):
            assert ((trial.mediator >= lows) & (trial.mediator <= highs)).all()
            unit = np.clip((trial.mediator - lows) / (highs - lows), 0, 1)
            learner.tell(trial, SHAPES[shape](unit, rng))
    assert ((learner.recommend() >= lows) & (learner.recommend() <= highs)).all()


def test_the_opening_fills_the_box_and_begins_where_it_is_told():
    learner = rd.Auto(low=[-1, 0, 5], high=[1, 20, 6], seed=4, first=[0.5, 3.0, 5.25])
    trials = learner.ask(batch=6)
    np.testing.assert_allclose(trials[0].mediator, [0.5, 3.0, 5.25], rtol=1e-15)  # as given
    points = np.array([trial.mediator for trial in trials])
    assert len(np.unique(points[:, 0])) == 6
    assert len(learner.ask(batch=8)) == 8  # nothing told yet: it goes on filling the box
    assert [turns.opening(d) for d in (1, 2, 3, 15, 16, 100)] == [3, 3, 4, 16, 16, 16]


@pytest.mark.parametrize("dimension", [1, 2, 5, 12])
def test_auto_finds_a_hill_and_narrows(dimension):
    learner = rd.Auto(dimension=dimension, low=-2, high=2, seed=dimension)
    peak = np.linspace(-1, 1.2, dimension)
    fed(learner, 60 * (dimension + 1), lambda z: 7 - 100 * float(np.sum((np.ravel(z) - peak) ** 2)))
    found = np.ravel(learner.recommend())
    assert np.abs(found - peak).max() < 0.3  # of a box of width 4
    assert learner.scale < LARGEST / math.sqrt(dimension)


def test_payoffs_in_other_units_change_nothing():
    first = fed(rd.Auto(dimension=3, seed=1), 60)
    second = fed(rd.Auto(dimension=3, seed=1), 60, lambda z: 4096 * hill(z))  # exact in float64
    np.testing.assert_array_equal(first.record.mediators, second.record.mediators)


def test_equal_payoffs_for_ever_go_on_filling_the_box():
    learner = fed(rd.Auto(low=[0, 0], high=1, seed=0), 200, lambda z: 3.0)
    counts, _, _ = np.histogram2d(*learner.record.mediators.T, bins=4, range=[[0, 1], [0, 1]])
    assert counts.min() >= 8
    assert learner.interval().basis == "unsupported"
    found = learner.estimate([[0.5, 0.5]])
    assert (found.value[0], found.width[0]) == (3.0, math.inf)


def test_a_small_ball_of_payoff_is_found():
    """One point of fifty pays: filling finds it by round 150 but for a chance below 1e-3 each."""
    for seed in range(4):
        learner = fed(
            rd.Auto(low=[0, 0], high=1, seed=seed), 150, lambda z: float(np.sum((z - [0.7, 0.2]) ** 2) < 0.0064)
        )
        assert np.sum((learner.recommend() - [0.7, 0.2]) ** 2) < 0.0064
        assert learner.record.payoffs[-30:].mean() > 0.5


def test_asking_thousands_ahead_and_telling_in_any_order():
    learner = rd.Auto(low=[0.0, 0.0], high=[1.0, 1.0], seed=1)
    trials = learner.ask(batch=10_000)
    order = np.random.default_rng(0).permutation(10_000)
    learner.tell_all([trials[i] for i in order], [float(trials[i].mediator.sum()) for i in order])
    for _ in range(3):
        learner.tell(learner.ask(), 1.0)
    assert 0 < learner.scale < 1
    assert learner.recommend().sum() > 1.8


@pytest.mark.parametrize("payoff", [1e308, -1e308, math.inf, math.nan])
def test_a_payoff_that_cannot_be_computed_with_is_refused_and_nothing_changes(payoff):
    learner, other = (fed(rd.Auto(dimension=2, seed=1), 30) for _ in range(2))
    trial = learner.ask()
    with pytest.raises(rd.errors.PayoffError):
        learner.tell(trial, payoff)
    learner.tell(trial, 0.5)
    other.tell(other.ask(), 0.5)
    np.testing.assert_array_equal(learner.ask().mediator, other.ask().mediator)


# Batches.


def test_a_batch_spreads():
    learner = fed(rd.Auto(low=np.zeros(3), high=1, seed=3), 30, noisy(hill, 0.3))
    batch = learner.ask(batch=16)
    assert len({trial.decision.tobytes() for trial in batch}) >= 4
    points = np.array([trial.mediator for trial in batch])
    assert len(np.unique(points, axis=0)) == 16
    told = learner.told
    for trial in batch:
        learner.fail(trial)
    assert learner.told == told  # fantasies leave no trace


# What is remembered.


def test_a_bounded_number_of_samples_is_looked_at():
    for known in (1, 100, 2 * REMEMBERED, 2 * REMEMBERED + 1, 10_000, 100_000):
        rows = remembered(known)
        assert len(rows) <= 2 * REMEMBERED
        assert len(np.unique(rows)) == len(rows)
        np.testing.assert_array_equal(rows[-min(REMEMBERED, known) :], np.arange(known)[-REMEMBERED:])
        if known > 5000:
            assert np.diff(rows[:500]).max() <= 2 * known / REMEMBERED  # of all times


def test_long_runs_go_on_learning():
    """Four times the rounds make an interval half as wide, though a surface has no more points.

    Seeds 1 to 3: with seed 0 replays agree by chance, as in one run of twenty, and the answer is "unsupported".
    """
    for seed in range(1, 4):
        payoff = noisy(lambda z: -float(np.sum((z - 0.3) ** 2)), 0.3, seed)
        learner = fed(rd.Auto(low=[-1, -1], high=[1, 1], seed=seed), 200, payoff)
        before, after = learner.interval(), fed(learner, 600, payoff).interval()
        assert after.high - after.low < 0.7 * (before.high - before.low)
        assert after.low < -np.sum((learner.recommend() - 0.3) ** 2) < after.high


@pytest.mark.parametrize("grain", [0.0, -1.0, 1.0])
def test_a_state_with_cells_that_cannot_be_is_refused(grain):
    state = fed(rd.Auto(dimension=2, seed=0), 20).state()
    state["search"]["grain"] = grain
    with pytest.raises(rd.errors.StateError, match="cells between"):
        rd.Auto(dimension=2, seed=0).restore(state)


def test_payoffs_of_0_and_1_are_climbed():
    """In five dimensions a hill of chances, 0.9 at its top: many payoffs are 1, which is no ceiling of the mean.

    Over these twelve seeds 0.77 is recommended on average; as long as equal payoffs counted as a ceiling, it was 0.61.
    Of ten other sets of twelve seeds none was below 0.71.
    """
    recommended = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        top = rng.uniform(0.15, 0.85, 5)

        def chance(z, top=top):
            return 0.05 + 0.85 * float(np.exp(-2 * np.sum((z - top) ** 2)))

        learner = rd.Auto(low=np.zeros(5), high=1, seed=seed)
        for _ in range(250):
            trial = learner.ask()
            learner.tell(trial, float(rng.random() < chance(trial.mediator)))
        recommended.append(chance(learner.recommend()))
    assert np.mean(recommended) > 0.68


# Earlier results.


def test_known_results_inform_the_search():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (40, 3))
    payoffs = [-float(np.sum((p - 0.4) ** 2)) for p in points]
    learner = rd.Auto(dimension=3, seed=0)
    learner.begin(points, payoffs)
    assert np.sum((learner.recommend() - 0.4) ** 2) < -max(payoffs)  # better than all that was known
    assert learner.told == 0
    trial = learner.ask()
    assert trial.decision[-1] > 0  # no filling
    assert np.sum((trial.decision[:-1] - 0.4) ** 2) < -max(payoffs)  # better than all that was known
    again = rd.load(learner.state())
    learner.tell(trial, 0.0)
    again.tell(trial.id, 0.0)
    np.testing.assert_array_equal(learner.ask().mediator, again.ask().mediator)


def test_first_is_played_as_given_also_with_known_results():
    learner = rd.Auto(dimension=2, first=[0.25, -0.5], seed=0)
    learner.begin(np.random.default_rng(0).uniform(-1, 1, (30, 2)), np.arange(30.0))
    np.testing.assert_allclose(learner.ask().mediator, [0.25, -0.5], rtol=1e-15)


# Constraints.


def constrained(seed, rounds=150):
    """The best of the box is infeasible: a slope to the right, and nothing beyond 0.6."""
    learner, rng = rd.Auto(low=[0, 0], high=1, seed=seed), np.random.default_rng(seed)
    outside = []
    for _ in range(rounds):
        trial = learner.ask()
        outside.append(trial.mediator[0] > 0.6)
        if outside[-1]:
            learner.tell(trial, feasible=False)
        else:
            learner.tell(
                trial, float(trial.mediator[0] - (trial.mediator[1] - 0.3) ** 2) + 0.02 * rng.standard_normal()
            )
    return learner, np.array(outside)


def test_infeasible_trials_keep_the_search_away():
    for seed in range(4):
        learner, outside = constrained(seed)
        best = learner.recommend()
        assert best[0] <= 0.62
        assert best[0] >= 0.5  # and yet near the border
        assert outside[75:].mean() <= 0.25  # half of the box is infeasible, and the better half
        assert learner.told == 150 - outside.sum()
        assert len(learner.infeasible) == outside.sum()


def test_infeasible_trials_enter_no_value():
    plain, other = (fed(rd.Auto(dimension=2, seed=1), 30, noisy(hill)) for _ in range(2))
    points = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    before = plain.estimate(points)
    plain.tell(plain.ask(), 1e9, feasible=False)
    plain.tell(plain.ask(), feasible=False)
    np.testing.assert_array_equal(plain.estimate(points).value, other.estimate(points).value)
    np.testing.assert_array_equal(before.value, other.estimate(points).value)
    with pytest.raises(rd.errors.PayoffError):
        plain.tell(plain.ask(), math.nan, feasible=False)
    again = rd.load(plain.state())
    np.testing.assert_array_equal(again.ask().mediator, plain.ask().mediator)


def test_a_failed_trial_leaves_no_trace():
    one, other = (fed(rd.Auto(dimension=2, seed=1), 30) for _ in range(2))
    one.fail(one.ask(), "crashed")
    other.fail(other.ask())
    points = np.zeros((1, 2))
    np.testing.assert_array_equal(
        one.estimate(points).value, fed(rd.Auto(dimension=2, seed=1), 30).estimate(points).value
    )


def test_other_learners_refuse_constraints():
    learner = rd.Randomist(rd.Finite(rd.Gaussian([0, 1], 1)))
    trial = learner.ask()
    with pytest.raises(rd.errors.ParameterError, match="Auto"):
        learner.tell(trial, feasible=False)
    learner.tell(trial, 0.5)  # it is still open


# States of 0.1.0.


def test_mediators_outside_of_the_box_are_taken_as_they_are():
    learner = fed(rd.Auto(low=[0, 0], high=1, seed=1), 30)
    state = learner.state()
    state["record"]["mediators"][3] = [-0.2, 1.3]
    again = fed(rd.load(state), 20)
    assert (again.record.mediators[30:] >= 0).all()
    assert (again.record.mediators[30:] <= 1).all()


# What it refuses.


def test_auto_takes_the_box_of_a_task_and_leaves_its_range_and_std():
    learner = rd.make(rd.Auto, rd.task("mountain-car"), seed=0)
    np.testing.assert_array_equal(learner.space.low[:-1], [-1, 0])
    assert learner.payoff_range == "running"
    run = rd.optimize(rd.task("lqg", space="box"), rd.Auto, rounds=30, seed=0)
    assert isinstance(run.recommendation, float)
    assert run.mediators.shape == (30,)
    pendulum = rd.optimize("gym:Pendulum-v1", "auto", rounds=6, seed=0)  # no box: [-1, 1] per parameter
    assert np.shape(pendulum.recommendation) == (3,)
    with_box = rd.task("gym:Pendulum-v1", low=-5, high=5)
    np.testing.assert_allclose(with_box.space.family.std, 1.0)  # a tenth of the width, where none is given


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rd.Auto(), "low and high"),
        (lambda: rd.Auto(low=1, high=0), "below high"),
        (lambda: rd.Auto(dimension=0), "dimension"),
        (lambda: rd.Auto(rd.Finite(rd.Gaussian([0, 1], 1))), "Realist"),
        (lambda: rd.Auto(low=[0, 0], high=1, first=[0.5]), "first"),
        (lambda: rd.Auto(low=[0, 0], high=1, first=[0.5, 2]), "first"),
        (lambda: rd.Auto(dimension=2).recommend(), "told"),
        (lambda: rd.Auto(dimension=2).estimate([[0.0, 5.0]]), "box"),
        (lambda: rd.Auto(dimension=2).estimate([[0.0, 0.5, 0.1]]), "shape"),
        (lambda: rd.Auto(dimension=2).begin([[0.0, 5.0]], [1.0]), "box"),
        (lambda: rd.Auto(dimension=2).begin([[0.0, 0.5]], [1.0, 2.0]), "one payoff per point"),
        (lambda: rd.Auto(dimension=2).begin([[0.0, 0.5]], [math.nan]), "finite"),
        (lambda: rd.Auto(dimension=2).begin([[math.nan, 0.5]], [1.0]), "finite"),
        (lambda: rd.Auto(dimension=2).begin([["a", "b"]], [1.0]), "points"),
        (lambda: (learner := rd.Auto(dimension=2)).tell(learner.ask(), 1.0, feasible=None), "True or False"),
        (lambda: rd.Auto(dimension=2, payoff_range=(0, 1)).begin([[0.0, 0.5]], [2.0]), "outside"),
        (lambda: rd.Auto(dimension=2).confirm(5), "told"),
        (lambda: rd.Auto(dimension=2).confirmed(), "confirm"),
        (lambda: fed(rd.Auto(dimension=2)).confirm(0), "n must"),
        (lambda: fed(rd.Auto(dimension=2)).interval(level=1.0), "level"),
        (lambda: fed(rd.Auto(dimension=2)).interval([[0, 0], [0.5, 0]]), "one point"),
        (lambda: rd.MCMCRandomist(rd.Auto(dimension=2).space), "Auto"),
    ],
)
def test_auto_refuses(make, words):
    with pytest.raises(rd.RandomistError, match=words):
        make()


@pytest.mark.slow
def test_eight_at_a_time_earn_nearly_as_much():
    one, eight = (averages(rd.Auto, "mountain-car", 8, 800, batch)[:, -1].mean() for batch in (1, 8))
    assert eight >= 0.97 * one


def test_what_was_played_to_see_is_known_before_and_after_the_search_begins():
    learner = rd.Auto(low=np.zeros(2), high=1, seed=0)
    for _ in range(3):
        learner.tell(learner.ask(), hill(np.zeros(2)))
    learner.begin([[0.5, 0.5]], [2.0])
    seen = learner._samples().seen
    assert seen.dtype == bool
    assert seen.tolist() == [True] * 4
    fed(learner, 30, noisy(hill))
    samples = learner._samples()
    assert samples.seen[1:].tolist() == (learner.record.decisions[:, -1] == 0).tolist()


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_poor_basin_is_left(dimension):
    """Doing nothing pays 0, most pays less, and a part of the box pays 1: it is found wherever the opening fell.

    False alarms: in three dimensions 5 of 40 seeds miss it, none of these; 14 did when looks were rarer.
    """
    for seed in range(8):
        learner = rd.Auto(low=np.zeros(dimension), high=1, seed=seed)
        fed(learner, 120, lambda z: 1.0 if (z > 0.5).all() else -float(np.sum(z**2)))
        assert (learner.recommend() > 0.5).all()
