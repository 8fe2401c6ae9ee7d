"""What is known about the world: p_x, the distribution of the mediator under each decision."""

from randomist.families.base import Family
from randomist.families.gaussian import Gaussian

__all__ = ["Family", "Gaussian"]
