"""The hot passes over columns of samples, compiled with numba: the default backend.

A sample i is stored by its ratios r_k = p_k(z_i) / p_{x_i}(z_i), relative to the density of the source that drew it.
With D_i = Σ_k T_k r_k the weight of the balance heuristic is ω_x(z_i) / m = r_x / D_i, so the pass over (K, t) that
makes an estimate needs neither exp nor log, and D_i >= 1 never underflows. `fastmath` is safe in sums of weights:
ratios, mixtures and thresholds are finite by construction (see `HUGE` and `FAR`).

D is a function of what was told. The counts as of the last multiple of `EPOCH` plays give its base, and each play since
then adds its ratio, in order: so it does not matter when, or how often, it was brought up to date.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.importance.passes.layout import (
    APPLIED,
    AS_OF,
    BINS,
    COVERAGE,
    CUT,
    DONE,
    EFFECTIVE,
    EPOCH,
    ERA,
    ERAS,
    ETA,
    FAR,
    FIRST,
    HUGE,
    LAST_EPOCH,
    LAST_ERA,
    LOG_EFFECTIVE,
    LOG_ETA,
    LOG_HUGE,
    NOW,
    SINCE,
    SMALL,
    THRESHOLD,
    VALUE,
    WIDTH,
)

# Plays.


@compiled
def count_play(plays: Indices, recent: Indices, source: int) -> None:
    """T(source) += 1."""
    plays[NOW, source] += 1
    recent[FIRST + recent[SINCE]] = source
    recent[SINCE] += 1
    if recent[SINCE] % EPOCH == 0:
        plays[LAST_EPOCH] = plays[NOW]
    if recent[SINCE] == ERA:
        plays[LAST_ERA] = plays[NOW]
        recent[SINCE] = 0
        recent[ERAS] += 1


@compiled
def count_plays(plays: Indices, recent: Indices, sources: Indices) -> None:
    for source in sources:
        count_play(plays, recent, source)


@compiled
def add_effective(eta: Array, log_divergence: Array, times: float) -> None:
    """η(x) += T / d2(p_x || p_source): a plain sum while it can be, so that η(x) >= T(x) holds, else in log space."""
    for k in range(eta.shape[1]):
        if log_divergence[k] < math.inf:
            add_term(eta, k, times, log_divergence[k])


@compiled
def add_term(eta: Array, k: int, times: float, log_divergence: float) -> None:
    eta[ETA, k] += times * math.exp(-log_divergence)
    if eta[ETA, k] > SMALL:
        eta[LOG_ETA, k] = math.log(eta[ETA, k])
    else:
        term = math.log(times) - log_divergence
        high, low = max(eta[LOG_ETA, k], term), min(eta[LOG_ETA, k], term)
        eta[LOG_ETA, k] = high + math.log1p(math.exp(low - high))


@compiled
def add_effectives(eta: Array, log_divergences: Array, rows: Indices) -> None:
    """One play after another; `rows` says which row of `log_divergences` belongs to each.  (n, S), (t,)"""
    for row in rows:
        add_effective(eta, log_divergences[row], 1.0)


# Columns.


@compiled
def write(ratios: Array, payoffs: Array, i: int, log_density: Array, source: int, payoff: float) -> bool:
    """Store a sample in column i of a block; False, and nothing of use stored, where a ratio leaves float64's range."""
    for k in range(ratios.shape[0]):
        log_ratio = log_density[k] - log_density[source]
        if log_ratio > FAR:
            return False
        ratios[k, i] = math.exp(log_ratio)
    payoffs[i] = payoff
    return True


@compiled
def write_all(
    ratios: Array, payoffs: Array, start: int, log_density: Array, sources: Indices, values: Array, first: int
) -> tuple[int, int]:
    """Samples from `first` on, until the block is full or one does not fit: its number, and the columns now used."""
    i = start
    for n in range(first, sources.shape[0]):
        if i == ratios.shape[1] or not write(ratios, payoffs, i, log_density[n], sources[n], values[n]):
            return n, i
        i += 1
    return sources.shape[0], i


