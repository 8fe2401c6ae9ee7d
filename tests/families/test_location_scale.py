"""LocationScale: the decision includes the scale; in a box it is truncated."""

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

import randomist as rd
from randomist.testing import check_family


@pytest.mark.parametrize(
    ("family", "decisions"),
    [
        (rd.LocationScale(unit=2.0), [[0.0, 0.5], [0.3, 0.6], [-1.0, 0.55]]),
        (rd.LocationScale(unit=[2.0, 20.0]), [[0.0, 10.0, 0.1], [0.2, 11.0, 0.13], [0.1, 9.0, 0.11]]),
    ],
)
def test_location_scale_keeps_the_contract_of_families(family, decisions):
    check_family(family, decisions=np.array(decisions))


def test_location_scale_is_a_gaussian_of_that_std():
    family = rd.LocationScale(unit=[2.0, 20.0])
    z = np.array([[0.1, 12.0], [1.0, 3.0]])
    expected = norm.logpdf(z, loc=[0.5, 10.0], scale=[0.2, 2.0]).sum(axis=1)
    np.testing.assert_allclose(family.log_density([[0.5, 10.0, 0.1]], z)[0], expected, rtol=1e-13)
    wide, narrow = [0.5, 10.0, 0.1], [0.5, 10.0, 0.05]
    assert np.isfinite(family.log_renyi([narrow], [wide])[0, 0])
    assert family.log_renyi([wide], [narrow])[0, 0] == np.inf  # a variance of at most half of p's cannot cover it


def test_location_scale_refuses_a_scale_of_zero():
    with pytest.raises(rd.errors.ParameterError, match="scale"):
        rd.LocationScale().log_density([[0.0, 0.0]], [0.0])
    with pytest.raises(rd.errors.ParameterError, match="unit"):
        rd.LocationScale(unit=[1.0, 0.0])


def test_in_a_box_it_is_truncated():
    box = rd.Box(rd.LocationScale(unit=[2.0, 20.0]), [-1, 0, 0.0], [1, 20, 0.2])
    family, decisions = box.family, np.array([[-0.9, 19.0, 0.1], [0.3, 10.0, 0.2]])
    draws = family.sample(np.repeat(decisions, 500, axis=0), np.random.default_rng(0))
    assert ((draws >= [-1, 0]) & (draws <= [1, 20])).all()
    z = np.array([[-0.95, 18.0], [0.2, 1.0], [1.1, 5.0]])
    expected = np.array(
        [
            [
                sum(
                    truncnorm.logpdf(z[j, k], (low - x[k]) / s, (high - x[k]) / s, loc=x[k], scale=s)
                    for k, (low, high, s) in enumerate([(-1, 1, 2 * x[2]), (0, 20, 20 * x[2])])
                )
                for j in range(3)
            ]
            for x in decisions
        ]
    )
    np.testing.assert_allclose(family.log_density(decisions, z), expected, rtol=1e-10)
    assert np.isfinite(family.log_renyi(decisions, decisions)).all()  # unlike in the whole plane
    again = rd.spaces.space_from_state(box.state()).family
    np.testing.assert_array_equal(again.log_density(decisions, z), family.log_density(decisions, z))


def test_at_scale_zero_it_is_the_point_itself():
    box = rd.Box(rd.LocationScale(unit=2.0), [-1, 0.0], [1, 0.2])
    assert box.family.draw(np.array([0.25, 0.0]), np.random.default_rng(0)) == 0.25
    one, other = (np.random.default_rng(1) for _ in range(2))
    box.family.draw(np.array([0.25, 0.0]), one)
    box.family.draw(np.array([0.25, 0.1]), other)
    assert one.random() == other.random()  # random numbers are counted, not the scales
