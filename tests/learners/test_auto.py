"""Prospector and Auto: gradients and weighted means against their definitions, what is asked, and how it goes."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import randomist as rd
from randomist.importance import ascent, confidence_term
from randomist.learners.box import scouting
from randomist.learners.box.auto import LARGEST, SCOUTED
from randomist.learners.box.filling import filling_point
from randomist.testing import check_family
from tests.problems import RECTANGLE


def hill(mediator):
    """A payoff with a slope in every dimension, in [0, 1]."""
    z = np.ravel(mediator)
    return float(np.exp(-np.sum((z - 0.3 * np.arange(1, z.size + 1)) ** 2)))


def fed(learner, rounds=40, payoff=hill):
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, payoff(trial.mediator))
    return learner


# The family whose decision includes the scale.


@pytest.mark.parametrize(
    ("family", "decisions"),
    [
        (rd.LocationScale(unit=2.0), [[0.0, 0.5], [0.3, 0.6], [-1.0, 0.55]]),
        (rd.LocationScale(unit=[2.0, 20.0]), [[0.0, 10.0, 0.1], [0.2, 11.0, 0.13], [0.1, 9.0, 0.11]]),
    ],
)
def test_location_scale_keeps_the_contract_of_families(family, decisions):
    check_family(family, decisions=np.array(decisions))


def test_location_scale_is_a_gaussian_of_that_std():
    family = rd.LocationScale(unit=[2.0, 20.0])
    z = np.array([[0.1, 12.0], [1.0, 3.0]])
    expected = norm.logpdf(z, loc=[0.5, 10.0], scale=[0.2, 2.0]).sum(axis=1)
    np.testing.assert_allclose(family.log_density([[0.5, 10.0, 0.1]], z)[0], expected, rtol=1e-13)
    wide, narrow = [0.5, 10.0, 0.1], [0.5, 10.0, 0.05]
    assert np.isfinite(family.log_renyi([narrow], [wide])[0, 0])
    assert family.log_renyi([wide], [narrow])[0, 0] == np.inf  # a variance of at most half of p's cannot cover it


def test_location_scale_refuses_a_scale_of_zero():
    with pytest.raises(rd.errors.ParameterError, match="scale"):
        rd.LocationScale().log_density([[0.0, 0.0]], [0.0])
    with pytest.raises(rd.errors.ParameterError, match="unit"):
        rd.LocationScale(unit=[1.0, 0.0])


# Prospector.


def naive_optimistic(learner, point):
    """value⁺ by its definition."""
    record, std, told = learner.record, learner.history.spread, learner.told
    density = np.array([norm.pdf(record.mediators, x, std).prod(axis=1) for x in record.decisions])  # (plays, t)
    weight = norm.pdf(record.mediators, point, std).prod(axis=1) / density.mean(axis=0)
    eta = np.exp(-(((point - record.decisions) / std) ** 2).sum(axis=1)).sum()
    threshold = told / math.sqrt(eta * confidence_term(told, learner.confidence))
    return 1 - np.mean(np.minimum(threshold, weight) * (1 - record.payoffs))


def test_optimistic_estimate_and_gradient_equal_the_definition():
    learner = fed(rd.Prospector(RECTANGLE, seed=3), 60, lambda z: 0.5 + 0.4 * math.sin(3 * z[0] + 0.2 * z[1]))
    samples, term = learner.history.arrays(), confidence_term(60, 2.0)
    points = np.random.default_rng(0).uniform([-1, 0], [1, 20], (25, 2))
    scaled = points / learner.history.spread
    surface = ascent.optimistic_at(scaled, term, samples)
    np.testing.assert_allclose(surface.value, [naive_optimistic(learner, point) for point in points], rtol=1e-10)
    np.testing.assert_allclose(surface.value, learner.estimate(points).value, rtol=1e-10)
    gradients = np.array([ascent.gradient_at(scaled, surface, k, samples) for k in range(25)])
    for d, shift in enumerate(1e-6 * np.eye(2)):
        up, down = (ascent.optimistic_at(scaled + side * shift, term, samples).value for side in (1, -1))
        np.testing.assert_allclose(gradients[:, d], (up - down) / 2e-6, rtol=1e-3, atol=1e-6)
    assert (np.abs(gradients).max(axis=1) > 1e-3).sum() > 5  # the points were not all where nothing is known
    assert (surface.weights == surface.cut[:, None]).any()  # and some weights were cut


def test_climbing_never_ends_below_the_best_candidate():
    learner = fed(rd.Prospector(RECTANGLE, seed=1), 50)
    term, samples = confidence_term(50, 2.0), learner.history.arrays()
    candidates = np.random.default_rng(2).uniform(*learner._bounds, (12, 2))
    best = ascent.optimistic_at(candidates, term, samples).value.max()

    def climbed(lengths):
        point = ascent.climb(candidates, np.array(lengths), *learner._bounds, term, samples)
        return ascent.optimistic_at(point[None], term, samples).value[0]

    assert climbed([]) == pytest.approx(best, rel=1e-14)
    assert climbed([0.25, 0.5, 1.0]) > best  # here there was somewhere to climb


def test_pending_trials_keep_a_batch_apart():
    learner = fed(rd.Prospector(RECTANGLE, seed=5), 30)
    batch = learner.ask(batch=6)
    assert len({trial.decision.tobytes() for trial in batch}) > 1
    told = learner.history.payoffs.rows.copy()
    for trial in batch:
        learner.fail(trial)
    np.testing.assert_array_equal(learner.history.payoffs.rows, told)  # fantasies leave no trace


@pytest.mark.parametrize("settings", [{"candidates": 3}, {"steps": -1}, {"estimator": "paper"}, {"candidates": 5.5}])
def test_prospector_refuses(settings):
    with pytest.raises(rd.errors.ParameterError, match=next(iter(settings))):
        rd.Prospector(RECTANGLE, **settings)


# Auto.


def test_weighted_means_equal_the_definition():
    learner = fed(rd.Auto(low=[-1, 0], high=[1, 2], seed=2), 50)
    record, family = learner.record, learner.space.family
    density = np.exp(family.log_density(record.decisions, record.mediators))  # (plays, t)
    for decision in [*record.decisions[[0, 20, 49]], np.array([0.2, 1.1, 0.1])]:
        weight = np.exp(family.log_density(decision[None], record.mediators))[0] / density.mean(axis=0)
        estimates = learner.estimate(decision[None])
        assert estimates.value[0] == pytest.approx(np.sum(weight * record.payoffs) / np.sum(weight), rel=1e-9)
        assert estimates.coverage[0] == pytest.approx(weight.mean(), rel=1e-9)
        effective = np.exp(-family.log_renyi(decision[None], record.decisions)).sum()
        assert estimates.effective_samples[0] == pytest.approx(effective, rel=1e-9)
    assert (learner.estimate(record.decisions).effective_samples >= 1).all()


def test_the_opening_fills_the_box_and_begins_where_it_is_told():
    learner = rd.Auto(low=[-1, 0, 5], high=[1, 20, 6], seed=4, first=[0.5, 3.0, 5.25])
    trials = learner.ask(batch=6)  # two per dimension
    np.testing.assert_allclose(trials[0].decision, [0.5, 3.0, 5.25, SCOUTED])
    points = np.array([trial.decision[:-1] for trial in trials])
    assert (points >= [-1, 0, 5]).all()
    assert (points <= [1, 20, 6]).all()
    assert len(np.unique(points[:, 0])) == 6
    assert len(learner.ask(batch=8)) == 8  # nothing told yet: it goes on filling the box


def test_filling_points_are_even():
    points = np.array([filling_point(n, np.array([0.3, 0.8])) for n in range(400)])
    counts, _, _ = np.histogram2d(points[:, 0], points[:, 1], bins=4, range=[[0, 1], [0, 1]])
    assert counts.min() >= 20  # 25 each; uniform draws would have a cell below 20 in most of the cases
    assert counts.max() <= 30


def test_density_of_scouts_equals_the_definition():
    rng = np.random.default_rng(0)
    points, centres = rng.random((6, 3)), rng.random((4, 3))
    h = scouting.BANDWIDTH * 4**-0.2
    expected = [
        sum(math.log((norm.pdf(x[k], centres[:, k], h).sum() + 1) / 5) for k in range(3)) for x in points
    ]  # four kernels and a uniform one
    np.testing.assert_allclose(scouting._log_density(points, centres), expected, rtol=1e-12)
    np.testing.assert_array_equal(scouting._log_density(points, centres[:0]), 0)


def test_scouts_resemble_the_good_samples():
    rng = np.random.default_rng(1)
    points = rng.random((100, 4))
    payoffs = -np.sum((points - 0.8) ** 2, axis=1)
    scouts = np.array([scouting.scout(points, payoffs, rng) for _ in range(200)])
    assert ((scouts >= 0) & (scouts <= 1)).all()
    assert np.mean(np.sum((scouts - 0.8) ** 2, axis=1)) < 0.5 * np.mean(-payoffs)
    assert (scouts.std(axis=0) > 0.05).all()  # and yet they differ


def test_mean_excess_is_of_the_largest():
    payoffs = np.random.default_rng(2).random(50)
    largest = sorted(payoffs, reverse=True)
    expected = sum(largest[k] - largest[5] for k in range(5)) / 5
    assert scouting._mean_excess(payoffs) == pytest.approx(expected, rel=1e-12)
    assert scouting._mean_excess(np.array([3.0, 1.0])) == 2


def test_scouts_go_out_until_a_ceiling_or_noise_shows():
    rng = np.random.default_rng(3)
    scouted = np.arange(100) < 20
    tail = np.where(scouted, rng.exponential(0.2, 100), 0.3 + 0.01 * rng.standard_normal(100))
    assert scouting.scouting_pays(tail, scouted, value=0.3)  # stuck at 0.3, and scouts have seen more
    ceiling = np.where(scouted, np.minimum(rng.random(100), 0.9), 0.9)
    assert not scouting.scouting_pays(ceiling, scouted, value=0.9)
    noise = rng.standard_normal(100) - scouted
    assert not scouting.scouting_pays(noise, scouted, value=0.0)


def test_auto_sends_scouts_where_they_may_pay():
    def scouts(payoff):
        asked = [fed(rd.Auto(low=np.zeros(4), high=1, seed=seed), 100, payoff).record.decisions for seed in range(4)]
        return [int((decisions[8:, -1] == SCOUTED).sum()) for decisions in asked]  # the opening has eight

    assert min(scouts(lambda z: math.exp(6 * np.sin(40 * z).mean()))) >= 10  # rugged, with a long tail
    assert max(scouts(lambda z: min(1.0, 2 - 2 * np.sum((z - 0.5) ** 2)))) <= 4  # a ceiling


@pytest.mark.parametrize("dimension", [1, 2, 5, 12])
def test_auto_finds_a_hill_and_narrows(dimension):
    learner = rd.Auto(dimension=dimension, low=-2, high=2, seed=dimension)
    peak = np.linspace(-1, 1.2, dimension)
    fed(learner, 60 * (dimension + 1), lambda z: 7 - 100 * float(np.sum((np.ravel(z) - peak) ** 2)))
    found = np.ravel(learner.recommend())
    assert np.abs(found - peak).max() < 0.3  # of a box of width 4
    assert learner.scale < LARGEST / math.sqrt(dimension)


def test_auto_is_scale_free():
    """Payoffs in other units change nothing: the range is learned."""
    first = fed(rd.Auto(dimension=3, seed=1), 60)
    second = fed(rd.Auto(dimension=3, seed=1), 60, lambda z: 4096 * hill(z) - 1024)  # exact in float64
    np.testing.assert_array_equal(first.record.mediators, second.record.mediators)


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
        (lambda: rd.Auto(dimension=2).estimate([[0.0, 0.0, 5.0]]), "scale"),
        (lambda: rd.MCMCRandomist(rd.Auto(dimension=2).space), "Auto"),
    ],
)
def test_auto_refuses(make, words):
    with pytest.raises(rd.RandomistError, match=words):
        make()


# How it goes: the figures of docs/learners/prospector.md and docs/learners/auto.md are of the same kind.


def averages(learner, task, seeds, rounds, batch=1):
    """Average payoff so far, with `batch` trials asked at a time.  (seeds, rounds)"""
    task, all_payoffs = rd.task(task), []
    for seed in range(seeds):
        chooser = rd.make(learner, task, seed=seed)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))
        while chooser.told < rounds:
            trials = chooser.ask(batch=batch)
            payoffs = task.payoff(np.array([trial.mediator for trial in trials]), rng)
            for trial, payoff in zip(trials, payoffs, strict=True):
                chooser.tell(trial, float(payoff))
        all_payoffs.append(chooser.record.payoffs)
    return np.cumsum(all_payoffs, axis=1) / np.arange(1, rounds + 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "early", "late", "worst"), [("mountain-car", 88, 94.5, 93.5), ("cartpole", 170, 195, 193)]
)
def test_prospector_earns_early(task, early, late, worst):
    """Seen: 90.0, 95.0, 94.4 and 182.2, 197.1, 196.3 over 10 seeds; the bounds are several standard errors away."""
    average = averages(rd.Prospector, task, seeds=20, rounds=1000)
    assert average[:, 99].mean() >= early
    assert average[:, -1].mean() >= late
    assert average[:, -1].min() >= worst


@pytest.mark.slow
@pytest.mark.parametrize("learner", [rd.Prospector, rd.Auto])
def test_eight_at_a_time_earn_nearly_as_much(learner):
    one, eight = (averages(learner, "mountain-car", 8, 800, batch)[:, -1].mean() for batch in (1, 8))
    assert eight >= 0.97 * one


def test_thousands_of_trials_asked_ahead():
    """The scale changes by a power of the rounds since the last search, which must not become 0."""
    learner = rd.Auto(low=[0.0, 0.0], high=[1.0, 1.0], seed=1)
    trials = learner.ask(batch=3000)
    learner.tell_all(trials, [float(trial.mediator.sum()) for trial in trials])
    for _ in range(3):
        learner.tell(learner.ask(), 1.0)
    assert 0 < learner.scale < 1
