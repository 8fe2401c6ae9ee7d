"""Told samples of a box, and the estimate of any decision in it from all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from randomist._types import Array
from randomist.histories.finite import Estimates
from randomist.importance import continuum
from randomist.importance.kernels import LOG_HUGE
from randomist.spaces import Box


class Growing:
    """Rows that double when they run out, so that an append costs O(1) on average; `rows` is what is used."""

    def __init__(self, *shape: int) -> None:
        self.array = np.empty((64, *shape))
        self.used = 0

    def append(self, row: Any) -> None:
        if self.used == len(self.array):
            grown = np.empty((2 * self.used, *self.array.shape[1:]))
            grown[: self.used] = self.array
            self.array = grown
        self.array[self.used] = row
        self.used += 1

    @property
    def rows(self) -> Array:
        return self.array[: self.used]

    def copy(self) -> Growing:
        other = Growing()
        other.array, other.used = self.array.copy(), self.used
        return other


class BoxHistory:
    """Everything in units of the std. A decision that is played again right away is counted, not stored again.

    Telling costs O(t d), an estimate O(t d) per decision.
    """

    def __init__(self, space: Box) -> None:
        self.space = space
        self.std = np.broadcast_to(space.family.std, space.family.shape).reshape(-1)
        self.decisions = Growing(space.dimension)  # distinct, in order
        self.plays = Growing()
        self.mediators = Growing(space.dimension)
        self.payoffs = Growing()  # in [0, 1]
        self.log_mixture = Growing()  # log Σ_j p_{x_j}(z_i)

    def __len__(self) -> int:
        return self.payoffs.used

    def append(self, decision: ArrayLike, mediator: ArrayLike, payoff: float) -> None:
        """One more sample, payoff in [0, 1]."""
        self._count(decision)
        at = self.decisions.used - 1
        continuum.add_play(self.mediators.array, self.log_mixture.array, len(self), self.decisions.array, at)
        self.mediators.append(np.ravel(mediator) / self.std)
        self.payoffs.append(payoff)
        self.log_mixture.append(
            continuum.mixture_at(
                self.mediators.array, len(self) - 1, self.decisions.array, self.plays.array, self.decisions.used
            )
        )

    def fantasised(self, pending: Iterable[tuple[Any, Any]], payoff: float) -> BoxHistory:
        """A copy in which these decisions drew these mediators and were paid this: O(t d) each."""
        other = BoxHistory(self.space)
        for name in ("decisions", "plays", "mediators", "payoffs", "log_mixture"):
            setattr(other, name, getattr(self, name).copy())
        for decision, mediator in pending:
            other.append(decision, mediator, payoff)
        return other

    def scaled(self, decisions: ArrayLike) -> Array:
        """Decisions in units of the std.  (n, d)"""
        return np.ascontiguousarray(self.space.family._rows(decisions, "decisions") / self.std)

    def estimate(self, decisions: ArrayLike, term: float) -> Estimates:
        """TMIS at any decisions, with `term` for α log t."""
        points = self.scaled(decisions)
        if not len(self):
            nothing, unknown = np.zeros(len(points)), np.full(len(points), np.inf)
            return Estimates(nothing, nothing, unknown, unknown, nothing.astype(np.int64), nothing, -unknown)
        value, log_effective, coverage = continuum.estimate_at(points, term, self.arrays())
        log_term = math.log(term)
        threshold = len(self) * np.exp(np.minimum(-0.5 * (log_effective + log_term), LOG_HUGE))
        width = np.exp(np.minimum(0.5 * (log_term - log_effective), LOG_HUGE))
        same = (points[:, None, :] == self.decisions.rows[None, :, :]).all(axis=2)  # (n, distinct)
        plays = (same @ self.plays.rows).astype(np.int64)
        effective = np.maximum(np.exp(log_effective), plays)
        return Estimates(value, effective, threshold, width, plays, coverage, log_effective)

    def arrays(self) -> continuum.Samples:
        """What the kernels take."""
        return (
            self.mediators.array,
            self.log_mixture.array,
            self.payoffs.array,
            len(self),
            self.decisions.array,
            self.plays.array,
            self.decisions.used,
        )

    def state(self) -> dict[str, Any]:
        """The one cache that depends on the order of additions; the rest follows from the record."""
        return {"log_mixture": self.log_mixture.rows.copy()}

    def append_again(self, decision: ArrayLike, mediator: ArrayLike, payoff: float, log_mixture: float) -> None:
        """A sample of a saved history, with what was known of it in the end: O(d)."""
        self._count(decision)
        self.mediators.append(np.ravel(mediator) / self.std)
        self.payoffs.append(payoff)
        self.log_mixture.append(log_mixture)

    def _count(self, decision: ArrayLike) -> None:
        point = np.ravel(decision) / self.std
        if self.decisions.used and np.array_equal(self.decisions.rows[-1], point):
            self.plays.rows[-1] += 1
        else:
            self.decisions.append(point)
            self.plays.append(1.0)
