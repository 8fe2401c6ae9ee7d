"""Auto: laws that hold for any of its constants."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import randomist as rd
from randomist import _json
from randomist.learners.box.auto.samples import REMEMBERED, gathered, in_regions, mean_excess, remembered, units
from randomist.learners.box.auto.search import moved_along
from randomist.learners.box.filling import filling_point
from randomist.learners.trial import PURPOSES
from tests.learners.playing import averages, fed, hill, noisy

SPACE = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b", "c"))

# Where it plays.


SHAPES = {
    "corner": lambda u, rng: -float(np.sum(u)) + 0.1 * rng.standard_normal(),
    "far corner": lambda u, rng: float(np.sum(u)),
    "noise": lambda u, rng: rng.standard_cauchy(),
    "flat": lambda u, rng: 1.0,
    "steps": lambda u, rng: float(np.floor(3 * u[0])),
    "spike": lambda u, rng: float(np.all(np.abs(u - 0.3) < 0.2)),
    "wild": lambda u, rng: float(rng.choice([-1e150, 0.0, 1e-300, 1e150])),
    "fails": lambda u, rng: float(u[0]) if u[0] < 0.6 else None,
}


def answered(learner, trial, payoff):
    """Told, or failed where there is no payoff."""
    if payoff is None:
        learner.fail(trial, "no payoff")
    else:
        learner.tell(trial, payoff)


@given(
    d=st.integers(1, 6),
    low=st.floats(-1e6, 1e6),
    log_width=st.floats(-6, 6),
    shape=st.sampled_from(sorted(SHAPES)),
    batch=st.integers(1, 5),
    first=st.booleans(),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_all_mediators_lie_in_the_box_and_what_is_recommended_was_played(d, low, log_width, shape, batch, first, seed):
    lows = np.full(d, low)
    highs = lows + 10**log_width * np.arange(1, d + 1)
    learner = rd.Auto(low=lows, high=highs, seed=seed, first=lows + 0.1 * (highs - lows) if first else None)
    rng = np.random.default_rng(seed)
    for _ in range(30 // batch + 1):
        for trial in learner.ask(batch=batch):
            assert ((trial.mediator >= lows) & (trial.mediator <= highs)).all()
            assert trial.purpose in PURPOSES
            unit = np.clip((trial.mediator - lows) / (highs - lows), 0, 1)
            answered(learner, trial, SHAPES[shape](unit, rng))
    if not learner.told:
        with pytest.raises(rd.errors.NoDataError):
            learner.recommend()
        return
    away = np.abs(learner.record.mediators.reshape(-1, d) - learner.recommend()) / (highs - lows)
    assert away.max(axis=1).min() < 1e-9


def test_the_opening_fills_the_box_and_begins_where_it_is_told():
    learner = rd.Auto(low=[0, 0], high=[1, 10], seed=0, first=[0.3, 7.0])
    trials = learner.ask(batch=3)
    np.testing.assert_allclose(trials[0].mediator, [0.3, 7.0])
    assert {trial.purpose for trial in trials} == {"open"}
    assert len({tuple(trial.mediator) for trial in trials}) == 3


def test_filling_points_are_even():
    points = np.array([filling_point(i, np.array([0.2, 0.7])) for i in range(400)])
    counts, _, _ = np.histogram2d(*points.T, bins=4, range=[[0, 1], [0, 1]])
    assert counts.min() >= 20
    assert counts.max() <= 30


@pytest.mark.parametrize("dimension", [1, 3, 10])
def test_auto_finds_a_hill_and_narrows(dimension):
    learner = fed(rd.Auto(dimension=dimension, seed=1), 150, lambda z: -float(np.sum((np.ravel(z) - 0.3) ** 2)))
    assert learner.scale < 0.15
    assert np.sum((np.ravel(learner.recommend()) - 0.3) ** 2) < 0.1


def test_payoffs_in_other_units_change_nothing():
    one, other = (fed(rd.Auto(dimension=2, seed=4), 60, lambda z, f=f: f * hill(z)) for f in (1.0, 1024.0))
    np.testing.assert_array_equal(one.record.mediators, other.record.mediators)


def test_equal_payoffs_for_ever_go_on_filling_the_box():
    learner = fed(rd.Auto(low=[0, 0], high=1, seed=0), 64, lambda z: 2.0)
    counts, _, _ = np.histogram2d(*learner.record.mediators.T, bins=4, range=[[0, 1], [0, 1]])
    assert counts.min() >= 2


# One run, however it is made.


def run(learner, rounds, rng):
    """Rounds with batches, failures, infeasible trials and late tells."""
    late = []
    for i in range(rounds):
        for trial in learner.ask(batch=1 + i % 3):
            u, chance = np.ravel(trial.mediator), rng.random()
            if chance < 0.1:
                learner.fail(trial, "by chance")
            elif chance < 0.15:
                learner.tell(trial, feasible=False)
            elif chance < 0.25:
                late.append(trial)
            else:
                learner.tell(trial, -float(np.sum((u - 0.4) ** 2)) + 0.1 * rng.standard_normal())
        if len(late) > 3:
            learner.tell(late.pop(0).id, 0.0)
    return learner


MAKERS = {
    "line": lambda seed: rd.Auto(low=0, high=1, seed=seed),
    "box": lambda seed: rd.Auto(low=[0, 0, 0], high=1, seed=seed),
    "first": lambda seed: rd.Auto(low=[0, 0], high=1, first=[0.2, 0.3], seed=seed),
    "parameters": lambda seed: rd.Auto(SPACE, seed=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_seed_is_the_same_run_and_a_state_goes_on_as_it_would_have(name):
    straight = run(MAKERS[name](5), 30, np.random.default_rng(1))
    again = run(MAKERS[name](5), 30, np.random.default_rng(1))
    np.testing.assert_array_equal(straight.record.mediators, again.record.mediators)
    loaded = rd.load(_json.loads(_json.dumps(straight.state())))
    assert _json.dumps(loaded.state()) == _json.dumps(straight.state())
    assert loaded.pending == straight.pending
    assert {trial.purpose for trial in loaded.pending} <= set(PURPOSES)
    for learner in (straight, again, loaded):
        run(learner, 15, np.random.default_rng(2))
    for other in (again, loaded):
        np.testing.assert_array_equal(straight.record.mediators, other.record.mediators)
        np.testing.assert_array_equal(straight.recommend(), other.recommend())


def test_a_proposal_is_what_is_asked_and_carries_its_purpose():
    learner = fed(rd.Auto(dimension=2, seed=1), 25, noisy(hill))
    before = json.dumps(_json.dumps(learner.state()))
    proposal = learner.propose(4)
    assert json.dumps(_json.dumps(learner.state())) == before
    assert [PURPOSES[search["purpose"]] for search in proposal.searches] == [t.purpose for t in proposal.trials]
    assert [t.decision.tolist() for t in learner.ask(batch=4)] == [t.decision.tolist() for t in proposal.trials]


@pytest.mark.parametrize(("field", "value"), [("grain", 0.0), ("grain", 1.0), ("purpose", 99), ("heading", 0.0)])
def test_a_search_that_cannot_be_is_refused(field, value):
    state = fed(rd.Auto(dimension=2, seed=0), 20).state()
    state["search"][field] = value
    with pytest.raises(rd.errors.StateError, match="a search of Auto has"):
        rd.Auto(dimension=2, seed=0).restore(state)


def test_an_older_state_is_refused():
    state = fed(rd.Auto(dimension=2, seed=0), 20).state()
    del state["lost"]
    with pytest.raises(rd.errors.StateError, match="older"):
        rd.Auto(dimension=2, seed=0).restore(state)


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


def test_a_batch_spreads():
    learner = fed(rd.Auto(low=np.zeros(3), high=1, seed=3), 30, noisy(hill, 0.3))
    told = learner.told
    batch = learner.ask(batch=16)
    assert len({trial.decision.tobytes() for trial in batch}) >= 4
    points = np.array([trial.mediator for trial in batch])
    assert np.linalg.norm(points - points.mean(axis=0), axis=1).mean() > 0.01
    assert learner.told == told


@pytest.mark.slow
def test_eight_at_a_time_earn_nearly_as_much():
    one, eight = (averages(rd.Auto, "mountain-car", 8, 800, batch)[:, -1].mean() for batch in (1, 8))
    assert eight >= 0.97 * one


# What is looked at.


def test_a_bounded_number_of_samples_is_looked_at():
    for known in (1, 100, 2 * REMEMBERED, 2 * REMEMBERED + 1, 10_000, 100_000):
        rows = remembered(known)
        assert len(rows) <= 2 * REMEMBERED
        assert len(np.unique(rows)) == len(rows)
        np.testing.assert_array_equal(rows[-min(REMEMBERED, known) :], np.arange(known)[-REMEMBERED:])
        if known > 5000:
            assert np.diff(rows[:500]).max() <= 2 * known / REMEMBERED  # of all times


def test_of_many_known_results_no_more_are_looked_at():
    learner, rng = rd.Auto(low=[0, 0], high=1, seed=0), np.random.default_rng(0)
    learner.begin(rng.random((5000, 2)), rng.random(5000))
    fed(learner, 3)
    samples = learner._samples(())
    assert len(samples.payoffs) <= 2 * REMEMBERED
    np.testing.assert_array_equal(samples.payoffs[-3:], learner.record.payoffs)


def test_mean_excess_is_of_the_largest():
    assert mean_excess(np.array([3.0])) == 0
    assert mean_excess(np.array([0.0, 1.0])) == 1
    assert mean_excess(np.append(np.zeros(50), [1, 2, 3, 4, 5])) == 3


def test_what_several_payoffs_reach_is_no_luck():
    """On a quiet plateau the middle half has no spread, and all that is better was cut down to it."""
    plateau = np.concatenate([np.full(90, 1.0) + 1e-6 * np.arange(90), [50.0, 60.0, 70.0, 80.0, 90.0, 1e6]])
    found = units(plateau)
    assert found[-5] - found[-6] > 0.1
    assert found[-1] == found[-2] or found[-1] == 1


def test_moves_along_a_parameter_change_no_other_and_take_every_option():
    rng, best = np.random.default_rng(0), np.array([0.5, 0.9, 0.25, 0.75, 0.25])
    parameters = rd.Auto(SPACE)._parameters
    points = np.array([moved_along(best, 0.05, parameters, rng) for _ in range(500)])
    assert ((points >= 0) & (points <= 1)).all()
    changed = [tuple(np.flatnonzero(point != best)) for point in points]
    assert set(changed) <= {(0,), (1,), (2, 3), (3, 4)}
    assert {SPACE.named(point)["mode"] for point in points} == {"a", "b", "c"}
    steps = np.abs(points[:, 0] - 0.5)
    assert 0.3 < np.median(steps[steps > 0]) / 0.1 < 3
    assert steps.max() > 0.3


# Earlier results, a start, and what fails.


def test_known_results_inform_the_search():
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (40, 3))
    payoffs = [-float(np.sum((p - 0.4) ** 2)) for p in points]
    learner = rd.Auto(dimension=3, seed=0)
    learner.begin(points, payoffs)
    np.testing.assert_allclose(learner.recommend(), points[int(np.argmax(payoffs))])
    assert learner.told == 0
    trial = learner.ask()
    assert trial.purpose != "open"
    again = rd.load(learner.state())
    learner.tell(trial, 0.0)
    again.tell(trial.id, 0.0)
    np.testing.assert_array_equal(learner.ask().mediator, again.ask().mediator)


def test_first_is_played_as_given_also_with_known_results():
    learner = rd.Auto(dimension=2, first=[0.25, -0.5], seed=0)
    learner.begin(np.random.default_rng(0).uniform(-1, 1, (30, 2)), np.arange(30.0))
    np.testing.assert_allclose(learner.ask().mediator, [0.25, -0.5], rtol=1e-15)


def test_a_good_start_is_recommended_unless_something_is_better():
    """A narrow top on a plateau: only plays of the start say that it is good; and a slope, where it is not."""
    top = np.array([0.1, 0.9])
    for seed in range(3):
        payoff = noisy(lambda z: 5.0 * math.exp(-float(np.sum((z - top) ** 2)) / 0.002), 1.0, seed)
        learner = fed(rd.Auto(low=[0, 0], high=1, first=top, seed=seed), 80, payoff)
        assert np.sum((learner.recommend() - top) ** 2) < 0.001
        learner = fed(rd.Auto(low=[0, 0], high=1, first=top, seed=seed), 80, noisy(lambda z: 9.0 * z[0], 0.1, seed))
        assert learner.recommend()[0] > 0.8


@pytest.mark.parametrize("told", [False, True])
def test_where_calls_fail_is_left_and_never_recommended(told):
    """Half of the box fails, and payoffs rise towards it."""
    for seed in range(4):
        learner, rng, outside = rd.Auto(low=[0, 0], high=1, seed=seed), np.random.default_rng(seed), []
        for _ in range(150):
            trial = learner.ask()
            x, y = trial.mediator
            outside.append(x > 0.6)
            if outside[-1] and told:
                learner.tell(trial, feasible=False)
            else:
                answered(learner, trial, None if outside[-1] else x - (y - 0.3) ** 2 + 0.02 * rng.standard_normal())
        assert 0.45 <= learner.recommend()[0] <= 0.6
        assert np.mean(outside[75:]) <= 0.15
        assert learner.told == 150 - sum(outside)
        assert len(learner.infeasible if told else learner.lost) == sum(outside)


def test_calls_that_fail_by_chance_say_nothing_of_a_place():
    rng = np.random.default_rng(0)
    points = rng.random((300, 2))
    chance = rng.random(300) < 0.3
    assert in_regions(points[chance], points[~chance]).mean() < 0.2
    region = points[:, 0] > 0.6
    assert in_regions(points[region], points[~region]).mean() > 0.9
    samples = gathered(points[~region], points[~region, 0], points[region])
    assert samples.paid.sum() == (~region).sum()
    assert (samples.payoffs[~samples.paid] == points[~region, 0].min()).all()


def test_failures_enter_no_estimate():
    plain, other = (fed(rd.Auto(dimension=2, seed=1), 30, noisy(hill)) for _ in range(2))
    points = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    plain.tell(plain.ask(), 1e9, feasible=False)
    plain.tell(plain.ask(), feasible=False)
    plain.fail(plain.ask(), "crashed")
    np.testing.assert_array_equal(plain.estimate(points).value, other.estimate(points).value)
    with pytest.raises(rd.errors.PayoffError):
        plain.tell(plain.ask(), math.nan, feasible=False)


def test_other_learners_refuse_constraints():
    learner = rd.Randomist(rd.Finite(rd.Gaussian([0, 1], 1)))
    trial = learner.ask()
    with pytest.raises(rd.errors.ParameterError, match="Auto"):
        learner.tell(trial, feasible=False)
    learner.tell(trial, 0.5)  # it is still open


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
