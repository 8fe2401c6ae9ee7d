"""Every candidate's value from a log: estimates, finite-sample intervals, and which candidate is best.

The error 1 - level is shared by all that is said: by the two sides of K intervals, and where comparisons are asked for,
half of it by those. So everything holds together with probability `level`. The bets behind the bounds are in
`importance.intervals`: constant stakes where rows have different means (balanced weights of several loggers), stakes
that follow the rows where they have the same mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import closing
from statistics import NormalDist
from typing import Any

import numpy as np

from randomist import _checks, importance
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.importance.estimators import find_estimator
from randomist.importance.intervals import truncated_interval
from randomist.logs import bounds as known
from randomist.logs.engine import find_engine
from randomist.logs.evidence import Evidence
from randomist.logs.log import Log
from randomist.logs.pairs import ordered_pairs, shared_by
from randomist.logs.propensities import FACTOR
from randomist.logs.report import Evaluation
from randomist.logs.sums import Moments
from randomist.logs.trouble import Trouble


def evaluate(
    log: Log,
    *,
    level: float = 0.95,
    compare: str | None = None,
    baseline: str | None = None,
    cluster: str | None = None,
    by: str | None = None,
    threshold: float | None = None,
    weight_bounds: float | Mapping[str, float] | None = None,
    distance_bounds: float | Mapping[tuple[str, str], float] | None = None,
    log_divergences: Mapping[str, Mapping[str, float]] | None = None,
    confidence: float = 2.0,
    method: str = "betting",
    anytime: bool = False,
    propensity_factor: float | None = None,
    engine: str = "threads",
    jobs: int | None = None,
) -> Evaluation:
    """Estimates and simultaneous confidence intervals for every candidate of a log.

    Parameters
    ----------
    log
        What was logged.
    level
        The probability with which all intervals, comparisons and the verdict hold together.
    compare
        None: candidates are compared by their intervals only. "leader": the leader with each of the others, on paired
        rows. "pairs": all pairs, two-sided, `differences()`. Comparisons take half of the error.
    baseline
        A candidate that all others are compared with, two-sided: the status quo.
    cluster
        A column that names clusters of rows, such as users, that are independent of each other while their rows are
        not. Intervals and comparisons are then by clusters.
    by
        A column of segments. Each of them gets an evaluation of its own, in `segments`; the error is shared by all of
        them and the whole.
    threshold
        Where weights are cut in the truncated estimates, sqrt(n) by default (Ionides 2008); it must not depend on the
        data. Intervals by betting do not cut.
    weight_bounds
        What no weight can ever exceed, one number or one per candidate, where you know it: a logger that gives each
        action at least probability q has 1/q. A bound says that the loggers could have done all that the candidate
        does. Candidates that logged a share s of the rows have 1/s by themselves with balanced weights. Known bounds
        make intervals and comparisons tighter.
    distance_bounds
        What the weights of two candidates can never differ by, one number or one per pair `(a, b)`. They decide between
        similar candidates.
    log_divergences
        D2(candidate || logger) in nats, by candidate and logger, where known; then the threshold is the paper's, and
        the intervals of its concentration lemma are reported too.
    confidence
        The paper's α in threshold and lemma.
    method
        Which intervals are reported as `low` and `high`: "betting", or those of the "lemma".
    anytime
        Intervals that hold at every row at once: rows may have ended whenever one liked, and more may come. Weights
        are those of the policy that acted. Comparisons, clusters and bounds cannot be used with it.
    propensity_factor
        By which factor propensities, or the loggers' likelihoods, may be wrong in any row: intervals and comparisons
        hold for all that this allows. Bounds on weights are not used then, because weights need not average 1. By
        default 1, and 1.2 if propensities were fitted.
    engine, jobs
        Who sums the rows: "threads" of this process, or the workers of a "ray" or "dask" cluster, and how many; by
        default as many as there are processors. The result is the same to the bit.
    """
    _checks.probability(level, "level")
    _checks.choice(method, ("betting", "lemma"), "method")
    if compare is not None:
        _checks.choice(compare, ("leader", "pairs"), "compare")
    if threshold is not None:
        _checks.number(threshold, "threshold", above=0)
    rows, names = len(log), log.candidates
    if baseline is not None and baseline not in names:
        raise ParameterError(f"baseline must be one of the candidates {', '.join(names)}, got {baseline!r}")
    if anytime:
        from randomist.logs.anytime import evaluate_anytime

        if log.fitted is not None:
            raise ParameterError("anytime=True needs propensities that were logged: a fitted one has seen later rows")
        if any(given is not None for given in (compare, baseline, cluster, by, weight_bounds, distance_bounds)):
            raise ParameterError(
                "anytime=True does not take compare, baseline, cluster, by, weight_bounds or distance_bounds: its "
                "stakes do not depend on anything but the rows so far"
            )
        plain = evaluate(log, level=level, threshold=threshold, engine=engine, jobs=jobs)
        return evaluate_anytime(log, plain, engine, jobs)
    if propensity_factor is None:
        propensity_factor = 1.0 if log.fitted is None else FACTOR
    _checks.number(propensity_factor, "propensity_factor", least=1.0)
    if by is not None:
        from randomist.logs.segments import evaluate_segments

        settings: dict[str, Any] = {"compare": compare, "baseline": baseline, "cluster": cluster}
        settings |= {"threshold": threshold, "weight_bounds": weight_bounds, "distance_bounds": distance_bounds}
        settings |= {"propensity_factor": propensity_factor}
        settings |= {"log_divergences": log_divergences, "confidence": confidence, "method": method}
        settings |= {"engine": engine, "jobs": jobs}
        return evaluate_segments(log, by, level, settings)
    log_effective = known.log_effective_samples(log, log_divergences)
    if log_effective is None and method == "lemma":
        raise ParameterError("method='lemma' needs log_divergences: d2 is not known from a log")
    if log_effective is not None and threshold is not None:
        raise ParameterError("the lemma holds for the paper's threshold: give threshold or log_divergences, not both")
    thresholds = np.full(len(names), math.sqrt(rows) if threshold is None else threshold)
    if log_effective is not None:
        log_cut = importance.log_threshold(log_effective, rows, confidence)
        thresholds = np.exp(np.minimum(log_cut, 700.0))

    error = 1.0 - level
    home = names.index(baseline) if baseline is not None else None
    shares = shared_by(len(names), compare, home)
    side = error / ((4 if shares else 2) * len(names))
    sure = known.weight_bounds(log, weight_bounds)
    with closing(find_engine(engine, jobs)) as workers:
        evidence = Evidence(log, side, sure, thresholds, cluster, propensity_factor, workers)
        moments = evidence.moments
        known.check_weight_bounds(log, weight_bounds, moments)
        cut = np.array([m.truncated(rows) for m in moments])  # (1/n) Σ min(M, ω) y
        coverage = np.array([m.coverage(rows) for m in moments])  # (1/n) Σ min(M, ω)
        truncated = find_estimator("paper").combine(cut, coverage)
        low, high, contradictions = _settled(names, *evidence.intervals())
        lemma = None
        if log_effective is not None:
            lemma = truncated_interval(truncated, log_effective, rows, confidence, side)
            if method == "lemma":
                low, high = lemma
        leader = int(np.lexsort((truncated, low))[-1])
        apart = low[:, None] - high[None, :]  # J_a - J_b is at least as much  (K, K)
        if shares:
            pairs = list(ordered_pairs(len(names), leader, compare, home))
            distances = known.distance_bounds(log, distance_bounds, evidence.early)
            distances[:] = distances if propensity_factor == 1.0 else math.inf
            apart = np.maximum(apart, evidence.leads(pairs, error / (2 * shares), distances))
    np.fill_diagonal(apart, 0.0)
    found = evidence.warnings(coverage)
    if log.fitted is not None and log.fitted.off_by > propensity_factor:
        words = f"{log.fitted}: raise propensity_factor above {propensity_factor:g}, or take another propensity_model"
        found.append(Trouble("calibration", log.fitted.off_by, words))
    mis = np.array([m.importance(rows) for m in moments])
    quantile = -NormalDist().inv_cdf(side)
    half = quantile * np.array([m.standard_error(rows) for m in moments])
    ratio = _self_normalised(moments)
    ratio_half = quantile * np.array([m.self_normalised_error() for m in moments])
    robust = evidence.robust.found(quantile, log.payoff_range)

    start, span = log.payoff_range[0], log.payoff_range[1] - log.payoff_range[0]
    return Evaluation(
        candidates=names,
        rows=rows,
        rows_skipped=log.rows_read - rows,
        problems=log.problems,
        loggers=log.loggers,
        weights=log.weights,
        adaptive=log.adaptive,
        level=level,
        payoff_range=log.payoff_range,
        cluster=cluster,
        clusters=evidence.count if cluster is not None else None,
        mis=start + span * mis,
        tmis=start + span * truncated,
        optimistic=start + span * find_estimator("optimistic").combine(cut, coverage),
        self_normalised=start + span * ratio,
        self_normalised_low=start + span * np.clip(ratio - ratio_half, 0.0, 1.0),
        self_normalised_high=start + span * np.clip(ratio + ratio_half, 0.0, 1.0),
        doubly_robust=robust[0],
        doubly_robust_low=robust[1],
        doubly_robust_high=robust[2],
        direct=robust[3],
        effective_samples=np.array([m.effective_samples() for m in moments]),
        missing_mass=1.0 - coverage,
        largest_weight=np.exp(np.minimum([m.largest_log_weight for m in moments], 709.0)),
        weight_bound=evidence.bounds,
        threshold=thresholds,
        low=start + span * low,
        high=start + span * high,
        naive_low=start + span * (mis - half),
        naive_high=start + span * (mis + half),
        lemma_low=None if lemma is None else start + span * lemma[0],
        lemma_high=None if lemma is None else start + span * lemma[1],
        compared=compare,
        baseline=baseline,
        leader=names[leader],
        leads=span * apart[leader],
        at_least=span * apart,
        contenders=tuple(name for k, name in enumerate(names) if not (apart[:, k] > 0.0).any()),
        warnings=(*found, *contradictions),
        propensity_factor=propensity_factor,
        fitted=None if log.fitted is None else str(log.fitted),
    )


def _settled(names: tuple[str, ...], low: Array, high: Array) -> tuple[Array, Array, list[Trouble]]:
    """Intervals; where bounds contradict each other, the whole range, and a warning.

    That has a probability of at most the error, unless something is wrong: then nothing is known.
    """
    empty, found = low > high, []
    for name in np.array(names)[empty]:
        words = f"the bounds of {name} contradict each other: its interval is the whole range; check likelihoods"
        found.append(Trouble("contradiction", 1.0, words))
    return np.where(empty, 0.0, low), np.where(empty, 1.0, high), found


def _self_normalised(moments: list[Moments]) -> Array:
    """Σ ω y / Σ ω, without a threshold; NaN where every weight is 0.  (K,)"""
    gains, totals = (np.array(sums) for sums in zip(*(m.relative_sums() for m in moments), strict=True))
    return np.where(totals > 0, find_estimator("self-normalised").combine(gains, totals), np.nan)
