"""Intervals that hold: the betting bound against brute force, coverage on many logs, and widths that say something."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import randomist as rd
from randomist.importance.growth import BLOCK
from randomist.importance.intervals import Bets, ConstantBets, baselines, difference_baselines

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks import log_intervals  # noqa: E402


def growth(bets, *variables):
    total = bets.growth()
    total.add([np.asarray(values, dtype=float) for values in variables])
    return total.total()


def test_growth_is_the_sum_of_logarithms_wherever_it_is_cut():
    rng = np.random.default_rng(0)
    values = np.abs(rng.standard_cauchy(3 * BLOCK + 5))
    bets = ConstantBets.on(len(values), 0.01, [0.0], [0.0])
    expected = np.log1p(np.outer(bets.stakes[0], values)).sum(axis=1)
    np.testing.assert_allclose(growth(bets, values)[0], expected, rtol=1e-12)
    parts = bets.growth()
    for part in np.split(values, [1, 4, BLOCK + 4, 2 * BLOCK]):
        parts.add([part])
    np.testing.assert_array_equal(parts.total(), growth(bets, values))


def test_huge_values_are_cut_and_neither_overflow_nor_warn():
    bets = ConstantBets.on(100, 0.01, [0.0], [0.0])
    found = growth(bets, np.full(100, 1e300))
    assert np.isfinite(found).all()
    assert bets.lower_bound(found, 0.0, 1.0) == 1.0


class Cautious(Bets):
    """A kind of one's own: two stakes, most of the money on the smaller one."""

    def __init__(self, rows, error):
        self.rows, self.error, self.offsets = rows, error, np.zeros(1)
        self.stakes, self.log_prior = np.array([[0.05, 0.5]]), np.log([[0.9, 0.1]])

    def log_fair(self, m):
        return self.rows * np.log1p(self.stakes * m)


def test_another_kind_of_bets_is_its_stakes_a_prior_and_what_is_fair():
    values = np.random.default_rng(1).exponential(0.5, size=400)
    bets = Cautious(400, 0.01)
    bound = bets.lower_bound(growth(bets, values), 0.0, 1.0)
    earned = [np.prod((1 + stake * values) / (1 + stake * bound)) for stake in (0.05, 0.5)]
    assert 0.3 < bound < 0.5
    assert 0.9 * earned[0] + 0.1 * earned[1] == pytest.approx(1 / 0.01, rel=1e-6)


@pytest.mark.parametrize("floor", [0.0, 2.0])
def test_evidence_against_the_truth_averages_at_most_one(floor):
    """All outcomes of six independent rows with different means, one by one: E G(μ̄) <= 1, and = 1 for equal means."""
    chances = np.array([0.1, 0.9, 0.5, 0.3, 0.95, 0.05])
    values = np.array([-floor, 5.0])
    bets = ConstantBets.on(6, 0.05, [0.0], [floor])
    means = values[0] + (values[1] - values[0]) * chances
    for p, truth in ((chances, means.mean()), (np.full(6, 0.4), values[0] + 0.4 * (values[1] - values[0]))):
        average = 0.0
        for outcome in itertools.product((0, 1), repeat=6):
            chance = np.prod(np.where(outcome, p, 1 - p))
            average += chance * math.exp(bets.log_evidence(growth(bets, values[list(outcome)]), truth))
        if np.ptp(p):
            assert average < 1.0
        else:
            assert average == pytest.approx(1.0, rel=1e-9)


def test_the_bound_is_where_the_evidence_reaches_the_level():
    rng = np.random.default_rng(2)
    y, weight = rng.random(500), rng.uniform(0.0, 2.0, size=500)
    offsets, floors = baselines(2.0, 500, 0.01)
    assert offsets == [0.0, 0.5, 1.0]
    bets = ConstantBets.on(500, 0.01, offsets, floors)
    total = growth(bets, *(weight * (y - c) for c in offsets))
    found = bets.lower_bound(total, 0.0, 1.0)
    naive = sum(
        math.exp(prior) * np.prod((1 + stake * weight * (y - c)) / (1 + stake * (found - c)))
        for c, stakes, priors in zip(offsets, bets.stakes, bets.log_prior, strict=True)
        for stake, prior in zip(stakes, priors, strict=True)
    )
    assert naive == pytest.approx(100.0, rel=1e-6)
    assert np.exp(bets.log_prior).sum() == pytest.approx(1.0)
    assert (bets.stakes * np.array(floors)[:, None] < 1).all()
    evidence = [bets.log_evidence(total, m) for m in np.linspace(0, 1, 50)]
    assert (np.diff(evidence) < 0).all()


