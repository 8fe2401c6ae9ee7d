"""What is known about the world: p_x, the distribution of the mediator under each decision."""

from randomist.families.base import Family
from randomist.families.categorical import Categorical
from randomist.families.dirac import Dirac
from randomist.families.gaussian import Gaussian
from randomist.families.location_scale import LocationScale
from randomist.families.mixed import Mixed
from randomist.families.registry import family_from_state
from randomist.families.truncated_gaussian import TruncatedGaussian
from randomist.families.uniform import Uniform

__all__ = [
    "Categorical",
    "Dirac",
    "Family",
    "Gaussian",
    "LocationScale",
    "Mixed",
    "TruncatedGaussian",
    "Uniform",
    "family_from_state",
]
