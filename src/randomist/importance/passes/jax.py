"""The passes over columns on a device, in JAX: ratios and weights in float32, sums and mixtures in float64.

The same sums as in `numba`, in another order. A block of samples is an array of ratios (S, size), or what they can be
computed from again (`Recomputed`), where they do not fit the device's memory; columns that are not used have ratios of
0. Arrays that are named first are given up: their memory is used for the result.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from randomist.importance.passes.layout import BINS, ETA, HUGE, LOG_ETA, LOG_HUGE, SMALL

MOST = 60.0  # a sample with a larger log-ratio is kept in log space: float32 ends at e^88
BYTES = 4  # of a stored ratio


class Recomputed(NamedTuple):
    """Ratios that are made again in each pass."""

    members: Any  # of a family, see `families.in_jax`
    points: Any  # mediators  (size, d)
    own: Any  # log p_x(z) of what drew each; infinite where there is no sample  (size,)


def ratios_of(block: Any) -> Any:
    """(S, size)"""
    if isinstance(block, Recomputed):
        return relative(block.members.log_density(block.points) - block.own)
    return block


def some_ratios(block: Any, rows: Any) -> Any:
    """(n,) -> (n, size)"""
    if isinstance(block, Recomputed):
        return relative(block.members.some(rows).log_density(block.points) - block.own)
    return block[rows]


def relative(log_ratio: Any) -> Any:
    return jnp.exp(jnp.minimum(log_ratio, MOST)).astype(jnp.float32)


# Plays.


@partial(jax.jit, donate_argnums=0)
def add_effective(eta: Any, log_divergence: Any, times: Any) -> Any:
    """η(x) += T / d2(p_x || p_source): a plain sum while it can be, else in log space.  (2, S)"""
    effective = eta[ETA] + times * jnp.exp(-log_divergence)
    in_logs = jnp.logaddexp(eta[LOG_ETA], jnp.log(times) - log_divergence)
    return jnp.stack([effective, jnp.where(effective > SMALL, jnp.log(effective), in_logs)])


@partial(jax.jit, donate_argnums=0)
def count_play(plays: Any, source: Any, times: Any) -> Any:
    return plays.at[source].add(times)


# Columns.


@jax.jit
def column_of(log_density: Any, source: Any) -> tuple[Any, Any]:
    """The ratios of a sample, and the largest log-ratio.  (S,) -> (S,)"""
    log_ratio = log_density - log_density[source]
    return relative(log_ratio), log_ratio.max()


@partial(jax.jit, donate_argnums=(0, 1))
def write(ratios: Any, mixture: Any, plays: Any, column: Any, source: Any, times: Any, at: Any) -> tuple[Any, Any]:
    """A sample enters a block, whose other columns lack so many plays of `source`."""
    mixture = mixture + times * ratios[source].astype(jnp.float64)
    mixture = mixture.at[at].set(plays @ column.astype(jnp.float64))
    return jax.lax.dynamic_update_slice(ratios, column[:, None], (0, at)), mixture


@partial(jax.jit, donate_argnums=0)
def fill(ratios: Any, columns: Any, first: Any, last: Any) -> Any:
    """Many columns at once: those from `first` to before `last` of others.  (S, size)"""
    numbers = jnp.arange(ratios.shape[1])
    return jnp.where((numbers >= first) & (numbers < last), ratios_of(columns), ratios)


@jax.jit
def largest(columns: Any) -> Any:
    """The largest log-ratio of a block that is recomputed."""
    return (columns.members.log_density(columns.points) - columns.own).max()


@partial(jax.jit, donate_argnums=0)
def follow(mixture: Any, block: Any, sources: Any, times: Any) -> Any:
    """D after some more plays.  (n,), (n,)"""
    return mixture + times @ some_ratios(block, sources).astype(jnp.float64)


@jax.jit
def mix(block: Any, plays: Any) -> Any:
    """D = Σ_k T_k r_k, 1 where there is no sample.  (size,)"""
    mixture = (plays[:, None] * ratios_of(block)).sum(axis=0)
    return jnp.where(mixture > 0, mixture, 1.0)


@jax.jit
def mix_played(block: Any, sources: Any, times: Any) -> Any:
    """The same where only these were played.  (n,), (n,) -> (size,)"""
    mixture = times @ some_ratios(block, sources).astype(jnp.float64)
    return jnp.where(mixture > 0, mixture, 1.0)


# Estimates.


@jax.jit
def begin_estimate(eta: Any, term: Any, told: Any) -> tuple[Any, Any, Any]:
    """The cut M/m, the threshold M and the width sqrt(term / η), as in `numba`.  (2, S) -> (S,) each"""
    log_eta, log_term = eta[LOG_ETA], jnp.log(term)
    known = (log_eta > -jnp.inf) & (told > 0)
    cut = jnp.where(known, jnp.exp(jnp.minimum(-0.5 * (log_eta + log_term), LOG_HUGE)), HUGE)
    width = jnp.where(known, jnp.exp(jnp.minimum(0.5 * (log_term - log_eta), LOG_HUGE)), jnp.inf)
    return cut, jnp.where(known, told * cut, jnp.inf), width


def weights_of(ratios: Any, mixture: Any, cut: Any) -> Any:
    """min(M, ω)/m in float32.  (n, size), (size,), (n,) -> (n, size)"""
    return jnp.minimum(cut.astype(jnp.float32)[:, None], ratios * (1.0 / mixture).astype(jnp.float32))


@partial(jax.jit, static_argnames="width")
def sums(block: Any, mixture: Any, payoffs: Any, counts: Any, cut: Any, width: int) -> tuple[Any, Any]:
    """The part of a block's first columns of the value Σ min(M, ω) y / m, and of the coverage Σ min(M, ω)/m.  (S,)"""
    if isinstance(block, Recomputed):
        block = block._replace(points=block.points[:width], own=block.own[:width])
    weights = weights_of(ratios_of(block)[:, :width], mixture[:width], cut)
    gains, covered = (weights * side[:width].astype(jnp.float32) for side in (payoffs, counts))
    return gains.astype(jnp.float64).sum(axis=1), covered.astype(jnp.float64).sum(axis=1)


