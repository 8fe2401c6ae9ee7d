"""The contracts, as functions for your own tests: what a family, a learner and a task must keep."""

from randomist.testing.family import check_family
from randomist.testing.learner import check_learner
from randomist.testing.task import check_task

__all__ = ["check_family", "check_learner", "check_task"]
