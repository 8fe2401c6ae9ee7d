"""The loop: a learner on a task or a plain function, for one seed or many."""

from randomist.simulation.loop import optimize
from randomist.simulation.many import optimize_many, run_all, run_one
from randomist.simulation.rounds import Outcome
from randomist.simulation.run import Run

__all__ = ["Outcome", "Run", "optimize", "optimize_many", "run_all", "run_one"]
