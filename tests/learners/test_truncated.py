"""Boxes and finite sets of truncated Gaussians: who searches them, by which estimates, and never outside."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.errors import ParameterError
from randomist.histories import truncated
from randomist.histories.box import BoxHistory
from randomist.importance.estimators import ESTIMATORS
from randomist.study.describe import space_from
from randomist.testing import check_learner
from tests import problems

LINE = rd.Box(rd.TruncatedGaussian(std=0.3), low=-1, high=2)
RECTANGLE = rd.Box(rd.TruncatedGaussian(std=[0.15, 30.0]), low=[-1, 0], high=[1, 20])
WIDER = rd.Box(rd.TruncatedGaussian(std=[0.3], low=[-1.2], high=[1.1]), low=[-1], high=[1])
BOXES = {"line": LINE, "rectangle": RECTANGLE, "wider": WIDER}
BOX_LEARNERS = {
    "mcmc full": rd.MCMCRandomist,
    "mcmc one-step": partial(rd.MCMCRandomist, density="one-step", estimator="optimistic"),
    "grid": partial(rd.GridOptimist, kappa=4.0),
    "grid log-smoothing": partial(rd.GridOptimist, kappa=3.0, estimator="log-smoothing"),
    "prospector": rd.Prospector,
}
SET = rd.Finite(rd.TruncatedGaussian([0, 0.3, 1, 1.4], [0.1, 0.7, 0.2, 0.5], 0, 1))
GRID = rd.Finite.grid(rd.TruncatedGaussian(std=[0.3, 4.0]), low=[0, 0], high=[1, 10], points=3)
FINITE_LEARNERS = {
    "randomist": rd.Randomist,
    "realist": rd.Realist,
    "optimist mixture": partial(rd.Optimist, divergence="mixture", bias_correction="computed"),
    "experts": rd.StochasticExperts,
    "gp-ucb": rd.GPUCB,
}


@pytest.mark.parametrize("space", BOXES)
@pytest.mark.parametrize("name", BOX_LEARNERS)
def test_contract_in_a_box(name, space):
    check_learner(BOX_LEARNERS[name], BOXES[space], rounds=24, other_process=name == "prospector" and space == "line")


@pytest.mark.parametrize("space", [SET, GRID], ids=["set", "grid"])
@pytest.mark.parametrize("name", FINITE_LEARNERS)
def test_contract_on_a_finite_set(name, space):
    check_learner(FINITE_LEARNERS[name], space, rounds=24, other_process=False)


@pytest.mark.parametrize("name", BOX_LEARNERS)
@pytest.mark.parametrize("corner", [(-1, 0), (1, 20), (1, 0)])
def test_no_mediator_leaves_the_box(name, corner):
    """Payoffs that grow towards a corner; the decisions and what is recommended stay inside, too."""
    learner = BOX_LEARNERS[name](RECTANGLE, seed=4)
    low, high = RECTANGLE.corners
    for _ in range(60):
        trial = learner.ask()
        for point in (trial.decision, trial.mediator):
            assert ((point >= low) & (point <= high)).all()
        learner.tell(trial, 1 - np.abs((trial.mediator - corner) / (high - low)).mean())
    assert ((learner.recommend() >= low) & (learner.recommend() <= high)).all()


@pytest.mark.parametrize("make", [rd.PGPE, rd.POIS])
def test_who_cannot_says_so(make):
    with pytest.raises(
        ParameterError, match=r"gradients of Gaussians, got a Box of TruncatedGaussian; take MCMCRandom"
    ):
        make(LINE)


def told(history, count=50, seed=4):
    """Samples of decisions in the lower part of the box, some of which are played again right away."""
    space, rng = history.space, np.random.default_rng(seed)
    low, high = space.corners
    for _ in range(count):
        decision = rng.uniform(low, low + 0.6 * (high - low)).reshape(space.family.shape)
        for _ in range(int(rng.integers(1, 4))):
            history.append(decision, space.family.draw(decision, rng), float(rng.random()))
    return history


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("space", BOXES)
def test_the_history_is_the_general_one(space, estimator):
    """The same samples told to both: by NumPy from the family's densities, and with what was computed once."""
    box, rng = BOXES[space], np.random.default_rng(1)
    general, ours = told(BoxHistory(box)), told(box.history())
    assert type(ours) is truncated.TruncatedHistory
    points = np.concatenate([general.decisions.rows[::7], rng.uniform(*box.corners, (20, box.dimension)) / ours.spread])
    for one, other in zip(*(h.estimate(points, 11.0, ESTIMATORS[estimator]) for h in (general, ours)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-250)
    fantasies = [(box.corners[0].reshape(box.family.shape), box.corners[1].reshape(box.family.shape))] * 2
    one, other = (h.fantasised(fantasies, 0.9).estimate(points, 9.0, ESTIMATORS[estimator]) for h in (general, ours))
    np.testing.assert_allclose(one.value, other.value, rtol=1e-10, atol=1e-250)


@pytest.mark.parametrize("space", BOXES)
def test_gradients_are_differences(space):
    """Of the optimistic estimate, at points where no weight changes sides of its cut on the way."""
    box, rng = BOXES[space], np.random.default_rng(2)
    history = told(box.history())
    low, high = (corner / history.spread for corner in box.corners)
    points, h = rng.uniform(low, high, (20, box.dimension)), 1e-5
    surface = truncated._optimistic_at(points, 11.0, history)
    compared = 0
    for k in range(len(points)):
        gradient = truncated._gradient_at(points, surface, k, history)
        for d in range(box.dimension):
            step = h * np.eye(box.dimension)[d]
            up, down = (truncated._optimistic_at(points[k : k + 1] + s * step, 11.0, history) for s in (1, -1))
            if ((up.weights == up.cut[0]) == (down.weights == down.cut[0])).all():
                compared += 1
                slope = (up.value[0] - down.value[0]) / (2 * h)
                assert gradient[d] == pytest.approx(slope, rel=1e-5, abs=1e-8)
    assert compared > 10


def test_a_state_goes_on():
    """Saved in the middle, loaded, and run on: the trials of one that was never stopped."""
    whole, first = rd.Prospector(RECTANGLE, seed=3), rd.Prospector(RECTANGLE, seed=3)
    for learner in (whole, first):
        for _ in range(15):
            trial = learner.ask()
            learner.tell(trial, problems.payoff(trial))
    again = rd.load(first.state())
    for _ in range(5):
        one, other = whole.ask(), again.ask()
        np.testing.assert_array_equal(one.mediator, other.mediator)
        whole.tell(one, problems.payoff(one))
        again.tell(other, problems.payoff(other))


def test_a_study_is_loaded():
    low, high = RECTANGLE.corners
    study = rd.create_study("boxed", rd.MCMCRandomist(RECTANGLE, seed=3), storage="memory://truncated")
    for _ in range(15):
        trial = study.ask()
        assert ((trial.mediator >= low) & (trial.mediator <= high)).all()
        study.tell(trial, problems.payoff(trial))
    loaded = rd.load_study("boxed", storage="memory://truncated")
    np.testing.assert_array_equal(loaded.recommend(), study.recommend())
    np.testing.assert_array_equal(loaded.estimate([[0, 3]]), study.estimate([[0, 3]]))
    np.testing.assert_array_equal(loaded.space.family.high, [1, 20])


def test_a_described_space_is_truncated_to_its_box():
    """As a request over HTTP or a file describes it."""
    corners = {"low": [0, 0], "high": [1, 9]}
    for description in ({"kind": "Box"}, {"kind": "Grid", "points": 2}):
        space = space_from(description | corners | {"family": {"kind": "TruncatedGaussian", "std": [0.1, 2]}})
        np.testing.assert_array_equal(space.family.high, [1, 9])


def test_a_member_joins_where_the_box_is_the_same():
    learner = rd.Randomist(SET, seed=0)
    learner.add(rd.TruncatedGaussian([0.6], 0.1, 0, 1))
    assert type(learner.space.family) is rd.TruncatedGaussian
    assert learner.space.size == 5
    with pytest.raises(ParameterError, match="no divergence is known between TruncatedGaussian and TruncatedGaussian"):
        learner.add(rd.TruncatedGaussian([0.6], 0.1, 0, 2))


def test_they_find_what_pays_at_the_border():
    """A payoff of 1 within 0.2 of the upper end, which a Gaussian would overshoot half of the time."""
    learner = rd.Prospector(LINE, seed=1)
    for _ in range(200):
        trial = learner.ask()
        learner.tell(trial, float(trial.mediator > 1.8))
    assert learner.recommend() > 1.6
    assert learner.record.payoffs[100:].mean() > 0.4
