"""Members of several families side by side: a Gaussian beside a Dirac, a Uniform beside a Categorical."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array, Indices
from randomist.errors import EmptySpaceError, ParameterError, ShapeError
from randomist.families._special import mean_energy
from randomist.families.base import Family, check_order
from randomist.families.categorical import Categorical, log_renyi_of_masses
from randomist.families.dirac import Dirac
from randomist.families.gaussian import Gaussian
from randomist.families.truncated_gaussian import TruncatedGaussian
from randomist.families.uniform import Uniform


@dataclass(frozen=True, eq=False)
class Mixed(Family):
    """The members of several families, in order: decision k is the k-th of them.

    Densities are with respect to one measure that dominates every member, Lebesgue's plus a unit mass at every atom:
    where some member has an atom, those without one have density 0; elsewhere the discrete ones have. Mediators are
    float64.

    A family of your own may be a part too. Its divergences to other kinds are infinite if one of the two is discrete
    and the other is not, summed over their `atoms` if both are discrete and have that property, and refused otherwise.

    Parameters
    ----------
    parts
        The families, each with members, all with mediators of one shape.

    Examples
    --------
    >>> Mixed((Uniform(low=0, high=1), Dirac(at=0.25))).log_density(None, [0.25, 0.5])
    array([[-inf,   0.],
           [  0., -inf]])
    """

    parts: tuple[Family, ...]
    members: int = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _groups: tuple[Family, ...] = field(init=False, repr=False)  # parts of one kind, joined
    _group: Indices = field(init=False, repr=False)  # which group decision k belongs to  (K,)
    _within: Indices = field(init=False, repr=False)  # and its index there  (K,)
    _rows_of: tuple[Indices, ...] = field(init=False, repr=False)  # the decisions of each group
    _discrete_first: tuple[int, ...] = field(init=False, repr=False)  # the groups, those with atoms before the others

    def __post_init__(self) -> None:
        parts = tuple(_flatten(self.parts))
        if not parts:
            raise EmptySpaceError("Mixed needs at least one part, got none")
        for part in parts:
            if part.members is None:
                raise ParameterError(f"every part needs members, got {part!r}; give it a mean")
            if part.shape != parts[0].shape:
                raise ShapeError(
                    f"all parts must share the shape of a mediator, got {parts[0].shape} and {part.shape}; a scalar "
                    "beside vectors must be written as a vector"
                )
        alike: dict[object, list[int]] = {}  # parts of one kind, where that kind can be joined
        for i, part in enumerate(parts):
            alike.setdefault(_kind(part) if type(part) in _JOIN else i, []).append(i)
        groups = [[parts[i] for i in of_kind] for of_kind in alike.values()]
        joined = tuple(_JOIN[type(g[0])](g) if len(g) > 1 else g[0] for g in groups)
        counts = np.array([part.members for part in parts])
        group_of_part = np.empty(len(parts), dtype=np.int64)
        for number, of_kind in enumerate(alike.values()):
            group_of_part[of_kind] = number
        group = np.repeat(group_of_part, counts)
        rows_of = tuple(np.flatnonzero(group == g) for g in range(len(joined)))
        within = np.empty(len(group), dtype=np.int64)
        for rows in rows_of:
            within[rows] = np.arange(len(rows))
        for name, value in (
            *(("parts", parts), ("members", len(group)), ("shape", parts[0].shape)),
            *(("_groups", joined), ("_group", group), ("_within", within), ("_rows_of", rows_of)),
            ("_discrete_first", tuple(sorted(range(len(joined)), key=lambda g: not joined[g].discrete))),
        ):
            object.__setattr__(self, name, value)

    def simplified(self) -> Family:
        """The same members as one family of their kind, where all parts are of one kind that can be joined."""
        return self._groups[0] if len(self._groups) == 1 else self

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Array:
        k = self.indices(decisions)
        if len(k) == 1:
            return np.asarray(self._groups[self._group[k[0]]].sample(self._within[k], rng), dtype=np.float64)
        out = np.empty((len(k), *self.shape))
        ends = [*(np.flatnonzero(np.diff(self._group[k])) + 1).tolist(), len(k)] if len(k) else []
        start = 0
        for end in ends:  # one run of decisions of the same kind after the other, so that a batch draws like a sequence
            out[start:end] = self._groups[self._group[k[start]]].sample(self._within[k[start:end]], rng)
            start = end
        return out

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        z = self.mediator_rows(mediators).reshape(-1, *self.shape)
        if len(self._groups) == 1:
            return self._groups[0].log_density(decisions, z)
        out = np.empty((self.members, len(z)))
        atom = np.zeros(len(z), dtype=np.bool_)
        for g in self._discrete_first:
            block = self._groups[g].log_density(None, z)
            if self._groups[g].discrete:
                atom |= (block > -np.inf).any(axis=0)
            else:
                block[:, atom] = -np.inf
            out[self._rows_of[g]] = block
        return out if decisions is None else out[self.indices(decisions)]

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        order = check_order(order)
        p, q = self.indices(decisions), self.indices(others)
        out = np.empty((len(p), len(q)))
        for g in np.unique(self._group[p]):
            rows = np.flatnonzero(self._group[p] == g)
            for h in np.unique(self._group[q]):
                columns = np.flatnonzero(self._group[q] == h)
                within = self._within[p[rows]], self._within[q[columns]]
                out[np.ix_(rows, columns)] = self._between(g, h, *within, order)
        return out

    def nodes(self) -> tuple[Array, Array]:
        """Those of each part; a member with fewer than others repeats its last, with weight 0."""
        parts = [group.nodes() for group in self._groups]
        length = max(weights.shape[1] for _, weights in parts)
        points, all_weights = np.empty((self.members, length, *self.shape)), np.zeros((self.members, length))
        for rows, (own, weights) in zip(self._rows_of, parts, strict=True):
            used = weights.shape[1]
            points[rows, :used], points[rows, used:] = own, own[:, -1:]
            all_weights[rows, :used] = weights
        return points, all_weights

    def state(self) -> dict[str, Any]:
        return {"kind": "Mixed", "parts": [part.state() for part in self.parts]}

    def _between(self, g: int, h: int, rows: Indices, columns: Indices, order: float) -> Array:
        """D_order(members of group g || members of group h)."""
        p, q = self._groups[g], self._groups[h]
        if g == h:
            return p.log_renyi(rows, columns, order)
        if p.discrete != q.discrete:  # one sits on a null set of the other
            return np.full((len(rows), len(columns)), np.inf)
        if (type(p), type(q)) in _PAIRS:
            return _PAIRS[type(p), type(q)](p, q, rows, columns, order)
        if hasattr(p, "atoms") and hasattr(q, "atoms"):
            atoms = np.unique(np.concatenate([p.atoms, q.atoms]), axis=0).reshape(-1, *self.shape)
            return log_renyi_of_masses(np.exp(p.log_density(rows, atoms)), np.exp(q.log_density(columns, atoms)), order)
        raise ParameterError(
            f"no divergence is known between {type(p).__name__} and {type(q).__name__}; give one family that holds both"
        )


def _flatten(parts: Iterable[Family]) -> Iterable[Family]:
    """The parts, with those of a Mixed in its place."""
    for part in parts:
        if not isinstance(part, Family):
            raise ParameterError(f"every part must be a Family, got {part!r}; wrap a number as Dirac(at=...)")
        yield from part.parts if isinstance(part, Mixed) else (part,)


def _kind(part: Family) -> object:
    """What parts that can be joined have in common: their type, and the box of truncated ones."""
    if isinstance(part, TruncatedGaussian):
        return TruncatedGaussian, *(corner.tobytes() for corner in part.corners)
    return type(part)


def _join_gaussians(parts: list[Any]) -> Gaussian:
    mean, std, _ = map(np.concatenate, zip(*(p.parameters(None) for p in parts), strict=True))
    return Gaussian(mean.reshape(-1, *parts[0].shape), std.reshape(-1, *parts[0].shape))


def _join_truncated(parts: list[Any]) -> TruncatedGaussian:
    mean, std, _ = map(np.concatenate, zip(*(p.parameters(None) for p in parts), strict=True))
    shape = (-1, *parts[0].shape)
    return TruncatedGaussian(mean.reshape(shape), std.reshape(shape), parts[0].low, parts[0].high)


def _join_uniforms(parts: list[Any]) -> Uniform:
    low, high, _ = map(np.concatenate, zip(*(p.parameters(None) for p in parts), strict=True))
    return Uniform(low.reshape(-1, *parts[0].shape), high.reshape(-1, *parts[0].shape))


def _join_diracs(parts: list[Any]) -> Dirac:
    return Dirac(np.concatenate([p.atoms for p in parts]).reshape(-1, *parts[0].shape))


def _join_categoricals(parts: list[Any]) -> Categorical:
    tables = [np.atleast_2d(p.probabilities) for p in parts]  # (K, C) each
    width = max(table.shape[1] for table in tables)
    return Categorical(np.concatenate([np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in tables]))


def _gaussian_to_uniform(p: Gaussian, q: Uniform, rows: Indices, columns: Indices, order: float) -> Array:
    """D_α(p || q) = α/(1-α) D_{1-α}(q || p); from order 1 on, p's tails are where q has nothing."""
    if order >= 1:
        return np.full((len(rows), len(columns)), np.inf)
    return order / (1 - order) * _uniform_against_gaussian(q, p, columns, rows, order).T


