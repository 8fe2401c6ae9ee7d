"""Named parameters: what a point of the unit cube stands for, and back."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import randomist as rd
from randomist import errors

SPACE = rd.Parameters(
    kp=rd.Real(0.1, 100, log=True),
    bias=rd.Real(-3, 5),
    taps=rd.Integer(1, 12),
    batch=rd.Integer(1, 1000, log=True),
    mode=rd.Choice("a", "b"),
    kind=rd.Choice("x", 1, True, None),
)  # 1 + 1 + 1 + 1 + 1 + 4 coordinates


def test_a_box_of_as_many_coordinates_as_the_parameters_need():
    assert SPACE.dimension == 9
    assert isinstance(SPACE, rd.Box)
    assert SPACE.names == ("kp", "bias", "taps", "batch", "mode", "kind")
    assert repr(rd.Parameters(a=(0, 2), b=rd.Choice("u", "v"))) == (
        "Parameters(a=Real(low=0, high=2, log=False), b=Choice(options=('u', 'v')))"
    )


def test_ends_and_middles_by_hand():
    assert SPACE.named(np.zeros(9)) == {"kp": 0.1, "bias": -3, "taps": 1, "batch": 1, "mode": "a", "kind": "x"}
    assert SPACE.named([1, 1, 1, 1, 1, 0, 0, 0.2, 0.1]) == {
        "kp": 100.0, "bias": 5.0, "taps": 12, "batch": 1000, "mode": "b", "kind": True
    }  # fmt: skip
    middle = SPACE.named(np.full(9, 0.5))
    assert middle["kp"] == pytest.approx(math.sqrt(0.1 * 100))
    assert middle["bias"] == 1.0
    assert middle["taps"] == 7
    assert middle["batch"] == round(math.sqrt(0.5 * 1000.5))
    assert SPACE.named(np.full(9, -7.0)) == SPACE.named(np.zeros(9))  # from outside, the nearest inside


def test_every_whole_number_and_every_choice_has_its_share():
    """10,000 points: a share is within 5 standard deviations of what it should be, false alarm below 1e-4 in all."""
    rng = np.random.default_rng(0)
    seen = [SPACE.named(point) for point in rng.random((10_000, 9))]
    for name, options in (("taps", 12), ("mode", 2), ("kind", 4)):
        counts, p = Counter(map(repr, (values[name] for values in seen))), 1 / options
        assert len(counts) == options
        for count in counts.values():
            assert abs(count - 10_000 * p) < 5 * math.sqrt(10_000 * p * (1 - p)), (name, counts)
    below = sum(values["batch"] <= 31 for values in seen) / 10_000
    assert below == pytest.approx(math.log(31.5 / 0.5) / math.log(1000.5 / 0.5), abs=0.025)


@given(st.lists(st.floats(-0.5, 1.5), min_size=9, max_size=9))
def test_a_point_of_values_stands_for_these_values(point):
    values = SPACE.named(point)
    again = SPACE.named(SPACE.point(values))
    for name in ("taps", "batch", "mode", "kind"):
        assert again[name] == values[name]
        assert type(again[name]) is type(values[name])
    assert again["kp"] == pytest.approx(values["kp"], rel=1e-12)
    assert again["bias"] == pytest.approx(values["bias"], abs=1e-12)


@given(st.floats(-1e308, 1e308), st.floats(-1e308, 1e308), st.floats(0, 1))
def test_bounds_are_kept(a, b, u):
    low, high = sorted((a, b))
    if low < high:
        assert low <= rd.Real(low, high).value(np.array([u])) <= high
        assert 0 <= rd.Parameters(x=(low, high)).point({"x": low / 2 + high / 2})[0] <= 1
    if 0 < low < high:
        assert low <= rd.Real(low, high, log=True).value(np.array([u])) <= high


@given(st.integers(1, 2**53), st.integers(1, 2**53), st.floats(0, 1), st.booleans())
def test_whole_numbers_stay_within_their_bounds(a, b, u, log):
    low, high = sorted((a, b))
    if low < high:
        assert low <= rd.Integer(low, high, log=log).value(np.array([u])) <= high


def test_a_learner_searches_them_as_a_box():
    learner = rd.Auto(SPACE, seed=0)
    for _ in range(20):
        trial = learner.ask()
        learner.tell(trial, -SPACE.named(trial.mediator)["taps"])
    assert SPACE.named(learner.recommend())["taps"] < 12


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: rd.Parameters(), errors.EmptySpaceError, "no parameters.*name at least one"),
        (lambda: rd.Parameters(3), errors.ParameterError, "by name.*got 3"),
        (lambda: rd.Parameters(kp=3), errors.ParameterError, r"kp must be a pair \(low, high\).*got 3"),
        (lambda: rd.Parameters(kp=(2, 1)), errors.ParameterError, "kp: low must be below high.*2.*1"),
        (lambda: rd.Parameters({1: (0, 1)}), errors.ParameterError, "name is a text, got 1"),
        (lambda: rd.Real(1, 1), errors.ParameterError, "below high.*leave"),
        (lambda: rd.Real(0, math.inf), errors.ParameterError, "high must be a finite number.*inf"),
        (lambda: rd.Real(-1, 1, log=True), errors.ParameterError, "above 0, got low=-1.*positive"),
        (lambda: rd.Real(0, 1, log=1), errors.ParameterError, "log must be True or False"),
        (lambda: rd.Integer(1, 2.5), errors.ParameterError, "high must be a whole number.*2.5"),
        (lambda: rd.Integer(12, 1), errors.ParameterError, "below high"),
        (lambda: rd.Integer(0, 9, log=True), errors.ParameterError, "begins at 1, got low=0"),
        (lambda: rd.Integer(0, 2**60), errors.ParameterError, r"at most 2\*\*53"),
        (lambda: rd.Choice("a"), errors.ParameterError, r"at least two options, got \('a',\).*leave"),
        (lambda: rd.Choice("a", "a"), errors.ParameterError, "must differ"),
        (lambda: rd.Choice(["a", "b"]), errors.ParameterError, r"texts, numbers.*got \['a', 'b'\]"),
        (lambda: rd.Choice(math, "b"), errors.ParameterError, "look up"),
        (lambda: SPACE.named([0, 0]), errors.ShapeError, r"\(9,\), got \(2,\)"),
        (lambda: SPACE.named(np.full(9, math.nan)), errors.ParameterError, "finite"),
        (lambda: SPACE.point({"kp": 1}), errors.ParameterError, "kp, bias, taps.*got kp"),
        (lambda: rd.Parameters(k=(0, 1)).point({"k": 2}), errors.ParameterError, "k: a value.*<= 1.*got 2"),
        (lambda: rd.Parameters(k=rd.Choice(0, 1)).point({"k": True}), errors.ParameterError, "one of 0, 1, got True"),
        (lambda: rd.Parameters(k=rd.Integer(0, 1)).point({"k": 2}), errors.ParameterError, "at most 1, got 2"),
    ],
)  # fmt: skip
def test_bad_input(make, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        make()
