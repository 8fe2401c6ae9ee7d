"""Nothing holds t² numbers: neither a recommendation in a box nor the full density of MCMC-RANDOMIST."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest

import randomist as rd
from randomist.importance import rows
from tests import problems
from tests.families.laplace import Laplace

DIMENSION = 4
HYPERBOX = problems.HYPERBOX
LAPLACE = rd.Box(Laplace(HYPERBOX.family.std), HYPERBOX.low, HYPERBOX.high)


def peak(call):
    """Bytes that a call has allocated at most, besides what was there."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def told(learner, count, seed=0):
    """A learner that was told samples of as many decisions."""
    rng = np.random.default_rng(seed)
    decisions = rng.uniform(*learner.space.corners, (count, DIMENSION))
    mediators = learner.space.family.sample(decisions, rng)
    for n in range(count):
        learner.adopt(rd.Trial(n, decisions[n], mediators[n]))
        learner.tell(n, float(rng.random()))
    return learner


@pytest.mark.parametrize(
    ("make", "space", "count"),
    [
        (partial(rd.MCMCRandomist, density="one-step"), HYPERBOX, 4000),
        (partial(rd.MCMCRandomist, density="one-step", estimator="log-smoothing"), HYPERBOX, 4000),
        (partial(rd.MCMCRandomist, density="one-step"), LAPLACE, 2000),
    ],
    ids=["gaussian", "log-smoothing", "laplace"],
)
def test_a_recommendation_allocates_no_square(make, space, count):
    """At t = 4,000 a square of booleans would be 16 MB, of numbers 128; of numbers at t = 2,000 it would be 32."""
    learner = told(make(space), count)
    learner.estimate(learner.record.decisions[:2])  # compiled, imported
    assert peak(learner.recommend) < 12e6
    assert peak(lambda: learner.estimate(learner.record.decisions)) < 12e6


def test_a_round_of_auto_allocates_no_multiple_of_its_samples():
    """20,000 samples in 20 dimensions are 3.2 MB; a round looks at 2,048 of them, and makes matrices of 300 x 300."""
    learner, rng = rd.Auto(low=np.zeros(20), high=1.0), np.random.default_rng(0)
    points = rng.random((20_000, 20))
    learner.begin(points, points.sum(axis=1))
    learner.tell(learner.ask(), 1.0)  # compiled, imported
    assert peak(learner.ask) < 4 * points.nbytes


@pytest.mark.parametrize("kept", [1, 100, 1500])
@pytest.mark.parametrize("estimator", ["paper", "optimistic"])
def test_ratios_that_are_not_kept_change_nothing(kept, estimator, monkeypatch):
    """The same decisions, bit for bit, whether ratios of all decisions are held, or of few, or of one."""
    free, bound = [], []
    for learners in (free, bound):
        if learners is bound:
            monkeypatch.setattr(rows, "MOST_KEPT", kept)
        for seed in range(3):
            learner = rd.MCMCRandomist(problems.RECTANGLE, estimator=estimator, seed=seed)
            for n in range(90):
                trial = learner.ask()
                learner.tell(trial, problems.payoff(trial))
                if learners is bound and n == 50:
                    learner = rd.load(learner.state())
            learners.append(learner)
    for one, other in zip(free, bound, strict=True):
        np.testing.assert_array_equal(one.record.decisions, other.record.decisions)
        np.testing.assert_array_equal(one.chain.points, other.chain.points)
        assert one._rows.ratios.size >= 64 * 90
        assert other._rows.ratios.size <= max(kept, 128)  # at least one row of all samples
        assert other._rows.used > other._rows.kept


def test_the_full_density_holds_no_square(monkeypatch):
    monkeypatch.setattr(rows, "MOST_KEPT", 2**15)
    learner = told(rd.MCMCRandomist(HYPERBOX, seed=0), 2000)
    assert learner._rows.used == 2000
    assert learner._rows.ratios.size <= 2**15
    learner.ask(batch=2)  # the table of coins is made once in a process
    assert peak(learner.ask) < 4e6  # a square would be 32
