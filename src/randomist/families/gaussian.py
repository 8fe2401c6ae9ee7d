"""Diagonal Gaussians, with members (a finite set of means) or as a location family (the decision is the mean)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._compiled import compiled
from randomist._types import Array
from randomist.errors import EmptySpaceError, ParameterError, ShapeError
from randomist.families._special import log1p_minus
from randomist.families.base import NODES, Family, check_order, low_discrepancy

MOST_NODES, MOST_NODES_EACH = 2**16, 2**11  # for integrals in several dimensions: of all members, and of one
NEIGHBOURS = 24  # members towards which nodes are drawn
_ONE: Any = 1.0  # becomes an array, like all that is given


@dataclass(frozen=True, eq=False)
class Gaussian(Family):
    """Gaussians with independent coordinates, N(mean, diag(std²)).

    Parameters
    ----------
    mean
        (K,) gives K scalar members, (K, d) gives K members of dimension d, and a number gives one member. Without it
        there are no members: the decision is the mean, a point of a `Box`.
    std
        Standard deviations > 0. Beside a (K,) mean a number or (K,); beside a (K, d) mean a number, (d,), (K, 1) or
        (K, d); without a mean a number (scalar mediators) or (d,).
    """

    mean: Array | None = None
    std: Array = _ONE
    members: int | None = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _mean: Array | None = field(init=False, repr=False)  # (K, d)
    _std: Array = field(init=False, repr=False)  # (K, d), or (1, d) without a mean
    _log_scale: Array = field(init=False, repr=False)  # log of the density's peak  (K,) or (1,)

    if TYPE_CHECKING:  # the fields are arrays; what may be given is anything that becomes one

        def __init__(self, mean: ArrayLike | None = None, std: ArrayLike = 1.0) -> None: ...

    def __post_init__(self) -> None:
        std = finite_array(self.std, "std")
        if not (std > 0).all():
            raise ParameterError(f"std must be > 0, got {std}; a mediator without spread is a Dirac")
        mean = None if self.mean is None else finite_array(self.mean, "mean")
        if mean is None:
            if std.ndim > 1 or std.size == 0:
                raise ShapeError(f"without a mean, std must be a number or of shape (d,), got {std.shape}")
            members, shape, means, stds = None, std.shape, None, std.reshape(1, -1).copy()
        else:
            if mean.ndim > 2:
                raise ShapeError(f"mean must have shape (K,) or (K, d), got {mean.shape}")
            if mean.size == 0:
                raise EmptySpaceError(f"mean of shape {mean.shape} has no members; give at least one")
            try:
                spread = np.broadcast_to(std, np.atleast_1d(mean).shape)
            except ValueError:
                raise ShapeError(
                    f"std of shape {std.shape} does not broadcast to mean's {mean.shape}; one std per member of a "
                    "(K, d) mean has shape (K, 1)"
                ) from None
            members, shape = (1, ()) if mean.ndim == 0 else (mean.shape[0], mean.shape[1:])
            # Copies, which are writable: one compiled version serves them all.
            means, stds = mean.reshape(members, -1).copy(), spread.reshape(members, -1).copy()
        log_scale = -np.log(stds).sum(axis=1) - 0.5 * math.log(2 * math.pi) * stds.shape[1]
        for name, value in (
            *(("mean", mean), ("std", std), ("members", members), ("shape", shape)),
            *(("_mean", means), ("_std", stds), ("_log_scale", log_scale)),
        ):
            object.__setattr__(self, name, value)

    def at(self, points: ArrayLike) -> Gaussian:
        """The finite family with a member at each point: this location family, restricted."""
        means = self.mediator_rows(points, "points")
        return Gaussian(means[:, 0] if self.shape == () else means, self.std)

    @property
    def spread(self) -> Array:
        return self.std

    @property
    def points(self) -> Array | None:
        return self._mean

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Array:
        mean, std, _ = self.parameters(decisions)
        return (mean + std * rng.standard_normal(mean.shape)).reshape(-1, *self.shape)

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        mean, std, log_scale = self.parameters(decisions)
        return log_density(mean, std, log_scale, self.mediator_rows(mediators))

    def draw(self, decision: Any, rng: np.random.Generator) -> Any:
        if self._mean is None or self.shape:
            return super().draw(decision, rng)
        return float(self._mean[decision, 0] + self._std[decision, 0] * rng.standard_normal())

    def log_densities(self, mediator: Any) -> Array:
        if self._mean is not None and not self.shape and type(mediator) is float:  # one number: no array is needed
            return _log_densities_1d(self._mean, self._std, self._log_scale, mediator)
        return super().log_densities(mediator)

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        order = check_order(order)
        mean_p, std_p, _ = self.parameters(decisions)
        mean_q, std_q, _ = self.parameters(others)
        std_p, std_q = np.broadcast_to(std_p, mean_p.shape), np.broadcast_to(std_q, mean_q.shape)
        return log_renyi(mean_p, std_p, mean_q, std_q, order)

    def nodes(self) -> tuple[Array, Array]:
        """In one dimension the trapezoidal rule over ±12 std, which sees far tails; in more, draws of a mixture.

        Its parts are p_x itself and the densities in proportion to p_x²/p_j of the members j that are nearest to x:
        these are Gaussian, and where p_x/p_j, whose mean is d2(p_x || p_j), has its mass.
        """
        mean, std, _ = self.parameters(None)
        if mean.shape[1] == 1:
            unit = np.linspace(-12.0, 12.0, NODES)[:, None]
            weights = np.exp(-0.5 * unit[:, 0] ** 2)
            points = (mean[:, None, :] + std[:, None, :] * unit).reshape(len(mean), NODES, *self.shape)
            return points, np.tile(weights / weights.sum(), (len(mean), 1))
        count = int(np.clip(2 ** math.floor(math.log2(MOST_NODES / len(mean))), NODES, MOST_NODES_EACH))
        cube, divergence = low_discrepancy(mean.shape[1] + 1, count), self.log_renyi(None, None)
        drawn = [self._tilted_draws(k, divergence[k], cube) for k in range(len(mean))]
        points, all_weights = (np.array(parts) for parts in zip(*drawn, strict=True))
        return points.reshape(len(mean), count, *self.shape), all_weights

    def _tilted_draws(self, k: int, divergence: Array, cube: Array) -> tuple[Array, Array]:
        """Draws around member k, and their weights under it.  (K,), (L, 1 + d) -> (L, d), (L,)"""
        from scipy.special import ndtri  # slow to import, seldom needed

        mean, std, _ = self.parameters(None)
        near = np.argsort(divergence, kind="stable")[: NEIGHBOURS + 1]
        near = near[np.isfinite(divergence[near])]  # k itself comes first, or another one that equals it
        precision = 2 / std[k] ** 2 - 1 / std[near] ** 2  # of p_k²/p_j  (n, d)
        centre = (2 * mean[k] / std[k] ** 2 - mean[near] / std[near] ** 2) / precision
        part = np.minimum((cube[:, 0] * len(near)).astype(np.int64), len(near) - 1)
        spread = 1 / np.sqrt(precision)
        points = centre[part] + spread[part] * ndtri(cube[:, 1:])
        tilted = Gaussian(centre, spread).log_density(None, points)  # (n, L)
        log_weight = self.log_density([k], points)[0] - np.logaddexp.reduce(tilted, axis=0) + math.log(len(near))
        return points, np.exp(log_weight) / len(cube)

    def parameters(self, decisions: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Means (n, d), stds (n or 1, d) and log peaks (n or 1,) of the decisions."""
        if self._mean is None:
            if decisions is None:
                raise ParameterError("a Gaussian without a mean has no list of members; name the decisions")
            return self.mediator_rows(decisions, "decisions"), self._std, self._log_scale
        if decisions is None:
            return self._mean, self._std, self._log_scale
        k = self.indices(decisions)
        return self._mean[k], self._std[k], self._log_scale[k]


