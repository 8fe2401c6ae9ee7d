"""One file per algorithm; each says how an estimate becomes a choice."""

from randomist.learners.auto import Auto
from randomist.learners.base import Learner, Trial, load
from randomist.learners.box import BoxLearner
from randomist.learners.finite import BanditLearner, FiniteLearner, SharedHistoryLearner
from randomist.learners.ftl import FollowTheLeader
from randomist.learners.gp_ucb import GPUCB
from randomist.learners.grid_optimist import GridOptimist
from randomist.learners.mcmc_randomist import MCMCRandomist
from randomist.learners.optimist import Optimist
from randomist.learners.pgpe import PGPE
from randomist.learners.phe import PerturbedHistory
from randomist.learners.pois import POIS
from randomist.learners.prospector import Prospector
from randomist.learners.randomist import Randomist
from randomist.learners.realist import Realist
from randomist.learners.thompson import ThompsonSampling
from randomist.learners.ucb1 import UCB1

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
