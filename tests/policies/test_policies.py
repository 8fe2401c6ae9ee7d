"""Policies against explicit loops, to the last bit whatever the batch."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import randomist.policies
from randomist.errors import ParameterError, ShapeError
from randomist.policies import GaussianPolicy, Linear, Neural, SoftmaxPolicy, policy_from_state

SCALE = (0.5, 20.0, 3.0)
POLICIES = [
    Linear(3, 1),
    Linear(3, 2, bias=True, action_scale=0.1),
    Linear(3, 2, True, observation_scale=SCALE),
    Linear(3, 3, diagonal=True, observation_scale=4),
    Linear(3, 3, bias=True, diagonal=True),
    Linear(3, 4, discrete=True),
    Neural(3, 2),
    Neural(3, 1, hidden=()),
    Neural(3, 2, (5, 4), "relu", observation_scale=SCALE, action_scale=2.0),
    Neural(3, 4, hidden=(7,), discrete=True),
]


def plain_outputs(policy, parameters, observation):
    """One number after the other, in Python's own arithmetic."""
    theta = list(map(float, parameters))
    scale = policy.observation_scale
    scales = list(scale) if isinstance(scale, tuple) else [1.0 if scale is None else scale] * policy.observation_size
    values = [float(x) / s for x, s in zip(observation, scales, strict=True)]

    def take(count):
        taken = theta[:count]
        del theta[:count]
        return taken

    def layer(values, units):
        weights = [take(len(values)) for _ in range(units)]
        sums = []
        for row in weights:
            total = row[0] * values[0]
            for w, v in zip(row[1:], values[1:], strict=True):
                total += w * v
            sums.append(total)
        return sums

    if isinstance(policy, Linear):
        if policy.diagonal:
            outputs = [w * v for w, v in zip(take(policy.action_size), values, strict=True)]
        else:
            outputs = layer(values, policy.action_size)
        if policy.bias:
            outputs = [a + b for a, b in zip(outputs, take(policy.action_size), strict=True)]
    else:
        for units in policy.hidden:
            sums = layer(values, units)
            values = [a + b for a, b in zip(sums, take(units), strict=True)]
            values = [math.tanh(v) if policy.activation == "tanh" else max(v, 0.0) for v in values]
        outputs = [
            a + b for a, b in zip(layer(values, policy.action_size), take(policy.action_size), strict=True)
        ]  # fmt: skip
    assert not theta, "every parameter is used"
    return [policy.action_scale * a for a in outputs]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
class TestAct:
    def data(self, policy, n=6):
        rng = np.random.default_rng(1)
        return rng.normal(scale=1.7, size=(n, policy.size)), rng.normal([1, -2, 0.1], 3.0, size=(n, 3))

    def test_equals_an_explicit_loop(self, policy):
        parameters, observations = self.data(policy)
        expected = np.array([plain_outputs(policy, p, s) for p, s in zip(parameters, observations, strict=True)])
        outputs = policy.outputs(parameters, observations)
        assert outputs.shape == (6, policy.action_size)
        exact = isinstance(policy, Linear) or policy.activation == "relu"  # tanh is rounded by each library
        np.testing.assert_allclose(outputs, expected, rtol=0 if exact else 1e-12)
        actions = policy.act(parameters, observations)
        if policy.discrete:
            assert actions.shape == (6,)
            assert actions.tolist() == [row.tolist().index(max(row)) for row in expected]
        else:
            np.testing.assert_array_equal(actions, outputs)

    def test_a_row_does_not_depend_on_its_batch(self, policy):
        parameters, observations = self.data(policy, 37)
        together = policy.outputs(parameters, observations)
        alone = [policy.outputs(p, s) for p, s in zip(parameters, observations, strict=True)]
        np.testing.assert_array_equal(together, alone)
        pairs = [policy.outputs(parameters[i : i + 2], observations[i : i + 2])[1] for i in range(36)]
        np.testing.assert_array_equal(together[1:], pairs)
        fortran = policy.outputs(np.asfortranarray(parameters), np.asfortranarray(observations))
        np.testing.assert_array_equal(together, fortran)
        one_for_all = policy.outputs(parameters[0], observations)
        np.testing.assert_array_equal(one_for_all, [policy.outputs(parameters[0], s) for s in observations])
        assert policy.outputs(parameters[:0], observations[:0]).shape == (0, policy.action_size)

    def test_wrong_shapes_are_refused(self, policy):
        parameters, observations = self.data(policy)
        for bad in (parameters[:, :-1], parameters[0, :-1], parameters[None]):
            with pytest.raises(ShapeError, match=f"parameters of .*{policy.size}"):
                policy.act(bad, observations)
        for bad in (observations[:, :2], np.zeros(4), 1.0, observations[None]):
            with pytest.raises(ShapeError, match=r"observations must have shape \(n, 3\)"):
                policy.act(parameters, bad)
        with pytest.raises(ShapeError, match=r"6 parameter vectors.*got 5"):
            policy.act(parameters, observations[:5])

    def test_state_round_trips(self, policy):
        assert policy_from_state(json.loads(json.dumps(policy.state()))) == policy


