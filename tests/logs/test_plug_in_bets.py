"""Stakes that follow the rows: the bound against its definition, exact expectations, errors that stay within theirs."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from randomist.importance.intervals import Constant, ConstantBets, PlugIn, plugin

ROOT = Path(__file__).parents[2]
sys.path[:0] = [] if str(ROOT) in sys.path else [str(ROOT)]  # benchmarks are not installed

from benchmarks.logs import protocol  # noqa: E402


def naive(variables, rows, error, offsets, floors, m):
    """G(m) row by row, from the docstring alone."""
    needed, wealth = math.log(1 / error) + 2, np.ones(17)
    prior = np.array([(1 + e * e) ** -2.0 for e in range(-8, 9)])
    begin = 0
    while begin < len(variables[0]):
        end = max(2 * begin, 256)
        past = [values[:begin] for values in variables]
        variance = [(((v - v.mean()) ** 2).sum() if begin else 0.0) + 4 for v in past]
        variance = [v / (begin + 1) for v in variance]
        limit = [0.9 / floor if floor else math.inf for floor in floors]
        deepest = [max(-v.min(), 1e-12) if begin and v.min() < 0 else 1e-12 for v in past]
        most = [min(x, 0.45 / d) if x < math.inf else x for x, d in zip(limit, deepest, strict=True)]
        stake = [min(math.sqrt(2 * needed / (rows * v)), x) for v, x in zip(variance, most, strict=True)]
        width = [needed / (s * rows) + s * v / 2 for s, v in zip(stake, variance, strict=True)]
        best = int(np.argmin(width)) if begin and min(width) < 0.97 * width[0] else 0
        stakes = np.minimum(stake[best] * 2.0 ** np.arange(-8, 9), limit[best])
        for x in variables[best][begin:end]:
            wealth *= (1 + stakes * x) / (1 + stakes * (m - offsets[best]))
        begin = end
    return float(prior @ wealth / prior.sum())


@pytest.mark.parametrize("rows", [100, 256, 700, 1500])
def test_the_bound_is_where_the_definition_reaches_the_level(rows):
    rng = np.random.default_rng(rows)
    weight, y = rng.choice([0.2, 1.0, 3.0], size=rows, p=[0.5, 0.35, 0.15]), rng.random(rows) < 0.05
    offsets, floors = [0.0, 0.5, 1.0], [0.0, 1.5, 3.0]
    variables = [weight * ((1 - y) - c) for c in offsets]
    bets = PlugIn(rows, 0.02, offsets, floors)
    for part in np.split(np.array(variables), [1, 7, rows // 2, rows - 3], axis=1):
        bets.add(list(part))
    bound = bets.lower_bound(0.0, 1.0)
    assert 0.3 < bound < 0.95
    assert naive(variables, rows, 0.02, offsets, floors, bound) == pytest.approx(50.0, rel=1e-6)


def test_evidence_against_the_truth_averages_one(monkeypatch):
    """All outcomes of six rows in blocks of two, the second of which depends on the first: E G(μ) = 1."""
    monkeypatch.setattr(plugin, "FIRST", 2)
    values, chance = np.array([0.0, 4.0]), 0.3
    truth, average = 1.2, 0.0
    for outcome in itertools.product((0, 1), repeat=6):
        x = values[list(outcome)]
        bets = PlugIn(6, 0.05, [0.0, 1.0], [0.0, 1.0])
        bets.add([x, x - 1.0])
        laid = bets.laid()
        weight = np.prod(np.where(outcome, chance, 1 - chance))
        average += weight * math.exp(laid.log_evidence(bets.earned(), truth))
    assert average == pytest.approx(1.0, rel=1e-9)


def test_one_sided_bounds_err_no_more_often_than_they_may():
    """Weights without variance (Pareto, index 1.5), 1,000 logs of 600 rows at error 0.2, and payoffs that are rare.

    If the error were 0.2, this would fail with a probability of 0.7%.
    """
    rng, failures = np.random.default_rng(3), np.zeros(2, int)
    for _ in range(1000):
        heavy, rare = PlugIn(600, 0.2, [0.0], [0.0]), PlugIn(600, 0.2, [0.0], [0.0])
        heavy.add([(rng.pareto(1.5, 600) + 1) / 3])
        rare.add([(rng.random(600) < 0.02) * 1.0])
        failures += heavy.lower_bound(0.0, 10.0) > 1.0, rare.lower_bound(0.0, 1.0) > 0.02
    assert (failures <= stats.binom.isf(0.007, 1000, 0.2)).all()
    assert failures.any()  # the test can see failures


@pytest.mark.parametrize("chance", [0.5, 0.02])
def test_they_are_narrower_than_constant_stakes(chance):
    rng = np.random.default_rng(8)
    widths = []
    for _ in range(20):
        x = (rng.random(5000) < chance) * 1.0
        plug, constant = PlugIn(5000, 0.01, [0.0], [0.0]), Constant(ConstantBets.on(5000, 0.01, [0.0], [0.0]))
        for bets in (plug, constant):
            bets.add([x])
        widths.append([chance - bets.lower_bound(0.0, 1.0) for bets in (plug, constant)])
    ours, theirs = np.mean(widths, axis=0)
    assert ours < 0.93 * theirs


def test_nothing_is_known_before_the_first_row_and_huge_values_do_no_harm():
    assert PlugIn(10, 0.1, [0.0], [0.0]).lower_bound(0.0, 1.0) == 0.0
    bets = PlugIn(1000, 0.1, [0.0], [0.0])
    bets.add([np.full(1000, 1e300)])
    assert bets.lower_bound(0.0, 1.0) == 1.0


@pytest.mark.parametrize("name", ["vehicle", "yeast"])
def test_the_protocol_of_logarithmic_smoothing(name):
    """45 settings, each once: about as tight as the single stake that its authors propose, or tighter."""
    found = [(truth, protocol.bounds(gain)) for truth, gain in protocol.logs(name, np.random.default_rng(5))]
    mean = {
        method: np.mean([protocol.radius(truth, bound[method]) for truth, bound in found])
        for method in ("ours", "one stake", "hindsight")
    }
    assert mean["hindsight"] <= mean["ours"] <= 1.03 * mean["one stake"]
    assert sum(bound["ours"] > truth for truth, bound in found) <= stats.binom.isf(1e-4, 45, 0.05)
