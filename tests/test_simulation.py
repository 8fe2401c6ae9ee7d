"""The loop: what a Run holds, and that it depends on the seed alone."""

from __future__ import annotations

import numpy as np
import pytest

import randomist as rd
from randomist.tasks.base import Task


def test_a_run_holds_what_happened():
    task = rd.task("illustrative", sigma=2, lambda_=2)
    run = rd.optimize(task, rd.Randomist, rounds=50, seed=3, perturbation_scale=8.1)
    assert (run.task, run.learner, run.seed) == ("illustrative", "Randomist", 3)
    assert run.decisions.shape == run.mediators.shape == run.payoffs.shape == run.regret.shape == (50,)
    np.testing.assert_array_equal(run.payoffs, np.clip(run.mediators / 4, 0, 1))
    np.testing.assert_allclose(run.average_payoff[-1], run.payoffs.mean())
    gaps = task.optimum - task.expected_payoff()
    np.testing.assert_allclose(run.regret, np.cumsum(gaps[run.decisions]))
    assert run.recommendation in range(5)


def test_names_classes_and_task_ids_are_one():
    a = rd.optimize("illustrative", "ucb1", 30, seed=1)
    b = rd.optimize(rd.tasks.Illustrative(), rd.UCB1, 30, seed=1)
    np.testing.assert_array_equal(a.decisions, b.decisions)


def test_many_seeds_do_not_depend_on_jobs():
    one = rd.optimize_many("illustrative", rd.Randomist, 40, seeds=4, jobs=1)
    two = rd.optimize_many("illustrative", rd.Randomist, 40, seeds=[0, 1, 2, 3], jobs=2)
    for a, b in zip(one, two, strict=True):
        assert a.seed == b.seed
        np.testing.assert_array_equal(a.mediators, b.mediators)
        np.testing.assert_array_equal(a.payoffs, b.payoffs)
    assert len({run.payoffs.tobytes() for run in one}) == 4


def test_progress_is_called_every_round():
    seen = []
    rd.optimize("illustrative", rd.UCB1, 7, progress=seen.append)
    assert seen == [1, 2, 3, 4, 5, 6, 7]


class Flaky(Task):
    """Every fifth payoff is missing."""

    id = "flaky"
    space = rd.Finite(rd.Gaussian([0, 1], 1.0))

    def payoff(self, mediators, rng):
        return np.where(rng.random(len(mediators)) < 0.2, np.nan, 0.5)


def test_a_payoff_that_is_not_a_number_fails_the_trial_and_the_run_goes_on():
    run = rd.optimize(Flaky(), rd.Optimist, 100, seed=0)
    assert 5 <= len(run.failures) <= 40
    assert len(run.payoffs) == 100 - len(run.failures)
    assert "nan" in next(iter(run.failures.values()))


def test_a_task_without_a_space_asks_for_one():
    class Spaceless(Flaky):
        space = None

    with pytest.raises(rd.errors.TaskError, match="space="):
        rd.optimize(Spaceless(), rd.Optimist, 3)
    assert rd.optimize(Spaceless(), rd.Optimist, 3, space=Flaky.space).regret is None


def test_a_learner_that_forgets_is_refused_before_the_first_round():
    class Coins(Flaky):
        space = rd.Finite(rd.Categorical([[0.5, 0.5], [0.1, 0.9]]))

    rounds = []
    with pytest.raises(rd.errors.ParameterError, match="keep_record"):
        rd.optimize(Coins(), rd.Realist, 10, keep_record=False, progress=rounds.append)
    assert rounds == []
