"""What every family must keep: samples, densities and divergences that agree with each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.families import Family, family_from_state

_ORDERS = (0.5, 1.0, 1.5, 2.0, 3.0, math.inf)
_DRAWS = 8192  # per decision
_MARGIN = math.sqrt(
    math.log(2 / 1e-12) / (2 * _DRAWS)
)  # Hoeffding: a mean in [0, 1] is farther off once in 1e12 checks
_ROUNDING = 1e-9


def check_family(family: Family, rng: np.random.Generator | None = None, *, decisions: ArrayLike | None = None) -> None:
    """Raise an AssertionError that says what is wrong, if `family` breaks the contract of `Family`.

    A family with members is checked at `decisions`, six of them by default; a location family needs some points. The
    samples, densities and divergences must agree with each other: that is tested by averages of quantities that lie in
    [0, 1] whatever the family, so a sound one fails less than once in 10⁹ runs.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    points = _some_decisions(family, decisions)
    samples, log_density = _check_samples(family, points, rng)
    divergences = _check_divergences(family, points)
    _check_agreement(log_density, divergences | {0.3: family.log_renyi(points, points, 0.3)})
    _check_state(family, points, samples)
    if family.members is not None:
        _check_all_members(family, family.members, points, samples, rng)


def _some_decisions(family: Family, decisions: ArrayLike | None) -> NDArray[Any]:
    if decisions is not None:
        points = np.asarray(decisions)
        assert points.ndim > 0, f"decisions must be an array of them, got {decisions!r}"
        return points
    assert family.members is not None, (
        "a family without members is checked at points: check_family(family, decisions=...)"
    )
    assert family.members >= 1, f"members must be None or >= 1, got {family.members}"
    return np.unique(np.linspace(0, family.members - 1, 6).astype(np.int64))


def _check_samples(family: Family, points: NDArray[Any], rng: np.random.Generator) -> tuple[NDArray[Any], Array]:
    """Draws of every decision (n * draws, *shape), and their densities under every decision (n, n, draws)."""
    n = len(points)
    repeated = np.repeat(points, _DRAWS, axis=0)
    seed = int(rng.integers(2**32))
    samples = family.sample(repeated, np.random.default_rng(seed))
    assert samples.shape == (n * _DRAWS, *family.shape), (
        f"sample must return one mediator of shape {family.shape} per decision, got {samples.shape} for {n * _DRAWS}"
    )
    assert np.isfinite(samples).all(), "sample must return finite mediators"
    again = family.sample(repeated, np.random.default_rng(seed))
    assert np.array_equal(samples, again), "the same seed must give the same sample"

    log_density = family.log_density(points, samples)
    assert log_density.shape == (n, n * _DRAWS), (
        f"log_density must have shape (n_decisions, n_mediators) = {(n, n * _DRAWS)}, got {log_density.shape}"
    )
    assert not np.isnan(log_density).any(), "log_density must never be NaN; off the support it is -inf"
    assert (log_density < np.inf).all(), "log_density must be below +inf"
    far = family.log_density(points, np.full((1, *family.shape), 1e300))
    assert not np.isnan(far).any(), f"log_density must never be NaN, got {far[:, 0]} at a mediator of 1e300"
    by_source = log_density.reshape(n, n, _DRAWS)
    for i in range(n):
        assert (by_source[i, i] > -np.inf).all(), f"decision {points[i]} draws mediators to which it gives density 0"
        one = family.draw(points[i], np.random.default_rng(seed))
        first = family.sample(points[i : i + 1], np.random.default_rng(seed))[0]
        assert np.array_equal(one, first), f"draw must equal sample with one decision, got {one} and {first}"
    return samples, by_source


def _check_divergences(family: Family, points: NDArray[Any]) -> dict[float, Array]:
    """log_renyi at every order, checked against the laws that hold for any distributions."""
    n = len(points)
    divergences = {order: family.log_renyi(points, points, order) for order in _ORDERS}
    lower: Array = np.zeros((n, n))
    for order, values in divergences.items():
        name = f"log_renyi of order {order}"
        assert values.shape == (n, n), f"{name} must have shape (n_decisions, n_others) = {(n, n)}, got {values.shape}"
        assert not np.isnan(values).any(), f"{name} must never be NaN; where it diverges it is inf"
        assert (values >= 0).all(), f"{name} must never be negative, got {values.min()}"
        assert (np.diag(values) <= _ROUNDING).all(), f"{name} of a decision to itself must be 0, got {np.diag(values)}"
        assert (values >= lower * (1 - _ROUNDING) - _ROUNDING).all(), f"{name} is below that of a smaller order"
        lower = values
    half = divergences[0.5]
    assert np.allclose(half, half.T, rtol=_ROUNDING, atol=_ROUNDING), "log_renyi of order 1/2 must be symmetric"
    return divergences


