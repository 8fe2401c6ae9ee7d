"""The Gaussian process under Auto against its definition: dense matrices of numpy."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import multivariate_normal, norm

from randomist.importance.passes import surface as passes
from randomist.learners.box.auto import surface as surfaces
from randomist.learners.box.auto.interval import SHARES, Report, Rippled, possible, rippled
from randomist.learners.box.auto.samples import GRAIN, Payoffs, once
from randomist.learners.box.auto.search import LARGEST, SMALLEST, STEP, Landscape, room, scale_at
from randomist.learners.box.auto.surface import LENGTHS, NOISES, USUAL, Evidence, likeliest, surface

NONE = np.empty((0, 3))


def matern(points, others, length):
    r = math.sqrt(5) * cdist(points, others) / length
    return (1 + r + r**2 / 3) * np.exp(-r)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def problem(rng, n=60, d=3, noise=0.1):
    points = rng.random((n, d))
    return points, np.sin(3 * points).sum(axis=1) + noise * rng.standard_normal(n)


def naive(samples, payoffs, length, noise):
    """Level and variance at their best, and the weights, by dense algebra."""
    matrix = matern(samples, samples, length) + noise * np.eye(len(payoffs))
    inverse, ones = np.linalg.inv(matrix), np.ones(len(payoffs))
    level = ones @ inverse @ payoffs / (ones @ inverse @ ones)
    variance = (payoffs - level) @ inverse @ (payoffs - level) / len(payoffs)
    return level, variance, inverse @ (payoffs - level), inverse


def test_posterior_equals_dense_algebra(rng):
    samples, payoffs = problem(rng)
    found = surface(samples, once(payoffs), 4, 3, NONE)
    length = LENGTHS[4] * math.sqrt(3)
    noise = NOISES[3] * (1 - matern(samples, samples, length).mean())
    level, variance, weights, inverse = naive(samples, payoffs, length, noise)
    points = rng.random((20, 3))
    cross = matern(points, samples, length)
    np.testing.assert_allclose(found.means(points), level + cross @ weights, rtol=1e-10)
    left = variance * (1 - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    mean, deviation = found.posterior(points)
    np.testing.assert_allclose(mean, level + cross @ weights, rtol=1e-10)
    np.testing.assert_allclose(deviation**2, left, rtol=1e-8, atol=1e-12)
    cautious = np.minimum(mean, payoffs.max()) - surfaces.CAUTION * deviation
    np.testing.assert_allclose(found.cautious(points), cautious, rtol=1e-12)
    assert (found.level, found.variance, found.noise) == pytest.approx((level, variance, noise * variance), rel=1e-10)


def test_evidence_is_the_likelihood_at_the_best_level_and_variance(rng):
    samples, payoffs = problem(rng, n=25)
    length, noise = 0.7, 0.2
    level, variance, _, _ = naive(samples, payoffs, length, noise)
    covariance = variance * (matern(samples, samples, length) + noise * np.eye(25))
    expected = multivariate_normal(np.full(25, level), covariance).logpdf(payoffs)
    got = passes.regress(matern(samples, samples, length), noise, *once(payoffs)[:3])[-1]
    assert got - 12.5 * (1 + math.log(2 * math.pi)) == pytest.approx(expected, rel=1e-12)


def test_plays_of_one_point_say_as_much_together(rng):
    """Points that are played several times: all plays in one dense model, and their means with what scatters."""
    points, plays = rng.random((12, 3)), rng.integers(1, 6, size=12)
    all_points = np.repeat(points, plays, axis=0)
    payoffs = np.sin(3 * all_points).sum(axis=1) + 0.3 * rng.standard_normal(len(all_points))
    means = np.array([group.mean() for group in np.split(payoffs, np.cumsum(plays)[:-1])])
    scatter = float(np.sum((payoffs - np.repeat(means, plays)) ** 2))
    length, noise, n = 0.7, 0.2, len(payoffs)
    level, variance, _, inverse = naive(all_points, payoffs, length, noise)
    covariance = variance * (matern(all_points, all_points, length) + noise * np.eye(n))
    expected = multivariate_normal(np.full(n, level), covariance).logpdf(payoffs)
    got = passes.regress(matern(points, points, length), noise, means, plays.astype(float), scatter)
    assert got[:2] == pytest.approx((level, variance), rel=1e-10)
    constant = 0.5 * n * (1 + math.log(2 * math.pi)) + 0.5 * np.log(plays).sum()
    assert got[-1] - constant == pytest.approx(expected, rel=1e-10)
    together = Payoffs(means, plays.astype(float), scatter, payoffs.max())
    assert together.total == n
    assert together.variance == pytest.approx(payoffs.var(), rel=1e-12)
    found, new = surface(points, together, 4, 3, NONE), rng.random((20, 3))
    ratio = found.noise / found.variance
    level, variance, weights, inverse = naive(all_points, payoffs, found.length, ratio)
    cross = matern(new, all_points, found.length)
    mean, deviation = found.posterior(new)
    np.testing.assert_allclose(mean, level + cross @ weights, rtol=1e-9)
    left = variance * (1 - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    np.testing.assert_allclose(deviation**2, left, rtol=1e-7)
    assert found.ceiling == payoffs.max()


def test_within_a_grain_mean_payoffs_differ_by_a_part_of_the_noise(rng):
    """Draws of the process itself, at points of one cell: their variance beside that of the noise."""
    samples, payoffs = problem(rng, n=80, noise=0.5)
    evidence = Evidence(samples, once(payoffs))
    for at in ((3, 3), (4, 5), (5, 2)):
        width = evidence.grain(at)
        cell = 0.5 + width * (rng.random((400, 3)) - 0.5)
        covariance = matern(cell, cell, LENGTHS[at[0]] * math.sqrt(3))
        within = 1 - covariance.mean()  # of the signal, on average over draws
        noise = NOISES[at[1]] * (1 - matern(samples, samples, LENGTHS[at[0]] * math.sqrt(3)).mean())
        assert within == pytest.approx(surfaces.SHARE * noise, rel=0.15)  # of 400 points, and to the first order
    fit = likeliest(samples, once(payoffs), *USUAL)
    assert fit.grain == min(max(evidence.grain(fit[:2]), GRAIN[0]), GRAIN[1])


def test_covariances_equal_the_kernel(rng):
    samples, _ = problem(rng)
    apart = passes.distances(samples)
    np.testing.assert_allclose(apart, cdist(samples, samples), rtol=1e-14, atol=1e-16)
    np.testing.assert_array_equal(passes.covariances(apart, 0.3), passes.kernel(samples, samples, 0.3))
    np.testing.assert_allclose(passes.kernel(samples, samples[:5], 0.3), matern(samples, samples[:5], 0.3), rtol=1e-13)


def test_slope_is_the_gradient(rng):
    samples, payoffs = problem(rng)
    found = surface(samples, once(payoffs), 4, 3, NONE)
    for point in rng.random((5, 3)):
        shifts = 1e-6 * np.eye(3)
        expected = (found.means(point + shifts) - found.means(point - shifts)) / 2e-6
        slope = passes.slope(point, found.samples, found.length, found.weights)
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


def test_climbing_goes_uphill_and_stays_in_the_cube(rng):
    samples, payoffs = problem(rng)
    found, steps = surface(samples, once(payoffs), 4, 3, NONE), np.array([0.01, 0.1, 0.5])
    for start in rng.random((10, 3)):
        path = np.concatenate([start[None], found.uphill(start, steps)])
        assert ((path >= 0) & (path <= 1)).all()
        assert found.means(path)[1] > found.means(path)[0]  # the first step is short enough
        lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
        assert (lengths <= 0.5 + 1e-12).all()
    flat = surface(samples, once(np.full(60, 0.5)), 4, 3, NONE)
    assert flat.uphill(start, steps).shape == (0, 3)


def test_what_is_pending_counts_as_if_it_paid_what_is_expected(rng):
    samples, payoffs = problem(rng)
    before, pending = surface(samples, once(payoffs), 4, 3, NONE), rng.random((4, 3))
    after = surface(samples, once(payoffs), 4, 3, pending)
    points = rng.random((20, 3))
    np.testing.assert_allclose(after.means(points), before.means(points), rtol=1e-8)  # no surprise, no change
    left = before.posterior(pending)[1] ** 2  # and yet less to be seen there: what one look alone leaves, at most
    assert (after.posterior(pending)[1] ** 2 <= left * before.noise / (left + before.noise) * (1 + 1e-8)).all()
    apart = passes.distances(np.concatenate([samples, pending]))
    again = surface(samples, once(payoffs), 4, 3, pending, apart)
    np.testing.assert_array_equal(again.means(points), after.means(points))


def test_taught_is_what_one_payoff_changes(rng):
    samples, payoffs = problem(rng)
    found = surface(samples, once(payoffs), 4, 3, NONE)
    length, ratio = LENGTHS[4] * math.sqrt(3), found.noise / found.variance
    for point in rng.random((10, 3)):
        (mean,), (deviation,) = found.posterior(point[None])
        more = np.vstack([samples, point])
        usual_surprise = math.sqrt(deviation**2 + found.noise)
        told = np.append(payoffs, mean + usual_surprise) - found.level
        weights = np.linalg.solve(matern(more, more, length) + ratio * np.eye(len(more)), told)
        after = found.level + (matern(point[None], more, length) @ weights)[0]
        (same,), (taught,) = found.taught(point[None])
        assert same == mean
        assert taught == pytest.approx(after - mean, rel=1e-7)


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
@pytest.mark.parametrize(("d", "patience"), [(3, 1.0), (16, 1.0), (64, math.sqrt(2))])
def test_a_cloud_is_as_wide_as_its_plays_teach(rng, d, patience, noise):
    """The first of all scales, from the largest, at which it loses no more than twice what one of its plays teaches."""
    samples = rng.random((80, d))
    payoffs = -np.sum((samples - 0.5) ** 2, axis=1) + noise * rng.standard_normal(80)
    found = surface(samples, once(payoffs), 4, 1 if noise == 0 else 4, np.empty((0, d)))
    land = Landscape(found, found, -math.inf, 1.0, 0.0)
    best, half = np.full(d, 0.5), rng.standard_normal((8, d))
    cloud = np.concatenate([half, -half])

    def pays(scale, most_lost, patience):
        points = np.clip(best + scale * cloud, 0, 1)
        mean, deviation = found.posterior(points)
        loss, below = found.means(best[None])[0] - mean.mean(), payoffs.max() + math.sqrt(found.noise) - mean
        twice = patience * 2 * deviation**2 / np.sqrt(deviation**2 + found.noise)
        most = np.minimum(np.minimum(np.maximum(below, 0), twice), patience * most_lost)
        return loss <= twice.mean() and loss <= most.mean()

    def widest(most_lost, patience):
        scale = LARGEST
        while scale > SMALLEST and not pays(scale, most_lost, patience):
            scale = max(STEP * scale, SMALLEST)
        return scale

    for most_lost in (math.inf, 0.02, 0.0):
        scale = scale_at(land._replace(room=most_lost), best, LARGEST, cloud)
        assert scale == widest(most_lost, patience)
        assert scale_at(land._replace(room=most_lost), best, scale, cloud) == scale
    assert scale == SMALLEST  # there is nothing to find
    if d == 64:
        assert scale_at(land._replace(room=0.02), best, LARGEST, cloud) > widest(0.02, patience=1.0)


@pytest.mark.parametrize("pending", [0, 7])
def test_noise_near_a_point_is_the_median_of_what_the_surface_leaves_there(rng, pending):
    """Loud on one side, quiet on the other; the residuals of the definition, several plays of a point counted."""
    samples, d = rng.random((120, 2)), 2
    loud = samples[:, 0] > 0.5
    payoffs = np.sin(3 * samples[:, 1]) + np.where(loud, 1.0, 0.05) * rng.standard_normal(120)
    plays = rng.integers(1, 5, 120).astype(float)
    found = surface(samples, Payoffs(payoffs, plays, 3.0, float(payoffs.max())), 4, 4, rng.random((pending, d)))
    for point in (np.array([0.1, 0.4]), np.array([0.9, 0.6])):
        near = sorted(range(120), key=lambda i: math.dist(samples[i], point))[: 10 + d]
        left = [abs(payoffs[i] - found.means(samples[i][None])[0]) * math.sqrt(plays[i]) for i in near]
        assert found.noise_near(point) == pytest.approx(np.median(left) / norm.ppf(0.75), rel=1e-4)
    assert found.noise_near(np.array([0.9, 0.6])) > 5 * found.noise_near(np.array([0.1, 0.4]))


def test_what_noise_hides_is_the_least_that_a_search_must_lose():
    """dσ/√n: cds² + dσ²/(4cs²n) is no less for any scale s and any curvature c, and as small as that for one s."""
    d, n, sigma, scales = 3, 50, 0.7, np.geomspace(1e-3, 1e3, 4001)
    for curvature in (0.1, 1.0, 30.0):
        lost = curvature * d * scales**2 + d * sigma**2 / (4 * curvature * scales**2 * n)
        assert lost.min() == pytest.approx(d * sigma / math.sqrt(n), rel=1e-4)


def test_there_is_more_to_find_where_the_best_payoffs_differ_or_noise_hides_it(rng):
    samples = rng.random((60, 2))
    none, best = np.empty((0, 2)), np.array([0.5, 0.5])
    coins = surface(samples, once((rng.random(60) < 0.5).astype(float)), 4, 6, none)
    plain = surface(samples, once(np.minimum(samples.sum(axis=1), 0.5)), 4, 0, none)  # a ceiling without noise
    assert room(coins, best, 60, 0.0) == pytest.approx(2 * coins.noise_near(best) / math.sqrt(60))
    assert room(coins, best, 60, 0.0) > 20 * room(plain, best, 60, 0.0)
    assert room(plain, best, 60, 0.25) == 0.25


def test_the_likeliest_neighbour_is_found(rng):
    samples, payoffs = problem(rng, n=120, noise=0.3)
    at = likeliest(samples, once(payoffs), *USUAL)

    def evidence(i, j):
        matrix = matern(samples, samples, LENGTHS[i] * math.sqrt(3))
        doubt = sum(d * (a - u) ** 2 for d, a, u in zip(surfaces.DOUBT, (i, j), USUAL, strict=True))
        return passes.regress(matrix, NOISES[j] * (1 - matrix.mean()), *once(payoffs)[:3])[-1] - doubt

    best = max((evidence(i, j), (i, j)) for i in range(len(LENGTHS)) for j in range(len(NOISES)))[1]
    assert at[:2] == best  # here there is one hill of evidence
    assert likeliest(samples, once(payoffs), *best)[:2] == best
    assert at.gain == pytest.approx(evidence(*best) + 60 * math.log(payoffs.var()), rel=1e-10)
    first, others = possible(samples, once(payoffs))
    assert first.length == LENGTHS[best[0]] * math.sqrt(3)
    assert others


def with_ripples(rng, height, n=200):
    """A hill under ripples, near its top and elsewhere, and noise."""
    points = np.concatenate([rng.random((n // 2, 2)), 0.5 + 0.05 * rng.standard_normal((n // 2, 2))])
    hill = -4 * np.sum((points - 0.5) ** 2, axis=1) + height * np.cos(60 * points).sum(axis=1)
    return points, hill + 0.2 * rng.standard_normal(n)


def test_a_rippled_surface_equals_dense_algebra(rng):
    samples, payoffs = with_ripples(rng, 0.3)
    evidence = Evidence(samples, once(payoffs))
    at = 4, 4
    found = rippled(evidence, at)
    assert found
    points = np.concatenate([rng.random((10, 2)), samples[-10:]])
    for one in found:
        smooth, fine = one.lengths
        noise = NOISES[4] * (1 - matern(samples, samples, smooth).mean())

        def kernel(a, b, one=one, smooth=smooth, fine=fine):
            return matern(a, b, smooth) + one.height * matern(a, b, fine)

        assert smooth == LENGTHS[4] * math.sqrt(2)
        assert one.height / noise == pytest.approx(min(SHARES, key=lambda share: abs(share - one.height / noise)))
        inverse, ones = np.linalg.inv(kernel(samples, samples) + noise * np.eye(200)), np.ones(200)
        level = ones @ inverse @ payoffs / (ones @ inverse @ ones)
        variance = (payoffs - level) @ inverse @ (payoffs - level) / 200
        cross = kernel(points, samples)
        left = variance * (1 + one.height - np.einsum("ij,jk,ik->i", cross, inverse, cross))
        mean, deviation = one.posterior(points)
        np.testing.assert_allclose(mean, level + cross @ inverse @ (payoffs - level), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(deviation**2, left, rtol=1e-8, atol=1e-12)
        assert one.noise == pytest.approx(noise * variance)
        assert one.variance == pytest.approx((1 + one.height) * variance)


def test_all_rippled_surfaces_are_likelier_than_the_one_without(rng):
    """Log likelihoods by scipy's density of all payoffs."""
    samples, payoffs = with_ripples(rng, 0.3, n=80)

    def likelihood(matrix, noise):
        level, variance = passes.regress(matrix, noise, *once(payoffs)[:3])[:2]
        return multivariate_normal.logpdf(payoffs, np.full(80, level), variance * (matrix + noise * np.eye(80)))

    smooth = matern(samples, samples, LENGTHS[4] * math.sqrt(2))
    noise = NOISES[4] * (1 - smooth.mean())
    preferred = {
        (LENGTHS[i] * math.sqrt(2), share * noise)
        for i in range(4)
        for share in SHARES
        if likelihood(smooth + share * noise * matern(samples, samples, LENGTHS[i] * math.sqrt(2)), noise)
        > likelihood(smooth, noise)
    }
    found = {(one.lengths[1], one.height) for one in rippled(Evidence(samples, once(payoffs)), (4, 4))}
    assert 0 < len(preferred) < 4 * len(SHARES)
    assert np.array(sorted(found)) == pytest.approx(np.array(sorted(preferred)))


