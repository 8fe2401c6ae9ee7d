"""Distributions over finitely many categories: a logged action, an arm, the outcome of a table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from randomist._checks import finite_array
from randomist._types import Array, Indices
from randomist.errors import EmptySpaceError, ParameterError, ShapeError
from randomist.families._special import expm1_minus, log1p_minus
from randomist.families.base import Family, check_order

_TOLERANCE = 1e-9  # on the sum of a row, which is then normalised


@dataclass(frozen=True, eq=False)
class Categorical(Family):
    """Category c of 0..C-1 with probability `probabilities[k, c]`.

    A mediator is the index of a category; anything else has density 0.

    Parameters
    ----------
    probabilities
        Shape (K, C) gives K members, (C,) gives one. Every row sums to 1.

    Examples
    --------
    >>> Categorical([[0.5, 0.5], [0.1, 0.9]]).members
    2
    """

    discrete: ClassVar[bool] = True
    dtype: ClassVar[type] = np.int64

    probabilities: Array
    members: int = field(init=False, repr=False)
    shape: tuple[int, ...] = field(init=False, repr=False)
    _mass: Array = field(init=False, repr=False)  # (K, C)
    _log_mass: Array = field(init=False, repr=False)  # (K, C + 1); the last column is for all that is not a category
    _cumulative: Array = field(init=False, repr=False)  # (K, C)

    if TYPE_CHECKING:  # the fields are arrays; what may be given is anything that becomes one

        def __init__(self, probabilities: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        probabilities = finite_array(self.probabilities, "probabilities")
        if probabilities.ndim not in (1, 2):
            raise ShapeError(f"probabilities must have shape (C,) or (K, C), got {probabilities.shape}")
        if probabilities.size == 0:
            raise EmptySpaceError(f"probabilities of shape {probabilities.shape} have no categories; give at least one")
        if (probabilities < 0).any():
            raise ParameterError(f"probabilities must be >= 0, got {probabilities.min()}; give weights that are masses")
        table = probabilities.reshape(-1, probabilities.shape[-1])  # (K, C)
        with np.errstate(over="ignore"):
            sums = table.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1) > _TOLERANCE)
        if wrong.size:
            raise ParameterError(
                f"probabilities must sum to 1 within {_TOLERANCE}, got a sum of {sums[wrong[0]]} in row {wrong[0]}; "
                "divide the row by its sum"
            )
        rounding = 1e-15 * table.shape[1]  # rows this close stay as they are: reading a state back changes nothing
        table = table / np.where(np.abs(sums - 1) > rounding, sums, 1.0)[:, None]
        with np.errstate(divide="ignore"):
            log_mass = np.log(np.pad(table, ((0, 0), (0, 1))))
        cumulative = table.cumsum(axis=1)
        last = table.shape[1] - 1 - np.argmax(table[:, ::-1] > 0, axis=1)  # the last category that has mass
        cumulative[np.arange(table.shape[1]) >= last[:, None]] = 1.0  # so that no draw falls behind it
        normalised = finite_array(table.reshape(probabilities.shape), "probabilities")
        for name, value in (
            *(("probabilities", normalised), ("members", len(table)), ("shape", ())),
            *(("_mass", table), ("_log_mass", log_mass), ("_cumulative", cumulative)),
        ):
            object.__setattr__(self, name, value)

    @property
    def atoms(self) -> Array:
        """The points that may carry mass.  (C, 1)"""
        return np.arange(self.probabilities.shape[-1], dtype=np.float64)[:, None]

    def sample(self, decisions: ArrayLike | None, rng: np.random.Generator) -> Indices:
        cumulative = self._cumulative if decisions is None else self._cumulative[self.indices(decisions)]
        categories: Indices = (cumulative <= rng.random((len(cumulative), 1))).sum(axis=1, dtype=np.int64)
        return categories

    def draw(self, decision: Any, rng: np.random.Generator) -> int:
        return int(np.searchsorted(self._cumulative[decision], rng.random(), side="right"))

    def log_density(self, decisions: ArrayLike | None, mediators: ArrayLike) -> Array:
        log_mass = self._log_mass if decisions is None else self._log_mass[self.indices(decisions)]
        z = self.mediator_rows(mediators)[:, 0]
        nothing = self._log_mass.shape[1] - 1
        categories = np.where((z >= 0) & (z < nothing) & (z == np.floor(z)), z, nothing).astype(np.int64)
        return log_mass[:, categories]

    def log_renyi(self, decisions: ArrayLike | None, others: ArrayLike | None, order: float = 2.0) -> Array:
        p, q = (self._mass[self.indices(k)] for k in (decisions, others))
        return log_renyi_of_masses(p, q, order)

    def nodes(self) -> tuple[Indices, Array]:
        """All categories, so that every integral is exact."""
        K, C = self._mass.shape
        return np.tile(np.arange(C), (K, 1)), self._mass


def log_renyi_of_masses(p: Array, q: Array, order: float) -> Array:
    """D_order between every pair of rows of masses over the same atoms.  (n, A), (m, A) -> (n, m)

    (Σ p^order q^(1-order) - 1) / (order - 1) is a sum of terms >= 0 (Bregman's): summed as such, rows that almost agree
    keep all their digits. Where it is large it is summed in log space instead, and nothing overflows.
    """
    order = check_order(order)
    out = np.empty((len(p), len(q)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        log_p, log_q = np.log(p), np.log(q)
        for j in range(len(q)):  # temporaries of (n, A), one at a time
            out[:, j] = _log_renyi_to(p, log_p, q[j], log_q[j], order)
    return out


def _log_renyi_to(p: Array, log_p: Array, q: Array, log_q: Array, order: float) -> Array:
    """(n, A), (n, A), (A,), (A,) -> (n,)"""
    lost = (p > 0) & (q == 0)
    escapes = lost.any(axis=1) & (order >= 1)
    relative = np.where(p == q, 0.0, (p - q) / q)
    close = np.abs(relative) < 0.5
    log_ratio = np.where(lost | (p == 0), 0.0, np.where(close, np.log1p(relative), log_p - log_q))
    largest = np.where(p > 0, log_ratio, -np.inf).max(axis=1, keepdims=True)
    if math.isinf(order):
        return np.where(escapes, np.inf, np.maximum(largest[:, 0], 0))
    kl = np.where(close, q * (relative**2 + (1 + relative) * log1p_minus(relative)), p * log_ratio - p + q)
    if order == 1:
        return np.where(escapes, np.inf, np.maximum(kl, 0).sum(axis=1))
    terms = kl + p * expm1_minus((order - 1) * log_ratio) / (order - 1)
    total = np.where(lost, p * order / (1 - order), terms).sum(axis=1)
    pivot = largest if order > 1 else np.zeros_like(largest)
    log_terms = np.where((p > 0) & ~lost, log_p + (order - 1) * (log_ratio - pivot), -np.inf)
    in_logs = pivot[:, 0] + np.logaddexp.reduce(log_terms, axis=1) / (order - 1)
    divergence = np.where(np.abs((order - 1) * total) < 0.5, np.log1p((order - 1) * total) / (order - 1), in_logs)
    return np.where(escapes, np.inf, np.maximum(divergence, 0))
