"""Errors of families are typed, and name the value, the bound and the remedy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from randomist.errors import EmptySpaceError, ParameterError, RandomistError, ShapeError, StateError
from randomist.families import Categorical, Dirac, Gaussian, Mixed, TruncatedGaussian, Uniform, family_from_state
from tests.families.cases import BOXES, GAUSSIANS, LOCATION, MIXTURE, PLANE, POINTS, TABLE

ERRORS: list[tuple[Callable[[], object], type[RandomistError], str]] = [
    (lambda: Uniform(1, 1), ParameterError, r"low must be below high .* low=1.0 and high=1.0; .* Dirac"),
    (lambda: Uniform([0, 3], [1, 2]), ParameterError, r"low=\[0. 3.\] and high=\[1. 2.\]"),
    (lambda: Uniform(0, math.inf), ParameterError, r"high must be finite, got inf"),
    (lambda: Uniform(math.nan, 1), ParameterError, r"low must be finite, got nan"),
    (lambda: Uniform(-1.7e308, 1.7e308), ParameterError, r"high - low must be finite.*rescale"),
    (lambda: Uniform([0, 1], [2, 3, 4]), ShapeError, r"\(2,\) and high of shape \(3,\) do not broadcast; give"),
    (lambda: Uniform(np.zeros((1, 1, 1)), 1), ShapeError, r"\(K,\) or \(K, d\), got \(1, 1, 1\)"),
    (lambda: Uniform([], []), EmptySpaceError, r"\(0,\) have no members; give"),
    (lambda: Uniform("wide", 1), ParameterError, r"low must be a number .* 'wide'"),
    (lambda: Categorical([0.5, 0.6]), ParameterError, r"sum to 1 within 1e-09, got a sum of 1.1 in row 0; divide"),
    (lambda: Categorical([[0.5, 0.5], [1e308, 1.5e308]]), ParameterError, r"sum of inf in row 1"),
    (lambda: Categorical([1.5, -0.5]), ParameterError, r"must be >= 0, got -0.5"),
    (lambda: Categorical([math.nan, 1]), ParameterError, r"probabilities must be finite"),
    (lambda: Categorical(1.0), ShapeError, r"\(C,\) or \(K, C\), got \(\)"),
    (lambda: Categorical(np.ones((1, 1, 1))), ShapeError, r"got \(1, 1, 1\)"),
    (lambda: Categorical([]), EmptySpaceError, r"have no categories; give"),
    (lambda: Categorical([[0.5, 0.5], [1.0]]), ParameterError, r"array of numbers"),
    (lambda: Dirac(math.inf), ParameterError, r"at must be finite, got inf"),
    (lambda: Dirac(np.zeros((2, 2, 2))), ShapeError, r"\(K, d\), got \(2, 2, 2\)"),
    (lambda: Dirac([]), EmptySpaceError, r"\(0,\) has no members; give"),
    (lambda: Gaussian(0, 0), ParameterError, r"std must be > 0, got 0.0; .* Dirac"),
    (lambda: Gaussian(0, -1), ParameterError, r"std must be > 0, got -1.0"),
    (lambda: Gaussian([0, math.nan]), ParameterError, r"mean must be finite"),
    (lambda: Gaussian([0, 1], [1, 2, 3]), ShapeError, r"\(3,\) does not broadcast to mean's \(2,\)"),
    (lambda: Gaussian(np.zeros((1, 1, 1))), ShapeError, r"got \(1, 1, 1\)"),
    (lambda: Gaussian([]), EmptySpaceError, r"no members; give"),
    (lambda: Gaussian(std=[[1.0]]), ShapeError, r"without a mean, std .* got \(1, 1\)"),
    (lambda: TruncatedGaussian(0.5, 1, low=0), ParameterError, r"needs low and high, .* low=0.0 and high=None; both"),
    (lambda: TruncatedGaussian([0.5, 1]), ParameterError, r"needs low and high, .* low=None and high=None"),
    (lambda: TruncatedGaussian(0.5, 0, 0, 1), ParameterError, r"std must be > 0, got 0.0"),
    (lambda: TruncatedGaussian(0.5, math.inf, 0, 1), ParameterError, r"std must be finite"),
    (
        lambda: TruncatedGaussian(0.5, 1, 1, 0),
        ParameterError,
        r"low must be below high .* low=1.0 and high=0.0; .* Dirac",
    ),
    (lambda: TruncatedGaussian(0, 1, -1.7e308, 1.7e308), ParameterError, r"low must be below high"),
    (lambda: TruncatedGaussian(0.5, 1e-40, 0, 1), ParameterError, r"within a factor of 1e\+30 .*got 1e-40; .* Dirac"),
    (lambda: TruncatedGaussian(1e300, 1e-90, 0, 1e-90), ParameterError, r"mean must be within 1e\+30 widths"),
    (lambda: TruncatedGaussian(1e40, 1, 0, 1), ParameterError, r"mean must be within 1e\+30 widths .* got 1e\+40"),
    (lambda: TruncatedGaussian([0.5], 1, [0, 0], 1), ShapeError, r"low must be a number or .* \(\), got \(2,\); all"),
    (
        lambda: TruncatedGaussian(std=0.1).log_density([0.5], 0.5),
        ParameterError,
        r"has no box; give them, or make a Box",
    ),
    (lambda: TruncatedGaussian(std=0.1, low=0, high=1).log_renyi(None, [0.5]), ParameterError, r"name the decisions"),
    (
        lambda: Mixed((TruncatedGaussian(0, 1, 0, 1), TruncatedGaussian(0, 1, 0, 2))).log_renyi(None, None),
        ParameterError,
        r"no divergence is known between TruncatedGaussian and TruncatedGaussian",
    ),
    (lambda: Mixed(()), EmptySpaceError, r"at least one part"),
    (lambda: Mixed((Gaussian(0), 3)), ParameterError, r"must be a Family, got 3; .* Dirac"),  # type: ignore[arg-type]
    (lambda: Mixed((Gaussian(std=1.0),)), ParameterError, r"needs members, .* give it a mean"),
    (lambda: Mixed((Gaussian(0), Dirac([[0, 1]]))), ShapeError, r"share the shape .* \(\) and \(2,\)"),
    (lambda: family_from_state({"kind": "Cauchy"}), StateError, r"'Cauchy'.*known kinds.*import the module"),
    (lambda: family_from_state({"at": 0}), StateError, r"'kind'"),
    (lambda: family_from_state({"kind": "Dirac", "where": 0}), StateError, r"where"),
    (lambda: GAUSSIANS.log_renyi(None, None, 0), ParameterError, r"order must be > 0 .* got 0"),
    (lambda: MIXTURE.log_renyi(None, None, -1), ParameterError, r"got -1"),
    (lambda: TABLE.log_renyi(None, None, math.nan), ParameterError, r"got nan"),
    (lambda: POINTS.log_renyi(None, None, 0), ParameterError, r"order must be > 0"),
    (lambda: BOXES.log_renyi(None, None, 0), ParameterError, r"order must be > 0"),
    (lambda: GAUSSIANS.log_density([5], 0.0), ParameterError, r"0..4, got 5..5"),
    (lambda: BOXES.sample([-1], np.random.default_rng()), ParameterError, r"0..4, got -1..-1"),
    (lambda: TABLE.sample([0, 4], np.random.default_rng()), ParameterError, r"0..3, got 0..4"),
    (lambda: MIXTURE.log_density([0.5], 0.0), ShapeError, r"integers, got float64"),
    (lambda: POINTS.log_density([[0]], 0.0), ShapeError, r"1-D .* shape \(1, 1\)"),
    (lambda: PLANE.log_density(None, 0.0), ShapeError, r"mediators .* got \(\)"),
    (lambda: PLANE.log_densities(0.0), ShapeError, r"mediators .* got \(\)"),
    (lambda: PLANE.log_density(None, np.zeros((3, 3))), ShapeError, r"\(2,\), got \(3, 3\)"),
    (lambda: GAUSSIANS.log_density(None, np.zeros((3, 1))), ShapeError, r"got \(3, 1\)"),
    (lambda: LOCATION.log_density(None, [0.0, 1.0]), ParameterError, r"name the decisions"),
    (lambda: LOCATION.sample([[1.0, 2.0, 3.0]], np.random.default_rng()), ShapeError, r"decisions .* got \(1, 3\)"),
]


@pytest.mark.parametrize(("act", "error", "message"), ERRORS)
def test_errors_name_the_value_the_bound_and_the_remedy(
    act: Callable[[], object], error: type[RandomistError], message: str
) -> None:
    with pytest.raises(error, match=message):
        act()
