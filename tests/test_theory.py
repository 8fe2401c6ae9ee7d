"""The theorems against the displays of the paper, transcribed a second time, and against what they must satisfy."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from randomist import theory
from randomist.errors import ParameterError, ShapeError

GAPS = np.array([0.31, 0.0, 0.07, 0.5])
LOG_DIVERGENCES = np.array([[0, 0.3, 1.1, 2.0], [0.2, 0, 0.4, 0.9], [3.5, 0.1, 0, 0.6], [0.05, 0.7, 1.3, 0]])
PAIR = np.array([[0.0, 1.7], [0.4, 0.0]])


# The displays again, in exact-enough arithmetic, looping where the package works on arrays of logarithms.


def v_of(log_divergences, x):
    return max(mpmath.exp(mpmath.mpf(float(d))) for d in log_divergences[x])


def naive_constant(gaps, log_divergences, alpha, first, *, outer, inner, tail, star):
    size = len(gaps)
    best = min(range(size), key=lambda x: gaps[x])
    total = mpmath.mpf(0)
    for x in range(size):
        if gaps[x] > 0:
            v = v_of(log_divergences, x)
            if star:
                v = max(v, v_of(log_divergences, best))
            gap = mpmath.mpf(float(gaps[x]))
            total += outer * alpha * v / gap * mpmath.log(inner * alpha * v / gap**2)
    v = max(v_of(log_divergences, x) for x in range(size))
    return total + gaps[first] + mpmath.mpf(tail) / (alpha - 1) * min(1, mpmath.sqrt(2 * mpmath.log(v))) * size


def naive_c(a):
    a = mpmath.mpf(a)
    root = mpmath.sqrt(mpmath.pi * a / (a - 8))
    return 2 + mpmath.e**2 * mpmath.sqrt(a) / mpmath.sqrt(2 * mpmath.pi) * mpmath.exp(16 / (a - 8)) * (1 + root)


def close(actual, expected, rel=1e-12):
    assert float(actual) == pytest.approx(float(expected), rel=rel)


class TestUpperBounds:
    @pytest.mark.parametrize("alpha", [1.5, 2.0, 3.7])
    @pytest.mark.parametrize("first", [0, 1, 3])
    def test_theorem_3(self, alpha, first):
        bound = theory.follow_the_leader_upper_bound(GAPS, LOG_DIVERGENCES, 1000, confidence=alpha, first=first)
        kwargs = {"outer": 48, "inner": 24, "tail": 2, "star": True}
        close(bound.constant, naive_constant(GAPS, LOG_DIVERGENCES, alpha, first, **kwargs))
        assert np.isinf(bound.logarithmic)
        assert np.isinf(bound.instance_independent)

    @pytest.mark.parametrize("alpha", [1.5, 2.0, 3.7])
    def test_theorem_4(self, alpha):
        n = 12_345
        bound = theory.optimist_upper_bound(GAPS, LOG_DIVERGENCES, n, confidence=alpha, first=2)
        kwargs = {"outer": 48, "inner": 24, "tail": 2, "star": False}
        close(bound.constant, naive_constant(GAPS, LOG_DIVERGENCES, alpha, 2, **kwargs))
        close(
            bound.logarithmic,
            sum(24 * alpha / gap * math.log(n) for gap in GAPS if gap > 0) + (alpha + 1) / (alpha - 1) * 4,
        )
        close(
            bound.instance_independent,
            4 * math.sqrt(6 * alpha * 4 * n * math.log(n)) + (alpha + 1) * 4 / (alpha - 1),
        )

    @pytest.mark.parametrize("a", [8.1, 9.0, 25.4, 300.0])
    def test_theorem_5(self, a):
        n, alpha = 777, 2.5
        bound = theory.randomist_upper_bound(GAPS, LOG_DIVERGENCES, n, confidence=alpha, first=0, perturbation_scale=a)
        kwargs = {"outer": 188 + 32 * a, "inner": 94 + 16 * a, "tail": alpha + 3, "star": True}
        close(bound.constant, naive_constant(GAPS, LOG_DIVERGENCES, alpha, 0, **kwargs))
        factor, extra = (52 + 110 * a) * naive_c(a) * alpha, 2 * (alpha + 1) / (alpha - 1) * 4
        close(bound.logarithmic, sum(factor / gap * math.log(n) for gap in GAPS if gap > 0) + extra)
        close(bound.instance_independent, 2 * mpmath.sqrt(factor * 4 * n * math.log(n)) + extra)
        close(theory.randomist_constant(a), naive_c(a))

    def test_by_hand(self):
        # 24·2/0.5·log(1e5) + 3·2 = 96·11.512925 + 6
        close(theory.optimist_upper_bound([0.0, 0.5], None, 1e5).logarithmic, 1111.2408, rel=1e-7)
        # v = e^2.25 = 9.487736; 96·v/0.5 = 1821.6453, whose logarithm is 7.507495; plus Δ(x_1) = 0.5 and 2·2/1
        both = [[0.0, 2.25], [2.25, 0.0]]
        close(theory.follow_the_leader_upper_bound([0.0, 0.5], both, 1).constant, 13680.49, rel=1e-6)

    def test_v_of_the_optimum_counts_only_where_the_theorem_says_so(self):
        gaps = [0.0, 0.2]  # v(x*) = e^1.7 > v(x) = e^0.4
        ftl = theory.follow_the_leader_upper_bound(gaps, PAIR, 10).constant
        optimist = theory.optimist_upper_bound(gaps, PAIR, 10).constant
        assert optimist < ftl
        close(optimist, theory.follow_the_leader_upper_bound(gaps, [[0, 0.4], [0.4, 0]], 10).constant, rel=1e-2)

    def test_equal_policies_have_no_regret(self):
        bound = theory.optimist_upper_bound(np.zeros(3), np.zeros((3, 3)), [1, 10])
        np.testing.assert_array_equal(bound.constant, 0)
        np.testing.assert_array_equal(bound.logarithmic, 9)

    def test_infinite_divergence_leaves_no_constant_bound(self):
        divergences = PAIR.copy()
        divergences[1, 0] = np.inf
        for bound in (
            theory.follow_the_leader_upper_bound([0.0, 0.2], divergences, 100),
            theory.optimist_upper_bound([0.0, 0.2], divergences, 100),
            theory.randomist_upper_bound([0.0, 0.2], divergences, 100, perturbation_scale=9),
            theory.optimist_upper_bound([0.0, 0.0], divergences, 100),
        ):
            assert np.isinf(bound.constant)

    def test_small_perturbations_have_only_case_a(self):
        bound = theory.randomist_upper_bound([0.0, 0.2], PAIR, [10, 20], perturbation_scale=1.1)
        assert np.isfinite(bound.constant).all()
        assert np.isinf(bound.logarithmic).all()
        assert np.isinf(bound.instance_independent).all()
        with pytest.raises(ParameterError, match=r"perturbation_scale > 8, got 8\.0; raise it"):
            theory.randomist_constant(8.0)

    def test_huge_divergences_overflow_quietly_and_late(self):
        matrix = np.array([[0.0, 900.0], [650.0, 0.0]])
        assert np.isinf(theory.follow_the_leader_upper_bound([0.0, 0.2], matrix, 10).constant)  # v* = e^900
        kwargs = {"outer": 48, "inner": 24, "tail": 2, "star": False}
        expected = naive_constant([0.0, 0.2], matrix, 2, 1, **kwargs)  # v(x) = e^650 is still a float64
        close(theory.optimist_upper_bound([0.0, 0.2], matrix, 10).constant, expected)
        extreme = theory.randomist_upper_bound([0.0, 1e-310], matrix, [1, 10], perturbation_scale=8 + 1e-12)
        assert not np.isnan([extreme.constant, extreme.logarithmic, extreme.instance_independent]).any()
        np.testing.assert_array_equal(extreme.logarithmic, [12, np.inf])  # at n = 1, log n = 0

    def test_rounds_may_be_a_curve(self):
        n = np.array([[1, 10, 100], [1000, 10_000, 100_000]])
        curve = theory.optimist_upper_bound(GAPS, LOG_DIVERGENCES, n)
        for part in ("constant", "logarithmic", "instance_independent", "trivial", "tightest", "binds"):
            assert getattr(curve, part).shape == n.shape
            for i in np.ndindex(n.shape):
                single = theory.optimist_upper_bound(GAPS, LOG_DIVERGENCES, n[i])
                assert getattr(curve, part)[i] == getattr(single, part)
        assert (np.diff(curve.logarithmic.ravel()) > 0).all()

    def test_trivial_and_tightest(self):
        bound = theory.optimist_upper_bound([0.0, 0.5], None, [100, 1e5])
        np.testing.assert_array_equal(bound.trivial, [50, 5e4])
        np.testing.assert_array_equal(bound.tightest, [bound.instance_independent[0], bound.logarithmic[1]])
        np.testing.assert_array_equal(bound.binds, [False, True])

    def test_first_is_the_worst_by_default(self):
        def constant(first):
            return theory.optimist_upper_bound(GAPS, LOG_DIVERGENCES, 10, first=first).constant

        assert constant(None) == constant(3)
        close(constant(3) - constant(2), 0.5 - 0.07, rel=1e-6)

    @given(
        st.lists(st.floats(1e-6, 1), min_size=1, max_size=5),
        st.floats(0, 1200),
        st.floats(1.001, 20),
        st.floats(0, 50),
        st.integers(1, 10**9),
    )
    def test_monotone(self, gaps, log_divergence, alpha, a, n):
        size = len(gaps) + 1
        gaps = np.array([0.0, *gaps])
        matrix = np.full((size, size), log_divergence) * (1 - np.eye(size))
        learners = (
            theory.follow_the_leader_upper_bound,
            theory.optimist_upper_bound,
            lambda *args, **kw: theory.randomist_upper_bound(*args, **kw, perturbation_scale=a),
        )
        for bound in learners:
            base = bound(gaps, matrix, n, confidence=alpha, first=0)
            longer = bound(gaps, matrix, 2 * n, confidence=alpha, first=0)
            further = bound(gaps, 1.1 * matrix, n, confidence=alpha, first=0)
            harder = bound(gaps / 2, matrix, n, confidence=alpha, first=0)
            assert longer.constant == base.constant
            assert longer.logarithmic >= base.logarithmic
            assert longer.instance_independent >= base.instance_independent
            assert further.constant >= base.constant
            assert further.logarithmic == base.logarithmic
            assert harder.constant >= base.constant
            assert harder.logarithmic >= base.logarithmic
            assert harder.instance_independent == base.instance_independent
        # FTL's proof pays for v*(x) where OPTIMIST's pays for v(x); RANDOMIST's constants are larger still
        optimist, randomist = (bound(gaps, matrix, n, confidence=alpha, first=0) for bound in learners[1:])
        assert randomist.constant >= optimist.constant
        assert randomist.logarithmic >= optimist.logarithmic

    @given(st.permutations(range(4)))
    def test_names_of_decisions_do_not_matter(self, order):
        order = list(order)
        shuffled = LOG_DIVERGENCES[np.ix_(order, order)]
        close(
            theory.follow_the_leader_upper_bound(GAPS[order], shuffled, 10).constant,
            theory.follow_the_leader_upper_bound(GAPS, LOG_DIVERGENCES, 10).constant,
        )

    def test_lemma_behind_c_gives_more_than_c(self):
        # "Differences from the paper": c from the lemma, a/2 for a and exp put back, is sqrt(2) to 1.63 times c
        for a in np.geomspace(0.05, 1e6, 50) + 8:
            half = mpmath.mpf(a) / 2
            lemma = 2 + 2 * mpmath.e**2 * mpmath.sqrt(half / mpmath.pi) * mpmath.exp(8 / (half - 4)) * (
                1 + mpmath.sqrt(mpmath.pi * half / (2 * (half - 4)))
            )
            assert 1.41 < lemma / naive_c(a) < 1.63


class TestLowerBounds:
    @pytest.mark.parametrize("gap", [0.01, 0.3, 0.56, 1.0])
    @pytest.mark.parametrize("n", [1, 2, 50, 3000])
    def test_theorem_1_sums(self, gap, n):
        literal = gap / 4 * sum(math.exp(-4 * gap**2 * t) for t in range(1, n + 1))
        sharp = gap / 4 * sum(math.exp(-4 * gap**2 * t) for t in range(n))
        close(theory.constant_regret_proof_bound(gap, n), literal)
        close(theory.constant_regret_proof_bound(gap, n, sharp=True), sharp)

    def test_theorem_1_last_step_needs_a_small_gap(self):
        assert theory.constant_regret_lower_bound(0.25) == 0.125

        def excess(gap):
            return float(theory.constant_regret_proof_bound(gap, 1e12)) - theory.constant_regret_lower_bound(gap)

        assert excess(0.56) > 0 > excess(0.561)
        assert optimize.brentq(excess, 0.1, 1) == pytest.approx(0.56045, abs=5e-6)

    @given(st.floats(1e-3, 1))
    def test_theorem_1_holds_for_every_gap_by_the_sharp_sum(self, gap):
        sharp = theory.constant_regret_proof_bound(gap, 1e12, sharp=True)
        assert sharp >= (1 - 1e-12) / (16 * gap)
        assert sharp >= theory.constant_regret_lower_bound(gap)

    @pytest.mark.parametrize("gap", [0.003, 0.1, 0.7, 1.0])
    @pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
    def test_theorem_2_against_a_numerical_minimum(self, gap, n):
        x = np.union1d(np.linspace(0, n, 1_000_001), np.linspace(0, min(n, 20 / gap**2), 1_000_001))
        brute = gap / 2 * np.min(x + n / 4 * np.exp(-4 * gap**2 * x))
        proof, stated = (
            f(gap, n) for f in (theory.logarithmic_regret_proof_bound, theory.logarithmic_regret_lower_bound)
        )
        close(proof, brute, rel=1e-8)
        close(stated, max(math.log(gap**2 * n) / (8 * gap), 0))
        assert proof >= stated
        if gap**2 * n >= 1:
            close(proof - stated, 1 / (8 * gap))

    @given(st.floats(1e-5, 1), st.integers(1, 10**9), st.integers(1, 10**9))
    def test_more_rounds_never_lower_a_bound(self, gap, n, m):
        n, m = sorted((n, m))
        for bound in (
            theory.constant_regret_proof_bound,
            theory.logarithmic_regret_lower_bound,
            theory.logarithmic_regret_proof_bound,
        ):
            early, late = bound(gap, [n, m])
            assert 0 <= early <= late * (1 + 1e-15)
            assert late <= gap * m  # no learner can do worse than this

    def test_tiny_gaps(self):
        assert theory.constant_regret_proof_bound(1e-200, 100) == pytest.approx(25e-200)
        assert theory.logarithmic_regret_lower_bound(1e-320, 100) == 0
        assert theory.constant_regret_lower_bound(5e-324) == math.inf

    def test_fact_1(self):
        np.testing.assert_array_equal(theory.follow_the_leader_lower_bound([1, 17, 1601]), [0, 1, 100])


class TestGapsAndRadius:
    def test_gaps_are_in_units_of_the_range(self):
        np.testing.assert_allclose(theory.optimality_gaps([-5, 45, 20], (-5, 95)), [0.5, 0, 0.25])

    def test_radius_is_along_rows(self):
        radius, largest = theory.divergence_radius(LOG_DIVERGENCES)
        np.testing.assert_array_equal(radius, [2.0, 0.9, 3.5, 1.3])
        assert largest == 3.5
        radius, largest = theory.divergence_radius([[0, np.inf], [900, 0]])
        np.testing.assert_array_equal(radius, [np.inf, 900])
        assert largest == np.inf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: theory.constant_regret_lower_bound(0),
            ParameterError,
            r"gap .* > 0 and <= 1 \(without .*\), got 0",
        ),
        (lambda: theory.constant_regret_lower_bound(math.nan), ParameterError, "got nan"),
        (lambda: theory.logarithmic_regret_lower_bound(1.5, 10), ParameterError, r"got 1\.5"),
        (
            lambda: theory.logarithmic_regret_lower_bound(0.5, 0),
            ParameterError,
            r"rounds must be finite and >= 1, got 0",
        ),
        (lambda: theory.follow_the_leader_lower_bound([1, np.inf]), ParameterError, "rounds must be finite"),
        (lambda: theory.optimist_upper_bound([0, 2], None, 9), ParameterError, r"in \[0, 1\].*optimality_gaps"),
        (lambda: theory.optimist_upper_bound([0.1, 0.2], None, 9), ParameterError, "0 for the best decision"),
        (lambda: theory.optimist_upper_bound([0, np.nan], None, 9), ParameterError, "gaps must lie"),
        (lambda: theory.optimist_upper_bound([], None, 9), ShapeError, r"\(K,\)"),
        (lambda: theory.optimist_upper_bound([0, 0.1, 0.2], PAIR, 9), ShapeError, r"3 gaps, got K = 2"),
        (
            lambda: theory.optimist_upper_bound([0, 0.1], PAIR, 9, confidence=1),
            ParameterError,
            r"> 1 \(.* uses 2\), got 1",
        ),
        (lambda: theory.optimist_upper_bound([0, 0.1], PAIR, 9, first=2), ParameterError, r"0\.\.1, or None"),
        (lambda: theory.divergence_radius(np.exp(PAIR)), ParameterError, r"give the logarithms"),
        (lambda: theory.divergence_radius(-PAIR), ParameterError, r"smallest entry -1\.7"),
        (lambda: theory.divergence_radius([0, 1]), ShapeError, r"\(K, K\)"),
        (lambda: theory.randomist_constant(-1), ParameterError, r">= 0 \(the paper uses .*\), got -1"),
        (
            lambda: theory.randomist_upper_bound([0, 0.1], PAIR, 9, perturbation_scale=math.nan),
            ParameterError,
            "perturbation_scale must be a finite number",
        ),
        (lambda: theory.optimality_gaps([0, 1], (-np.inf, np.inf)), ParameterError, "do not cover"),
        (lambda: theory.optimality_gaps([0, 2]), ParameterError, "widen the range"),
        (lambda: theory.optimality_gaps([[0, 1]]), ShapeError, r"\(K,\)"),
    ],
)
def test_errors_name_value_bound_and_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()
