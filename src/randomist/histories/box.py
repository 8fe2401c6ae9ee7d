"""Told samples of a box, and the estimate of any decision in it from all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.histories.estimates import Estimates
from randomist.histories.growing import Growing
from randomist.importance.estimators import Estimator
from randomist.importance.passes.layout import LOG_HUGE

if TYPE_CHECKING:
    from randomist.spaces import Box

ENTRIES = 2**17  # weights that are made at once


class BoxHistory:
    """Samples of any location family. A decision that is played again right away is counted, not stored again.

    Points are in units of the family's `spread`. Telling costs t densities, an estimate t densities per decision, made
    a few decisions at a time: memory is O(t).
    """

    COLUMNS: ClassVar[tuple[str, ...]] = ("decisions", "plays", "mediators", "payoffs", "log_mixture")

    def __init__(self, space: Box) -> None:
        self.space = space
        self.spread = np.broadcast_to(np.ravel(space.family.spread), space.dimension)
        self.decisions = Growing(space.dimension)  # distinct, in order
        self.plays = Growing()
        self.mediators = Growing(space.dimension)
        self.payoffs = Growing()  # in [0, 1]
        self.log_mixture = Growing()  # log Σ_j p_{x_j}(z_i)
        self._totals: dict[bytes, int] = {}  # how often each decision was played

    def __len__(self) -> int:
        return self.payoffs.used

    # Samples come in.

    def append(self, decision: ArrayLike, mediator: ArrayLike, payoff: float) -> None:
        """One more sample, payoff in [0, 1]."""
        self._count(decision)
        self._add_play()
        self.mediators.append(np.ravel(mediator) / self.spread)
        self.payoffs.append(payoff)
        self.log_mixture.append(self._mixture_of_last())

    def fantasised(self, pending: Iterable[tuple[Any, Any]], payoff: float) -> BoxHistory:
        """A copy in which these decisions drew these mediators and were paid this."""
        other = type(self)(self.space)
        for name in self.COLUMNS:
            setattr(other, name, getattr(self, name).copy())
        for decision, mediator in pending:
            other.append(decision, mediator, payoff)
        return other

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs in [0, 1], in the order in which they were told."""
        self.payoffs.rows[:] = payoffs

    # Estimates.

    def scaled(self, decisions: ArrayLike) -> Array:
        """Decisions in units of the spread.  (n, d)"""
        return np.ascontiguousarray(self.space.family.mediator_rows(decisions, "decisions") / self.spread)

    def estimate(self, points: Array, term: float, estimator: Estimator) -> Estimates:
        """At points in units of the spread, with `term` for α log t; on the [0, 1] scale.  (n, d)"""
        if not len(self):
            return Estimates.nothing(len(points))
        value, log_effective, coverage = self.sums(points, term, estimator)
        log_term = math.log(term)
        threshold = len(self) * np.exp(np.minimum(-0.5 * (log_effective + log_term), LOG_HUGE))
        width = np.exp(np.minimum(0.5 * (log_term - log_effective), LOG_HUGE))
        plays = np.array([self._totals.get(_name(point), 0) for point in points], np.int64)
        effective = np.maximum(np.exp(log_effective), plays)
        return Estimates(value, effective, threshold, width, plays, coverage, log_effective)

    def sums(self, points: Array, term: float, estimator: Estimator) -> tuple[Array, Array, Array]:
        """The value, log η and coverage at every point, of a history that is not empty.  (n, d) -> (n,), (n,), (n,)"""
        parts = []
        for some in self._portions(points):
            log_effective = self._log_effective(some)
            cut = np.exp(np.minimum(-0.5 * (log_effective + math.log(term)), LOG_HUGE))[:, None]  # M/m
            weights = np.exp(np.minimum(self._log_weights(some), LOG_HUGE))  # ω/m  (n, t)
            truncated, payoffs = np.minimum(weights, cut), self.payoffs.rows
            coverage = truncated.sum(axis=1)
            gained = truncated @ payoffs
            if not estimator.of_sums:
                gained = estimator.gains(weights, cut, payoffs).sum(axis=1)
            parts.append((estimator.combine(gained, coverage), log_effective, coverage))
        value, log_effective, coverage = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return value, log_effective, coverage

    def one(self, point: Array, term: float, estimator: Estimator) -> tuple[float, float]:
        """The value and log η at one point.  (d,)"""
        value, log_effective, _ = self.sums(point[None], term, estimator)
        return float(value[0]), float(log_effective[0])

    def _portions(self, points: Array) -> Iterator[Array]:
        size = max(1, ENTRIES // len(self))
        return (points[i : i + size] for i in range(0, len(points), size))

    # Densities, in units of the spread: a constant factor of all of them is left out.

    def _log_weights(self, points: Array) -> Array:
        """log of p_x(z_i) / Σ_j p_{x_j}(z_i).  (n, d) -> (n, t)"""
        return np.asarray(self._log_density(points, self.mediators.rows) - self.log_mixture.rows)

    def _log_effective(self, points: Array) -> Array:
        """log η = log Σ_j T_j / d2(p_x || p_{x_j}).  (n, d) -> (n,)"""
        played = self._user(self.decisions.rows)
        divergence = self.space.family.log_renyi(self._user(points), played)
        log_effective: Array = np.logaddexp.reduce(np.log(self.plays.rows) - divergence, axis=1)
        return log_effective

    def _add_play(self) -> None:
        """One more play of the last decision, at all samples so far."""
        if len(self):
            rows = self.log_mixture.rows
            rows[:] = np.logaddexp(rows, self._log_density(self.decisions.rows[-1:], self.mediators.rows)[0])

    def _mixture_of_last(self) -> float:
        """log Σ_j T_j p_{x_j} at the last sample."""
        log_density = self._log_density(self.decisions.rows, self.mediators.rows[-1:])[:, 0]
        return float(np.logaddexp.reduce(np.log(self.plays.rows) + log_density))

    def _log_density(self, points: Array, mediators: Array) -> Array:
        return np.asarray(self.space.family.log_density(self._user(points), self._user(mediators)))

    def _user(self, points: Array) -> NDArray[Any]:
        """Points in the user's units, of the family's shape."""
        return np.asarray(points * self.spread).reshape(-1, *self.space.family.shape)

    # Save and load.

    def state(self) -> dict[str, Any]:
        """The one cache that depends on the order of additions; the rest follows from the record."""
        return {"log_mixture": self.log_mixture.rows.copy()}

    def append_again(self, decision: ArrayLike, mediator: ArrayLike, payoff: float, log_mixture: float) -> None:
        """A sample of a saved history, with what was known of it in the end: O(d)."""
        self._count(decision)
        self.mediators.append(np.ravel(mediator) / self.spread)
        self.payoffs.append(payoff)
        self.log_mixture.append(log_mixture)

    def _count(self, decision: ArrayLike) -> None:
        point = np.ravel(decision) / self.spread
        self._totals[_name(point)] = self._totals.get(_name(point), 0) + 1
        if self.decisions.used and np.array_equal(self.decisions.rows[-1], point):
            self.plays.rows[-1] += 1
        else:
            self.decisions.append(point)
            self.plays.append(1.0)


def _name(point: Array) -> bytes:
    return bytes((point + 0.0).tobytes())  # -0.0 is 0.0
