"""Gaussians whose spread is part of the decision: a point, and how far to look around it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._types import Array
from randomist.errors import ParameterError, ShapeError
from randomist.families._truncated import log_density as truncated_log_density
from randomist.families._truncated import log_masses, log_second_moments, quantiles
from randomist.families.base import Family, check_order
from randomist.families.gaussian import log_density, log_renyi

_ONE: Any = 1.0  # becomes an array, like all that is given


@dataclass(frozen=True, eq=False)
class LocationScale(Family):
    """N(x, diag((s · unit)²)): the decision is (x_1, ..., x_d, s), a point and a scale; at scale 0 the point itself.

    In a `Box` it is truncated to the box: every mediator lies there.

    Parameters
    ----------
    unit
        The std at scale 1: a number (scalar mediators, decisions of shape (2,)) or of shape (d,).
    low, high
        The corners that mediators do not pass, (d,) each; none by default.

    Examples
    --------
    >>> LocationScale(unit=[2.0, 20.0]).decision_shape
    (3,)
    """

    unit: Array = _ONE
    low: Array | None = None
    high: Array | None = None
    members: None = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _unit: Array = field(init=False, repr=False)  # (d,)

    if TYPE_CHECKING:  # the field is an array; what may be given is anything that becomes one

        def __init__(
            self, unit: ArrayLike = 1.0, low: ArrayLike | None = None, high: ArrayLike | None = None
        ) -> None: ...

    def __post_init__(self) -> None:
        unit = finite_array(self.unit, "unit")
        if unit.ndim > 1 or unit.size == 0:
            raise ShapeError(f"unit must be a number or of shape (d,), got {unit.shape}")
        if not (unit > 0).all():
            raise ParameterError(f"unit must be > 0, got {unit}; it is the std at scale 1")
        for name, value in (("unit", unit), ("members", None), ("shape", unit.shape), ("_unit", unit.reshape(-1))):
            object.__setattr__(self, name, value)
        if (self.low is None) != (self.high is None):
            raise ParameterError("give both low and high, or neither")
        for name in ("low", "high"):
            side = getattr(self, name)
            if side is not None:
                object.__setattr__(self, name, np.ravel(finite_array(side, name)))

    @property
    def decision_shape(self) -> tuple[int, ...]:
        return (self._unit.size + 1,)

    def within(self, low: Array, high: Array) -> LocationScale:
        """Truncated to the box of these decisions."""
        return replace(self, low=self.split(low)[0], high=self.split(high)[0])

    def split(self, decisions: ArrayLike) -> tuple[Array, Array]:
        """Points and scales of decisions, of one or of many.  (..., d + 1) -> (..., d), (...)"""
        rows = np.asarray(decisions, dtype=np.float64)
        return rows[..., :-1], rows[..., -1]

    def join(self, points: ArrayLike, scales: ArrayLike) -> Array:
        """Undo `split`.  (..., d), (...) -> (..., d + 1)"""
        return np.concatenate([np.asarray(points, np.float64), np.asarray(scales, np.float64)[..., None]], axis=-1)

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Array:
        point, std = self._parameters(decisions, least=0.0)
        if self.low is None or self.high is None:
            return (point + std * rng.standard_normal(point.shape)).reshape(-1, *self.shape)
        levels, wide = rng.random(point.shape), (std > 0).all(axis=1)
        mediators = np.clip(point, self.low, self.high)
        mediators[wide] = quantiles(point[wide], std[wide], self.low, self.high, levels[wide])
        return mediators.reshape(-1, *self.shape)

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        point, std = self._parameters(decisions)
        rows = self.mediator_rows(mediators)
        if self.low is None or self.high is None:
            log_peak = -np.log(std).sum(axis=1) - 0.5 * math.log(2 * math.pi) * std.shape[1]
            return log_density(point, std, log_peak, rows)
        log_peak = -log_masses(point, std, self.low, self.high) - np.log(self.high - self.low).sum()
        return truncated_log_density(point, std, self.low, self.high, log_peak, rows)

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        order = check_order(order)
        point_p, std_p = self._parameters(decisions)
        point_q, std_q = self._parameters(others)
        if self.low is None or self.high is None:
            return log_renyi(point_p, std_p, point_q, std_q, order)
        if order != 2:
            raise ParameterError(f"divergences of a truncated LocationScale are of order 2, got {order}")
        box = self.low, self.high
        own, other = log_masses(point_p, std_p, *box), log_masses(point_q, std_q, *box)
        divergence = log_second_moments(point_p, std_p, point_q, std_q, *box) - 2 * own[:, None] + other
        return np.maximum(divergence, 0.0)

    def _parameters(self, decisions: ArrayLike | None, least: float = math.ulp(0.0)) -> tuple[Array, Array]:
        """Points (n, d) and stds (n, d) of the decisions."""
        if decisions is None:
            raise ParameterError("a LocationScale has no list of members; name the decisions")
        rows = self.decision_rows(decisions)
        if not (rows[:, -1] >= least).all():
            bound = ">= 0" if least == 0.0 else "> 0 for a density"
            raise ParameterError(f"the scale, the last entry of a decision, must be {bound}, got {rows[:, -1].min()}")
        return np.ascontiguousarray(rows[:, :-1]), rows[:, -1:] * self._unit
