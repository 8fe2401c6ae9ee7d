"""Settings that several learners have, checked once."""

from __future__ import annotations

from typing import Any

from randomist._checks import number
from randomist.errors import ParameterError
from randomist.importance.estimators import Estimator
from randomist.learners.payoffs import PayoffScale

DEVICES = ("cpu", "gpu", "tpu", "jax-cpu")  # numba's CPU, those of JAX, and JAX's CPU


def check_range_known(estimator: Estimator, scale: PayoffScale) -> None:
    """Some estimators need payoffs that lie in [0, 1]."""
    if estimator.needs_range and scale.unbounded:
        raise ParameterError(
            f"the {estimator.name} estimator needs to know the range of payoffs: give payoff_range=(low, high), or "
            '"running" to learn it, instead of (-inf, inf)'
        )


def bias_factor(value: Any, estimator: Estimator) -> float | None:
    """b as a multiple of sqrt(α log t / η): 1 for "paper", what the estimator needs for None; None for "computed"."""
    if value is None:
        return estimator.bias_factor
    if isinstance(value, str):
        if value not in ("paper", "computed"):
            raise ParameterError(f'bias_correction must be "paper", "computed" or a number >= 0, got {value!r}')
        return 1.0 if value == "paper" else None
    return number(value, "bias_correction", least=0)
