"""Runs to track, and what both trackers must withstand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import randomist as rd

PARAMETERS = rd.Parameters(kp=rd.Real(0.1, 100, log=True), taps=rd.Integer(1, 12), mode=rd.Choice("a", "b|c"))


def pays(kp: float, taps: int, mode: str) -> float:
    if taps > 7:
        raise ValueError("stalled")
    return math.exp(-abs(math.log10(kp / 8)) - 0.1 * abs(taps - 4)) - (0.1 if mode == "a" else 0.0)


def tracked(callback: Any, rounds: int = 40, **settings: Any) -> rd.Run:
    return rd.optimize(pays, parameters=PARAMETERS, rounds=rounds, seed=1, callbacks=[callback], **settings)


def expected(run: rd.Run) -> dict[str, dict[int, float]]:
    """Every figure by round, from the run's arrays: trials of one process are numbered as they end."""
    rounds = [id_ + 1 for id_ in run.ids.tolist()]
    better = np.maximum if run.direction == "maximize" else np.minimum
    order = sorted([*rounds, *(id_ + 1 for id_ in run.failures)])
    failed = np.cumsum([number - 1 in run.failures for number in order])
    return {
        "payoff": dict(zip(rounds, run.payoffs.tolist(), strict=True)),
        "average_payoff": dict(zip(rounds, run.average_payoff.tolist(), strict=True)),
        "best_so_far": dict(zip(rounds, better.accumulate(run.payoffs).tolist(), strict=True)),
        "failures": dict(zip(order, failed.tolist(), strict=True)),
    }
