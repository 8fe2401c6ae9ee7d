"""Optuna's TPE and GP samplers (T. Akiba et al., KDD 2019), then the best ten again, and the best of them from then on.

A sampler alone goes on exploring, and its best single return is a lucky one: without the re-evaluation it would look
worse than it is. Every episode counts, those of the re-evaluation too. In batches, the sampler is asked for as many
points before it is told any of their returns.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.peers.problems import Array
from benchmarks.peers.search import Search, commit, play_all, reevaluate


def tpe(start: Array, start_payoff: float, rng: np.random.Generator, **settings: int) -> Search:
    """The tree-structured Parzen estimator, over all parameters together."""
    from optuna.samplers import TPESampler

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # multivariate is experimental in some versions
        sampler = TPESampler(seed=int(rng.integers(2**31)), multivariate=True)
    return _sampled(sampler, start, start_payoff, **settings)


def gp(start: Array, start_payoff: float, rng: np.random.Generator, **settings: int) -> Search:
    """A Gaussian process with noise, and expected improvement."""
    import torch
    from optuna.samplers import GPSampler

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sampler is experimental in some versions
        sampler = GPSampler(seed=int(rng.integers(2**31)), deterministic_objective=False)
    return _sampled(sampler, start, start_payoff, **settings)


def _sampled(
    sampler: Any,
    start: Array,
    start_payoff: float,
    explore: int = 40,
    keep: int = 10,
    again: int = 3,
    batch: int = 1,
) -> Search:
    """The sampler for `explore` episodes, then the best `keep` of its points `again` times each, then the best."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    names = [f"x{i}" for i in range(start.size)]
    box: dict[str, Any] = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}
    begun = dict(zip(names, start.tolist(), strict=True))
    study.add_trial(optuna.trial.create_trial(params=begun, distributions=box, value=start_payoff))
    points, payoffs = [start], [start_payoff]
    while len(points) < explore:
        trials = [study.ask(box) for _ in range(batch)]
        asked = np.array([[trial.params[name] for name in names] for trial in trials])  # (batch, d)
        told = (yield from play_all(asked, points[int(np.argmax(payoffs))])).tolist()
        for trial, payoff in zip(trials, told, strict=True):
            study.tell(trial, payoff)
        points += list(asked)
        payoffs += told
    chosen = yield from reevaluate(np.array(points), np.array(payoffs), keep, again)
    yield from commit(chosen)
