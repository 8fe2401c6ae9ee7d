"""PB-POIS: parameter-based policy optimization via importance sampling.

A. Metelli, M. Papini, F. Faccio and M. Restelli, Policy Optimization via Importance Sampling, NeurIPS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from randomist._checks import number, probability, whole_number
from randomist._types import Array
from randomist.importance.passes.layout import LOG_HUGE
from randomist.learners.box.pgpe import BatchLearner

_TRIES = 40  # halvings before a search gives up: by then a step is below 1e-12 stds


class Batch(NamedTuple):
    """Samples of Gaussians N(x, σ²), and what their weights need whatever the target is."""

    decisions: Array  # the distinct x  (k, d)
    plays: Array  # how many samples each drew  (k,)
    mediators: Array  # θ_i  (n, d)
    payoffs: Array  # y_i  (n,)
    std: Array  # σ  (d,)
    log_mixture: Array  # log Σ_j p_{x_j}(θ_i), up to a constant  (n,)


def gather(decisions: Array, mediators: Array, payoffs: Array, std: Array) -> Batch:
    """A batch of samples; decisions[i] drew mediators[i].  (n, d), (n, d), (n,), (d,)"""
    distinct, plays = np.unique(decisions, axis=0, return_counts=True)
    log_densities = -0.5 * _squares(mediators, distinct, std)  # (n, k)
    return Batch(distinct, plays.astype(np.float64), mediators, payoffs, std, logsumexp(log_densities, axis=1, b=plays))


def objective(target: Array, batch: Batch, failure_probability: float = 0.4, payoff_bound: float = 1.0) -> float:
    """L(ρ) = J(ρ) - ‖R‖∞ sqrt((1-δ) d2(ρ‖Φ) / (δ n)): what ρ pays, less how wrong that may be.  (d,) -> number

    J is the self-normalised importance-sampling estimate of the payoff of N(ρ, σ²) from the batch. Φ is the mixture of
    the batch's decisions; d2(ρ‖Φ) is replaced by its bound n / Σ_j 1/d2(ρ‖x_j), where d2(ρ‖x) = exp(|(ρ - x)/σ|²). With
    one decision these are the paper's weights and divergence.
    """
    value = np.sum(_weights(target, batch) * batch.payoffs)
    return float(value) - _penalty(target, batch, failure_probability, payoff_bound)


def objective_gradient(
    target: Array, batch: Batch, failure_probability: float = 0.4, payoff_bound: float = 1.0
) -> Array:
    """∇L(ρ).  (d,) -> (d,)"""
    weights = _weights(target, batch)
    advantages = weights * (batch.payoffs - np.sum(weights * batch.payoffs))  # (n,)
    uphill = np.sum(advantages[:, None] * (batch.mediators - target), axis=0)  # σ² ∇J
    nearness = softmax(_log_shares(target, batch))  # (k,)
    away = np.sum(nearness[:, None] * (target - batch.decisions), axis=0)  # σ² ∇ log sqrt(d2)
    slope = uphill - _penalty(target, batch, failure_probability, payoff_bound) * away
    return np.asarray(slope / batch.std**2)


def ascend(
    start: Array,
    batch: Batch,
    low: Array,
    high: Array,
    failure_probability: float = 0.4,
    payoff_bound: float = 1.0,
    iterations: int = 30,
) -> Array:
    """The path of natural-gradient steps on L from `start`; it rises, or ends.  (d,) -> (m, d), m <= 1 + iterations

    A step is halved until L rises, or doubled as long as L rises more; every point is projected onto the box.
    """

    def value_at(point: Array) -> float:
        return objective(point, batch, failure_probability, payoff_bound)

    path, value = [start], value_at(start)
    for _ in range(iterations):
        slope = objective_gradient(path[-1], batch, failure_probability, payoff_bound)
        direction = batch.std**2 * slope  # F⁻¹ ∇L, Fisher information F = diag(1/σ²)
        direction /= max(1.0, float(np.max(np.abs(direction / batch.std))))  # at first, one std at most
        found = _search(path[-1], value, direction, value_at, low, high)
        if found is None:
            break
        path.append(found[0])
        value = found[1]
    return np.array(path)


@dataclass(eq=False, kw_only=True)
class POIS(BatchLearner):
    """After each batch, move the mean to where a lower confidence bound on the expected payoff is largest.

    Differences from the paper: the std is fixed; weights are self-normalised, though its bound (probability 1 - δ, one
    target) is for those that are not; a step is found by halving and doubling, not by fitting parabolas; the mean stays
    in the box; where payoffs were told late, samples are weighted against the mixture of the decisions that drew the
    batch (balance heuristic).

    Settings are those of `Learner`, and these.

    Parameters
    ----------
    batch
        After how many payoffs the mean moves, at least 2.
    failure_probability
        δ of the confidence bound. A smaller one takes smaller steps.
    iterations
        How many steps are made at most on the bound of one batch, without new payoffs.
    payoff_bound
        ‖R‖∞, the largest absolute payoff, on the [0, 1] scale of `payoff_range`.
    estimator
        What `estimate` and `recommend` make of the weighted samples (see `SharedHistoryLearner`).
    """

    batch: int = 100
    failure_probability: float = 0.4
    iterations: int = 30
    payoff_bound: float = 1.0

    def __post_init__(self) -> None:
        whole_number(self.batch, "batch", 2, ", since the weights of a batch are relative")
        probability(self.failure_probability, "failure_probability")
        whole_number(self.iterations, "iterations")
        number(self.payoff_bound, "payoff_bound", above=0)
        super().__post_init__()

    def _improved(self, decisions: Array, mediators: Array, payoffs: Array) -> Array:
        batch = gather(decisions, mediators, payoffs, self.history.spread)
        low, high = self.space.corners
        settings = (self.failure_probability, self.payoff_bound, self.iterations)
        last: Array = ascend(self._mean, batch, low, high, *settings)[-1]
        return last


def _search(
    start: Array, value: float, direction: Array, value_at: Callable[[Array], float], low: Array, high: Array
) -> tuple[Array, float] | None:
    """A point along a direction, projected onto the box, with a larger value; None where there is no such point."""
    best, step = None, 1.0
    for _ in range(_TRIES):
        point = np.clip(start + step * direction, low, high)
        reached = value_at(point)
        if reached > value:
            best, value = (point, reached), reached
            if step < 1:
                break
        elif best is not None:
            break
        step *= 0.5 if best is None else 2.0
    return best


def _squares(points: Array, others: Array, std: Array) -> Array:
    """|(a - b)/σ|² for every pair.  (n, d), (k, d), (d,) -> (n, k)"""
    return np.asarray(np.sum(((points[:, None, :] - others[None, :, :]) / std) ** 2, axis=2))


def _weights(target: Array, batch: Batch) -> Array:
    """ω_i / Σ_j ω_j with ω = p_ρ / Φ.  (d,) -> (n,)"""
    log_density = -0.5 * _squares(batch.mediators, target[None], batch.std)[:, 0]
    return np.asarray(softmax(log_density - batch.log_mixture))


def _log_shares(target: Array, batch: Batch) -> Array:
    """log n_x / d2(ρ‖x) of every decision of the batch, played n_x times.  (d,) -> (k,)"""
    return np.asarray(np.log(batch.plays) - _squares(target[None], batch.decisions, batch.std)[0])


def _penalty(target: Array, batch: Batch, failure_probability: float, payoff_bound: float) -> float:
    """‖R‖∞ sqrt((1-δ) d2 / (δ n)), where n / d2 = Σ_j 1/d2(ρ‖x_j); never infinite."""
    log_odds = math.log1p(-failure_probability) - math.log(failure_probability)
    log_square = log_odds - float(np.logaddexp.reduce(_log_shares(target, batch)))
    return payoff_bound * math.exp(min(0.5 * log_square, 0.5 * LOG_HUGE))