@compiled
def append(
    ratios: Array,
    payoffs: Array,
    used: int,
    plays: Indices,
    recent: Indices,
    eta: Array,
    log_divergence: Array,
    log_density: Array,
    source: int,
    payoff: float,
) -> bool:
    """`count_play`, `add_effective` and `write`: a told sample is one call, which a small round spends its time on."""
    count_play(plays, recent, source)
    add_effective(eta, log_divergence, 1.0)
    return write(ratios, payoffs, used, log_density, source, payoff)


@compiled
def mix(ratios: Array, mixture: Array, used: int, mixed: Indices, plays: Indices, recent: Indices) -> None:
    """Bring D = mixture[0] and 1/D = mixture[1] up to date.

    Loops run along the samples and each D is summed in the order of sources, then of plays: the same bits whether
    columns are done one by one or all at once.
    """
    epoch = recent[ERAS] * (ERA // EPOCH) + recent[SINCE] // EPOCH
    since = FIRST + recent[SINCE] // EPOCH * EPOCH  # where the plays of this epoch begin
    now = FIRST + recent[SINCE]
    if mixed[AS_OF] != epoch:
        mixed[DONE], mixed[AS_OF], mixed[APPLIED] = 0, epoch, 0
    done, applied = mixed[DONE], since + mixed[APPLIED]
    if done < used:
        for i in range(done, used):
            mixture[0, i] = 0.0
        for k in range(ratios.shape[0]):
            if plays[LAST_EPOCH, k]:
                times = float(plays[LAST_EPOCH, k])
                for i in range(done, used):
                    mixture[0, i] += times * ratios[k, i]
        for play in range(since, applied):
            for i in range(done, used):
                mixture[0, i] += ratios[recent[play], i]
    for play in range(applied, now):
        for i in range(used):
            mixture[0, i] += ratios[recent[play], i]
    if done < used or applied < now:
        for i in range(used):
            mixture[1, i] = 1.0 / mixture[0, i]
    mixed[DONE], mixed[APPLIED] = used, now - since


# Estimates.


@compiled
def begin_estimate(eta: Array, term: float, told: int, table: Array) -> None:
    """Everything but the sums: M = sqrt(m d2 / term) with d2 = m/η, its m-th part CUT, and sqrt(term / η).

    `term` is α log t. The cut is capped where nothing is known, so that it is finite; the threshold and the width are
    infinite there.
    """
    log_term = math.log(term) if told else -math.inf
    for k in range(table.shape[1]):
        log_effective = eta[LOG_ETA, k]
        table[VALUE, k] = table[COVERAGE, k] = 0.0
        table[EFFECTIVE, k] = eta[ETA, k]
        table[LOG_EFFECTIVE, k] = log_effective
        if log_effective == -math.inf or told == 0:
            table[CUT, k], table[THRESHOLD, k], table[WIDTH, k] = HUGE, math.inf, math.inf
        else:
            table[CUT, k] = math.exp(min(-0.5 * (log_effective + log_term), LOG_HUGE))
            table[THRESHOLD, k] = told * table[CUT, k]
            table[WIDTH, k] = math.exp(min(0.5 * (log_term - log_effective), LOG_HUGE))


@compiled
def estimate(
    ratios: Array,
    mixture: Array,
    payoffs: Array,
    used: int,
    mixed: Indices,
    plays: Indices,
    recent: Indices,
    eta: Array,
    term: float,
    told: int,
) -> Array:
    """A new table with the sums over one block; those of the other blocks are added by `add_sums`.  (7, S)"""
    table = np.empty((7, eta.shape[1]))
    begin_estimate(eta, term, told, table)
    add_block(ratios, mixture, payoffs, used, mixed, plays, recent, table)
    return table


@compiled
def add_block(
    ratios: Array,
    mixture: Array,
    payoffs: Array,
    used: int,
    mixed: Indices,
    plays: Indices,
    recent: Indices,
    table: Array,
) -> None:
    """`mix` and `add_sums`."""
    mix(ratios, mixture, used, mixed, plays, recent)
    add_sums(ratios, mixture[1], payoffs, used, table)


@compiled(fastmath=True)
def add_sums(ratios: Array, inverse_mixture: Array, payoffs: Array, used: int, table: Array) -> None:
    """One block's part of COVERAGE = Σ_i min(M, ω)/m and VALUE = Σ_i min(M, ω) y / m.

    Four decisions at a time share the loads of a sample, which brings the pass to the speed of memory.
    """
    K = ratios.shape[0]
    for k in range(0, K - 3, 4):
        c0, c1, c2, c3 = table[CUT, k], table[CUT, k + 1], table[CUT, k + 2], table[CUT, k + 3]
        w0 = w1 = w2 = w3 = 0.0
        y0 = y1 = y2 = y3 = 0.0
        for i in range(used):
            inverse, y = inverse_mixture[i], payoffs[i]
            w = min(c0, ratios[k, i] * inverse)
            w0 += w
            y0 += w * y
            w = min(c1, ratios[k + 1, i] * inverse)
            w1 += w
            y1 += w * y
            w = min(c2, ratios[k + 2, i] * inverse)
            w2 += w
            y2 += w * y
            w = min(c3, ratios[k + 3, i] * inverse)
            w3 += w
            y3 += w * y
        table[COVERAGE, k] += w0
        table[COVERAGE, k + 1] += w1
        table[COVERAGE, k + 2] += w2
        table[COVERAGE, k + 3] += w3
        table[VALUE, k] += y0
        table[VALUE, k + 1] += y1
        table[VALUE, k + 2] += y2
        table[VALUE, k + 3] += y3
    for k in range(K - K % 4, K):
        c0 = table[CUT, k]
        w0 = y0 = 0.0
        for i in range(used):
            w = min(c0, ratios[k, i] * inverse_mixture[i])
            w0 += w
            y0 += w * payoffs[i]
        table[COVERAGE, k] += w0
        table[VALUE, k] += y0


@compiled(fastmath=True)
def add_moments(ratios: Array, inverse_mixture: Array, payoffs: Array, used: int, cut: Array, moments: Array) -> None:
    """One block's part of Σ_i w², Σ_i w² y and Σ_i w² y² with w = min(M, ω)/m, the rows of `moments`.  (3, K)"""
    for k in range(ratios.shape[0]):
        ww = wwy = wwyy = 0.0
        for i in range(used):
            w = min(cut[k], ratios[k, i] * inverse_mixture[i])
            w *= w
            ww += w
            w *= payoffs[i]
            wwy += w
            wwyy += w * payoffs[i]
        moments[0, k] += ww
        moments[1, k] += wwy
        moments[2, k] += wwyy


@compiled(fastmath=True)
def add_counted_sums(
    ratios: Array, inverse_mixture: Array, payoffs: Array, counts: Array, used: int, table: Array
) -> None:
    """One block's part of COVERAGE = Σ_i n_i min(M, ω)/m and VALUE = Σ_i min(M, ω) Σy_i / m."""
    for k in range(ratios.shape[0]):
        cut = table[CUT, k]
        coverage = value = 0.0
        for i in range(used):
            w = min(cut, ratios[k, i] * inverse_mixture[i])
            coverage += w * counts[i]
            value += w * payoffs[i]
        table[COVERAGE, k] += coverage
        table[VALUE, k] += value


@compiled(fastmath=True)
def add_counted_moments(
    ratios: Array,
    inverse_mixture: Array,
    payoffs: Array,
    counts: Array,
    squares: Array,
    used: int,
    cut: Array,
    moments: Array,
) -> None:
    """One block's part of Σ_i n w², Σ_i w² Σy and Σ_i w² Σy² with w = min(M, ω)/m, the rows of `moments`.  (3, K)"""
    for k in range(ratios.shape[0]):
        ww = wwy = wwyy = 0.0
        for i in range(used):
            w = min(cut[k], ratios[k, i] * inverse_mixture[i])
            w *= w
            ww += w * counts[i]
            wwy += w * payoffs[i]
            wwyy += w * squares[i]
        moments[0, k] += ww
        moments[1, k] += wwy
        moments[2, k] += wwyy


# Distributions of payoffs.


@compiled
def add_histogram(
    ratios: Array,
    inverse_mixture: Array,
    payoffs: Array,
    used: int,
    rows: Indices,
    cut: Array,
    weight: Array,
    sum_: Array,
) -> None:
    """One block's part of Σ_i min(M, ω)/m, and of the same times y, by bins of the payoff y; of some rows.  (n, BINS)

    Payoffs of 0 and 1 have a bin of their own.
    """
    bins = np.empty(used, np.int64)
    for i in range(used):
        bins[i] = payoff_bin(payoffs[i])
    n, sums = (
        rows.shape[0],
        np.empty((BINS, 8)),
    )  # of four rows side by side, so that additions need not wait for another
    for first in range(0, n, 4):
        k0, k1, k2, k3 = (
            rows[first],
            rows[min(first + 1, n - 1)],
            rows[min(first + 2, n - 1)],
            rows[min(first + 3, n - 1)],
        )
        c0, c1, c2, c3 = cut[k0], cut[k1], cut[k2], cut[k3]
        sums[:] = 0.0
        for i in range(used):
            inverse, y, b = inverse_mixture[i], payoffs[i], bins[i]
            w0, w1 = min(c0, ratios[k0, i] * inverse), min(c1, ratios[k1, i] * inverse)
            w2, w3 = min(c2, ratios[k2, i] * inverse), min(c3, ratios[k3, i] * inverse)
            sums[b, 0] += w0
            sums[b, 1] += w1
            sums[b, 2] += w2
            sums[b, 3] += w3
            sums[b, 4] += w0 * y
            sums[b, 5] += w1 * y
            sums[b, 6] += w2 * y
            sums[b, 7] += w3 * y
        for j in range(min(4, n - first)):
            for b in range(BINS):
                weight[first + j, b] += sums[b, j]
                sum_[first + j, b] += sums[b, 4 + j]


@compiled
def add_counted_histogram(
    ratios: Array,
    inverse_mixture: Array,
    payoffs: Array,
    counts: Array,
    squares: Array,
    used: int,
    rows: Indices,
    cut: Array,
    weight: Array,
    sum_: Array,
) -> None:
    """The same of columns known by how many samples they have, Σ y and Σ y².

    Of all distributions on [0, 1] with that mean m and variance v, the one that leaves most room for a larger mean has
    an atom at 1 and one at m - v/(1 - m); for payoffs of 0 and 1, and for equal ones, that is what was seen.
    """
    for i in range(used):
        mean = payoffs[i] / counts[i]
        room = max(1.0 - mean, 0.0)
        variance = min(max(squares[i] / counts[i] - mean * mean, 0.0), mean * room)
        if variance <= 1e-12 * room * room or room <= 0.0:
            at_one, low = 0.0, mean
        else:
            at_one = variance / (variance + room * room)
            low = max(mean - variance / room, 0.0)
        place = payoff_bin(low)
        for n in range(rows.shape[0]):
            w = min(cut[rows[n]], ratios[rows[n], i] * inverse_mixture[i]) * counts[i]
            weight[n, place] += w * (1.0 - at_one)
            sum_[n, place] += w * (1.0 - at_one) * low
            weight[n, BINS - 1] += w * at_one
            sum_[n, BINS - 1] += w * at_one


@compiled
def payoff_bin(payoff: float) -> int:
    """0 for 0 and less, the last one for 1 and more, else evenly spaced ones."""
    if payoff <= 0.0:
        return 0
    if payoff >= 1.0:
        return BINS - 1
    return 1 + int(payoff * (BINS - 2))
