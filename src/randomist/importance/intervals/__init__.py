"""Confidence bounds by betting: `fixed` for a known number of rows, `anytime` for every round at once."""

from randomist.importance.intervals.anytime import AnytimeBets, Bank
from randomist.importance.intervals.fixed import (
    Bets,
    ConstantBets,
    baselines,
    difference_baselines,
    truncated_interval,
)

__all__ = [
    "AnytimeBets",
    "Bank",
    "Bets",
    "ConstantBets",
    "baselines",
    "difference_baselines",
    "truncated_interval",
]