def test_ripples_that_show_make_an_interval_wider():
    """On ten draws each, of ripples as large as the noise and of none."""
    top, ratios = np.full((1, 2), 0.5), {0.0: [], 0.2: []}
    for seed in range(10):
        for height, found in ratios.items():
            samples, payoffs = with_ripples(np.random.default_rng(seed), height)
            first, others = possible(samples, once(payoffs))
            plain = [first, *(one for one in others if not isinstance(one, Rippled))]
            widths = [
                np.diff(Report(which[0], which[1:], 0.0, 1.0, 9).bounds(top, 0.95), axis=0)[0, 0]
                for which in ([first, *others], plain)
            ]
            found.append(widths[0] / widths[1] if np.isfinite(widths[0]) else math.inf)  # or unsupported
    assert np.median(ratios[0.0]) < 1.1
    assert np.median(ratios[0.2]) > 1.2


def test_noise_gains_nothing_from_a_surface(rng):
    samples = rng.random((150, 3))
    noise = rng.standard_normal(150)
    assert likeliest(samples, once(noise), *USUAL).gain < 5  # 3 more nats than by chance is e^-3
    assert likeliest(samples, once(np.sin(3 * samples).sum(axis=1) + 0.3 * noise), *USUAL).gain > 50


def test_far_from_samples_it_knows_nothing(rng):
    samples, payoffs = 0.1 * rng.random((30, 3)), rng.random(30)
    found = surface(samples, once(payoffs), 0, 3, NONE)
    far = np.full((1, 3), 0.9)
    assert found.means(far)[0] == pytest.approx(found.level, rel=1e-6)
    assert found.posterior(far)[1][0] ** 2 == pytest.approx(found.variance, rel=1e-6)
    assert found.cautious(far)[0] < found.cautious(samples[[int(np.argmax(found.means(samples)))]])[0]