def _check_agreement(log_density: Array, divergences: dict[float, Array]) -> None:
    """Do samples, densities and divergences describe the same distributions?

    For orders a < 1, Σ p^a q^(1-a) = E[p^a q^(1-a) / (a p + (1-a) q)] under the mixture a p + (1-a) q, of a quantity in
    [0, 1]. For order 2, exp(D_2 - D_inf) = E_p[p/q exp(-D_inf)] is one too, wherever D_inf is finite.
    """
    n = len(log_density)
    for i in range(n):
        for j in range(n):
            for order in (0.3, 0.5):
                drawn = 0.0
                for share, source in ((order, i), (1 - order, j)):
                    p, q = log_density[i, source], log_density[j, source]
                    mixture = np.logaddexp(math.log(order) + p, math.log(1 - order) + q)
                    drawn += share * float(np.exp(order * p + (1 - order) * q - mixture).mean())
                _assert_close(drawn, math.exp((order - 1) * divergences[order][i, j]), order, i, j)
            largest = float(divergences[math.inf][i, j])
            if largest < math.inf:
                p, q = log_density[i, i], log_density[j, i]
                assert (p - q <= largest + _ROUNDING * (1 + largest + np.abs(p))).all(), (
                    f"log p/q of decisions {i} and {j} exceeds their divergence of order inf, {largest}, at a sample"
                )
                drawn = float(np.exp(np.minimum(p - q - largest, 0)).mean())
                _assert_close(drawn, math.exp(float(divergences[2.0][i, j]) - largest), 2, i, j)


def _assert_close(drawn: float, exact: float, order: float, i: int, j: int) -> None:
    assert abs(drawn - exact) <= _MARGIN, (
        f"log_renyi of order {order} of the checked decisions {i} and {j} says {exact:.4f} where samples and densities "
        f"say {drawn:.4f} (± {_MARGIN:.4f})"
    )


def _check_state(family: Family, points: NDArray[Any], samples: NDArray[Any]) -> None:
    restored = family_from_state(family.state())
    assert type(restored) is type(family), (
        f"the state of {type(family).__name__} reads back as {type(restored).__name__}"
    )
    assert restored.members == family.members, "a family read back from its state has other members"
    assert restored.shape == family.shape, "a family read back from its state has other mediators"
    some = samples[:: _DRAWS // 8]
    assert np.array_equal(restored.log_density(points, some), family.log_density(points, some)), (
        "a family read back from its state must have the same densities, to the last bit"
    )


def _check_all_members(
    family: Family, members: int, points: NDArray[Any], samples: NDArray[Any], rng: np.random.Generator
) -> None:
    everyone = np.arange(members)
    some = samples[:: _DRAWS // 4]
    seed = int(rng.integers(2**32))
    listed, unlisted = (family.sample(who, np.random.default_rng(seed)) for who in (everyone, None))
    assert np.array_equal(listed, unlisted), "sample(None) must draw from all members, in order"
    listed, unlisted = (family.log_density(who, some) for who in (everyone, None))
    assert np.array_equal(listed, unlisted), "log_density(None, ...) must be that of all members, in order"
    one = family.log_densities(some[0] if family.shape else some[0].item())
    assert one.shape == (members,), f"log_densities must have shape (K,) = ({members},), got {one.shape}"
    assert np.allclose(one, listed[:, 0], rtol=_ROUNDING), "log_densities must be log_density of all members"
    for listed, unlisted in (
        (family.log_renyi(everyone, points), family.log_renyi(None, points)),
        (family.log_renyi(points, everyone), family.log_renyi(points, None)),
    ):
        assert np.array_equal(listed, unlisted), "log_renyi with None must be that of all members, in order"
