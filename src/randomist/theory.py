"""The paper's theorems as functions: what regret a learner may have, and what regret no learner can avoid.

Metelli, Papini, D'Oro, Restelli: Policy Optimization as Online Learning with Mediator Feedback (AAAI 2021). Numbered as
there: Theorems 1 and 2 are the lower bounds, 3 is FTL, 4 OPTIMIST, 5 RANDOMIST; Fact 1 is FTL's linear regret.

The upper bounds are for payoffs in [0, 1] (`optimality_gaps` scales others). They take the gaps Δ(x) and the matrix of
log-divergences D_2(p_x || p_x'), as `space.family.log_renyi(None, None)` returns it, and return one record with every
case of the theorem: `inf` where a case does not apply or its value leaves float64. Everything is computed in
logarithms, since v = e^900 is large, not infinite; nothing overflows with a warning and nothing is NaN.

Differences from the paper
--------------------------
- Theorem 1. The proof ends with (Δ/4) Σ_{t=1}^n exp(-4Δ²t) >= 1/(32Δ) "for sufficiently large n", which is true only
  for Δ up to 0.56045, where exp(4Δ²) - 1 = 8Δ². The theorem itself holds for every gap: round t knows t-1 observations,
  so the sum may start at t = 0, and its limit is then at least 1/(16Δ). `constant_regret_proof_bound` has both sums.
- Theorem 2. The reward must be s', as in Theorem 1 (with a, as printed, J would not depend on the problem), and the
  divergence of the histories is 4Δ² E[T(x_1)], not E[T(x_2)]: decision x_2 says nothing. With that the last step holds
  with 1/(8Δ) to spare: the minimum over x is exactly (1 + log(Δ²n))/(8Δ) where Δ²n >= 1, and nΔ/8 below
  (`logarithmic_regret_proof_bound`). The bound as stated is negative for Δ²n < 1; it is 0 here.
- Theorems 1 and 2 bound the larger regret of a pair of problems, not the regret of one fixed problem.
- Theorem 5(a). The proof asks for η >= 94 a α log t/Δ² where max(94, 8a) is meant, and adds the rounds before t† for
  a(x) and for b(x), which gives more than the statement. Counting them once, with 94 + 16a for both, proves it.
- Theorem 5(b). c is used as the theorem prints it. The lemma that it comes from (with exp, which is missing there, and
  a/2 for a) gives 2 + 2 e² sqrt(a/2π) exp(16/(a-8)) (1 + sqrt(πa/(2(a-8)))), which is 1.41 to 1.63 times larger.
- Upper bounds treat η_t as fixed, although it depends on the past; this is the paper's analysis, not ours to repair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from randomist import _checks
from randomist._types import Array
from randomist.errors import ParameterError, ShapeError

_SMALLEST_SCALE = 8.0  # Theorem 5(b) needs a > 8


@dataclass(frozen=True, eq=False)
class UpperBounds:
    """What a theorem says about E R(n), case by case; each array has the shape of `rounds`.

    `inf` marks a case that does not apply to this problem or learner (or a value beyond float64).
    """

    constant: Array  # case (a): perfect mediator feedback, v < inf
    logarithmic: Array  # case (b): no matter the divergences
    instance_independent: Array  # no matter the gaps either
    trivial: Array  # n max Δ: what playing the worst decision costs; no theorem needed

    @property
    def tightest(self) -> Array:
        """The smallest of the theorem's cases; it says something only where it is below `trivial`."""
        return np.minimum(np.minimum(self.constant, self.logarithmic), self.instance_independent)

    @property
    def binds(self) -> np.typing.NDArray[np.bool_]:
        """Where the theorem says more than n max Δ."""
        return np.asarray(self.tightest < self.trivial)


