"""Optuna's distributions as `Parameters`, and values from one to the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.parameters import Choice, Integer, Parameter, Real
from randomist.spaces import Parameters


class OptunaSpace:
    """Where Optuna searches, as the unit cube that a learner searches.

    A float or an int with a step is the number of its steps above `low`; a category is its index, without an order.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self.distributions = dict(distributions)
        self.parameters = Parameters({name: _parameter(name, found) for name, found in distributions.items()})

    def values(self, point: Array) -> dict[str, Any]:
        """What a point of the cube stands for, as Optuna's trials have it.  (d,) -> values by name"""
        named = self.parameters.named(point)
        return {name: _value(found, named[name]) for name, found in self.distributions.items()}

    def point(self, params: Mapping[str, Any]) -> Array | None:
        """Undo `values`; None where a parameter is missing or has a value from outside.  (d,)"""
        try:
            return self.parameters.point({name: _index(d, params[name]) for name, d in self.distributions.items()})
        except (KeyError, ValueError):  # a ParameterError is a ValueError
            return None


def searchable(distributions: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Those with more than one value."""
    return {name: found for name, found in distributions.items() if not found.single()}


def _parameter(name: str, found: BaseDistribution) -> Parameter:
    try:
        if isinstance(found, FloatDistribution):
            if found.step is None:
                return Real(found.low, found.high, log=found.log)
            return Integer(0, round((found.high - found.low) / found.step))
        if isinstance(found, IntDistribution):
            if found.step == 1:
                return Integer(found.low, found.high, log=found.log)
            return Integer(0, (found.high - found.low) // found.step)
        if isinstance(found, CategoricalDistribution):
            return Choice(*range(len(found.choices)))
    except ParameterError as error:
        raise ParameterError(f"{name}: {error}") from error
    raise ParameterError(
        f"{name} must have a float, int or categorical distribution of Optuna, got {found!r:.80}; leave it out of the "
        "search space"
    )


def _value(found: BaseDistribution, parameter: Any) -> Any:
    """A value of Optuna's distribution, from the value of the parameter that stands for it."""
    if isinstance(found, CategoricalDistribution):
        return found.choices[parameter]
    if isinstance(found, FloatDistribution) and found.step is not None:
        return min(found.low + parameter * found.step, found.high)  # the product may round upwards
    if isinstance(found, IntDistribution) and found.step != 1:
        return found.low + parameter * found.step
    return parameter


def _index(found: BaseDistribution, value: Any) -> Any:
    """Undo `_value`."""
    if isinstance(found, CategoricalDistribution):
        return int(found.to_internal_repr(value))
    if isinstance(found, FloatDistribution) and found.step is not None:
        return round((value - found.low) / found.step)
    if isinstance(found, IntDistribution) and found.step != 1:
        return round((value - found.low) / found.step)
    return value
