"""Augmented random search: H. Mania, A. Guy and B. Recht, Simple random search of static linear policies is competitive
for reinforcement learning, NeurIPS 2018, Algorithm 1, V1-t.

Differences from the paper: the search is in the unit box and stays there; observations are not whitened (V2), because a
problem shows returns only, and the box scales the parameters already; no step is made where all returns are equal.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.search import Search, play_all


def ars(
    start: Array,
    start_payoff: float,
    rng: np.random.Generator,
    step: float = 0.1,
    noise: float = 0.1,
    directions: int = 4,
    top: int = 2,
) -> Search:
    """Steps along the best `top` of `directions` random directions, each tried both ways."""
    center = start
    while True:
        deltas = rng.standard_normal((directions, start.size))
        payoffs = yield from play_all(np.vstack([center + noise * deltas, center - noise * deltas]), center)
        up, down = payoffs[:directions], payoffs[directions:]
        used = np.argsort(-np.maximum(up, down), kind="stable")[:top]  # line 6
        spread = np.concatenate([up[used], down[used]]).std()  # σ_R
        if spread > 0:
            center = np.clip(center + step / (top * spread) * ((up - down)[used] @ deltas[used]), 0.0, 1.0)  # line 7
