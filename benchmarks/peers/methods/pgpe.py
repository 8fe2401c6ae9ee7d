"""PGPE with ClipUp by EvoTorch: F. Sehnke et al., Parameter-exploring Policy Gradients, 2010; N. Toklu, P. Liskowski
and R. Srivastava, ClipUp: A Simple and Powerful Optimizer for Distribution-based Policy Evolution, PPSN 2020.

ClipUp divides the gradient by its norm. Where all returns of a population are equal there is no gradient to follow (the
ranks of ties are those of their order): that population is dropped, and so is one that would move the center to NaN.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.search import Search, play_all


def pgpe_clipup(
    start: Array,
    start_payoff: float,
    rng: np.random.Generator,
    std: float = 0.1,
    step: float = 0.1,
    std_step: float = 0.1,
    population: int = 8,
) -> Search:
    """Symmetric samples, centered ranks, ClipUp's defaults: momentum 0.9, and a largest speed of twice the step."""
    import torch
    from evotorch.algorithms.functional import pgpe, pgpe_ask, pgpe_tell

    torch.set_num_threads(1)
    state = pgpe(
        center_init=torch.as_tensor(start, dtype=torch.float64),
        center_learning_rate=step,
        stdev_learning_rate=std_step,
        stdev_init=std,
        objective_sense="max",
    )
    center = start
    while True:
        torch.manual_seed(int(rng.integers(2**31)))  # EvoTorch draws from torch's own generator
        values = pgpe_ask(state, popsize=population)
        payoffs = yield from play_all(values.numpy(), center)
        if np.ptp(payoffs) == 0:
            continue
        told = pgpe_tell(state, values, torch.as_tensor(payoffs))
        optimizer = told.optimizer_state
        if not (torch.isfinite(optimizer.center).all() and torch.isfinite(told.stdev).all()):
            continue
        state = told._replace(optimizer_state=optimizer._replace(center=optimizer.center.clamp(0.0, 1.0)))
        center = state.optimizer_state.center.numpy().copy()
