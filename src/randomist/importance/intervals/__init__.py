"""Confidence bounds by betting: `fixed` and `plugin` for a known number of rows, `running` and `anytime` for all."""

from randomist.importance.intervals.anytime import AnytimeBets, Bank
from randomist.importance.intervals.fixed import (
    Bets,
    Constant,
    ConstantBets,
    baselines,
    difference_baselines,
    truncated_interval,
)
from randomist.importance.intervals.plugin import PlugIn
from randomist.importance.intervals.running import RunningBets

__all__ = [
    "AnytimeBets",
    "Bank",
    "Bets",
    "Constant",
    "ConstantBets",
    "PlugIn",
    "RunningBets",
    "baselines",
    "difference_baselines",
    "truncated_interval",
]
