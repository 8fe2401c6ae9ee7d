"""Perturbed estimates against each other: the densities of MCMC-RANDOMIST (Metelli et al. 2021, App. F.2).

The perturbed estimate of a decision is Y = c + B/η with B ~ Binomial(n, 1/2), n = ⌈a η⌉ and c = J̌ + b. It is described
here by (c, log η, n); log η = -inf means that nothing is known, and Y = +inf. g and G are its mass and distribution
functions.

- `log_at_most`: log P(Y' <= Y), the one-step density g(x | x').
- `log_product` and `log_direct_density`: log of Π_j G_j(y) and of g†(x) = Σ_i g(y_i) Π_j G_j(y_i), by the definition.
- `tabulate` and `log_tabulated_density`: the same with the product, one function of y for all candidates, evaluated
  once on a grid and interpolated. A candidate with few support points is still done exactly.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.importance.coins import Coins, bounds, log_cdf, log_mass
from randomist.importance.passes.layout import LOG_HUGE

Perturbed: TypeAlias = tuple[float, float, int]  # c, log η, n
Rivals: TypeAlias = tuple[Array, Array, Indices, Array]  # the same of the distinct played decisions, and their plays
Grid: TypeAlias = tuple[float, float, Array, Indices]  # first y, cell width, values at nodes; rivals that are not in it

CELLS = 4096  # of the grid
FEW = 2**16  # evaluations of G that are cheaper than a table, and exact
COARSE = 16  # a decision with no more coins than this takes steps too large and too far apart for a grid
ROUNDING = 1e-13  # of η, which comes as exp(log η): whole numbers must stay whole
NEGLIGIBLE = 45.0  # nats below the largest term of a sum


@compiled
def flips_of(log_effective: float, scale: float) -> int:
    """n = ⌈a η⌉; at least one coin for any a > 0."""
    if scale == 0.0 or log_effective == -math.inf:
        return 0
    return max(1, math.ceil(scale * math.exp(min(log_effective, LOG_HUGE)) * (1.0 - ROUNDING)))


@compiled
def below(log_effective_j: float, distance: float) -> float:
    """η_j · distance, where a product too small for float64 keeps its sign: floor() must see it."""
    product = math.exp(log_effective_j) * distance
    if product == 0.0 and distance < 0.0:
        return -5e-324
    return product


@compiled
def log_at_most(coins: Coins, theirs: Perturbed, ours: Perturbed) -> float:
    """log P(Y_j <= Y) = log Σ_i g(i) G_j(⌊(η_j/η) i + η_j (c - c_j)⌋)."""
    center_j, log_effective_j, flips_j = theirs
    center, log_effective, flips = ours
    if log_effective == -math.inf:
        return 0.0
    if log_effective_j == -math.inf:
        return -math.inf
    ratio = math.exp(min(log_effective_j - log_effective, LOG_HUGE))
    shift = below(log_effective_j, center - center_j)
    largest, total = -math.inf, 0.0
    for i in range(flips, -1, -1):
        k = np.floor(ratio * i * (1.0 + ROUNDING) + shift)
        if k < 0:
            break  # G_j is 0 from here on down
        term = log_mass(coins[0], flips, i) + log_cdf(coins, flips_j, k)
        if term > largest:
            total = total * math.exp(largest - term) + 1.0
            largest = term
        elif term > largest - NEGLIGIBLE:
            total += math.exp(term - largest)
        elif 2 * i < flips:
            break  # both factors fall from here on
    return largest + math.log(total) if total > 0.0 else -math.inf


@compiled
def log_both_ways(coins: Coins, here: Perturbed, there: Perturbed) -> tuple[float, float]:
    """log g(there | here) and log g(here | there), the one-step densities of a move and of the move back."""
    return log_at_most(coins, here, there), log_at_most(coins, there, here)


@compiled
def log_product(coins: Coins, y: float, rivals: Rivals) -> float:
    """log Π_j G_j(y)^T_j over the distinct played decisions."""
    centers, log_effectives, flips, plays = rivals
    total = 0.0
    for j in range(centers.shape[0]):
        k = np.floor(below(log_effectives[j], y - centers[j]))
        total += plays[j] * log_cdf(coins, flips[j], k)
        if total == -math.inf:
            break
    return total


@compiled
def log_direct_density(coins: Coins, ours: Perturbed, rivals: Rivals) -> float:
    """log g†(x) by its definition: every support point of x against every played decision."""
    center, log_effective, flips_x = ours
    centers, log_effectives, flips, plays = rivals
    if log_effective == -math.inf:
        return 0.0
    _, table, offsets, first_k = coins
    products, lowest = np.zeros(flips_x + 1), 0  # log Π_j G_j(y_i), for i from `lowest` up; 0 below
    for j in range(centers.shape[0]):
        n = flips[j]
        first, last = bounds(coins, n)
        ratio = math.exp(min(log_effectives[j] - log_effective, LOG_HUGE))
        shift = below(log_effectives[j], center - centers[j])
        for i in range(flips_x, lowest - 1, -1):
            k = np.floor(ratio * i * (1.0 + ROUNDING) + shift)
            if k >= last:
                continue
            if k < 0:
                lowest = i + 1
                break
            if k >= first and n < first_k.shape[0]:
                products[i] += plays[j] * table[offsets[n] + int(k) - first]
            else:
                products[i] += plays[j] * log_cdf(coins, n, k)
    largest, total = -math.inf, 0.0
    for i in range(flips_x, lowest - 1, -1):
        term = log_mass(coins[0], flips_x, i) + products[i]
        if term > largest:
            total = total * math.exp(largest - term) + 1.0
            largest = term
        else:
            total += math.exp(term - largest)
    return largest + math.log(total) if total > 0.0 else -math.inf


@compiled
def tabulate(coins: Coins, rivals: Rivals) -> Grid:
    """log Π_j G_j on a grid, over the decisions with more than COARSE coins.

    Each G_j is a step function: what it gains at a step is added to the first node at or above it, and summing these
    gains from the top, where the product is 1, gives every node its exact value at the cost of one operation per step.
    The grid ends where some G_j leaves its table; there it is e^-200.
    """
    _, table, offsets, first_k = coins
    centers, log_effectives, flips, plays = rivals
    low, high = -math.inf, -math.inf
    for j in range(centers.shape[0]):
        if flips[j] > COARSE:
            width, (first, last) = math.exp(-log_effectives[j]), bounds(coins, flips[j])
            low = max(low, centers[j] + first * width)
            high = max(high, centers[j] + last * width)
    step = max(high - low, 1e-9) / CELLS
    values = np.zeros(CELLS + 1)
    for j in range(centers.shape[0]):
        n = flips[j]
        if n <= COARSE:
            continue
        width, (first, last) = math.exp(-log_effectives[j]) / step, bounds(coins, n)
        start, here = (centers[j] - low) / step, 0.0
        tabulated = n < first_k.shape[0]
        row = offsets[n] - first if tabulated else 0
        for k in range(last, first, -1):
            position = start + k * width
            if position <= 0.0:
                break
            node = int(position) + 1  # the first node above the step
            below_it = table[row + k - 1] if tabulated else log_cdf(coins, n, k - 1)
            values[min(node, CELLS)] += plays[j] * (here - below_it)
            here = below_it
    above = 0.0
    for q in range(CELLS, -1, -1):
        gain = values[q]
        values[q] = -above
        above += gain
    return low, step, values, np.flatnonzero(flips <= COARSE)


@compiled
def log_tabulated_product(coins: Coins, y: float, rivals: Rivals, grid: Grid) -> float:
    """log Π_j G_j(y): interpolated for the finer decisions, by definition for the coarse ones and below the grid."""
    centers, log_effectives, flips, plays = rivals
    low, step, values, coarse = grid
    if y < low:
        return log_product(coins, y, rivals)
    position, total = (y - low) / step, 0.0
    if position < CELLS:
        q = int(position)
        total = values[q] + (position - q) * (values[q + 1] - values[q])
    for j in coarse:
        k = np.floor(below(log_effectives[j], y - centers[j]))
        total += plays[j] * log_cdf(coins, flips[j], k)
    return total


@compiled
def log_tabulated_density(coins: Coins, ours: Perturbed, rivals: Rivals, grid: Grid) -> float:
    """log g†(x) with the tabulated product; exactly, where x has so few support points that this is cheaper."""
    center, log_effective, flips_x = ours
    centers = rivals[0]
    if (flips_x + 1) * centers.shape[0] <= FEW:
        return log_direct_density(coins, ours, rivals)
    width = math.exp(-log_effective)
    largest, total = -math.inf, 0.0
    lowest = np.max(centers)  # below it some G_j is 0
    for i in range(flips_x, -1, -1):
        y = center + i * width
        if y < lowest:
            break
        product = log_tabulated_product(coins, y, rivals, grid)
        term = log_mass(coins[0], flips_x, i) + product
        if term > largest:
            total = total * math.exp(largest - term) + 1.0
            largest = term
        elif term > largest - NEGLIGIBLE:
            total += math.exp(term - largest)
        elif 2 * i < flips_x:
            break
    return largest + math.log(total) if total > 0.0 else -math.inf
