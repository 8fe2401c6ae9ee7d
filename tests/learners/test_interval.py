"""Intervals at a point of a box: what they say where it is smooth, rough or unknown, and after a confirmation."""

import math

import numpy as np
import pytest
from scipy.stats import binom, t

import randomist as rd
from randomist.errors import ShapeError
from randomist.learners.box.auto import interval as intervals
from randomist.learners.box.auto.samples import once
from randomist.learners.box.auto.surface import surface


def searched(seed=0, rounds=200, payoff_range="running", noise=0.1):
    """A smooth hill in two dimensions, and its true mean payoff."""
    learner, rng = rd.Auto(low=[0, 0], high=1, seed=seed, payoff_range=payoff_range), np.random.default_rng(seed)

    def mean(z):
        return 0.8 - float(np.sum((z - [0.4, 0.7]) ** 2))

    def play(trial):
        learner.tell(trial, mean(trial.mediator) + noise * rng.choice([-1, 1]))

    for _ in range(rounds):
        play(learner.ask())
    return learner, mean, play


def test_intervals_at_the_recommended_point_hold():
    """Eight of ten: at a coverage of 0.93 fewer than that have a chance of 0.03; these seeds are fixed.

    In one run of twenty, by design, replays agree so well by chance that the answer is "unsupported": not in these.
    """
    held = []
    for seed in range(20, 30):
        learner, mean, _ = searched(seed)
        found = learner.interval()
        assert found.basis == "surface"
        assert found.high - found.low < 0.3  # payoffs are between -0.3 and 0.9
        held.append(found.low <= mean(learner.recommend()) <= found.high)
    assert sum(held) >= 8


def test_a_higher_level_is_wider_and_a_point_elsewhere_its_own():
    learner, _, _ = searched()
    narrow, wide = learner.interval(level=0.8), learner.interval(level=0.99)
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high
    np.testing.assert_allclose(narrow.mean, learner.estimate(learner.recommend()[None]).value[0], rtol=1e-9)
    beside = learner.recommend() + 0.02
    assert learner.interval(beside).mean != narrow.mean


def test_where_nothing_is_near_it_is_unsupported_and_no_number():
    rng = np.random.default_rng(0)
    learner = rd.Auto(low=np.zeros(2), high=1, seed=0)
    assert learner.interval([0.5, 0.5]).basis == "unsupported"  # nothing at all
    points = 0.1 * rng.random((60, 2))
    learner.begin(points, np.sin(60 * points).sum(axis=1))
    found = learner.interval([0.9, 0.9])
    assert not found.supported
    assert math.isnan(found.mean)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert "unsupported" in str(found)


def test_nothing_is_said_of_no_points():
    learner, _, _ = searched(3, rounds=20)
    none = np.empty((0, learner.space.dimension))
    estimates, low, high = learner.bands(none)
    assert len(estimates.value) == len(learner.estimate(none).value) == len(low) == len(high) == 0
    with pytest.raises(ShapeError, match="takes one point, got 0"):
        learner.interval(none)


@pytest.mark.parametrize(("d", "above"), [(2, 1.0), (16, 1.0), (81, 2 / 3)])
def test_in_many_dimensions_bounds_lie_lower_and_as_far_apart(d, above):
    """81 dimensions are 81/16 times as many as 16, whose fourth root is 3/2."""
    rng = np.random.default_rng(0)
    samples = 0.5 + 0.01 * rng.standard_normal((120, d))
    found = surface(samples, once(samples[:, 0] + 0.3 * rng.standard_normal(120)), 4, 6, np.empty((0, d)))
    points = np.full((1, d), 0.5)
    mean, deviation = found.posterior(points)
    (low,), (high,) = intervals.Report(found, [], 0.0, 1.0, 9).bounds(points, 0.95)
    louder = max(1.0, found.noise_near(points[0]) / math.sqrt(found.noise))
    half = louder * 1.5 * 1.959964 * deviation[0]
    assert (low, high) == pytest.approx((mean[0] - (2 - above) * half, mean[0] + above * half), rel=1e-5)


def test_a_needle_is_not_supported():
    learner = rd.Auto(low=[0, 0], high=1, seed=1)
    for _ in range(40):
        trial = learner.ask()
        learner.tell(trial, float(np.sum((trial.mediator - 0.5) ** 2) < 0.03))
    learner.begin([[0.9, 0.1]], [5.0])
    assert learner.interval([0.9, 0.1]).basis == "unsupported" or learner.interval([0.9, 0.1]).low < 1


def test_a_confirmation_with_a_known_range_covers():
    """Misses of a 95% interval that assumes only a range: 0 or 1 of 12 are seen with probability 0.88 even at 0.95."""
    held = []
    for seed in range(12):
        learner, mean, play = searched(seed, rounds=40, payoff_range=(-2, 2), noise=0.5)
        point = learner.recommend()
        trials = learner.confirm(50)
        assert all((trial.mediator == point).all() for trial in trials)
        for trial in trials:
            play(trial)
        found = learner.confirmed()
        np.testing.assert_array_equal(found.point, point)
        assert found.plays == 50
        assert found.mean.basis == "range"
        assert found.mean.high - found.mean.low < 1.0  # of a range of 4
        held.append(found.mean.low <= mean(point) <= found.mean.high)
    assert sum(held) >= 11


def test_without_a_range_the_mean_is_asymptotic_and_the_median_is_not():
    learner, _, play = searched()
    for trial in learner.confirm(30):
        play(trial)
    found = learner.confirmed(0.9)
    payoffs = learner.record.payoffs[-30:]
    half = t.ppf(0.95, 29) * payoffs.std(ddof=1) / math.sqrt(30)
    assert found.mean.basis == "asymptotic"
    assert (found.mean.low, found.mean.high) == pytest.approx((payoffs.mean() - half, payoffs.mean() + half))
    assert found.median.basis == "order"
    later = learner.ask()
    assert later.purpose != "confirm"  # the search goes on


def test_the_mean_of_equal_payoffs_is_that_payoff():
    payoff = 0.04308797591892828  # the mean of twenty of them is rounded up
    assert np.full(20, payoff).mean() > payoff
    found = intervals.asymptotic_mean(np.full(20, payoff), 0.95)
    assert found.mean == found.low == found.high == payoff


@pytest.mark.parametrize("n", [1, 5, 6, 20, 50])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_order_statistics_hold_the_median_by_the_binomial(n, level):
    payoffs = np.arange(1.0, n + 1)
    found = intervals.median(payoffs, level)
    if math.isinf(found.low):
        assert 2 * 0.5**n > 1 - level  # even the extremes are too often on one side
        return
    k = int(found.low)  # the k-th smallest, and the k-th largest
    assert found.high == n - k + 1
    assert 2 * binom.cdf(k - 1, n, 0.5) <= 1 - level < 2 * binom.cdf(k, n, 0.5)  # enough, and no more


def test_bounded_means_hold_for_coins():
    """400 samples of 50 coins each: at 0.95, 30 misses or more have a chance of 0.02; betting misses less."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(400):
        p = rng.random()
        found = intervals.bounded_mean((rng.random(50) < p).astype(float), 0.0, 1.0, 0.95)
        missed += not found.low <= p <= found.high
        assert 0 <= found.low <= found.high <= 1
    assert missed < 30


def test_an_interval_of_costs_is_turned():
    found = rd.Interval(1.0, 0.5, 2.0, 0.95, "surface").turned()
    assert found == (-1.0, -2.0, -0.5, 0.95, "surface")
    assert str(rd.Interval(1.0, 0.5, 2.0, 0.95, "range")) == "1 (0.5 to 2, 95%, range)"