def optimality_gaps(expected_payoffs: ArrayLike, payoff_range: tuple[float, float] = (0.0, 1.0)) -> Array:
    """Δ(x) = J* - J(x), in units of the payoff's range.  (K,) -> (K,)"""
    values = np.asarray(expected_payoffs, dtype=np.float64)
    low, high = _checks.payoff_range(payoff_range, bounded=True, why=" (Theorems 3 to 5 do not cover others)")
    if values.ndim != 1 or values.size == 0:
        raise ShapeError(f"expected_payoffs must have shape (K,) with K >= 1, got {values.shape}")
    if not ((values >= low) & (values <= high)).all():
        raise ParameterError(f"expected_payoffs must lie in payoff_range {payoff_range}, got {values}; widen the range")
    return np.asarray((values.max() - values) / (high - low))


def divergence_radius(log_divergences: ArrayLike) -> tuple[Array, float]:
    """log v(x) = max_x' D_2(p_x || p_x') of every decision, and log v = max_x log v(x).  (K, K) -> (K,), ()"""
    matrix = np.asarray(log_divergences, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ShapeError(f"log_divergences must have shape (K, K) with K >= 1, got {matrix.shape}")
    if not (matrix >= 0).all() or np.diagonal(matrix).any():
        raise ParameterError(
            f"log_divergences must be >= 0 (inf allowed) and 0 on the diagonal, got smallest entry {matrix.min()} and "
            f"diagonal {np.diagonal(matrix)}; give the logarithms D_2, not d_2 = exp(D_2)"
        )
    radius = matrix.max(axis=1)
    return radius, float(radius.max())


def follow_the_leader_upper_bound(
    gaps: ArrayLike,
    log_divergences: ArrayLike | None,
    rounds: ArrayLike,
    *,
    confidence: float = 2.0,
    first: int | None = None,
) -> UpperBounds:
    """Theorem 3: the regret of FTL is constant if all divergences are finite; otherwise nothing is promised.

    gaps (K,), log_divergences (K, K) or None where no decision informs another, rounds of any shape. `first` is the
    index of x_1, the worst decision by default.
    """
    problem = _Problem.check(gaps, log_divergences, rounds, confidence, first)
    none = np.full(problem.rounds.shape, np.inf)
    return UpperBounds(problem.constant(48, problem.log_v_star, 2), none, none, problem.trivial)


def optimist_upper_bound(
    gaps: ArrayLike,
    log_divergences: ArrayLike | None,
    rounds: ArrayLike,
    *,
    confidence: float = 2.0,
    first: int | None = None,
) -> UpperBounds:
    """Theorem 4: the regret of OPTIMIST, (a) constant if all divergences are finite, (b) logarithmic in any case.

    Arguments as in `follow_the_leader_upper_bound`.
    """
    problem = _Problem.check(gaps, log_divergences, rounds, confidence, first)
    a = problem.confidence
    extra = (a + 1) / (a - 1) * problem.size
    return UpperBounds(
        problem.constant(48, problem.log_v, 2),
        problem.logarithmic(math.log(24), extra),
        problem.instance_independent(math.log(24), extra),  # 2 sqrt(24) = 4 sqrt(6)
        problem.trivial,
    )


def randomist_upper_bound(
    gaps: ArrayLike,
    log_divergences: ArrayLike | None,
    rounds: ArrayLike,
    *,
    perturbation_scale: float,
    confidence: float = 2.0,
    first: int | None = None,
) -> UpperBounds:
    """Theorem 5: the regret of RANDOMIST, (a) constant if all divergences are finite, (b) logarithmic if a > 8.

    Case (a) takes any a >= 0; (b) is `inf` for a <= 8, and also needs b_t(x) to be at least the bias of TMIS, as the
    paper's b = sqrt(α log t/η) is. Arguments as in `follow_the_leader_upper_bound`.
    """
    scale = _perturbation_scale(perturbation_scale)
    problem = _Problem.check(gaps, log_divergences, rounds, confidence, first)
    a = problem.confidence
    constant = problem.constant(188 + 32 * scale, problem.log_v_star, a + 3)
    if scale <= _SMALLEST_SCALE:
        none = np.full(problem.rounds.shape, np.inf)
        return UpperBounds(constant, none, none, problem.trivial)
    log_factor, extra = math.log(52 + 110 * scale) + _log_c(scale), 2 * (a + 1) / (a - 1) * problem.size
    return UpperBounds(
        constant,
        problem.logarithmic(log_factor, extra),
        problem.instance_independent(log_factor, extra),
        problem.trivial,
    )


def randomist_constant(perturbation_scale: float) -> float:
    """c of Theorem 5(b), for a > 8: the expected number of perturbations until the best decision's is high enough."""
    scale = _perturbation_scale(perturbation_scale)
    if scale <= _SMALLEST_SCALE:
        raise ParameterError(
            f"Theorem 5(b) needs perturbation_scale > 8, got {scale}; raise it, or use case (a), which takes any"
        )
    return float(_exp(_log_c(scale)))


def follow_the_leader_lower_bound(rounds: ArrayLike) -> Array:
    """Fact 1: FTL's regret on `FollowTheLeaderTrap`, having played both decisions once, is at least (n-1)/16."""
    return np.asarray((_rounds(rounds) - 1) / 16)


def constant_regret_lower_bound(gap: float) -> float:
    """Theorem 1: with finite divergences no learner has less than 1/(32Δ) on both problems of the pair, for large n."""
    return 1 / (32 * _gap(gap))


def constant_regret_proof_bound(gap: float, rounds: ArrayLike, *, sharp: bool = False) -> Array:
    """Theorem 1 at a given n, before the proof's last step: (Δ/4) Σ_{t=1}^n exp(-4Δ²t).

    `sharp=True` sums from t = 0 to n-1: the decision of round t has seen t-1 observations, not t.
    """
    gap, n = _gap(gap), _rounds(rounds)
    u = max(4 * gap**2, 1e-300)  # the terms are exp(-u t); a smaller u changes no digit of the sum
    geometric = -np.expm1(-u * n) / math.expm1(u)
    return np.asarray(gap / 4 * geometric * (math.exp(u) if sharp else 1.0))


def logarithmic_regret_lower_bound(gap: float, rounds: ArrayLike) -> Array:
    """Theorem 2: with an infinite divergence no learner has less than log(Δ²n)/(8Δ) on both problems; at least 0."""
    gap, n = _gap(gap), _rounds(rounds)
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(2 * math.log(gap) + np.log(n), 0.0) / (8 * gap))