@jax.jit
def moments(block: Any, mixture: Any, payoffs: Any, counts: Any, squares: Any, cut: Any) -> Any:
    """A block's part of Σ w², Σ w² y and Σ w² y² with w = min(M, ω)/m.  (3, S)"""
    squared = weights_of(ratios_of(block), mixture, cut).astype(jnp.float64) ** 2
    return jnp.stack([(squared * side).sum(axis=1) for side in (counts, payoffs, squares)])


class Spread(NamedTuple):
    """How the payoffs of each column lie: at `low`, in the bin `place`, and some at 1.  (size,) each"""

    place: Any
    low: Any
    below: Any  # how many samples lie there
    at_one: Any


@jax.jit
def histograms(block: Any, mixture: Any, spread: Spread, rows: Any, cut: Any) -> tuple[Any, Any]:
    """A block's part of Σ w and Σ w y by bins of the payoff, of some rows.  (n,) -> (n, BINS) each"""
    weights = weights_of(some_ratios(block, rows), mixture, cut[rows]).astype(jnp.float64)
    bins = (spread.place[:, None] == jnp.arange(BINS)).astype(jnp.float64)  # (size, BINS)
    last = (jnp.arange(BINS) == BINS - 1) * spread.at_one[:, None]
    seen = weights @ (bins * spread.below[:, None] + last)
    return seen, weights @ (bins * (spread.below * spread.low)[:, None] + last)


# Integrals over nodes (`divergences.mixture`).


class Nodes(NamedTuple):
    """Nodes of every member, the weights of their integral, and log p_k at those of k."""

    points: Any  # (K, L, d)
    weights: Any  # (K, L)
    own: Any  # (K, L)


class AtNodes(NamedTuple):
    """What plays add up to at the nodes of every k, and the integrals of that."""

    mixture: Any  # Σ_j T_j p_j/p_k  (K, L)
    bound: Any  # Σ_j (T_j/d2_j²) p_k/p_j; None for a discrete family, whose sums are exact  (K, L)
    tail: Any  # the least of what the nodes of k lack of d2(p_k || p_j)/T_j, over all j  (K,)
    inverse: Any  # E 1/(m Φ/p_k), infinite where a node of weight has no mixture  (K,)
    bounded: Any  # the integral of `bound`, of which the exact value is the harmonic η  (K,)


def nothing_at_nodes(nodes: Nodes, discrete: bool) -> AtNodes:
    none, members = jnp.zeros(nodes.weights.shape), len(nodes.weights)
    infinite = jnp.full(members, jnp.inf)
    return AtNodes(none, None if discrete else none + 0.0, infinite, infinite + 0.0, jnp.zeros(members))


