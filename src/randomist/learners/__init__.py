"""One file per algorithm; each says how an estimate becomes a choice."""

from randomist.learners.base import Learner, Trial, load
from randomist.learners.box.auto import Auto
from randomist.learners.box.base import BoxLearner
from randomist.learners.box.grid_optimist import GridOptimist
from randomist.learners.box.mcmc_randomist import MCMCRandomist
from randomist.learners.box.pgpe import PGPE
from randomist.learners.box.pois import POIS
from randomist.learners.box.prospector import Prospector
from randomist.learners.finite.base import BanditLearner, FiniteLearner, SharedHistoryLearner
from randomist.learners.finite.ftl import FollowTheLeader
from randomist.learners.finite.gp_ucb import GPUCB
from randomist.learners.finite.optimist import Optimist
from randomist.learners.finite.phe import PerturbedHistory
from randomist.learners.finite.randomist import Randomist
from randomist.learners.finite.realist import Realist
from randomist.learners.finite.thompson import ThompsonSampling
from randomist.learners.finite.ucb1 import UCB1

# The command line's names. A new learner is one file and one line here.
LEARNERS: dict[str, type[Learner]] = {
    "ftl": FollowTheLeader,
    "optimist": Optimist,
    "randomist": Randomist,
    "realist": Realist,
    "ucb1": UCB1,
    "phe": PerturbedHistory,
    "thompson": ThompsonSampling,
    "gp-ucb": GPUCB,
    "mcmc-randomist": MCMCRandomist,
    "pgpe": PGPE,
    "pois": POIS,
    "grid-optimist": GridOptimist,
    "prospector": Prospector,
    "auto": Auto,
}

__all__ = [
    "GPUCB",
    "LEARNERS",
    "PGPE",
    "POIS",
    "UCB1",
    "Auto",
    "BanditLearner",
    "BoxLearner",
    "FiniteLearner",
    "FollowTheLeader",
    "GridOptimist",
    "Learner",
    "MCMCRandomist",
    "Optimist",
    "PerturbedHistory",
    "Prospector",
    "Randomist",
    "Realist",
    "SharedHistoryLearner",
    "ThompsonSampling",
    "Trial",
    "load",
]
