"""Estimates carried on: what samples since they were computed change without a pass over the history.

A play of j adds 1/d2(p_x || p_j) effective samples to every x (the harmonic bound), which is O(K); values wait for the
next pass. So an index that explores what is little known stops as soon as enough has been played of it.
"""

from __future__ import annotations

import math

import numpy as np

from randomist._compiled import compiled
from randomist._types import Array, Indices
from randomist.importance.passes.layout import LOG_HUGE, SMALL


@compiled
def carried(effective: Array, log_effective: Array, before: Array, now: Array, plays: Indices, term: float) -> Array:
    """η + what the harmonic bound has grown by since, at least T; log η; and the width sqrt(term / η).  (3, K)

    Samples that have been forgotten since make the bound smaller; η stays at least T.
    """
    K = effective.shape[0]
    out = np.empty((3, K))
    for k in range(K):
        eta = max(effective[k] + (now[k] - before[k]), float(plays[k]))
        if eta > SMALL:
            log_eta = math.log(eta)
        else:
            eta, log_eta = effective[k], log_effective[k]
        out[0, k], out[1, k] = eta, log_eta
        if log_eta == -math.inf:
            out[2, k] = math.inf
        else:
            out[2, k] = math.exp(min(0.5 * (math.log(term) - log_eta), LOG_HUGE))
    return out
