"""Choose policies while they run: every rollout informs every policy."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from randomist import _compiled, errors, importance, policies, simulation, tasks, testing, theory  # noqa: F401 (the first drops stale caches)
from randomist.errors import RandomistError
from randomist.families import Categorical, Dirac, Family, Gaussian, LocationScale, Mixed, Uniform
from randomist.histories.finite import Estimates
from randomist.learners import (
    GPUCB,
    LEARNERS,
    PGPE,
    POIS,
    UCB1,
    Auto,
    BanditLearner,
    BoxLearner,
    FiniteLearner,
    FollowTheLeader,
    GridOptimist,
    Learner,
    MCMCRandomist,
    Optimist,
    PerturbedHistory,
    Prospector,
    Randomist,
    Realist,
    SharedHistoryLearner,
    ThompsonSampling,
    Trial,
    load,
)
from randomist.policies import GaussianPolicy, Linear, Neural, SoftmaxPolicy, load_policy, save_policy
from randomist.policies.episodes import Episode, rollout
from randomist.simulation import Run, optimize, optimize_many
from randomist.spaces import Box, Finite
from randomist.tasks import Task, task, task_ids

if TYPE_CHECKING:
    from randomist.logs import Log as Log
    from randomist.study import Study as Study
    from randomist.study import create_study as create_study
    from randomist.study import load_study as load_study

__version__ = "0.1.0"

__all__ = [
    "GPUCB",
    "LEARNERS",
    "PGPE",
    "POIS",
    "UCB1",
    "Auto",
    "BanditLearner",
    "Box",
    "BoxLearner",
    "Categorical",
    "Dirac",
    "Episode",
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
    "LocationScale",
    "MCMCRandomist",
    "Mixed",
    "Neural",
    "Optimist",
    "PerturbedHistory",
    "Prospector",
    "Randomist",
    "RandomistError",
    "Realist",
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


# On first use, for they need more than the core: where each lives, and the extra that it needs.
_LAZY = {"Log": ("logs", "run")} | dict.fromkeys(("Study", "create_study", "load_study"), ("study", "study"))


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _LAZY[name]
    try:
        return getattr(import_module(f"randomist.{module}"), name)
    except ImportError as missing:
        raise ImportError(
            f"rd.{name} needs the `{extra}` extra ({missing}); pip install 'randomist[{extra}]'"
        ) from missing


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
