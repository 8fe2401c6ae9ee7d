"""Settings that several learners have, checked once."""

from __future__ import annotations

import math
from typing import Any

from randomist.errors import ParameterError
from randomist.learners.payoffs import PayoffScale


def check_scale(value: float, name: str = "perturbation_scale") -> None:
    """a: a finite number >= 0."""
    if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
        raise ParameterError(f"{name} must be a number >= 0, got {value!r}")


def check_positive(value: float, name: str) -> None:
    """A finite number > 0."""
    if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be a number > 0, got {value!r}")


def check_choice(value: Any, choices: tuple[str, ...], name: str) -> None:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")


def check_best_known(estimator: str, scale: PayoffScale) -> None:
    """The optimistic estimate needs the best payoff there is."""
    if estimator == "optimistic" and scale.unbounded:
        raise ParameterError(
            "the optimistic estimator needs to know the best payoff there is: give payoff_range=(low, high), or "
            '"running" to learn it, instead of (-inf, inf)'
        )


def bias_factor(value: Any, estimator: str = "paper") -> float:
    """b as a multiple of sqrt(α log t / η): 1 for "paper", and what the estimator needs for None."""
    if value is None:
        return float(estimator == "paper")
    if isinstance(value, str) and value == "paper":
        return 1.0
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise ParameterError(f'bias_correction must be "paper", "computed" or a number >= 0, got {value!r}')
