"""Learners in a box: estimates against the definition, chains against enumeration."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare

import randomist as rd
from randomist.importance import chains, perturbed
from randomist.importance.coins import TABLE
from randomist.importance.estimators import find_estimator
from randomist.learners.box.grid_optimist import points_per_dimension
from tests import naive
from tests.problems import BOXED, HYPERBOX, RECTANGLE


def fed(learner, rounds=40):
    """Rounds against a payoff of the mediator that any box has."""
    for _ in range(rounds):
        trial = learner.ask()
        learner.tell(trial, 0.5 + 0.5 * math.sin(float(np.sum(trial.mediator))))
    return learner


@pytest.mark.parametrize("space", BOXED.values(), ids=BOXED)
def test_estimates_at_any_decision_equal_the_definition(space):
    """Played decisions, and some of the box that were not: MIS, η, M and width in 60 digits."""
    learner = fed(rd.MCMCRandomist(space, density="one-step", seed=2), 30)
    record = learner.record
    rng = np.random.default_rng(0)
    low, high = np.ravel(space.low), np.ravel(space.high)
    fresh = rng.uniform(low, high, (6, space.dimension)).reshape(-1, *space.family.shape)
    points = np.concatenate([record.decisions, fresh])
    got = learner.estimate(points)
    family = space.family.at(points)  # every point as a member of a finite family
    want = naive.estimates(
        family.log_density(None, record.mediators),
        family.log_renyi(None, None),
        list(range(len(record))),  # member i was played in round i
        record.payoffs,
    )
    for name in ("value", "effective_samples", "threshold", "width", "coverage"):
        for x, (ours, exact) in enumerate(zip(getattr(got, name), want[name], strict=True)):
            assert abs(mpmath.mpf(float(ours)) - exact) <= 1e-9 * exact + mpmath.mpf(10) ** -300, (name, x)
    counts = [(record.decisions == point).reshape(len(record), -1).all(axis=1).sum() for point in points]
    np.testing.assert_array_equal(got.plays, counts)


def test_estimates_far_from_everything_do_not_underflow():
    space = rd.Box(rd.Gaussian(std=0.01), low=-1, high=1)
    learner = rd.MCMCRandomist(space, first=-1.0, seed=0)
    learner.tell(learner.ask(), 0.7)
    seen = learner.estimate([1.0, -1.0])
    assert seen.log_effective_samples[0] == pytest.approx(-(200.0**2), rel=1e-12)
    assert seen.effective_samples.tolist() == [0.0, 1.0]
    assert all(np.isfinite(entry).all() for entry in seen)
    for _ in range(20):  # chains over e^-40000 effective samples
        learner.tell(learner.ask(), 0.5)


def test_recommend_is_the_best_played_decision():
    learner = fed(rd.MCMCRandomist(RECTANGLE, seed=0))
    best = learner.recommend()
    played = learner.record.decisions
    assert (played == best).all(axis=1).any()
    assert learner.estimate(best).value[0] == pytest.approx(learner.estimate(played).value.max(), rel=1e-12)


def test_the_chain_is_recorded_and_stays_in_the_box():
    learner = fed(rd.MCMCRandomist(RECTANGLE, seed=1, steps=7), 5)
    for _ in range(20):
        before = learner.record.decisions[-1]
        trial = learner.ask()
        chain = learner.chain
        assert chain.points.shape == (8, 2)
        assert chain.accepted.shape == (7,)
        np.testing.assert_allclose(chain.points[0], before, rtol=1e-14)
        np.testing.assert_allclose(chain.points[-1], trial.decision, rtol=1e-14)
        moved = (np.diff(chain.points, axis=0) != 0).any(axis=1)
        np.testing.assert_array_equal(moved, chain.accepted)
        assert RECTANGLE.contains(chain.points).all()
        learner.tell(trial, 0.5)


def test_before_the_first_payoff_the_chain_walks_freely():
    trials = rd.MCMCRandomist(RECTANGLE, seed=3).ask(batch=4)
    assert len({tuple(trial.decision) for trial in trials}) == 4
    assert all(RECTANGLE.contains(trial.decision).all() for trial in trials)


# A lattice of 7 decisions, proposals one step to either side: a finite chain that can be enumerated.

LATTICE, STEP = np.linspace(-0.9, 0.9, 7), 0.3


def lattice_learner(**settings):
    space = rd.Box(rd.Gaussian(std=1.0), low=-1, high=1)
    learner = rd.MCMCRandomist(space, seed=0, perturbation_scale=2.0, **settings)
    rng = np.random.default_rng(5)
    for i in range(12):
        decision = LATTICE[rng.integers(7)]
        learner._pending[i] = rd.Trial(i, decision, decision + rng.normal())
        learner.tell(i, float(rng.random()))
    return learner


def final_states(learner, chain_of, chains_n, steps):
    """Where independent chains from the middle end, as lattice indices."""
    rng = np.random.default_rng(6)
    ends = []
    for _ in range(chains_n):
        normals = rng.choice([-STEP, STEP], (steps, 1))
        path, _ = chain_of(LATTICE[3:4].copy(), normals, rng.random(steps))
        ends.append(round((path[-1, 0] - LATTICE[0]) / STEP))
    return np.bincount(ends, minlength=7)


def lattice_estimates(learner):
    term = learner._term()
    value, log_eta, _ = learner.history.sums(LATTICE[:, None], term, find_estimator("paper"))
    return [chains.perturbed(*one, 2.0, 0.0, term) for one in zip(value, log_eta, strict=True)]


@pytest.mark.parametrize("exact", [True, False])
def test_full_chain_visits_match_the_enumerated_density(exact):
    """χ² of 3,000 ends of 60 steps against normalised g†; false alarms 1e-4."""
    learner = lattice_learner(exact=exact)
    seen = final_states(learner, learner._walk, 3000, 60)
    value, log_eta, _ = learner.history.sums(learner.history.decisions.rows, learner._term(), find_estimator("paper"))
    others = (value, log_eta, np.array([perturbed.flips_of(e, 2.0) for e in log_eta]))
    log_density = np.array(
        [
            perturbed.log_direct_density(TABLE.upto(200), x, (*others, learner.history.plays.rows))
            for x in lattice_estimates(learner)
        ]
    )
    law = np.exp(log_density - log_density.max())
    law /= law.sum()
    assert law.max() / law.min() > 1.5  # there is something to see
    assert chisquare(seen, 3000 * law).pvalue > 1e-4


def test_one_step_chain_visits_match_the_stationary_vector():
    """χ² of 3,000 ends of 60 steps against the exact transition matrix's stationary vector; false alarms 1e-4."""
    learner = lattice_learner(density="one-step")
    seen = final_states(learner, learner._walk, 3000, 60)
    x, table = lattice_estimates(learner), TABLE.upto(200)
    transition = np.zeros((7, 7))
    for here in range(7):
        for there in (here - 1, here + 1):
            if 0 <= there < 7:
                forward = perturbed.log_at_most(table, x[here], x[there])
                backward = perturbed.log_at_most(table, x[there], x[here])
                transition[here, there] = 0.5 * min(1.0, math.exp(forward - backward))
        transition[here, here] = 1 - transition[here].sum()
    law = np.linalg.matrix_power(transition, 60)[3]
    stationary = np.linalg.matrix_power(transition, 100_000)[3]
    np.testing.assert_allclose(law, stationary, atol=0.02)  # 60 steps are nearly enough
    assert chisquare(seen, 3000 * law).pvalue > 1e-4


