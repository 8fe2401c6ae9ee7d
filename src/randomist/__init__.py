"""Choose policies while they run: every rollout informs every policy."""

from randomist import errors, importance, theory
from randomist.errors import RandomistError
from randomist.families import Categorical, Dirac, Family, Gaussian, Mixed, Uniform
from randomist.history import Estimates
from randomist.learners import (
    GPUCB,
    LEARNERS,
    UCB1,
    BanditLearner,
    FiniteLearner,
    FollowTheLeader,
    Learner,
    Optimist,
    PerturbedHistory,
    Randomist,
    SharedHistoryLearner,
    ThompsonSampling,
    Trial,
    load,
)
from randomist.simulation import Run, optimize, optimize_many
from randomist.spaces import Box, Finite
from randomist.tasks import Task, task, task_ids

__version__ = "0.1.0"

__all__ = [
    "GPUCB",
    "LEARNERS",
    "UCB1",
    "BanditLearner",
    "Box",
    "Categorical",
    "Dirac",
    "Estimates",
    "Family",
    "Finite",
    "FiniteLearner",
    "FollowTheLeader",
    "Gaussian",
    "Learner",
    "Mixed",
    "Optimist",
    "PerturbedHistory",
    "Randomist",
    "RandomistError",
    "Run",
    "SharedHistoryLearner",
    "Task",
    "ThompsonSampling",
    "Trial",
    "Uniform",
    "errors",
    "importance",
    "load",
    "optimize",
    "optimize_many",
    "task",
    "task_ids",
    "theory",
]
