"""The contracts, as functions for your own tests: what a family and a learner must keep."""

from randomist.testing.family import check_family
from randomist.testing.learner import check_learner

__all__ = ["check_family", "check_learner"]
