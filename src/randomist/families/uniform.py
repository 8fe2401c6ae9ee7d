"""Uniform distributions on boxes, each on its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._compiled import compiled
from randomist._types import Array
from randomist.errors import EmptySpaceError, ParameterError, ShapeError
from randomist.families.base import NODES, Family, check_order, low_discrepancy


@dataclass(frozen=True, eq=False)
class Uniform(Family):
    """Uniform on the closed box between `low` and `high`.

    Parameters
    ----------
    low, high
        The corners, low < high. Shape (K,) gives K scalar members, (K, d) gives K members of dimension d, and a number
        gives one member; the two broadcast against each other.

    Examples
    --------
    >>> Uniform(low=0, high=[1, 2, 4]).members
    3
    """

    low: Array
    high: Array
    members: int = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _low: Array = field(init=False, repr=False)  # (K, d)
    _high: Array = field(init=False, repr=False)  # (K, d)
    _log_height: Array = field(init=False, repr=False)  # log of the density inside  (K,)

    if TYPE_CHECKING:  # the fields are arrays; what may be given is anything that becomes one

        def __init__(self, low: ArrayLike, high: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        low, high = finite_array(self.low, "low"), finite_array(self.high, "high")
        try:
            low, high = np.broadcast_arrays(low, high)
        except ValueError:
            raise ShapeError(
                f"low of shape {low.shape} and high of shape {high.shape} do not broadcast; give both (K,) or (K, d)"
            ) from None
        if low.ndim > 2:
            raise ShapeError(f"low and high must have shape (K,) or (K, d), got {low.shape}")
        if low.size == 0:
            raise EmptySpaceError(f"low and high of shape {low.shape} have no members; give at least one")
        if not (low < high).all():
            raise ParameterError(
                f"low must be below high everywhere, got low={low} and high={high}; a box without width is a Dirac"
            )
        with np.errstate(over="ignore"):
            width = high - low
        if not np.isfinite(width).all():
            raise ParameterError(f"high - low must be finite, got low={low} and high={high}; rescale the mediators")
        members, shape = (1, ()) if low.ndim == 0 else (low.shape[0], low.shape[1:])
        log_height = 0.0 - np.log(width).reshape(members, -1).sum(axis=1)  # no -0.0
        for name, value in (
            *(("low", finite_array(low, "low")), ("high", finite_array(high, "high"))),
            *(("members", members), ("shape", shape), ("_log_height", log_height)),
            *(("_low", low.reshape(members, -1).copy()), ("_high", high.reshape(members, -1).copy())),
        ):
            object.__setattr__(self, name, value)

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Array:
        low, high, _ = self.parameters(decisions)
        draws = low + (high - low) * rng.random(low.shape)
        return np.minimum(draws, high, out=draws).reshape(-1, *self.shape)  # rounding may step over the edge

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        low, high, log_height = self.parameters(decisions)
        return _log_density(low, high, log_height, self.mediator_rows(mediators))

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        order = check_order(order)
        low_p, high_p, _ = self.parameters(decisions)
        low_q, high_q, _ = self.parameters(others)
        total = np.zeros((len(low_p), len(low_q)))
        for d in range(low_p.shape[1]):  # independent dimensions add
            total += _log_renyi_1d(low_p[:, None, d], high_p[:, None, d], low_q[None, :, d], high_q[None, :, d], order)
        return total

    def nodes(self) -> tuple[Array, Array]:
        low, high, _ = self.parameters(None)
        points = low[:, None, :] + (high - low)[:, None, :] * low_discrepancy(low.shape[1])
        return points.reshape(len(low), NODES, *self.shape), np.full((len(low), NODES), 1.0 / NODES)

    def parameters(self, decisions: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Lows (n, d), highs (n, d) and log heights (n,) of the decisions."""
        if decisions is None:
            return self._low, self._high, self._log_height
        k = self.indices(decisions)
        return self._low[k], self._high[k], self._log_height[k]


def _log_renyi_1d(low_p: Array, high_p: Array, low_q: Array, high_q: Array, order: float) -> Array:
    """log(w_q/o) + order/(1 - order) log(w_p/o) with widths w and overlap o; p must lie inside q from order 1 on."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        overlap = np.maximum(np.minimum(high_p, high_q) - np.maximum(low_p, low_q), 0)
        p_alone = np.maximum(low_q - low_p, 0) + np.maximum(high_p - high_q, 0)  # w_p - o, without its cancellation
        q_alone = np.maximum(low_p - low_q, 0) + np.maximum(high_q - high_p, 0)
        divergence = _log_excess(q_alone, high_q - low_q, overlap)
        if order < 1:
            divergence = divergence + order / (1 - order) * _log_excess(p_alone, high_p - low_p, overlap)
            return np.where(overlap > 0, divergence, np.inf)
        return np.where((overlap > 0) & (p_alone == 0), divergence, np.inf)


def _log_excess(alone: Array, width: Array, overlap: Array) -> Array:
    """log(width / overlap) with width = overlap + alone."""
    return np.where(alone < overlap, np.log1p(alone / overlap), np.log(width) - np.log(overlap))


@compiled
def _log_density(low: Array, high: Array, log_height: Array, mediators: Array) -> Array:
    """(n, d), (n, d), (n,), (m, d) -> (n, m)"""
    n, m = low.shape[0], mediators.shape[0]
    out = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            inside = True
            for d in range(low.shape[1]):
                inside &= low[i, d] <= mediators[j, d] <= high[i, d]
            out[i, j] = log_height[i] if inside else -np.inf
    return out
