"""Logged data in, decisions out: off-policy evaluation with finite-sample confidence. Needs polars (extra `run`)."""

from typing import TYPE_CHECKING

from randomist._lookup import lazy

if TYPE_CHECKING:
    from randomist.logs.anytime import RunningEvaluation as RunningEvaluation
    from randomist.logs.evaluation import evaluate as evaluate
    from randomist.logs.log import Log as Log
    from randomist.logs.pairs import Difference as Difference
    from randomist.logs.problems import Problem as Problem
    from randomist.logs.report import Evaluation as Evaluation
    from randomist.logs.risk import Risk as Risk
    from randomist.logs.rows import LogArrays as LogArrays
    from randomist.logs.trouble import Trouble as Trouble

_HOMES = {
    "Contenders": "randomist.logs.best",
    "Difference": "randomist.logs.pairs",
    "Evaluation": "randomist.logs.report",
    "Log": "randomist.logs.log",
    "LogArrays": "randomist.logs.rows",
    "Problem": "randomist.logs.problems",
    "Risk": "randomist.logs.risk",
    "RunningEvaluation": "randomist.logs.anytime",
    "Trouble": "randomist.logs.trouble",
    "evaluate": "randomist.logs.evaluation",
}

__all__ = [
    "Contenders",
    "Difference",
    "Evaluation",
    "Log",
    "LogArrays",
    "Problem",
    "Risk",
    "RunningEvaluation",
    "Trouble",
    "evaluate",
]
__getattr__, __dir__ = lazy(__name__, _HOMES, dict.fromkeys(_HOMES.values(), "run"))
