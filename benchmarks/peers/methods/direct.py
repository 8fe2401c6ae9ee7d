"""Two baselines without a model: uniform points for ever (the floor), and a few points of which one is then played."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.search import ABREAST, Play, Search, commit, play_all, reevaluate


def random_search(start: Array, start_payoff: float, rng: np.random.Generator) -> Search:
    """A uniform point every episode; the one with the best single return is recommended, lucky or not."""
    best, best_payoff = start, start_payoff
    while True:
        points = rng.uniform(size=(ABREAST, start.size))
        for k, point in enumerate(points):
            payoff = yield Play(point, best, points[k:])
            if payoff > best_payoff:
                best, best_payoff = point, payoff


def explore_then_commit(
    start: Array, start_payoff: float, rng: np.random.Generator, points: int = 10, keep: int = 5, again: int = 5
) -> Search:
    """The start and points - 1 uniform ones, the best `keep` played `again` times more, the best from then on."""
    others = rng.uniform(size=(points - 1, start.size))
    payoffs = yield from play_all(others, start)
    tried = np.vstack([start, others])
    chosen = yield from reevaluate(tried, np.append(start_payoff, payoffs), keep, again)
    yield from commit(chosen)
