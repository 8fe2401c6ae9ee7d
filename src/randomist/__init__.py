"""Choose policies while they run: every rollout informs every policy.

Nothing but this table is loaded by `import randomist`: what a name needs is imported when the name is first used.
"""

from typing import TYPE_CHECKING

from randomist._lookup import lazy

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from randomist import errors as errors
    from randomist import importance as importance
    from randomist import learners as learners
    from randomist import logs as logs
    from randomist import plots as plot  # noqa: F401
    from randomist import policies as policies
    from randomist import simulation as simulation
    from randomist import study as study
    from randomist import tasks as tasks
    from randomist import testing as testing
    from randomist import theory as theory
    from randomist._lookup import register as register
    from randomist.errors import RandomistError as RandomistError
    from randomist.families import Categorical as Categorical
    from randomist.families import Dirac as Dirac
    from randomist.families import Family as Family
    from randomist.families import Gaussian as Gaussian
    from randomist.families import LocationScale as LocationScale
    from randomist.families import Mixed as Mixed
    from randomist.families import TruncatedGaussian as TruncatedGaussian
    from randomist.families import Uniform as Uniform
    from randomist.histories.estimates import Estimates as Estimates
    from randomist.learners import GPUCB as GPUCB
    from randomist.learners import KLUCB as KLUCB
    from randomist.learners import LEARNERS as LEARNERS
    from randomist.learners import PGPE as PGPE
    from randomist.learners import POIS as POIS
    from randomist.learners import UCB1 as UCB1
    from randomist.learners import Auto as Auto
    from randomist.learners import BanditLearner as BanditLearner
    from randomist.learners import BoxLearner as BoxLearner
    from randomist.learners import Confirmation as Confirmation
    from randomist.learners import FiniteLearner as FiniteLearner
    from randomist.learners import FollowTheLeader as FollowTheLeader
    from randomist.learners import GridOptimist as GridOptimist
    from randomist.learners import Identify as Identify
    from randomist.learners import Interval as Interval
    from randomist.learners import Learner as Learner
    from randomist.learners import MCMCRandomist as MCMCRandomist
    from randomist.learners import Optimist as Optimist
    from randomist.learners import PerturbedHistory as PerturbedHistory
    from randomist.learners import Prospector as Prospector
    from randomist.learners import Randomist as Randomist
    from randomist.learners import Realist as Realist
    from randomist.learners import Safe as Safe
    from randomist.learners import SharedHistoryLearner as SharedHistoryLearner
    from randomist.learners import StochasticExperts as StochasticExperts
    from randomist.learners import ThompsonSampling as ThompsonSampling
    from randomist.learners import Trial as Trial
    from randomist.learners import load as load
    from randomist.learners import make as make
    from randomist.logs import Log as Log
    from randomist.parameters import Choice as Choice
    from randomist.parameters import Integer as Integer
    from randomist.parameters import Real as Real
    from randomist.policies import GaussianPolicy as GaussianPolicy
    from randomist.policies import Linear as Linear
    from randomist.policies import Neural as Neural
    from randomist.policies import SoftmaxPolicy as SoftmaxPolicy
    from randomist.policies import load_policy as load_policy
    from randomist.policies import save_policy as save_policy
    from randomist.policies.episodes import Episode as Episode
    from randomist.policies.episodes import rollout as rollout
    from randomist.simulation import Run as Run
    from randomist.simulation import optimize as optimize
    from randomist.simulation import optimize_many as optimize_many
    from randomist.spaces import Box as Box
    from randomist.spaces import Finite as Finite
    from randomist.spaces import Parameters as Parameters
    from randomist.study import Study as Study
    from randomist.study import create_study as create_study
    from randomist.study import delete_study as delete_study
    from randomist.study import load_study as load_study
    from randomist.study import study_names as study_names
    from randomist.tasks import Task as Task
    from randomist.tasks import task as task
    from randomist.tasks import task_ids as task_ids

__version__ = "0.2.0"

_NAMES = {
    "_lookup": "register",
    "errors": "RandomistError",
    "families": "Categorical Dirac Family Gaussian LocationScale Mixed TruncatedGaussian Uniform",
    "histories.estimates": "Estimates",
    "learners": """GPUCB KLUCB LEARNERS PGPE POIS UCB1 Auto BanditLearner BoxLearner Confirmation FiniteLearner
        FollowTheLeader GridOptimist Identify Interval Learner MCMCRandomist Optimist PerturbedHistory Prospector
        Randomist Realist Safe SharedHistoryLearner StochasticExperts ThompsonSampling Trial load make""",
    "logs": "Log",
    "parameters": "Choice Integer Real",
    "policies": "GaussianPolicy Linear Neural SoftmaxPolicy load_policy save_policy",
    "policies.episodes": "Episode rollout",
    "simulation": "Run optimize optimize_many",
    "spaces": "Box Finite Parameters",
    "study": "Study create_study delete_study load_study study_names",
    "tasks": "Task task task_ids",
}
_MODULES = "errors importance learners logs policies simulation study tasks testing theory"
_HOMES = {name: f"randomist.{home}" for home, names in _NAMES.items() for name in names.split()}
_HOMES |= dict.fromkeys(_MODULES.split(), "") | {"plot": "randomist.plots:"}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES, {"randomist.logs": "run", "randomist.study": "study"})