def test_grid_sizes_are_as_computed():
    assert [points_per_dimension(t, 2) for t in (1, 2, 4, 5, 9, 10, 2500, 2501)] == [1, 2, 2, 3, 3, 4, 50, 51]
    assert [points_per_dimension(t, 3) for t in (8, 9, 27, 28, 1000, 1001)] == [2, 3, 3, 4, 10, 11]
    assert points_per_dimension(5000, 4) ** 4 == 9**4
    learner = rd.GridOptimist(HYPERBOX, kappa=4, seed=0)
    for t in range(1, 20):
        assert len(learner.grid) == points_per_dimension(t, 4) ** 4
        learner.tell(learner.ask(), 0.5)


def test_grid_optimist_index_is_its_equation():
    learner = fed(rd.GridOptimist(RECTANGLE, kappa=2, seed=0, failure_probability=0.2), 30)
    t, tau = 31, 6
    delta = 6 * 0.2 / (math.pi**2 * t**2 * (1 + tau**2))
    seen = learner.estimate(learner.grid)
    assert len(learner.grid) == tau**2
    d2 = 30 / seen.effective_samples
    np.testing.assert_allclose(seen.threshold, np.sqrt(30 * d2 / math.log(1 / delta)), rtol=1e-9)
    index = seen.value + (math.sqrt(2) + 4 / 3) * np.sqrt(d2 * math.log(1 / delta) / 30)
    np.testing.assert_array_equal(learner.ask().decision, learner.grid[np.argmax(index)])


def test_a_grid_that_explodes_says_so_and_loses_nothing():
    learner = rd.GridOptimist(HYPERBOX, kappa=2, seed=0, max_points=200)
    for _ in range(9):
        learner.tell(learner.ask(), 0.5)
    with pytest.raises(rd.errors.ParameterError, match=r"round 10 would have 4\^4 = 256 points.*max_points=200.*kappa"):
        learner.ask()
    assert learner.told == 9
    assert len(learner.recommend()) == 4


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rd.MCMCRandomist(RECTANGLE, density="half"), rd.errors.ParameterError, "full.*one-step.*half"),
        (lambda: rd.MCMCRandomist(RECTANGLE, steps=0), rd.errors.ParameterError, "steps.*>= 1.*0"),
        (
            lambda: rd.MCMCRandomist(RECTANGLE, proposal_std=[1, 0]),
            rd.errors.ParameterError,
            "proposal_std must be > 0",
        ),
        (lambda: rd.MCMCRandomist(RECTANGLE, proposal_std=[1, 1, 1]), rd.errors.ParameterError, "one per dimension"),
        (lambda: rd.MCMCRandomist(RECTANGLE, perturbation_scale=-1), rd.errors.ParameterError, "perturbation_scale"),
        (lambda: rd.MCMCRandomist(RECTANGLE, bias_correction="yes"), rd.errors.ParameterError, "paper.*yes"),
        (lambda: rd.MCMCRandomist(RECTANGLE, first=[0, 21]), rd.errors.ParameterError, "first must lie in the box"),
        (lambda: rd.MCMCRandomist(RECTANGLE, first=0.5), rd.errors.ShapeError, r"shape \(2,\)"),
        (lambda: rd.MCMCRandomist(rd.Finite(rd.Gaussian([0], 1))), rd.errors.ParameterError, "searches a Box"),
        (lambda: rd.GridOptimist(RECTANGLE, kappa=0.5), rd.errors.ParameterError, "kappa must be >= 1"),
        (lambda: rd.GridOptimist(RECTANGLE, failure_probability=0), rd.errors.ParameterError, r"\(0, 1\)"),
        (lambda: rd.MCMCRandomist(RECTANGLE).estimate([0, 25]), rd.errors.ParameterError, "outside the box"),
        (lambda: rd.MCMCRandomist(RECTANGLE).recommend(), rd.errors.NoDataError, "told"),
    ],
)
def test_bad_input(make, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        make()