def play_at_nodes(
    sums: AtNodes, nodes: Nodes, members: Any, log_divergence: Any, source: Any, times: Any, plays: Any
) -> AtNodes:
    """So many more plays of a source, after which it has `plays`: one pass over all nodes.  log_divergence: (K,)"""
    K, L, d = nodes.points.shape
    log_density = members.some(source[None]).log_density(nodes.points.reshape(K * L, d))[0].reshape(K, L)
    has_density = nodes.own > -jnp.inf
    log_ratio = jnp.where(has_density, log_density - nodes.own, -jnp.inf)
    mixture = sums.mixture + times * jnp.exp(jnp.minimum(log_ratio, 600.0))
    inverse = jnp.where(nodes.weights > 0.0, nodes.weights / mixture, 0.0).sum(axis=1)
    if sums.bound is None:
        return sums._replace(mixture=mixture, inverse=inverse)
    near = has_density & (log_divergence < jnp.inf)[:, None]
    term = jnp.where(near, jnp.exp(jnp.minimum(-log_ratio - 2.0 * log_divergence[:, None], 600.0)), 0.0)
    bound, tail = sums.bound + times * term, sums.tail
    if d == 1:
        divergence = jnp.exp(jnp.minimum(log_divergence, 690.0))
        unseen = divergence * jnp.abs(1.0 - divergence * (nodes.weights * term).sum(axis=1))
        tail = jnp.minimum(tail, unseen / plays)
    return AtNodes(mixture, bound, tail, inverse, (nodes.weights * bound).sum(axis=1))


def effective_at_nodes(sums: AtNodes, dimension: int, harmonic: Any, accurate: float) -> Any:
    """m / d2(p_x || Φ_t), from the harmonic bound where the nodes say nothing.  (K,) -> (K,)"""
    if sums.bound is None:
        return 1.0 / sums.inverse
    known = (harmonic > 0) & (sums.bounded > 0) & (sums.inverse > 0)
    effective = sums.bounded / jnp.where(known, harmonic * sums.inverse, 1.0)
    if dimension == 1:
        effective = jnp.where(sums.tail <= accurate * sums.inverse, 1.0 / sums.inverse, effective)
    return jnp.where(known, effective, harmonic)


@jax.jit
def truncated_mass(sums: AtNodes, nodes: Nodes, threshold: Any, told: Any) -> Any:
    """E_{p_x}[(1 - M Φ_t/p_x)_+], 1 where nothing is known.  (K,) -> (K,)"""
    known = threshold < jnp.inf
    lacking = jnp.maximum(0.0, 1.0 - jnp.where(known, threshold, 0.0)[:, None] * (sums.mixture / told))
    return jnp.where(known, (nodes.weights * lacking).sum(axis=1), 1.0)


# K_inf (`empirical_divergence`).

STEPS, CLOSE = 40, 1e-10


def k_inf(weight: Any, sums: Any, level: Any) -> Any:
    """Of distributions by bins; see `empirical_divergence.k_inf`, of which this is the same.  (n, B), (n, B) -> (n,)"""
    total, mean = weight.sum(axis=1), sums.sum(axis=1)
    below = (total > 0.0) & (mean < level * total)
    used, safe = weight > 0.0, jnp.where(weight > 0.0, weight, 1.0)
    room = jnp.where(level < 1.0, 1.0 - level, 1.0)
    gain = jnp.where(used, (sums / safe - level) / room, 0.0)  # (y - μ)/(1 - μ)
    share = weight / jnp.where(total > 0.0, total, 1.0)[:, None]

    def newton(state: Any) -> Any:
        number, low, high, stake, done = state
        ratio = gain / jnp.maximum(1.0 - stake[:, None] * gain, 1e-300)
        slope, curvature = -(share * ratio).sum(axis=1), -(share * ratio * ratio).sum(axis=1)
        low, high = jnp.where(slope > 0.0, stake, low), jnp.where(slope > 0.0, high, stake)
        step = jnp.where(curvature < 0.0, stake - slope / jnp.where(curvature < 0.0, curvature, -1.0), high)
        step = jnp.where((low < step) & (step < high), step, 0.5 * (low + high))
        close = jnp.abs(step - stake) < CLOSE
        return number + 1, low, high, jnp.where(done, stake, step), done | close

    half = jnp.full_like(total, 0.5)
    begin = 0, jnp.zeros_like(total), jnp.ones_like(total), half, ~below
    stake = jax.lax.while_loop(lambda state: (state[0] < STEPS) & ~state[4].all(), newton, begin)[3]
    found = (share * jnp.log(jnp.maximum(1.0 - stake[:, None] * gain, 1e-300))).sum(axis=1)
    return jnp.where(below, jnp.where(level < 1.0, found, jnp.inf), 0.0)
