"""Checks at the border: what passes comes back as a plain value, what does not is named with its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from randomist import _checks, _json
from randomist.errors import ParameterError


def test_numbers_come_back_as_pythons():
    for value in (3, np.int64(3), np.uint8(3)):
        assert type(_checks.whole_number(value, "n")) is int
    for value in (0.5, np.float32(0.5), np.float64(0.5)):
        assert type(_checks.number(value, "x")) is float
        assert type(_checks.probability(value, "p")) is float
    assert _checks.payoff_range([np.float32(-5), 95]) == (-5.0, 95.0)
    assert _checks.payoff_range((-math.inf, math.inf)) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: _checks.whole_number(True, "n"), "n must be a whole number >= 1, got True"),
        (lambda: _checks.whole_number(2.0, "n", 0), "n must be a whole number >= 0, got 2.0"),
        (lambda: _checks.whole_number(1, "n", 2, " for a reason"), "n must be a whole number >= 2 for a reason, got 1"),
        (lambda: _checks.number(math.nan, "x"), "x must be a finite number, got nan"),
        (lambda: _checks.number(0, "x", above=0), "x must be a finite number > 0, got 0"),
        (lambda: _checks.number(2, "x", least=0, most=1), "x must be a finite number >= 0 and <= 1, got 2"),
        (lambda: _checks.number("2", "x", above=1, why=" (or so)"), "x must be a finite number > 1 (or so), got '2'"),
        (lambda: _checks.probability(1, "p"), "p must lie in (0, 1), got 1"),
        (lambda: _checks.choice("c", ("a", "b"), "x"), "x must be one of 'a', 'b', got 'c'"),
        (lambda: _checks.flag(1, "x"), "x must be True or False, got 1"),
        (lambda: _checks.payoff_range(3), "payoff_range must be a pair (low, high), got 3"),
        (
            lambda: _checks.payoff_range((1, 1)),
            "payoff_range must be finite with low < high, or (-inf, inf) for no mapping, got (1.0, 1.0)",
        ),
        (
            lambda: _checks.payoff_range((-math.inf, math.inf), bounded=True, why=" here"),
            "payoff_range must be finite with low < high here, got (-inf, inf)",
        ),
    ],
)
def test_what_is_refused(check, message):
    with pytest.raises(ParameterError) as caught:
        check()
    assert str(caught.value) == message


@pytest.mark.parametrize("high", [1e-320, math.inf, math.nan, -1.0])
def test_a_range_must_have_a_width_that_payoffs_can_be_divided_by(high):
    with pytest.raises(ParameterError, match="payoff_range"):
        _checks.payoff_range((0.0, high))


def test_arrays_become_lists_for_json_and_read_only_for_users():
    assert _json.for_json([np.arange(3), (np.float64(0.5), None), "a"]) == [[0, 1, 2], [0.5, None], "a"]
    row = np.arange(4.0).reshape(2, 2)[1]
    frozen = _json.frozen(row)
    row[0] = 9.0
    assert frozen.tolist() == [2.0, 3.0]
    assert not frozen.flags.writeable
    assert type(_json.frozen(np.int64(3))) is int
