"""Logged data in, decisions out: off-policy evaluation with finite-sample confidence. Needs polars (extra `run`)."""

from randomist.logs.evaluation import evaluate
from randomist.logs.log import Log, LogArrays
from randomist.logs.problems import Problem
from randomist.logs.report import Evaluation

__all__ = ["Evaluation", "Log", "LogArrays", "Problem", "evaluate"]
