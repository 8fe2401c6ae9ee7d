"""Every candidate's value from a log: estimates, finite-sample intervals, and which candidate is best.

The error 1 - level is shared: half of it goes to the intervals (two sides of K candidates), half to the comparisons of
the leader with each of the others. So all intervals and the verdict hold together with probability `level`. The betting
bounds are in `importance.intervals`; J is in [L(ω y), 1 - L(ω (1-y))], where L is a lower bound on a mean: what the log
does not cover lowers the first and raises the second by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from randomist import _checks, importance
from randomist._types import Array
from randomist.errors import LogError, ParameterError
from randomist.importance.estimators import find_estimator
from randomist.importance.growth import Growth
from randomist.importance.intervals import Bets, ConstantBets, baselines, difference_baselines, truncated_interval
from randomist.logs.log import Log
from randomist.logs.report import Evaluation
from randomist.logs.sums import Moments, weights

_FALSE_ALARM = 1e-3  # of the warning that weights average more than 1, over all candidates
_POOR_COVERAGE = 0.5  # of missing mass


@dataclass(eq=False)
class _Candidate:
    """What is summed for one candidate in the main pass."""

    moments: Moments
    bets: Bets  # on ω (y - c) and on ω ((1 - y) - c), for the two ends of its interval
    check: Bets  # on ω, whose mean is at most 1 if the likelihoods are true
    gain: Growth
    loss: Growth
    total: Growth

    @classmethod
    def of(cls, moments: Moments, bets: Bets, check: Bets) -> _Candidate:
        return cls(moments, bets, check, bets.growth(), bets.growth(), check.growth())

    def add(self, log_likelihood: Array, log_density: Array, payoffs: Array) -> None:
        log_weight, weight = weights(log_likelihood, log_density)
        self.moments.add(log_weight, payoffs)
        self.gain.add([weight * (payoffs - c) for c in self.bets.offsets])
        self.loss.add([weight * ((1.0 - payoffs) - c) for c in self.bets.offsets])
        self.total.add([weight])

    def low(self) -> float:
        """The lower end of the interval, on the [0, 1] scale."""
        return self.bets.lower_bound(self.gain.total(), 0.0, 1.0)

    def high(self) -> float:
        return 1.0 - self.bets.lower_bound(self.loss.total(), 0.0, 1.0)

    def heavy(self) -> bool:
        """Whether weights average more than true likelihoods allow."""
        return self.check.log_evidence(self.total.total(), 1.0) >= -math.log(self.check.error)


def evaluate(
    log: Log,
    *,
    level: float = 0.95,
    threshold: float | None = None,
    weight_bounds: float | Mapping[str, float] | None = None,
    log_divergences: Mapping[str, Mapping[str, float]] | None = None,
    confidence: float = 2.0,
    method: str = "betting",
) -> Evaluation:
    """Estimates and simultaneous confidence intervals for every candidate of a log.

    Parameters
    ----------
    log
        What was logged.
    level
        The probability with which all intervals and the verdict hold together.
    threshold
        Where weights are cut in the truncated estimates, sqrt(n) by default (Ionides 2008); it must not depend on the
        data. Intervals by betting do not cut.
    weight_bounds
        What no weight can ever exceed, one number or one per candidate, where you know it: a logger that gives each
        action at least probability q has 1/q. A bound says that the loggers could have done all that the candidate
        does. Candidates that logged a share s of the rows have 1/s by themselves with balanced weights. Known bounds
        make intervals and comparisons tighter.
    log_divergences
        D2(candidate || logger) in nats, by candidate and logger, where known; then the threshold is the paper's, and
        the intervals of its concentration lemma are reported too.
    confidence
        The paper's α in threshold and lemma.
    method
        Which intervals are reported as `low` and `high`: "betting", or those of the "lemma".
    """
    _checks.probability(level, "level")
    _checks.choice(method, ("betting", "lemma"), "method")
    if threshold is not None:
        _checks.number(threshold, "threshold", above=0)
    rows, names = len(log), log.candidates
    bounds = _bounds(log, weight_bounds)
    log_effective = _log_effective(log, log_divergences)
    if log_effective is None and method == "lemma":
        raise ParameterError("method='lemma' needs log_divergences: d2 is not known from a log")
    if log_effective is not None and threshold is not None:
        raise ParameterError("the lemma holds for the paper's threshold: give threshold or log_divergences, not both")
    thresholds = np.full(len(names), math.sqrt(rows) if threshold is None else threshold)
    if log_effective is not None:
        log_cut = importance.log_threshold(log_effective, rows, confidence)
        thresholds = np.exp(np.minimum(log_cut, 700.0))

    error = 1.0 - level
    pairs = len(names) * (len(names) - 1)  # ordered
    side = error / (4 * len(names)) if pairs else error / 2
    candidates = _sum(log, side, bounds, thresholds)

    moments = [candidate.moments for candidate in candidates]
    _check_bounds(log, weight_bounds, moments)
    cut = np.array([m.truncated(rows) for m in moments])  # (1/n) Σ min(M, ω) y
    coverage = np.array([m.coverage(rows) for m in moments])  # (1/n) Σ min(M, ω)
    truncated = find_estimator("paper").combine(cut, coverage)
    mis = np.array([m.importance(rows) for m in moments])
    low, high = np.array([c.low() for c in candidates]), np.array([c.high() for c in candidates])
    warnings = _warnings(log, candidates, coverage)
    empty = low > high  # has a probability of at most `error`, unless something is wrong: then nothing is known
    for name in np.array(names)[empty]:
        warnings.append(
            f"the bounds of {name} contradict each other: its interval is the whole range; check likelihoods"
        )
    low, high = np.where(empty, 0.0, low), np.where(empty, 1.0, high)
    lemma = None
    if log_effective is not None:
        lemma = truncated_interval(truncated, log_effective, rows, confidence, side)
        if method == "lemma":
            low, high = lemma
    half = -special.ndtri(side) * np.array([m.standard_error(rows) for m in moments])

    leader = int(np.lexsort((truncated, low))[-1])
    leads = low[leader] - high
    if pairs:
        leads = np.maximum(leads, _leads(log, leader, bounds, error / (2 * pairs)))
    leads[leader] = 0.0
    open_ = ~(leads > 0.0)

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
        mis=start + span * mis,
        tmis=start + span * truncated,
        optimistic=start + span * find_estimator("optimistic").combine(cut, coverage),
        self_normalised=start + span * _self_normalised(moments),
        effective_samples=np.array([m.effective_samples() for m in moments]),
        missing_mass=1.0 - coverage,
        largest_weight=np.exp(np.minimum([m.largest_log_weight for m in moments], 709.0)),
        weight_bound=bounds,
        threshold=thresholds,
        low=start + span * low,
        high=start + span * high,
        naive_low=start + span * (mis - half),
        naive_high=start + span * (mis + half),
        lemma_low=None if lemma is None else start + span * lemma[0],
        lemma_high=None if lemma is None else start + span * lemma[1],
        leader=names[leader],
        leads=span * leads,
        contenders=tuple(name for name, is_open in zip(names, open_, strict=True) if is_open),
        warnings=tuple(warnings),
    )


def _sum(log: Log, side: float, bounds: Array, thresholds: Array) -> list[_Candidate]:
    """The main pass."""
    rows = len(log)
    candidates = []
    for bound, cut in zip(bounds.tolist(), thresholds.tolist(), strict=True):
        bets = ConstantBets.on(rows, side, *baselines(bound))
        check = ConstantBets.on(rows, _FALSE_ALARM / len(bounds), [0.0], [0.0])
        candidates.append(_Candidate.of(Moments(cut), bets, check))
    for batch in log.batches():
        for k, candidate in enumerate(candidates):
            candidate.add(batch.log_likelihoods[:, k], batch.log_density, batch.payoffs)
    return candidates


def _self_normalised(moments: list[Moments]) -> Array:
    """Σ ω y / Σ ω, without a threshold; NaN where every weight is 0.  (K,)"""
    gains, totals = (np.array(sums) for sums in zip(*(m.relative_sums() for m in moments), strict=True))
    return np.where(totals > 0, find_estimator("self-normalised").combine(gains, totals), np.nan)


def _leads(log: Log, leader: int, bounds: Array, error: float) -> Array:
    """Lower bounds on J(leader) - J(rival), on paired rows; each wrong with probability at most `error`.  (K,)

    The leader was chosen by looking at the data, so the error must be divided by all K(K-1) ordered pairs, of which
    only these are looked at.
    """
    rivals = [k for k in range(len(bounds)) if k != leader]
    plans = [difference_baselines(float(bounds[leader]), float(bounds[rival])) for rival in rivals]
    bets = [ConstantBets.on(len(log), error, offsets, floors) for _, offsets, floors in plans]
    sums = [of_rival.growth() for of_rival in bets]
    for batch in log.batches():
        y = batch.payoffs
        mine = weights(batch.log_likelihoods[:, leader], batch.log_density)[1]
        for rival, (kinds, _, _), growth in zip(rivals, plans, sums, strict=True):
            theirs = weights(batch.log_likelihoods[:, rival], batch.log_density)[1]
            growth.add([mine * y + theirs * (1.0 - y) if c is None else (mine - theirs) * (y - c) for c in kinds])
    leads = np.zeros(len(bounds))
    leads[rivals] = [b.lower_bound(growth.total(), -1.0, 1.0) for b, growth in zip(bets, sums, strict=True)]
    return leads


def _bounds(log: Log, given: float | Mapping[str, float] | None) -> Array:
    """What no weight can exceed, by candidate; inf where nothing is known.  (K,)"""
    stated = _stated(log, given)
    if log.weights == "balance":  # Φ >= (n_k / n) p_k
        own = np.array([len(log) / log.loggers[name] if name in log.loggers else math.inf for name in log.candidates])
        return np.asarray(np.minimum(stated, own))
    return stated


def _stated(log: Log, given: float | Mapping[str, float] | None) -> Array:
    if given is None:
        return np.full(len(log.candidates), math.inf)
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
    return stated


def _check_bounds(log: Log, given: float | Mapping[str, float] | None, moments: list[Moments]) -> None:
    for name, bound, moment in zip(log.candidates, _stated(log, given), moments, strict=True):
        if moment.largest_log_weight > math.log(bound) + 1e-6:
            largest = math.exp(min(moment.largest_log_weight, 709.0))
            raise LogError(
                f"a weight of {name!r} is {largest:.6g}, above its weight_bounds {bound:.6g}; raise the bound"
            )


def _log_effective(log: Log, given: Mapping[str, Mapping[str, float]] | None) -> Array | None:
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


def _warnings(log: Log, candidates: list[_Candidate], coverage: Array) -> list[str]:
    found = []
    if log.adaptive and log.weights == "balance":
        found.append(
            "policies were chosen adaptively: with balanced weights neither estimates nor intervals are guaranteed; "
            "use weights='own'"
        )
    for name, candidate, covered in zip(log.candidates, candidates, coverage.tolist(), strict=True):
        if candidate.heavy():
            mean = candidate.moments.mean_weight(len(log))
            found.append(
                f"weights of {name} average {mean:.3g}, and true likelihoods allow 1: check its likelihoods, the "
                "loggers' and who acted"
            )
        elif covered < 1.0 - _POOR_COVERAGE:
            found.append(f"the log covers little of what {name} does: {1 - covered:.0%} of its mass is missing")
    if log.rows < log.rows_read:
        found.append(
            f"{log.rows_read - log.rows} of {log.rows_read} rows were left out; the rest stands for all only if being "
            "bad has nothing to do with the payoff"
        )
    return found
