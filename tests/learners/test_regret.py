"""Regret as an independent implementation has it, and the theorems where they bite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import randomist as rd
from randomist import theory
from randomist.simulation import run_all

# Cumulative regret at 1,000 rounds of an independent implementation: mean over 400 runs, rounded to whole numbers.
PROBLEMS = [(2, 2), (2, 0.1), (0.1, 2), (0.1, 0.1)]
REFERENCE = {
    "optimist": (rd.Optimist, {}, (24, 58, 145, 156)),
    "randomist 8.1": (rd.Randomist, {"perturbation_scale": 8.1}, (31, 62, 133, 127)),
    "randomist 1.1": (rd.Randomist, {"perturbation_scale": 1.1}, (13, 38, 93, 88)),
    "ucb1": (rd.UCB1, {}, (55, 74, 74, 53)),
    "phe": (rd.PerturbedHistory, {}, (30, 39, 38, 28)),
    "thompson": (rd.ThompsonSampling, {}, (41, 54, 53, 39)),
}
FALSE_ALARMS = 1e-3  # of the whole table, when both implementations are right


def final_regrets(task, learner, rounds, seeds, **settings):
    runs = run_all([(task, learner, rounds, seed, settings) for seed in seeds])
    return np.array([run.regret[-1] for run in runs])


def assert_table_agrees(problem, name, seeds):
    (sigma, lambda_), (learner, settings, means) = problem, REFERENCE[name]
    regrets = final_regrets(rd.tasks.Illustrative(sigma, lambda_), learner, 1000, range(seeds), **settings)
    reference = means[PROBLEMS.index(problem)]
    quantile = stats.t.ppf(1 - FALSE_ALARMS / (2 * len(PROBLEMS) * len(REFERENCE)), seeds - 1)
    error = regrets.std(ddof=1) * np.sqrt(1 / seeds + 1 / 400)
    assert abs(regrets.mean() - reference) <= quantile * error + 0.5, (regrets.mean(), reference, error)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", REFERENCE)
def test_regret_on_the_illustrative_problems(name, problem):
    """Two-sided t-tests at 1e-3 for the whole table; half a unit is the reference's rounding."""
    assert_table_agrees(problem, name, seeds=12)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", REFERENCE)
def test_regret_on_the_illustrative_problems_400_runs(name, problem):
    assert_table_agrees(problem, name, seeds=400)


@pytest.mark.parametrize(("count", "others"), [(120, 3), pytest.param(300, 6, marks=pytest.mark.slow)])
def test_fact_1_is_linear_for_ftl_and_not_for_the_others(count, others):
    """FTL stays on Dirac(1/4) in a quarter of the runs; bounds at 4 standard errors (6e-5 false alarms)."""
    task = rd.task("fact-1")
    runs = list(run_all([(task, rd.FollowTheLeader, 400, seed, {}) for seed in range(count)]))
    regret = np.array([run.regret for run in runs])
    late = regret[:, -1] - regret[:, 199]  # what the second half adds
    early = regret[:, 199]
    error = late.std() / np.sqrt(len(runs))
    assert late.mean() >= theory.follow_the_leader_lower_bound(400) / 2 - 4 * error
    assert late.mean() >= 0.8 * early.mean()  # as much as the first half: linear
    for learner in (rd.Optimist, rd.Randomist):
        regret = np.array([run.regret for run in run_all([(task, learner, 8000, seed, {}) for seed in range(others)])])
        early, late = regret[:, 1999], regret[:, -1] - regret[:, 5999]  # of 2,000 rounds each
        assert late.mean() < 0.4 * early.mean()  # 1 if linear
        assert (late < 0.2 * 0.25 * 2000).all()  # and no run is stuck on the worse one


@pytest.mark.slow
def test_theorem_4b_bounds_optimist_where_it_bites():
    """Two decisions, disjoint mediators, gap 0.5, 10⁵ rounds: mean regret at most 1,111."""
    task = rd.tasks.RareLoss(sure=0.25, risky=0.75)
    gaps = theory.optimality_gaps(task.expected_payoff())
    bound = theory.optimist_upper_bound(gaps, task.space.family.log_renyi(None, None), 100_000)
    assert bound.binds
    assert bound.logarithmic == pytest.approx(1111, abs=1)
    regrets = final_regrets(task, rd.Optimist, 100_000, range(3))
    assert regrets.mean() <= bound.logarithmic
    assert regrets.mean() >= 20  # and it does explore


@pytest.mark.parametrize("learner", [rd.Optimist, rd.Randomist, rd.UCB1, rd.ThompsonSampling])
def test_lower_bounds_hold_for_the_larger_regret_of_a_pair(learner):
    """20 runs on each problem of a pair; the larger mean regret clears the bound."""
    gap, rounds = 0.3, 400
    for make, bound in (
        (rd.tasks.ConstantRegretPair, theory.constant_regret_lower_bound(gap)),
        (rd.tasks.LogarithmicRegretPair, theory.logarithmic_regret_lower_bound(gap, rounds)),
    ):
        larger = max(final_regrets(make(gap, problem), learner, rounds, range(20)).mean() for problem in (1, 2))
        assert larger >= bound


# Cumulative regret on LQG with 100 gains at 5,000 rounds, of an independent implementation (10 runs).
LQG_REFERENCE = {
    "ucb1": (rd.UCB1, {}, 546),
    "phe": (rd.PerturbedHistory, {}, 342),
    "thompson": (rd.ThompsonSampling, {}, 443),
    "optimist": (rd.Optimist, {}, 368),
    "randomist 8.1": (rd.Randomist, {"perturbation_scale": 8.1}, 343),
    "randomist 1.1": (rd.Randomist, {"perturbation_scale": 1.1}, 209),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LQG_REFERENCE)
def test_regret_on_lqg(name):
    """Within 4 standard errors of both means plus 3%: the reference's table of J differs a little."""
    learner, settings, reference = LQG_REFERENCE[name]
    regrets = final_regrets(rd.task("lqg"), learner, 5000, range(12), **settings)
    error = regrets.std(ddof=1) * np.sqrt(1 / 12 + 1 / 10)
    assert abs(regrets.mean() - reference) <= 4 * error + 0.03 * reference, (regrets.mean(), error)
