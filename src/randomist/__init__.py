"""Choose policies while they run: every rollout informs every policy."""

from randomist import _compiled, errors, importance, policies, simulation, tasks, testing, theory  # noqa: F401 (the first drops stale caches)
from randomist.errors import RandomistError
from randomist.families import Categorical, Dirac, Family, Gaussian, Mixed, Uniform
from randomist.history import Estimates
from randomist.learners import (
    GPUCB,
    LEARNERS,
    PGPE,
    POIS,
    UCB1,
    BanditLearner,
    BoxLearner,
    FiniteLearner,
    FollowTheLeader,
    GridOptimist,
    Learner,
    MCMCRandomist,
    Optimist,
    PerturbedHistory,
    Randomist,
    SharedHistoryLearner,
    ThompsonSampling,
    Trial,
    load,
)
from randomist.policies import GaussianPolicy, Linear, Neural, SoftmaxPolicy, load_policy, save_policy
from randomist.rollouts import Rollout, rollout
from randomist.simulation import Run, optimize, optimize_many
from randomist.spaces import Box, Finite
from randomist.tasks import Task, task, task_ids

__version__ = "0.1.0"

__all__ = [
    "GPUCB",
    "LEARNERS",
    "PGPE",
    "POIS",
    "UCB1",
    "BanditLearner",
    "Box",
    "BoxLearner",
    "Categorical",
    "Dirac",
    "Estimates",
    "Family",
    "Finite",
    "FiniteLearner",
    "FollowTheLeader",
    "Gaussian",
    "GaussianPolicy",
    "GridOptimist",
    "Learner",
    "Linear",
    "MCMCRandomist",
    "Mixed",
    "Neural",
    "Optimist",
    "PerturbedHistory",
    "Randomist",
    "RandomistError",
    "Rollout",
    "Run",
    "SharedHistoryLearner",
    "SoftmaxPolicy",
    "Task",
    "ThompsonSampling",
    "Trial",
    "Uniform",
    "errors",
    "importance",
    "load",
    "load_policy",
    "optimize",
    "optimize_many",
    "policies",
    "rollout",
    "save_policy",
    "simulation",
    "task",
    "task_ids",
    "tasks",
    "testing",
    "theory",
]
