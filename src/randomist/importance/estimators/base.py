"""What an estimator is: how weighted samples become the value of a decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from randomist._lookup import Named
from randomist._types import Array


class Estimator(Named, ABC):
    """Turns samples, payoffs in [0, 1] and weights w = ω/m, into values.

    Most estimators are functions of the truncated sums J̌ = Σ min(c, w) y and coverage = Σ min(c, w), where the cut c is
    M/m: they override `combine`, and one fast pass serves them all. Another one says in `gains` what each sample adds.
    """

    _ours: ClassVar[str] = "randomist.importance.estimators:ESTIMATORS"

    name: ClassVar[str]
    bias_factor: ClassVar[float] = 0.0  # what truncation may take away, in units of the width
    needs_range: ClassVar[bool] = False  # whether payoffs must have a known range, so that they lie in [0, 1]
    unknown: ClassVar[float | None] = None  # the value of a decision that no sample speaks of; None: not known
    of_sums: ClassVar[bool] = True  # whether it is a function of the truncated sums

    @abstractmethod
    def combine(self, value: Array, coverage: Array) -> Array:
        """The value, from the truncated sums, or from the sum of the gains in place of J̌.  (n,), (n,) -> (n,)"""

    def gains(self, weights: Array, cut: Array, payoffs: Array) -> Array:
        """What each sample adds, where `of_sums` is False.  (n, t), (n, 1), (t,) -> (n, t)"""
        raise NotImplementedError