def test_equal_points_and_equal_payoffs_are_no_error(rng):
    for samples, payoffs in ((np.full((20, 3), 0.5), rng.random(20)), (rng.random((20, 3)), np.full(20, 0.5))):
        for noise in range(len(NOISES)):
            found = surface(samples, once(payoffs), 7, noise, NONE)
            assert np.isfinite(found.posterior(samples)).all()
    at = likeliest(np.full((20, 3), 0.5), once(rng.random(20)), *USUAL)
    assert 0 <= at[0] < len(LENGTHS)
    assert 0 <= at[1] < len(NOISES)


def test_ranks_decide_among_points_that_are_not_clearly_worse_by_payoff(rng):
    """Ranks rise to the right; payoffs fall off a cliff there."""
    samples = rng.random((200, 2))
    scores, payoffs = samples[:, 0], np.where(samples[:, 0] < 0.7, 0.9, 0.0) + 0.01 * rng.standard_normal(200)
    none = np.empty((0, 2))
    by_score, by_payoff = surface(samples, once(scores), 4, 1, none), surface(samples, once(payoffs), 2, 1, none)
    found = Landscape(by_score, by_payoff, 0.9, 1.0, 0.0)
    line = np.stack([np.linspace(0.05, 0.95, 91), np.full(91, 0.5)], axis=1)
    best = line[int(np.argmax(found.values(line)))]
    assert 0.55 < best[0] < 0.72  # as far as payoffs go
    assert line[int(np.argmax(by_score.cautious(line)))][0] > 0.9
