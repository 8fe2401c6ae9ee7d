"""Families that their tests share: asymmetric and ill-scaled, so that signs and transposes show."""

from __future__ import annotations

import math

from randomist.families import Categorical, Dirac, Gaussian, Mixed, TruncatedGaussian, Uniform
from tests import problems

ORDERS = [0.5, 1.0, 2.0, 3.0]
ALL_ORDERS = [0.05, 0.5, 0.9, 1.0, 1.0 + 1e-9, 1.5, 2.0, 3.0, 20.0, math.inf]

GAUSSIANS = problems.GAUSSIANS.family
PLANE = Gaussian(mean=[[0.0, 100.0], [0.3, 80.0], [-2.0, 130.0]], std=[[0.5, 40.0], [0.6, 31.0], [0.45, 33.0]])
BOXES = Uniform(low=[0.0, 0.2, -1.0, 0.9, 7.0], high=[1.0, 0.7, 3.0, 4.0, 8.0])
TABLE = Categorical([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]])
POINTS = Dirac(at=[0.25, 1.0, 1.0, -3.0])
MIXTURE = Mixed((Uniform(0, 1), Dirac(0.25), Gaussian([0.1, 0.6], [0.5, 0.2]), Categorical([0.5, 0.5]), Dirac(1)))
LOCATION = Gaussian(std=[0.15, 3.0])
TRUNCATED = TruncatedGaussian(mean=[0.0, 0.55, 0.9, 1.7, -4.0], std=[0.3, 0.02, 40.0, 0.6, 0.9], low=-0.2, high=1.0)
TRUNCATED_PLANE = TruncatedGaussian(
    mean=[[0.0, 100.0], [0.3, 80.0], [1.4, 130.0]],
    std=[[0.5, 40.0], [0.1, 9.0], [0.45, 330.0]],
    low=[0, 60],
    high=[1, 150],
)

FAMILIES = {
    "gaussian": GAUSSIANS,
    "gaussian-2d": PLANE,
    "gaussian-one": Gaussian(mean=-3.0, std=1e-4),
    "truncated": TRUNCATED,
    "truncated-2d": TRUNCATED_PLANE,
    "truncated-one": TruncatedGaussian(mean=3.0, std=1e-4, low=-50.0, high=3.0),
    "uniform": BOXES,
    "uniform-2d": Uniform(low=[[0.0, -50.0], [0.1, -20.0]], high=[[1.0, 50.0], [0.7, 90.0]]),
    "categorical": TABLE,
    "categorical-one": Categorical([0.25, 0.75]),
    "dirac": POINTS,
    "dirac-2d": Dirac(at=[[0.0, 1.0], [0.0, 2.0]]),
    "mixed": MIXTURE,
    "mixed-2d": Mixed((PLANE, Dirac(at=[[0.0, 100.0]]), Uniform(low=[[-1.0, 60.0]], high=[[1.0, 140.0]]))),
    "mixed-truncated": Mixed((TruncatedGaussian(0.2, 0.3, 0, 1), Dirac(0.25), TruncatedGaussian([0.4, 1], 0.1, 0, 1))),
    "mixed-alike": Mixed((Gaussian(0.0, 1.0), Gaussian(0.5, 1.2))),
}
