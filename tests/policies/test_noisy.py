"""Noisy policies: densities against SciPy, samples against densities."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from randomist.errors import ParameterError, ShapeError
from randomist.policies import GaussianPolicy, Linear, Neural, SoftmaxPolicy

SOFTMAX = SoftmaxPolicy(Linear(1, 2, discrete=True))


@given(st.integers(0, 10**6), st.sampled_from([0.3, (0.5, 2.0)]))
@settings(max_examples=30)
def test_gaussian_density_is_scipys(seed, std):
    rng = np.random.default_rng(seed)
    policy = GaussianPolicy(Linear(3, 2, bias=True, action_scale=1.5), std)
    parameters, observations, actions = rng.normal(size=8), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    mean = policy.base.act(parameters, observations)
    expected = scipy.stats.norm.logpdf(actions, mean, std).sum(axis=1)
    np.testing.assert_allclose(policy.log_density(parameters, observations, actions), expected, rtol=1e-12)
    one = policy.log_density(parameters, observations[0], actions[0])
    assert one.shape == ()
    assert one == pytest.approx(expected[0])


def test_gaussian_samples_have_their_density():
    policy = GaussianPolicy(Linear(3, 2), (0.5, 2.0))
    parameters, observation = np.arange(6.0), np.array([1.0, -1.0, 0.5])
    samples = policy.sample(np.tile(parameters, (4000, 1)), np.tile(observation, (4000, 1)), np.random.default_rng(0))
    assert samples.shape == (4000, 2)
    for i in range(2):  # a false alarm in a thousand seeds, each
        law = scipy.stats.norm(policy.base.act(parameters, observation)[i], policy.std[i])
        assert scipy.stats.kstest(samples[:, i], law.cdf).pvalue > 1e-3
    assert policy.sample(parameters, observation, np.random.default_rng(0)).shape == (2,)


@pytest.mark.parametrize("base", [Linear(3, 4, discrete=True), Neural(3, 4, discrete=True, hidden=(5,))])
def test_softmax_density_is_the_definition_and_fits_the_samples(base):
    rng = np.random.default_rng(3)
    policy, parameters, observations = SoftmaxPolicy(base), rng.normal(size=base.size), rng.normal(size=(6, 3))
    outputs = base.outputs(parameters, observations)
    expected = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    densities = np.array([policy.log_density(parameters, observations, np.full(6, k)) for k in range(4)]).T
    np.testing.assert_allclose(np.exp(densities), expected, rtol=1e-12)
    assert policy.log_density(parameters, observations[2], 3) == densities[2, 3]
    n = 5000
    samples = policy.sample(parameters, np.tile(observations[0], (n, 1)), rng)
    counts = np.bincount(samples, minlength=4)
    assert scipy.stats.chisquare(counts, n * expected[0]).pvalue > 1e-3


def test_softmax_of_huge_outputs_is_finite():
    policy = SoftmaxPolicy(Linear(1, 2, discrete=True))
    np.testing.assert_array_equal(policy.log_density([1e4, 0.0], [[1.0], [1.0]], [0, 1]), [0.0, -1e4])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: GaussianPolicy(Linear(2, 1, discrete=True), 1.0), ParameterError, "continuous"),
        (lambda: GaussianPolicy(Linear(2, 1), 0.0), ParameterError, "std must be > 0"),
        (lambda: GaussianPolicy(Linear(2, 1), [1.0, 1.0]), ShapeError, "std"),
        (lambda: SoftmaxPolicy(Linear(2, 2)), ParameterError, "discrete=True"),
        (lambda: GaussianPolicy(Linear(2, 1), 1.0).log_density([1, 2], [1, 2], [[1.0]]), ShapeError, r"\(1,\)"),
        (lambda: SOFTMAX.log_density([1, 2], [[1.0]], [2]), ParameterError, r"0\.\.1, got \[2\]"),
        (lambda: SOFTMAX.log_density([1, 2], [[1.0]], [0.5]), ParameterError, "whole numbers"),
        (lambda: SOFTMAX.log_density([1, 2], [[1.0]], 0), ShapeError, r"\(1,\)"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        make()
