"""A Box of any location family: the same estimates by their definition, and learners that need nothing else."""

from __future__ import annotations

from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import randomist as rd
from randomist.errors import ParameterError
from randomist.histories.box import BoxHistory
from randomist.histories.gaussian import GaussianHistory
from randomist.importance.estimators import ESTIMATORS
from randomist.testing import check_family, check_learner
from tests import naive, problems
from tests.families.laplace import Laplace

LINE = rd.Box(Laplace(0.3), low=-1, high=2)
RECTANGLE = rd.Box(Laplace([0.15, 3.0]), low=[-1, 0], high=[1, 20])
BOXES = {"line": LINE, "rectangle": RECTANGLE}
LEARNERS = {
    "mcmc full": rd.MCMCRandomist,
    "mcmc exact": partial(rd.MCMCRandomist, exact=True, bias_correction="paper", estimator="self-normalised"),
    "mcmc one-step": partial(rd.MCMCRandomist, density="one-step", estimator="optimistic"),
    "grid": partial(rd.GridOptimist, kappa=4.0),
    "grid log-smoothing": partial(rd.GridOptimist, kappa=3.0, estimator="log-smoothing"),
}


def test_the_family_keeps_its_contract():
    check_family(Laplace([0.15, 3.0]), decisions=[[0.0, 1.0], [0.1, 3.0], [-0.2, 4.0]])
    check_family(Laplace(0.4), decisions=[0.0, 0.1, 0.5])
    one, other = stats.laplace(0.2, 0.3), stats.laplace(-0.5, 0.3)
    second_moment = sum(
        integrate.quad(lambda z: one.pdf(z) ** 2 / other.pdf(z), *ends)[0]
        for ends in ((-9, -0.5), (-0.5, 0.2), (0.2, 9))
    )
    assert Laplace(0.3).log_renyi([0.2], [-0.5])[0, 0] == pytest.approx(np.log(second_moment), rel=1e-7)


@pytest.mark.parametrize("space", BOXES)
@pytest.mark.parametrize("name", LEARNERS)
def test_contract(name, space):
    check_learner(LEARNERS[name], BOXES[space], rounds=24, other_process=name == "grid" and space == "line")


@pytest.mark.parametrize("space", BOXES.values(), ids=BOXES)
@pytest.mark.parametrize("make", [rd.MCMCRandomist, partial(rd.GridOptimist, kappa=3)])
def test_estimates_at_any_decision_equal_the_definition(make, space):
    """In 60 digits, at what was played and elsewhere; the grid's threshold and width have its own term for α log t."""
    learner = make(space, seed=2, payoff_range=(-1, 3))
    for _ in range(30):
        trial = learner.ask()
        learner.tell(trial, 4 * problems.payoff(trial) - 1)
    record, family = learner.record, space.family
    fresh = np.random.default_rng(0).uniform(space.low, space.high, (6, *family.shape))
    points = np.concatenate([record.decisions, fresh])
    got = learner.estimate(points)
    confidence = learner._term() / np.log(31)
    want = naive.estimates(
        family.log_density(points, record.mediators),
        family.log_renyi(points, points),
        list(range(30)),  # member i was played in round i
        (record.payoffs + 1) / 4,
        confidence,
    )
    want["value"] = [4 * value - 1 for value in want["value"]]
    want["width"] = [4 * value for value in want["width"]]
    for name, exact in want.items():
        for x, (ours, theirs) in enumerate(zip(getattr(got, name), exact, strict=True)):
            assert abs(mpmath.mpf(float(ours)) - theirs) <= 1e-9 * abs(theirs) + 1e-9 * (name == "value"), (name, x)
    counts = [(record.decisions == point).reshape(30, -1).all(axis=1).sum() for point in points]
    np.testing.assert_array_equal(got.plays, counts)
    assert len(np.unique(record.decisions, axis=0)) > 3


@pytest.mark.parametrize(
    "make", [partial(rd.MCMCRandomist, density="one-step"), partial(rd.GridOptimist, kappa=2, bonus=0.3)]
)
def test_they_find_what_pays(make):
    """A payoff of 1 around 0.9 and 0 elsewhere: the expected payoff is at most 0.63, and 0.25 on average."""
    learner = make(LINE, seed=1)
    for _ in range(250):
        trial = learner.ask()
        learner.tell(trial, float(abs(trial.mediator - 0.9) < 0.3))
    assert learner.recommend() == pytest.approx(0.9, abs=0.3)
    assert learner.record.payoffs[125:].mean() > 0.45


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("name", problems.BOXED)
def test_the_general_history_is_that_of_gaussians(name, estimator):
    """The same samples told to both: by NumPy from the family's densities, and by compiled passes."""
    space, rng = problems.BOXED[name], np.random.default_rng(4)
    general, compiled = BoxHistory(space), space.history()
    assert type(compiled) is GaussianHistory
    low, high = space.corners
    for _ in range(60):
        decision = rng.uniform(low, low + 0.4 * (high - low)).reshape(space.family.shape)
        for _ in range(int(rng.integers(1, 4))):  # some are played again right away
            mediator, payoff = space.family.draw(decision, rng), float(rng.random())
            for history in (general, compiled):
                history.append(decision, mediator, payoff)
    points = np.concatenate([general.decisions.rows[::7], rng.uniform(low, high, (20, low.size)) / general.spread])
    for one, other in zip(
        *(history.estimate(points, 11.0, ESTIMATORS[estimator]) for history in (general, compiled)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-250)
    shift = np.log(np.sqrt(2 * np.pi) * general.spread).sum()  # of densities that compiled passes leave out
    np.testing.assert_allclose(general.log_mixture.rows + shift, compiled.log_mixture.rows, rtol=1e-10, atol=1e-10)
    fantasies = [(points[0] * general.spread, points[1] * general.spread)] * 2
    fantasies = [(x.reshape(space.family.shape), z.reshape(space.family.shape)) for x, z in fantasies]
    one, other = (
        history.fantasised(fantasies, 0.9).estimate(points, 11.0, ESTIMATORS[estimator])
        for history in (general, compiled)
    )
    np.testing.assert_allclose(one.value, other.value, rtol=1e-10, atol=1e-250)


@pytest.mark.parametrize("make", [rd.Prospector, rd.PGPE, rd.POIS])
def test_what_needs_gradients_of_gaussians_says_so(make):
    with pytest.raises(ParameterError, match=r"gradients of Gaussians, got a Box of Laplace; take MCMCRandomist"):
        make(LINE)
