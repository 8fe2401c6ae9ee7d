"""Optuna's own tests of samplers: all that are for samplers of one objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("optuna")
pytest_samplers = pytest.importorskip("optuna.testing.pytest_samplers")  # not in Optuna 4.0

from randomist.integrations.optuna import RandomistSampler  # noqa: E402


class TestAsOptunaTests(
    pytest_samplers.BasicSamplerTestCase,
    pytest_samplers.RelativeSamplerTestCase,
    pytest_samplers.SingleOnlySamplerTestCase,
):
    @pytest.fixture
    def sampler(self) -> Callable[[], Any]:
        return lambda: RandomistSampler(seed=0, warn_independent_sampling=False)


def test_no_test_of_optuna_is_left_out_unseen():
    """A new class of tests in Optuna is run, or named in the docs as one that does not apply."""
    cases = {name for name in vars(pytest_samplers) if name.endswith("TestCase") and not name.startswith("_")}
    run = {base.__name__ for base in TestAsOptunaTests.__mro__}
    assert cases - run <= {"MultiObjectiveSamplerTestCase"}
