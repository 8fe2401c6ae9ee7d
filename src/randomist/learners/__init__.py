"""One file per algorithm; each says how an estimate becomes a choice. `registry` has their names and makes them."""

from typing import TYPE_CHECKING

from randomist._lookup import lazy
from randomist.learners.registry import LEARNERS, TABLE, make

if TYPE_CHECKING:
    from randomist.learners.base import Learner as Learner
    from randomist.learners.box.auto import Auto as Auto
    from randomist.learners.box.auto.interval import Confirmation as Confirmation
    from randomist.learners.box.auto.interval import Interval as Interval
    from randomist.learners.box.base import BoxLearner as BoxLearner
    from randomist.learners.box.base import FixedStdLearner as FixedStdLearner
    from randomist.learners.box.grid_optimist import GridOptimist as GridOptimist
    from randomist.learners.box.mcmc_randomist import MCMCRandomist as MCMCRandomist
    from randomist.learners.box.pgpe import PGPE as PGPE
    from randomist.learners.box.pois import POIS as POIS
    from randomist.learners.box.prospector import Prospector as Prospector
    from randomist.learners.finite.bandit import BanditLearner as BanditLearner
    from randomist.learners.finite.base import FiniteLearner as FiniteLearner
    from randomist.learners.finite.ftl import FollowTheLeader as FollowTheLeader
    from randomist.learners.finite.gp_ucb import GPUCB as GPUCB
    from randomist.learners.finite.identify import Identify as Identify
    from randomist.learners.finite.klucb import KLUCB as KLUCB
    from randomist.learners.finite.optimist import Optimist as Optimist
    from randomist.learners.finite.phe import PerturbedHistory as PerturbedHistory
    from randomist.learners.finite.randomist import Randomist as Randomist
    from randomist.learners.finite.realist import Realist as Realist
    from randomist.learners.finite.safe import Safe as Safe
    from randomist.learners.finite.sharing import SharedHistoryLearner as SharedHistoryLearner
    from randomist.learners.finite.stochastic_experts import StochasticExperts as StochasticExperts
    from randomist.learners.finite.thompson import ThompsonSampling as ThompsonSampling
    from randomist.learners.finite.ucb1 import UCB1 as UCB1
    from randomist.learners.states import load as load
    from randomist.learners.trial import Trial as Trial

# Where each name is defined; the learners are those of the table.
HOMES = {
    "Learner": "randomist.learners.base",
    "Trial": "randomist.learners.trial",
    "load": "randomist.learners.states",
    "FiniteLearner": "randomist.learners.finite.base",
    "BanditLearner": "randomist.learners.finite.bandit",
    "SharedHistoryLearner": "randomist.learners.finite.sharing",
    **dict.fromkeys(("BoxLearner", "FixedStdLearner"), "randomist.learners.box.base"),
    **dict.fromkeys(("Confirmation", "Interval"), "randomist.learners.box.auto.interval"),
    **{entry.class_name: entry.place.partition(":")[0] for entry in TABLE.values()},
}
__all__ = ["LEARNERS", "make", *HOMES]
__getattr__, __dir__ = lazy(__name__, HOMES)