def log_renyi(mean_p: Array, std_p: Array, mean_q: Array, std_q: Array, order: float) -> Array:
    """D_order between all pairs of two lists of Gaussians.  (n, d), (n, d), (m, d), (m, d) -> (n, m)"""
    total = np.zeros((len(mean_p), len(mean_q)))
    for d in range(mean_p.shape[1]):  # independent dimensions add
        with np.errstate(over="ignore"):
            difference = mean_p[:, None, d] - mean_q[None, :, d]
        total += _log_renyi_1d(difference, std_p[:, None, d], std_q[None, :, d], order)
    return total


def _log_renyi_1d(difference: Array, std_p: Array, std_q: Array, order: float) -> Array:
    """Closed forms of Gil et al. (2013), arranged so that neither close stds nor orders close to 1 lose digits."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        excess = (std_p - std_q) / std_q
        excess = excess * (2 + excess)  # σ_p²/σ_q² - 1
        if math.isinf(order):
            spread = np.where(excess > -0.3, -0.5 * np.log1p(excess), np.log(std_q) - np.log(std_p))
            spread = np.where(excess > 0, np.inf, spread)
            shift = 0.5 * (difference / std_q) ** 2 / np.maximum(-excess, 0)
            shift = np.where(difference == 0, 0.0, np.where(excess < 0, shift, np.inf))
        elif order <= 1:  # s² = order σ_q² + (1 - order) σ_p² > 0
            shift = 0.5 * order * (difference / np.hypot(math.sqrt(order) * std_q, math.sqrt(1 - order) * std_p)) ** 2
            spread = _log_renyi_spread(excess, std_p, std_q, order)
        else:
            left = 1 - (order - 1) * excess  # s²/σ_q², where it is positive
            shift = np.where(difference == 0, 0.0, 0.5 * (difference / std_q) ** 2 * (order / left))
            shift = np.where(left > 0, shift, np.inf)
            spread = np.where(left > 0, _log_renyi_spread(excess, std_p, std_q, order), np.inf)
    return np.maximum(spread, 0) + shift


def _log_renyi_spread(excess: Array, std_p: Array, std_q: Array, order: float) -> Array:
    """-log(σ_p²/σ_q²)/2 - log(s²/σ_q²)/(2 (order - 1)): what the stds add where the means agree."""
    if not excess.any():
        return np.zeros_like(excess)
    log_ratio = 2 * (np.log(std_p) - np.log(std_q))
    if order == 1:
        near, far = -log1p_minus(excess), excess - log_ratio
    else:
        other = -(order - 1) * excess  # s²/σ_q² - 1
        log_rest = np.where(np.isinf(other), math.log(abs(order - 1)) + log_ratio, np.log1p(other))
        near = -log1p_minus(excess) - log1p_minus(other) / (order - 1)
        far = -log_ratio - log_rest / (order - 1)
    return 0.5 * np.where(np.abs(excess) < 0.3, near, far)


@compiled
def log_density(mean: Array, std: Array, log_scale: Array, mediators: Array) -> Array:
    """Of Gaussians whose density has the peak e^log_scale.  (n, d), (n or 1, d), (n or 1,), (m, d) -> (n, m)"""
    n, m = mean.shape[0], mediators.shape[0]
    out = np.empty((n, m))
    for i in range(n):
        s = i if std.shape[0] > 1 else 0
        for j in range(m):
            total = 0.0
            for d in range(mean.shape[1]):
                u = (mediators[j, d] - mean[i, d]) / std[s, d]
                total += u * u
            out[i, j] = log_scale[s] - 0.5 * total if total == total else -np.inf  # no member draws a NaN
    return out


@compiled
def _log_densities_1d(mean: Array, std: Array, log_scale: Array, mediator: float) -> Array:
    """`log_density` of scalar members at one mediator.  (K, 1), (K, 1), (K,) -> (K,)"""
    out = np.empty(mean.shape[0])
    for i in range(mean.shape[0]):
        u = (mediator - mean[i, 0]) / std[i, 0]
        out[i] = log_scale[i] - 0.5 * (u * u) if u == u else -np.inf
    return out
