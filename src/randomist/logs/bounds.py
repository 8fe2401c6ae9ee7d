"""What is known about weights before the rows are looked at: bounds, and the paper's effective samples."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from randomist import importance
from randomist._types import Array
from randomist.errors import LogError, ParameterError
from randomist.logs.log import Log
from randomist.logs.sums import Moments


def weight_bounds(log: Log, given: float | Mapping[str, float] | None) -> Array:
    """What no weight can exceed, by candidate; inf where nothing is known.  (K,)"""
    stated = _stated(log, given)
    if log.weights == "balance":  # Φ >= (n_k / n) p_k
        own = np.array([len(log) / log.loggers[name] if name in log.loggers else math.inf for name in log.candidates])
        return np.asarray(np.minimum(stated, own))
    return stated


def early_bounds(log: Log) -> Array:
    """What weights do not exceed in rows that are not unusual; inf where nothing is known.  (K,)"""
    return np.array([log.early_bounds.get(name, math.inf) for name in log.candidates])


def check_weight_bounds(log: Log, given: float | Mapping[str, float] | None, moments: list[Moments]) -> None:
    """Refuse what the log contradicts."""
    for name, bound, moment in zip(log.candidates, _stated(log, given), moments, strict=True):
        if moment.largest_log_weight > math.log(bound) + 1e-6:
            largest = math.exp(min(moment.largest_log_weight, 709.0))
            raise LogError(
                f"a weight of {name!r} is {largest:.6g}, above its weight_bounds {bound:.6g}; raise the bound"
            )


def _stated(log: Log, given: float | Mapping[str, float] | None) -> Array:
    known = np.array([log.weight_bounds.get(name, math.inf) for name in log.candidates])
    if given is None:
        return known
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - set(log.candidates))
        if unknown:
            raise ParameterError(
                f"weight_bounds for {', '.join(unknown)}, which are not among the candidates {log.candidates}"
            )
        stated = np.array([given.get(name, math.inf) for name in log.candidates], dtype=np.float64)
    else:
        stated = np.full(len(log.candidates), float(given))
    if not (stated >= 1.0).all():
        raise ParameterError(f"weight_bounds must be >= 1, because weights average 1, got {given}")
    return np.asarray(np.minimum(stated, known))


def distance_bounds(log: Log, given: float | Mapping[tuple[str, str], float] | None, early: bool) -> Array:
    """What |ω_a - ω_b| cannot exceed, for every pair of candidates; inf where nothing is known.  (K, K)

    `early` asks for what follows from the first rows, too.
    """
    K = len(log.candidates)
    place = {name: k for k, name in enumerate(log.candidates)}
    found = np.full((K, K), math.inf)
    for (a, b), bound in log.early_distances.items():
        if early and a in place and b in place:
            found[place[a], place[b]] = found[place[b], place[a]] = bound
    if given is None:
        return found
    if not isinstance(given, Mapping):
        if not given >= 0:
            raise ParameterError(f"distance_bounds must be >= 0, got {given}")
        return np.asarray(np.minimum(found, float(given)))
    for pair, bound in given.items():
        if not (isinstance(pair, tuple) and len(pair) == 2 and set(pair) <= set(place)) or not bound >= 0:
            raise ParameterError(
                f"distance_bounds must give a number >= 0 for a pair of the candidates {log.candidates}, got "
                f"{pair!r}: {bound}"
            )
        i, j = place[pair[0]], place[pair[1]]
        found[i, j] = found[j, i] = min(found[i, j], bound)
    return found


def log_effective_samples(log: Log, given: Mapping[str, Mapping[str, float]] | None) -> Array | None:
    """log η of every candidate from known divergences (App. F.1).  (K,)"""
    if given is None:
        return None
    if log.weights != "balance":
        raise ParameterError("log_divergences are of use with balanced weights only, and this log's weights are 'own'")
    table = np.empty((len(log.candidates), len(log.loggers)))
    for k, name in enumerate(log.candidates):
        for j, logger in enumerate(log.loggers):
            value = given.get(name, {}).get(logger, 0.0 if name == logger else None)
            if value is None or not value >= 0.0:
                raise ParameterError(f"log_divergences[{name!r}][{logger!r}] must be >= 0 (inf allowed), got {value}")
            table[k, j] = value
    return np.asarray(importance.log_effective_samples(table, np.array(list(log.loggers.values()))))