def logarithmic_regret_proof_bound(gap: float, rounds: ArrayLike) -> Array:
    """Theorem 2 before the proof's last step: (Δ/2) min_{0 <= x <= n} [x + (n/4) exp(-4Δ²x)], solved exactly."""
    gap, n = _gap(gap), _rounds(rounds)
    log_ratio = 2 * math.log(gap) + np.log(n)  # the minimum is at x = log(Δ²n)/(4Δ²), or at 0 if that is negative
    with np.errstate(over="ignore"):
        return np.where(log_ratio >= 0, (1 + np.maximum(log_ratio, 0.0)) / (8 * gap), n * gap / 8)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Checked arguments of an upper bound, and the three shapes that Theorems 3 to 5 share."""

    gaps: Array  # (K,)
    log_v: Array  # log v(x)  (K,)
    rounds: Array
    confidence: float  # α
    first_gap: float  # Δ(x_1)

    @classmethod
    def check(
        cls, gaps: ArrayLike, log_divergences: ArrayLike | None, rounds: ArrayLike, confidence: float, first: int | None
    ) -> _Problem:
        gap = np.asarray(gaps, dtype=np.float64)
        if gap.ndim != 1 or gap.size == 0:
            raise ShapeError(f"gaps must have shape (K,) with K >= 1, got {gap.shape}")
        if not ((gap >= 0) & (gap <= 1)).all() or gap.min() != 0:
            raise ParameterError(
                f"gaps must lie in [0, 1] with 0 for the best decision, got {gap}; "
                "optimality_gaps(expected_payoffs, payoff_range) computes them"
            )
        if log_divergences is None:
            log_v = np.full(gap.size, np.inf if gap.size > 1 else 0.0)
        else:
            log_v, _ = divergence_radius(log_divergences)
            if log_v.size != gap.size:
                raise ShapeError(f"log_divergences must be (K, K) for the {gap.size} gaps, got K = {log_v.size}")
        alpha = _checks.number(confidence, "confidence", above=1, why=" (the paper uses 2)")
        if first is not None and not 0 <= first < gap.size:
            raise ParameterError(f"first must be an index in 0..{gap.size - 1}, or None for the worst, got {first}")
        first_gap = float(gap.max() if first is None else gap[first])
        return cls(gap, log_v, _rounds(rounds), alpha, first_gap)

    @property
    def size(self) -> int:
        return self.gaps.size  # K

    @property
    def log_v_star(self) -> Array:
        """log v*(x) = max(log v(x), log v(x*)); of several optimal decisions, the one with the smallest v.  (K,)"""
        return np.asarray(np.maximum(self.log_v, self.log_v[self.gaps == 0].min()))

    @property
    def trivial(self) -> Array:
        return np.asarray(self.rounds * self.gaps.max())

    def constant(self, factor: float, log_v: Array, tail: float) -> Array:
        """Σ f α v/Δ log((f/2) α v/Δ²) + Δ(x_1) + tail/(α-1) K min{1, sqrt(2 log v)}, if v < inf."""
        log_radius = float(self.log_v.max())
        if math.isinf(log_radius):
            return np.full(self.rounds.shape, np.inf)
        worse = self.gaps > 0
        log_gap, log_va = np.log(self.gaps[worse]), log_v[worse] + math.log(self.confidence)
        logarithm = math.log(factor / 2) + log_va - 2 * log_gap  # > 0, since f/2 >= 24, α > 1, v >= 1 and Δ <= 1
        log_sum = np.logaddexp.reduce(math.log(factor) + log_va - log_gap + np.log(logarithm))
        rest = self.first_gap + tail / (self.confidence - 1) * self.size * min(1.0, math.sqrt(2 * log_radius))
        return np.full(self.rounds.shape, _exp(log_sum) + rest)

    def logarithmic(self, log_factor: float, extra: float) -> Array:
        """Σ f α/Δ log n + extra."""
        log_sum = np.logaddexp.reduce(-np.log(self.gaps[self.gaps > 0])) + math.log(self.confidence)
        return np.asarray(_exp(log_factor + log_sum + self._log_log_rounds()) + extra)

    def instance_independent(self, log_factor: float, extra: float) -> Array:
        """2 sqrt(f α K n log n) + extra."""
        log_product = log_factor + math.log(self.confidence * self.size) + np.log(self.rounds) + self._log_log_rounds()
        return np.asarray(2 * _exp(log_product / 2) + extra)

    def _log_log_rounds(self) -> Array:
        with np.errstate(divide="ignore"):  # log log 1 = -inf: the term is 0
            return np.asarray(np.log(np.log(self.rounds)))


def _log_c(a: float) -> float:
    """log c, Theorem 5(b): c = 2 + e² sqrt(a/2π) exp(16/(a-8)) (1 + sqrt(πa/(a-8)))."""
    excess = a - _SMALLEST_SCALE
    second = 2 + 0.5 * math.log(a / (2 * math.pi)) + 16 / excess + math.log1p(math.sqrt(math.pi * a / excess))
    return float(np.logaddexp(math.log(2), second))


def _exp(x: ArrayLike) -> Array:
    """exp, with inf beyond float64 and no warning."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(x))


def _rounds(rounds: ArrayLike) -> Array:
    n = np.asarray(rounds, dtype=np.float64)
    if not (np.isfinite(n) & (n >= 1)).all():
        raise ParameterError(f"rounds must be finite and >= 1, got {n}; the first round is number 1")
    return n


def _gap(gap: float) -> float:
    return _checks.number(gap, "gap", above=0, most=1, why=" (without one there is no regret to bound)")


def _perturbation_scale(a: float) -> float:
    return _checks.number(a, "perturbation_scale", least=0, why=" (the paper uses 8.1 and 1.1)")
