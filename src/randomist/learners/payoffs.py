"""Payoffs in the user's units, mapped to [0, 1]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from randomist._checks import choice, is_mappable, real
from randomist._checks import payoff_range as checked_range
from randomist._types import Array
from randomist.errors import PayoffError, PayoffOutOfRangeError, ShapeError
from randomist.histories.estimates import Estimates

LARGEST = 1e150  # of payoffs: their squares are finite


class PayoffScale:
    """The affine map from a range to [0, 1]: a known range, none (-inf, inf), or the one seen so far ("running")."""

    def __init__(self, payoff_range: Any, out_of_range: str) -> None:
        self.clip = choice(out_of_range, ("refuse", "clip"), "out_of_range") == "clip"
        self.running = isinstance(payoff_range, str) and payoff_range == "running"
        self.clipped = 0  # payoffs outside the range that were clipped
        nothing = math.inf, -math.inf  # seen so far
        self._set(*(nothing if self.running else checked_range(payoff_range, why=', or "running"')))

    @property
    def unbounded(self) -> bool:
        """Whether payoffs are taken as they are, from a range without ends."""
        return not self.running and math.isinf(self.low)

    @property
    def factor(self) -> float:
        """What a difference of payoffs is multiplied by."""
        return self._factor

    def covers(self, value: float) -> bool:
        return self.low <= value <= self.high

    def unit(self, value: float) -> float:
        """A payoff mapped to [0, 1], refused or clipped where it is outside the range."""
        if not self.low <= value <= self.high:
            if not self.clip:
                raise PayoffOutOfRangeError(
                    f"payoff {value} is outside payoff_range ({self.low}, {self.high}); widen it, or pass "
                    'out_of_range="clip"'
                )
            self.clipped += 1
            value = min(max(value, self.low), self.high)
        return (value - self._origin) * self._factor

    def units(self, payoffs: Array) -> Array:
        """Recorded payoffs, one by one as `unit` maps them."""
        return (np.clip(payoffs, self.low, self.high) - self._origin) * self._factor

    def to_user(self, estimates: Estimates) -> Estimates:
        """Estimates on the [0, 1] scale, in the user's units."""
        return estimates.scaled(self._origin, 1.0 / self._factor)

    def widen(self, low: float, high: float) -> tuple[float, float]:
        """Let a running range include these payoffs; what was mapped to y is now mapped to factor y + shift."""
        origin, factor = self._origin, self._factor
        self._set(min(low, self.low), max(high, self.high))
        return self._factor / factor, (origin - self._origin) * self._factor

    def _set(self, low: float, high: float) -> None:
        self.low, self.high = low, high
        if is_mappable(low, high):
            self._origin, self._factor = low, 1.0 / (high - low)
        elif math.isfinite(low) and math.isfinite(high):  # a running range of one value: in the middle
            self._origin, self._factor = low - 0.5, 1.0
        else:  # no mapping, or nothing seen
            self._origin, self._factor = 0.0, 1.0


def number(payoff: Any) -> float:
    """A payoff as a finite float."""
    if isinstance(payoff, np.ndarray) and payoff.ndim:
        raise ShapeError(f"a payoff is one number, got an array of shape {payoff.shape}; tell each trial its own")
    value = real(payoff)
    if not -LARGEST <= value <= LARGEST:
        if math.isfinite(value):
            raise PayoffError(f"a payoff is at most {LARGEST:g} in size, got {value:g}; tell it in larger units")
        raise PayoffError(f"a payoff is a finite number, got {value}; use fail(trial, reason) where there is none")
    return value
