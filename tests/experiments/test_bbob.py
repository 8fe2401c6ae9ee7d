"""The noise-free values of COCO's noisy functions are right: with the suite's noise put on them they are its values."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks.bbob import legacy  # noqa: E402
from benchmarks.bbob.problems import APART, FUNCTIONS, HIGH, LOW, Problem, twin  # noqa: E402

FIRST = 30  # the seed of the suite's noise before the first evaluation
TINY = 1.01e-8  # which it adds to every value

pytest.importorskip("cocoex")


def with_noise(function: int, dimension: int, excess: float, evaluation: int) -> float:
    """What the suite adds to the best value, given a value's excess over it: the definition of its three noises.

    S. Finck et al., Real-Parameter Black-Box Optimization Benchmarking 2009: Presentation of the Noisy Functions.
    """
    moderate, kind = function < 107, (function - 101) % 3
    if kind == 0:  # Gaussian
        normal = legacy.gauss(1, FIRST + evaluation)[0]
        return float(excess * np.exp((0.01 if moderate else 1.0) * normal)) + TINY
    if kind == 1:  # uniform: two numbers an evaluation
        beta = 0.01 if moderate else 1.0
        alpha = beta * (0.49 + 1 / dimension)
        one, two = (legacy.uniform(1, FIRST + 2 * evaluation - k)[0] for k in (1, 0))
        return float(excess * one**beta * max(1.0, (1e9 / (excess + 1e-99)) ** (alpha * two))) + TINY
    alpha, often = (0.01, 0.05) if moderate else (1.0, 0.2)  # seldom Cauchy
    above, below = (legacy.gauss(1, FIRST + 2 * evaluation - k)[0] for k in (1, 0))
    seldom = legacy.uniform(1, FIRST + evaluation)[0] < often
    return float(excess + alpha * max(0.0, 1000 + (above / abs(below) if seldom else 0.0))) + TINY


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_suites_values_are_the_noise_free_ones_with_its_noise(function: int) -> None:
    rng = np.random.default_rng(function)
    for dimension, instance in ((2, 1), (5, 3), (20, 2)):
        problem = Problem(function, dimension, instance)
        points = rng.uniform(LOW, HIGH, (4, dimension))
        for k, point in enumerate(points, 1):
            excess = problem.best - problem.mean(point[None])[0]
            expected = with_noise(function, dimension, excess, APART * instance + k)
            assert problem.best - problem.payoff(point) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("instance", [1, 6, 15])
def test_the_ellipsoid_is_that_of_the_noiseless_suite_at_its_conditioning(instance: int) -> None:
    import cocoex

    for dimension in (2, 5, 10, 20):
        suite = cocoex.Suite("bbob", f"instances: {instance}", f"dimensions: {dimension} function_indices: 10")
        points = np.random.default_rng(dimension).uniform(LOW, HIGH, (10, dimension))
        expected = [suite[0](point) for point in points]
        np.testing.assert_allclose(legacy.ellipsoid(points, instance, 1e6), expected, rtol=1e-12)


def test_a_problem_has_the_same_noise_whatever_was_run_before() -> None:
    point = np.array([1.0, -2.0])
    first = [Problem(107, 2, 1).payoff(point) for _ in range(2)]
    other = Problem(107, 2, 2)
    assert first[0] == first[1] == Problem(107, 2, 1).payoff(point)
    assert other.payoff(point) != first[0]


def test_every_noisy_function_has_its_twin() -> None:
    expected = {1: 6, 8: 6, 7: 3, 10: 3, 14: 3, 17: 3, 19: 3, 21: 3}
    found = [twin(function) for function in FUNCTIONS]
    assert {number: found.count(number) for number in found} == expected