def _uniform_to_gaussian(p: Uniform, q: Gaussian, rows: Indices, columns: Indices, order: float) -> Array:
    return _uniform_against_gaussian(p, q, rows, columns, 1 - order)


def _uniform_against_gaussian(p: Uniform, q: Gaussian, rows: Indices, columns: Indices, rate: float) -> Array:
    """D_{1-rate}(p || q) = Σ_d log(σ√(2π)/w) - log(E_p exp(-rate z²/2)) / rate, z = (x - μ)/σ, w the box's width."""
    low, high, _ = p.parameters(rows)
    mean, std, _ = q.parameters(columns)
    total = np.zeros((len(low), len(mean)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for d in range(low.shape[1]):
            scale = std[None, :, d]
            below, above = (edge[:, None, d] - mean[None, :, d] for edge in (low, high))
            width = (high - low)[:, None, d]
            log_half = np.log(width) - np.log(scale) - math.log(2)
            middle = (0.5 * below + 0.5 * above) / scale
            energy = mean_energy(below / scale, above / scale, middle, 0.5 * (width / scale), log_half, rate)
            total += np.maximum(0.5 * math.log(math.pi / 2) - log_half + energy, 0)
    return total


_JOIN: dict[type[Family], Callable[[list[Any]], Family]] = {
    Gaussian: _join_gaussians,
    TruncatedGaussian: _join_truncated,
    Uniform: _join_uniforms,
    Dirac: _join_diracs,
    Categorical: _join_categoricals,
}

# Closed forms between kinds that are both continuous.
_PAIRS: dict[tuple[type[Family], type[Family]], Callable[[Any, Any, Indices, Indices, float], Array]] = {
    (Gaussian, Uniform): _gaussian_to_uniform,
    (Uniform, Gaussian): _uniform_to_gaussian,
}
