"""Policies against explicit loops, densities against SciPy, files that come back bit for bit or say what is wrong."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from randomist.errors import ParameterError, RandomistError, ShapeError, StateError
from randomist.policies import (
    GaussianPolicy,
    Linear,
    Neural,
    SavedPolicy,
    SoftmaxPolicy,
    load_policy,
    policy_from_state,
    save_policy,
)

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


# Noisy policies


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


# On disk

KINDS = [
    *POLICIES,
    GaussianPolicy(POLICIES[1], (0.1, 2.0)),
    GaussianPolicy(Neural(3, 2), 0.3),
    SoftmaxPolicy(POLICIES[-1]),
]


@pytest.mark.parametrize("policy", KINDS, ids=str)
def test_a_saved_policy_comes_back_bit_for_bit(policy, tmp_path):
    parameters = np.random.default_rng(4).normal(size=policy.size) * 10.0 ** np.arange(policy.size)
    path = tmp_path / "best.json"
    save_policy(path, policy, parameters, task="gym:Pendulum-v1", settings={"horizon": 100, "low": [-1, 2.5]})
    assert [p.name for p in tmp_path.iterdir()] == ["best.json"]
    saved = load_policy(str(path))
    assert isinstance(saved, SavedPolicy)
    assert saved.policy == policy
    np.testing.assert_array_equal(saved.parameters, parameters)
    assert (saved.task, saved.settings) == ("gym:Pendulum-v1", {"horizon": 100, "low": [-1, 2.5]})
    base = getattr(policy, "base", policy)
    observation = np.array([0.3, -2.0, 7.0])
    np.testing.assert_array_equal(saved.act(observation), base.act(parameters, observation))


@given(hnp.arrays(np.float64, 3, elements=st.floats(allow_nan=False, allow_infinity=False)))
@settings(max_examples=100)
def test_any_finite_parameters_survive(tmp_path_factory, parameters):
    path = tmp_path_factory.getbasetemp() / "any.json"
    save_policy(path, Linear(3, 1), parameters)
    saved = load_policy(path)
    assert saved.parameters.tobytes() == parameters.tobytes()  # the sign of zero too
    assert saved.task is None


def test_a_task_is_named_by_its_id(tmp_path):
    from randomist.tasks import task

    save_policy(tmp_path / "car.json", task("mountain-car").policy, [0.1, 9.0], task=task("mountain-car"))
    assert load_policy(tmp_path / "car.json").task == "mountain-car"
    save_policy(tmp_path / "gain.json", task("lqg").policy, -0.6, task="lqg")  # a number where there is one parameter
    assert load_policy(tmp_path / "gain.json").parameters.tolist() == [-0.6]


def edited(**changes):
    content = {"format": 1, "policy": Linear(2, 1).state(), "parameters": [0.5, 1.0], "task": None, "settings": {}}
    return json.dumps({k: v for k, v in (content | changes).items() if v != "missing"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read.*No such file"),
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"\x80\x04}\x94.", "cannot be read"),  # a pickle
        ("[1, 2]", r"no policy of format 1.*\[1, 2\]"),
        (edited(format=2), "format 1.*says 2"),
        (edited(policy="missing"), "lacks the entry 'policy'"),
        (edited(parameters="missing"), "lacks the entry 'parameters'"),
        (edited(parameters=[1.0]), r"shape \(2,\), got \(1,\)"),
        (edited(parameters=[1.0, math.nan]), "finite"),
        (edited(parameters=[1.0, 10**400]), "does not describe"),
        (edited(parameters=[1.0, "two"]), "numbers"),
        (edited(parameters=[[1.0], [2.0, 3.0]]), "numbers"),
        (edited(policy={"kind": "Oracle"}), "one of Linear.*Oracle"),
        (edited(policy={"kind": ["Linear"]}), "one of Linear"),
        (edited(policy={"kind": "Linear"}), "settings.*missing"),
        (edited(policy=Linear(2, 1).state() | {"wings": 2}), "wings"),
        (edited(policy=Linear(2, 1).state() | {"bias": "no"}), "bias must be True or False.*no"),
        (edited(policy=Linear(2, 1).state() | {"action_size": -1}), "action_size.*-1"),
        (edited(policy={"kind": "GaussianPolicy", "base": None, "std": 1.0}), "one of Linear"),
        (edited(policy={"kind": "GaussianPolicy", "base": SoftmaxPolicy(POLICIES[5]).state(), "std": 1}), "continuous"),
        (edited(task=7), "task must be a string.*7"),
    ],
)
def test_broken_files_are_refused(tmp_path, text, words):
    path = tmp_path / "policy.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StateError, match=f"(?s)policy.json.*{words}"):
        load_policy(path)


@given(st.data())
@settings(max_examples=200)
def test_damaged_files_raise_nothing_else(tmp_path_factory, data):
    text = bytearray(
        edited(policy=GaussianPolicy(Neural(1, 1, hidden=(1,)), 0.5).state(), parameters=[1, 2, 3, 4]).encode()
    )
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(32, 126))
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(bytes(text))
    try:
        saved = load_policy(path)
    except StateError:
        return
    assert saved.parameters.shape == (saved.policy.size,)


# Bad input


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
        (lambda: Linear(2, 1, action_scale=math.nan), ParameterError, "finite"),
        (lambda: Linear(2, 1, action_scale=[1.0]), ShapeError, "action_scale must be a number"),
        (lambda: Neural(2, 1, hidden=(4, 0)), ParameterError, "hidden.*0"),
        (lambda: Neural(2, 1, hidden="44"), ParameterError, "hidden must list"),
        (lambda: Neural(2, 1, hidden=16), ParameterError, "hidden must list.*16"),
        (lambda: Neural(2, 1, activation="swish"), ParameterError, "tanh.*relu.*swish"),
        (lambda: GaussianPolicy(Linear(2, 1, discrete=True), 1.0), ParameterError, "continuous"),
        (lambda: GaussianPolicy(Linear(2, 1), 0.0), ParameterError, "std must be > 0"),
        (lambda: GaussianPolicy(Linear(2, 1), [1.0, 1.0]), ShapeError, "std"),
        (lambda: SoftmaxPolicy(Linear(2, 2)), ParameterError, "discrete=True"),
        (lambda: GaussianPolicy(Linear(2, 1), 1.0).log_density([1, 2], [1, 2], [[1.0]]), ShapeError, r"\(1,\)"),
        (lambda: SOFTMAX.log_density([1, 2], [[1.0]], [2]), ParameterError, r"0\.\.1, got \[2\]"),
        (lambda: SOFTMAX.log_density([1, 2], [[1.0]], [0.5]), ParameterError, "whole numbers"),
        (lambda: SOFTMAX.log_density([1, 2], [[1.0]], 0), ShapeError, r"\(1,\)"),
        (lambda: save_policy("x.json", Linear(2, 1), [1.0]), ShapeError, r"\(2,\), got \(1,\)"),
        (lambda: save_policy("x.json", Linear(2, 1), [1.0, math.inf]), ParameterError, "finite"),
        (lambda: save_policy("x.json", Linear(2, 1), [1, 2], settings={"a": {1}}), ParameterError, "plain data"),
        (lambda: save_policy("x.json", Linear(2, 1), [1, 2], settings={"a": math.nan}), ParameterError, "plain data"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(make, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=f"(?s){words}") as caught:
        make()
    assert isinstance(caught.value, RandomistError)
    assert not list(tmp_path.iterdir())


SOFTMAX = SoftmaxPolicy(Linear(1, 2, discrete=True))