def test_sizes():
    assert Linear(4, 3).size == 12
    assert Linear(4, 3, bias=True).size == 15
    assert Linear(4, 4, bias=True, diagonal=True).size == 8
    assert Neural(4, 3).size == (4 + 1) * 16 + (16 + 1) * 3
    assert Neural(4, 3, hidden=(5, 6)).size == 5 * 5 + 6 * 6 + 7 * 3
    assert GaussianPolicy(Linear(4, 3), 1.0).size == 12
    assert SoftmaxPolicy(Linear(4, 3, discrete=True)).size == 12


def test_ties_go_to_the_first_action():
    assert Linear(2, 3, discrete=True).act(np.zeros(6), [1.0, 2.0]) == 0
    assert Linear(1, 3, discrete=True).act([1.0, 5.0, 5.0], [1.0]) == 1


def test_huge_parameters_overflow_in_silence():
    outputs = Linear(2, 1).outputs([1e308, -1e308], [1e10, 1e10])
    assert np.isnan(outputs).all()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Linear(0, 1), ParameterError, "observation_size.*>= 1.*0"),
        (lambda: Linear(2, 1.5), ParameterError, "action_size.*1.5"),
        (lambda: Linear(2, True), ParameterError, "action_size.*True"),
        (lambda: Linear(2, 1, 1), ParameterError, "bias must be True or False"),
        (lambda: Linear(3, 2, diagonal=True), ParameterError, "as many.*2 and 3"),
        (lambda: Linear(2, 1, observation_scale=[1.0, 2.0, 3.0]), ShapeError, r"or 2 of them.*\(3,\)"),
        (lambda: Linear(2, 1, observation_scale=[1.0, 0.0]), ParameterError, "observation_scale must be > 0"),
        (lambda: Linear(2, 1, action_scale=math.nan), ParameterError, "action_scale .* finite number > 0, got nan"),
        (lambda: Linear(2, 1, action_scale=[1.0]), ParameterError, r"action_scale .* finite number > 0, got \[1.0\]"),
        (lambda: Neural(2, 1, hidden=(4, 0)), ParameterError, "hidden.*0"),
        (lambda: Neural(2, 1, hidden="44"), ParameterError, "hidden must list"),
        (lambda: Neural(2, 1, hidden=16), ParameterError, "hidden must list.*16"),
        (lambda: Neural(2, 1, activation="swish"), ParameterError, "tanh.*relu.*swish"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        make()


def test_policies_need_numpy_and_no_more():
    """A robot that only acts need not wait for SciPy, numba or Gymnasium."""
    script = """
import sys, types
package = types.ModuleType("randomist")  # whatever else `import randomist` brings
package.__path__ = [sys.argv[1]]
sys.modules["randomist"] = package
from randomist.policies import GaussianPolicy, Linear, SoftmaxPolicy, load_policy
from randomist.policies.episodes import rollout
import numpy as np
rng = np.random.default_rng(0)
GaussianPolicy(Linear(2, 1), 0.5).sample([1, 2], [3, 4], rng)
SoftmaxPolicy(Linear(2, 2, discrete=True)).sample([1, 2, 3, 4], [3, 4], rng)
print(sorted({"scipy", "numba", "gymnasium", "PIL", "imageio"} & sys.modules.keys()))
"""
    source = str(Path(randomist.policies.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", script, source], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
