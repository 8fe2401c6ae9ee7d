"""Gaussians truncated to a box: what they draw never leaves it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._compiled import compiled
from randomist._types import Array
from randomist.errors import ParameterError, ShapeError
from randomist.families._truncated import log_density, log_mass, log_masses, log_second_moments, quantiles
from randomist.families._truncated_orders import log_renyi as log_renyi_of_order
from randomist.families.base import NODES, Family, check_order, low_discrepancy
from randomist.families.gaussian import Gaussian

NARROWEST, WIDEST = 1e-100, 1e100  # boxes that can be computed with
FARTHEST = 1e30  # in widths of the box: the largest std, the inverse of the smallest, and how far away a mean may be
_ONE: Any = 1.0  # becomes an array, like all that is given


@dataclass(frozen=True, eq=False)
class TruncatedGaussian(Family):
    """Gaussians with independent coordinates, N(mean, diag(std²)), given that they lie in a box.

    Unlike those of `Gaussian`, all divergences between members are finite, also where the stds differ.

    Parameters
    ----------
    mean
        Of the Gaussian before it is truncated, inside of the box or not. (K,) gives K scalar members, (K, d) gives K
        members of dimension d, and a number gives one member. Without it there are no members: the decision is the
        mean, a point of a `Box`.
    std
        Of the Gaussian before it is truncated, > 0. Beside a (K,) mean a number or (K,); beside a (K, d) mean a
        number, (d,), (K, 1) or (K, d); without a mean a number or (d,).
    low, high
        The corners of the box, which all members share: numbers or (d,). In a `Box`, and in `Finite.grid`, they are by
        default those that are searched.

    Examples
    --------
    >>> TruncatedGaussian(mean=[0, 0.5], std=0.2, low=0, high=1).log_density(None, [0.1, 0.5, 1.1]).round(2)
    array([[ 1.26, -1.74,  -inf],
           [-1.3 ,  0.7 ,  -inf]])
    """

    mean: Array | None = None
    std: Array = _ONE
    low: Array | None = None
    high: Array | None = None
    members: int | None = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _gaussian: Gaussian = field(init=False, repr=False)  # before it is truncated
    _low: Array = field(init=False, repr=False)  # (d,)
    _high: Array = field(init=False, repr=False)  # (d,)
    _log_mass: Array = field(init=False, repr=False)  # of the members, as `log_masses` has it  (K,)

    if TYPE_CHECKING:  # the fields are arrays; what may be given is anything that becomes one

        def __init__(
            self,
            mean: ArrayLike | None = None,
            std: ArrayLike = 1.0,
            low: ArrayLike | None = None,
            high: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        low = None if self.low is None else finite_array(self.low, "low")
        high = None if self.high is None else finite_array(self.high, "high")
        if (low is None) != (high is None) or (self.mean is not None and low is None):
            raise ParameterError(
                f"a TruncatedGaussian needs low and high, the corners of its box, got low={low} and high={high}; both "
                "are left out only without a mean, in a Box or a Finite.grid"
            )
        gaussian = Gaussian(self.mean, self.std)
        for name, value in (
            *(("mean", gaussian.mean), ("std", gaussian.std), ("low", low), ("high", high)),
            *(("members", gaussian.members), ("shape", gaussian.shape), ("_gaussian", gaussian)),
        ):
            object.__setattr__(self, name, value)
        if low is not None and high is not None:
            self._truncate(low, high)

    def _truncate(self, low: Array, high: Array) -> None:
        """Check the box, and compute what does not change."""
        lows, highs = (_side(side, name, self.shape) for side, name in ((low, "low"), (high, "high")))
        with np.errstate(over="ignore"):
            width = highs - lows
        if not ((width > NARROWEST) & (width < WIDEST)).all():
            raise ParameterError(
                f"low must be below high everywhere, by more than {NARROWEST} and less than {WIDEST}, got low={low} "
                f"and high={high}; a box without width is a Dirac"
            )
        mean, std, _ = self._gaussian.parameters(None if self.members else np.empty((0, *self.shape)))
        if not ((std < FARTHEST * width) & (std * FARTHEST > width)).all():
            raise ParameterError(
                f"std must be within a factor of {FARTHEST:g} of the width of the box, {width}, got {self.std}; a "
                "wider one is a Uniform, a narrower one a Dirac"
            )
        with np.errstate(over="ignore"):
            far = np.abs(np.clip(mean, lows, highs) / width - mean / width) > FARTHEST
        if far.any():
            raise ParameterError(
                f"mean must be within {FARTHEST:g} widths of the box from {low} to {high}, got {mean[far][0]}"
            )
        for name, value in (("_low", lows), ("_high", highs), ("_log_mass", log_masses(mean, std, lows, highs))):
            object.__setattr__(self, name, value)

    def within(self, low: Array, high: Array) -> TruncatedGaussian:
        """Truncated to the box that is searched, unless it has a box already, which must hold that one."""
        if self.low is None or self.high is None:
            return TruncatedGaussian(self.mean, self.std, low, high)
        if not ((self.low <= low) & (high <= self.high)).all():
            raise ParameterError(
                f"the box that is searched, from {low} to {high}, must lie in that of the TruncatedGaussian, from "
                f"{self.low} to {self.high}; without low and high of its own it has the one that is searched"
            )
        return self

    def at(self, points: ArrayLike) -> TruncatedGaussian:
        """The finite family with a member at each point: this location family, restricted."""
        means = self.mediator_rows(points, "points")
        return TruncatedGaussian(means[:, 0] if self.shape == () else means, self.std, self.low, self.high)

    @property
    def corners(self) -> tuple[Array, Array]:
        """The lowest and the highest mediator.  (d,), (d,)"""
        return self._low, self._high

    @property
    def spread(self) -> Array:
        return self.std

    @property
    def points(self) -> Array | None:
        return self._gaussian.points

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Array:
        mean, std, _ = self.parameters(decisions)
        levels = rng.random(mean.shape)  # one random number per coordinate, whatever comes of it
        return quantiles(mean, std, self._low, self._high, levels).reshape(-1, *self.shape)

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        mean, std, log_mass = self.parameters(decisions)
        log_peak = -log_mass - np.log(self._high - self._low).sum()
        return log_density(mean, std, self._low, self._high, log_peak, self.mediator_rows(mediators))

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        """Of order 2 in closed form, of any other by quadrature."""
        order = check_order(order)
        mean_p, std_p, log_mass_p = self.parameters(decisions)
        mean_q, std_q, log_mass_q = self.parameters(others)
        pairs = mean_p, std_p, mean_q, std_q, self._low, self._high
        if order != 2:
            return log_renyi_of_order(*pairs, order)
        divergence = log_second_moments(*pairs) - 2 * log_mass_p[:, None] + log_mass_q
        return np.maximum(divergence, 0.0, out=divergence)

    def nodes(self) -> tuple[Array, Array]:
        """In one dimension Gauss-Legendre over what is not negligible of the box; in more, quantiles of even points."""
        mean, std, _ = self.parameters(None)
        if mean.shape[1] > 1:
            levels = low_discrepancy(mean.shape[1])
            means, stds = np.repeat(mean, NODES, axis=0), np.repeat(std, NODES, axis=0)
            points = quantiles(means, stds, self._low, self._high, np.tile(levels, (len(mean), 1)))
            return points.reshape(len(mean), NODES, -1), np.full((len(mean), NODES), 1.0 / NODES)
        peak = np.clip(mean, self._low, self._high)
        beyond = np.abs(peak - mean) / std
        reach = std * 144 / (np.hypot(beyond, 12) + beyond)  # where the density is e^-72 of its largest value
        first, last = np.maximum(peak - reach, self._low), np.minimum(peak + reach, self._high)  # (K, 1)
        roots, shares = np.polynomial.legendre.leggauss(NODES)
        points = np.clip(0.5 * (first + last) + 0.5 * (last - first) * roots, first, last)  # (K, L)
        weights = np.stack([shares * np.exp(self.log_density([k], z)[0]) for k, z in enumerate(points)])
        return points.reshape(len(mean), NODES, *self.shape), weights / weights.sum(axis=1, keepdims=True)

    def parameters(self, decisions: ArrayLike | None) -> tuple[Array, Array, Array]:
        """Means (n, d), stds (n or 1, d) and log masses (n,) of the decisions."""
        if self.low is None:
            raise ParameterError("a TruncatedGaussian without low and high has no box; give them, or make a Box of it")
        mean, std, _ = self._gaussian.parameters(decisions)
        if self.members is None:
            return mean, std, log_masses(mean, std, self._low, self._high)
        return mean, std, self._log_mass if decisions is None else self._log_mass[self.indices(decisions)]


def _side(side: Array, name: str, shape: tuple[int, ...]) -> Array:
    """One corner of the box.  (d,)"""
    try:
        return np.broadcast_to(side, shape).reshape(math.prod(shape)).copy()
    except ValueError:
        raise ShapeError(
            f"{name} must be a number or have the shape of a mediator, {shape}, got {side.shape}; all members share it"
        ) from None


# In the unit cube, for learners whose decisions carry their own scale.


def log_normaliser(mean: Array, std: ArrayLike) -> Array:
    """Σ_d log(Φ((1 - m)/s) - Φ((0 - m)/s)): what truncation to the unit cube leaves of Gaussians.  (n, d) -> (n,)

    `std` is a number, or broadcasts to (n, d).
    """
    stds = np.ascontiguousarray(np.broadcast_to(np.asarray(std, np.float64), mean.shape))
    return _log_normaliser(np.ascontiguousarray(mean), stds)


def draw(mean: Array, std: ArrayLike, rng: np.random.Generator) -> Array:
    """A draw of a Gaussian truncated to the unit cube: d random numbers of the generator, always.  (d,) -> (d,)"""
    rows, zero = np.ascontiguousarray(mean, dtype=np.float64).reshape(1, -1), np.zeros(np.size(mean))
    stds = np.ascontiguousarray(np.broadcast_to(np.asarray(std, np.float64), rows.shape))
    drawn: Array = quantiles(rows, stds, zero, zero + 1.0, rng.random(rows.shape))[0]
    return drawn


@compiled
def _log_normaliser(mean: Array, std: Array) -> Array:
    out = np.empty(mean.shape[0])
    for i in range(mean.shape[0]):
        total, product = 0.0, 1.0
        for d in range(mean.shape[1]):
            m, s = mean[i, d], std[i, d]
            below, above = m / s, (1.0 - m) / s
            if below < 0.0 or above < 0.0:
                beyond = min(below, above)
                total += log_mass(m, s, 0.0, 1.0) - 0.5 * beyond * beyond - math.log(s * math.sqrt(2.0 * math.pi))
            elif below < 8.5 or above < 8.5:  # else it is 1
                product *= 0.5 * (math.erf(below / math.sqrt(2.0)) + math.erf(above / math.sqrt(2.0)))
                if product < 1e-100:
                    total += math.log(product)
                    product = 1.0
        out[i] = total + math.log(product)
    return out
