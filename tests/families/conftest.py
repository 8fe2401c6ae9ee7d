"""Oracles of families compute with 60 digits."""

from __future__ import annotations

from typing import Any

import mpmath as mp
import pytest


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mp.workdps(60):
        yield
