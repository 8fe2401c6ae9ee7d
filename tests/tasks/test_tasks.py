"""Tasks with known answers: exact expected payoffs against quadrature, Monte Carlo and the paper's constructions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from randomist import theory
from randomist.errors import ParameterError, TaskError
from randomist.spaces import Finite
from randomist.tasks import (
    ConstantRegretPair,
    FollowTheLeaderTrap,
    Illustrative,
    LogarithmicRegretPair,
    RareLoss,
    Task,
    task,
    task_ids,
)

SETTINGS = [(2.0, 2.0), (2.0, 0.1), (0.1, 2.0), (0.1, 0.1)]
MEAN = [0.0, 1.0, 2.0, 2.95, 3.0]
KNOWN = [
    Illustrative(),
    Illustrative(0.1, 2.0),
    FollowTheLeaderTrap(),
    ConstantRegretPair(gap=0.3, problem=1),
    ConstantRegretPair(gap=0.7, problem=2),
    LogarithmicRegretPair(gap=0.3, problem=1),
    LogarithmicRegretPair(gap=0.7, problem=2),
    RareLoss(),
    RareLoss(sure=0.2, risky=0.7),
]


def by_quadrature(mean: float, std: float) -> float:
    """∫ clip(z/4, 0, 1) N(z; mean, std²) dz, cut where the integrand bends or the density peaks."""
    cuts = sorted({mean + k * std for k in (-12, -4, -1, 0, 1, 4, 12)} | {0.0, 4.0})
    return sum(
        integrate.quad(
            lambda z: min(max(z / 4, 0), 1) * stats.norm.pdf(z, mean, std), low, high, epsabs=1e-15, epsrel=1e-13
        )[0]
        for low, high in itertools.pairwise(cuts)
    ) + stats.norm.sf(max(cuts), mean, std)


class TestIllustrative:
    @pytest.mark.parametrize(("sigma", "lambda_"), [*SETTINGS, (0.7, 5.0)])
    def test_expected_payoff_by_quadrature(self, sigma, lambda_):
        problem = Illustrative(sigma, lambda_)
        oracle = [by_quadrature(m, s) for m, s in zip(MEAN, [sigma] * 3 + [lambda_, sigma], strict=True)]
        np.testing.assert_allclose(problem.expected_payoff(), oracle, rtol=0, atol=1e-12)
        assert problem.optimum == problem.expected_payoff().max()

    def test_fourth_is_best_where_clipping_costs_the_fifth(self):
        best = [int(np.argmax(Illustrative(*setting).expected_payoff())) for setting in SETTINGS]
        assert best == [4, 3, 4, 4]

    def test_how_much_decisions_tell_about_each_other(self):
        def log_v(*setting):
            return theory.divergence_radius(Illustrative(*setting).space.family.log_renyi(None, None))[1]

        assert log_v(2, 2) == pytest.approx(2.25, rel=1e-14)
        assert log_v(0.1, 0.1) == pytest.approx(900, rel=1e-12)
        assert log_v(2, 0.1) == log_v(0.1, 2) == math.inf

    def test_payoff_is_the_clipped_mediator(self):
        payoffs = Illustrative().payoff(np.array([-1.0, 0.0, 1.0, 3.0, 4.0, 9.0]), np.random.default_rng(0))
        np.testing.assert_array_equal(payoffs, [0, 0, 0.25, 0.75, 1, 1])

    @given(st.floats(1e-3, 100), st.floats(1e-3, 100))
    def test_expected_payoffs_are_payoffs(self, sigma, lambda_):
        expected = Illustrative(sigma, lambda_).expected_payoff()
        assert ((expected >= 0) & (expected <= 1)).all()
        assert (np.diff(expected[[0, 1, 2, 4]]) > 0).all()  # one std, growing means

    @given(st.floats(1e-3, 100))
    def test_symmetric_about_the_middle(self, sigma):
        assert Illustrative(sigma).expected_payoff(2) == pytest.approx(0.5, abs=1e-14)


class TestConstructions:
    def test_follow_the_leader_trap(self):
        problem = FollowTheLeaderTrap()
        np.testing.assert_array_equal(problem.expected_payoff(), [0.5, 0.25])
        divergences = problem.space.family.log_renyi(None, None)
        np.testing.assert_array_equal(divergences, [[0, np.inf], [np.inf, 0]])

    def test_one_first_draw_in_four_springs_the_trap(self):
        draws = FollowTheLeaderTrap().space.family.sample(np.zeros(40_000, dtype=int), np.random.default_rng(3))
        assert stats.binomtest(int((draws < 0.25).sum()), draws.size, 0.25).pvalue > 1e-4

    @pytest.mark.parametrize("make", [ConstantRegretPair, LogarithmicRegretPair])
    def test_a_pair_swaps_the_better_decision(self, make):
        first, second = make(gap=0.4, problem=1), make(gap=0.4, problem=2)
        np.testing.assert_array_equal(first.expected_payoff(), [0.4, 0])
        np.testing.assert_array_equal(second.expected_payoff(), [-0.4, 0])
        assert (first.optimum, second.optimum) == (0.4, 0.0)
        assert first.payoff_range == second.payoff_range == (-math.inf, math.inf)

    def test_theorem_1_divergences_between_decisions(self):
        family = ConstantRegretPair(gap=0.4).space.family
        np.testing.assert_allclose(family.log_renyi(None, None, order=1), [[0, 0.5], [0.5, 0]], rtol=1e-14)
        np.testing.assert_allclose(family.log_renyi(None, None), [[0, 1], [1, 0]], rtol=1e-14)

    def test_theorem_2_divergences_between_decisions(self):
        family = LogarithmicRegretPair(gap=0.4).space.family
        for order in (1, 2):
            np.testing.assert_array_equal(family.log_renyi(None, None, order=order), [[0, np.inf], [np.inf, 0]])

    @pytest.mark.parametrize(
        ("make", "per_decision"), [(ConstantRegretPair, (4.0, 2.0)), (LogarithmicRegretPair, (4.0, 0.0))]
    )
    @pytest.mark.parametrize("problem", [1, 2])
    def test_divergence_between_the_two_problems(self, make, per_decision, problem):
        """KL of one round is E[2Δ²a²] = 2Δ²(1 + E[a]²) or 0: E of the log-likelihood ratio of what the task pays."""
        gap, n, rng = 0.35, 200_000, np.random.default_rng(11)
        problems = make(gap=gap, problem=problem), make(gap=gap, problem=3 - problem)
        for decision, factor in enumerate(per_decision):
            actions = problems[0].space.family.sample(np.full(n, decision), rng)
            payoffs = problems[0].payoff(actions, rng)
            here, there = (p.expected_payoff(0)[0] * actions for p in problems)  # J(x_1) = ±Δ is the slope
            ratio = stats.norm.logpdf(payoffs, here) - stats.norm.logpdf(payoffs, there)
            error = ratio.std() / math.sqrt(n)
            assert abs(ratio.mean() - factor * gap**2) <= 5 * error + 1e-12
        exact = integrate.quad(lambda a: 2 * gap**2 * a**2 * stats.norm.pdf(a, 1, 1), -np.inf, np.inf)[0]
        assert exact == pytest.approx(4 * gap**2, rel=1e-9)

    def test_noise_of_the_pairs_is_standard(self):
        rng = np.random.default_rng(5)
        residual = ConstantRegretPair(gap=0.5, problem=2).payoff(np.full(50_000, 2.0), rng) + 1.0
        assert stats.kstest(residual, "norm").pvalue > 1e-4

    def test_rare_loss(self):
        problem = RareLoss()
        np.testing.assert_array_equal(problem.expected_payoff(), [0.9, 0.95])
        np.testing.assert_array_equal(problem.space.family.log_renyi(None, None), [[0, np.inf], [np.inf, 0]])
        rng = np.random.default_rng(1)
        np.testing.assert_array_equal(problem.payoff(np.zeros(100), rng), 0.9)
        risky = problem.payoff(np.ones(40_000), rng)
        assert set(risky) == {0.0, 1.0}
        assert stats.binomtest(int(risky.sum()), risky.size, 0.95).pvalue > 1e-4


@pytest.mark.parametrize("problem", KNOWN, ids=repr)
class TestEveryKnownTask:
    def test_expected_payoff_is_the_mean_payoff(self, problem):
        n, rng = 100_000, np.random.default_rng(17)
        for decision in range(problem.space.size):
            mediators = problem.space.family.sample(np.full(n, decision), rng)
            payoffs = problem.payoff(mediators, rng)
            assert payoffs.shape == (n,)
            assert payoffs.dtype == np.float64
            low, high = problem.payoff_range
            assert ((payoffs >= low) & (payoffs <= high)).all()
            error = payoffs.std() / math.sqrt(n)
            assert abs(payoffs.mean() - problem.expected_payoff([decision])[0]) <= 5 * error + 1e-12

    def test_contract(self, problem):
        assert isinstance(problem, Task)
        assert isinstance(problem.space, Finite)
        everything = problem.expected_payoff()
        assert everything.shape == (problem.space.size,)
        assert problem.optimum == everything.max()
        np.testing.assert_array_equal(problem.expected_payoff([1, 0, 1]), everything[[1, 0, 1]])
        with pytest.raises(ParameterError, match="decisions must lie in"):
            problem.expected_payoff([problem.space.size])

    def test_same_seed_same_payoffs_and_mediators_are_left_alone(self, problem):
        mediators = problem.space.family.sample(None, np.random.default_rng(2))
        kept = mediators.copy()
        first, again = (problem.payoff(mediators, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        first += 1
        np.testing.assert_array_equal(mediators, kept)

    def test_found_by_id(self, problem):
        assert problem.id in task_ids()
        assert type(task(problem.id)) is type(problem)
        assert task(problem) is problem


def test_settings_reach_the_task():
    assert task("theorem-1", gap=0.2, problem=2).optimum == 0
    assert repr(task("illustrative", sigma=0.1)) == "Illustrative(sigma=0.1, lambda_=0.1)"
    with pytest.raises(TaskError, match="does not take these settings"):
        task("fact-1", sigma=2)
    with pytest.raises(TaskError, match=r"unknown task 'theorem-9'; known tasks: .*illustrative"):
        task("theorem-9")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Illustrative(sigma=0), r"sigma must be a finite number > 0 \(the paper uses 2 and 0\.1\), got 0"),
        (lambda: Illustrative(sigma=math.inf), "sigma must be a finite number"),
        (lambda: Illustrative(lambda_=-0.1), r"lambda_ must be a finite number > 0 .*, got -0\.1"),
        (lambda: Illustrative(lambda_=math.nan), "got nan"),
        (
            lambda: ConstantRegretPair(gap=0),
            r"> 0 and <= 1 \(without one both decisions are equal\), got 0",
        ),
        (lambda: ConstantRegretPair(gap=math.nan), "got nan"),
        (lambda: LogarithmicRegretPair(gap=1.01), r"got 1\.01"),
        (lambda: LogarithmicRegretPair(problem=3), r"problem must be 1 .* or 2 .*, got 3"),
        (lambda: RareLoss(sure=1.2), r"sure must be .* >= 0 and <= 1 .*, got 1\.2"),
        (lambda: RareLoss(risky=-0.5), r"risky must be .* >= 0 and <= 1 .*, got -0\.5"),
    ],
)
def test_errors_name_value_bound_and_remedy(make, message):
    with pytest.raises(ParameterError, match=message):
        make()
