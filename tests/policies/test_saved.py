"""Policies on disk: they come back bit for bit, or the error says what is wrong with the file."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from randomist.errors import ParameterError, ShapeError, StateError
from randomist.policies import GaussianPolicy, Linear, Neural, SavedPolicy, SoftmaxPolicy, load_policy, save_policy
from tests.policies.test_policies import POLICIES

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
        ("[1, 2]", r"not a policy of format 1.*\[1, 2\]"),
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


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: save_policy("x.json", Linear(2, 1), [1.0]), ShapeError, r"\(2,\), got \(1,\)"),
        (lambda: save_policy("x.json", Linear(2, 1), [1.0, math.inf]), ParameterError, "finite"),
        (lambda: save_policy("x.json", Linear(2, 1), [1, 2], settings={"a": {1}}), ParameterError, "plain data"),
        (lambda: save_policy("x.json", Linear(2, 1), [1, 2], settings={"a": math.nan}), ParameterError, "plain data"),
    ],
)  # fmt: skip
def test_what_cannot_be_saved_is_refused(make, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=f"(?s){words}"):
        make()
    assert not list(tmp_path.iterdir())
