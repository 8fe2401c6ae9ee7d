"""Numbers as the page gets them: six digits, and null where one is not finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LEVEL = 0.95  # of all intervals


def numbers(values: Any) -> list[float | None]:
    return [number(value) for value in np.asarray(values, float).tolist()]


def number(value: float | None) -> float | None:
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
