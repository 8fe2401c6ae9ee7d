"""CMA-ES by the package `cmaes`: N. Hansen, The CMA Evolution Strategy: A Tutorial, 2016.

The mean of the search distribution is recommended, and played from then on if the package says that it has converged.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.search import Search, commit, play_all


def cma_es(
    start: Array,
    start_payoff: float,
    rng: np.random.Generator,
    sigma: float = 0.2,
    populations: int = 1,
    population: int | None = None,
) -> Search:
    """`populations` multiplies the package's default population size, 4 + ⌊3 log d⌋; `population` replaces it."""
    from cmaes import CMA

    size = population or populations * (4 + int(3 * np.log(start.size)))
    bounds = np.tile([0.0, 1.0], (start.size, 1))
    seed = int(rng.integers(2**31))
    optimizer = CMA(mean=start, sigma=sigma, bounds=bounds, seed=seed, population_size=size)
    while not optimizer.should_stop():
        points = np.array([optimizer.ask() for _ in range(size)])
        payoffs = yield from play_all(points, optimizer.mean)
        optimizer.tell([(point, -payoff) for point, payoff in zip(points, payoffs.tolist(), strict=True)])
    yield from commit(optimizer.mean)
