"""Confidence bounds by betting: `fixed` and `plugin` for a known number of rows, `anytime` for every round at once."""

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

__all__ = [
    "AnytimeBets",
    "Bank",
    "Bets",
    "Constant",
    "ConstantBets",
    "PlugIn",
    "baselines",
    "difference_baselines",
    "truncated_interval",
]