def test_one_sided_bounds_err_no_more_often_than_they_may():
    """Rows of two kinds one after the other, weights without variance (Pareto, index 1.5): 2,000 logs at error 0.2.

    If the error were 0.2, this would fail with a probability of 0.7%; it is far below, Markov being what it is. That it
    is not 0 shows that the test can see failures.
    """
    rng = np.random.default_rng(3)
    rows, failures = 60, 0
    bets = ConstantBets.on(rows, 0.2, [0.0], [0.0])
    scale = np.repeat([0.2, 1.8], rows // 2)  # means 0.2 and 1.8: the mean of all is 1
    for _ in range(2000):
        x = scale * (rng.pareto(1.5, rows) + 1) / 3
        failures += bets.lower_bound(growth(bets, x), 0.0, 10.0) > 1.0
    assert 0 < failures <= stats.binom.isf(0.007, 2000, 0.2)


def test_differences_are_what_they_say():
    """Every kind of variable for J_a - J_b has that mean, but for its offset, and its floor: summed over actions."""
    rng = np.random.default_rng(4)
    a, b, logger = rng.dirichlet(np.ones(6), size=3)
    chance = rng.random(6)
    w_a, w_b = a / logger, b / logger
    kinds, offsets, floors = difference_baselines(w_a.max(), w_b.max())
    assert len(kinds) == 4
    for c, offset, floor in zip(kinds, offsets, floors, strict=True):
        win, lose = (w_a, w_b) if c is None else ((w_a - w_b) * (1 - c), (w_a - w_b) * (0 - c))
        mean = logger @ (chance * win + (1 - chance) * lose)
        assert mean == pytest.approx((a - b) @ chance - offset)
        assert min(win.min(), lose.min()) >= -floor - 1e-12
    assert difference_baselines(math.inf, math.inf) == ([None], [-1.0], [0.0])
    assert difference_baselines(3.0, math.inf)[0] == [None, 1.0]
    assert difference_baselines(math.inf, 3.0)[0] == [None, 0.0]


def test_differences_of_similar_candidates_have_the_floor_of_their_distance():
    kinds, _, floors = difference_baselines(20.0, 20.0, 0.3, steps=4)
    assert kinds == [None, 0.0, 0.25, 0.5, 0.75, 1.0]
    assert floors == pytest.approx([0.0, 0.3, 0.225, 0.15, 0.225, 0.3])
    assert difference_baselines(math.inf, math.inf, 0.3)[2] == pytest.approx([0.0, 0.3, 0.15, 0.3])


def test_baselines_that_cannot_help_are_left_out():
    assert baselines(10.0, 10_000, 0.01)[0] == [0.0, 0.5, 1.0]
    assert baselines(1e6, 10_000, 0.01)[0] == [0.0]
    assert baselines(math.inf, 10_000, 0.01)[0] == [0.0]


KINDS = {kind.name: kind for kind in log_intervals.kinds()}


def assert_holds(tally, logs):
    """A level of 95% that held would fail this one time in 10,000 (99.99% binomial quantile)."""
    least = int(stats.binom.ppf(1e-4, logs, 0.95))
    assert tally.logs == logs
    assert tally.covered >= least
    assert tally.kept >= least


@pytest.mark.parametrize(
    ("name", "widest"),
    [("one after the other", 1.5), ("heavy tails", 1.5), ("rare payoffs", 4.0), ("adaptive", 1.5)],
)
def test_coverage_on_100_logs(name, widest):
    tally = log_intervals.simulate(KINDS[name], logs=100 if name != "adaptive" else 40, rows=2500, seed=1)
    assert_holds(tally, tally.logs)
    assert tally.covered >= 0.95 * tally.logs
    assert np.median(tally.ratios) < widest
    if name == "heavy tails":
        assert tally.naive < 0.8 * tally.logs  # the test can see an interval that does not cover


@pytest.mark.slow
@pytest.mark.parametrize("name", list(KINDS))
def test_coverage_and_width_on_1000_logs(name):
    tally = log_intervals.simulate(KINDS[name], logs=1000, rows=10_000, seed=2)
    assert_holds(tally, 1000)
    assert tally.covered >= 950
    # What is never tried may be worth anything, so an interval is as wide as the missing mass; and where payoffs are
    # rare and weights unlike, only a known bound tells that nothing large is still to come.
    if name not in ("missing support", "rare payoffs, unlike logger"):
        assert np.median(tally.ratios) <= 3.0


def test_an_interval_is_no_wider_than_what_is_missing():
    """The logger never takes 4 of 20 actions: the interval must allow them any payoff, and no more."""
    kind = KINDS["missing support"]
    found = rd.Log.from_arrays(**kind.draw(100_000, np.random.default_rng(5))).evaluate()
    assert (found.width > 0.95 * found.missing_mass).all()
    assert (found.width < found.missing_mass + 0.06).all()


def test_the_verdict_names_the_best_and_what_cannot_be_told_apart():
    rng = np.random.default_rng(6)
    base = np.full(8, 1 / 8)
    good, twin = base + 0.1 * np.array([1, 0, 0, 0, 0, 0, 0, -1]), base.copy()
    bad = base - 0.12 * np.array([1, 0, 0, 0, 0, 0, 0, -1])
    chance = np.array([0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.1])
    action = rng.integers(0, 8, 20_000)
    payoffs = (rng.random(20_000) < chance[action]).astype(float)

    def verdict(**policies):
        likelihoods = {name: np.log(p)[action] for name, p in policies.items()}
        log = rd.Log.from_arrays(payoffs, likelihoods, log_propensities=np.full(20_000, math.log(1 / 8)))
        return log.evaluate(weight_bounds=2.0, compare="leader")

    found = verdict(good=good, base=base, bad=bad)
    assert found.best == "good"
    assert found.verdict().startswith("good is the best of 3 at 95%: ahead of every other by 0.0")
    truth = good @ chance - base @ chance
    assert 0 < found.leads[1] < truth
    assert found.leads[1] > found.low[0] - found.high[1]  # the rows are paired
    found = verdict(base=base, twin=twin, bad=bad)
    assert found.best is None
    assert found.contenders == ("base", "twin")
    assert found.verdict() == "No single best at 95%: base and twin cannot be told apart; bad is worse."
    alone = verdict(base=base)
    assert alone.best == "base"
    assert "base is worth between 0." in alone.verdict()


def test_likelihoods_that_cannot_be_true_are_noticed():
    rng = np.random.default_rng(7)
    payoffs, half = rng.random(2000), np.full(2000, math.log(0.5))
    log = rd.Log.from_arrays(payoffs, {"a": half + 0.2, "b": half}, log_propensities=half)
    found = log.evaluate()
    assert [w for w in found.warnings if w.startswith("weights of a average 1.22")]
    assert not any("weights of b" in w for w in found.warnings)
    far = rd.Log.from_arrays(payoffs, {"a": half + 0.69, "b": half}, log_propensities=half).evaluate()
    assert (far.low[0], far.high[0]) == (0.0, 1.0)  # its bounds contradict each other: nothing is known


@pytest.mark.parametrize("name", ["one after the other", "propensities", "rare payoffs, unlike logger"])
def test_to_know_the_exact_bound_of_the_weights_does_not_widen(name):
    """Five logs, with paired widths; the benchmark has more. A bound that is far too large does not widen, either."""
    kind = KINDS[name]
    assert log_intervals.bound_ratio(kind, 5, 2500, seed=3) <= 1.01
    log = rd.Log.from_arrays(**kind.draw(2500, np.random.default_rng(4)))
    nothing = np.full(len(log.candidates), math.inf)
    np.testing.assert_allclose(
        log_intervals.widths(log, np.full(len(nothing), 1e6)), log_intervals.widths(log, nothing)
    )
