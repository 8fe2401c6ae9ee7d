"""What a history says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from randomist import _html
from randomist._types import Array, Indices

HEADS = ("decision", "value", "effective samples", "plays")  # of a table


class Estimates(NamedTuple):
    """What the history says about each decision.  (K,) each

    `value` and `width` are in the user's units wherever a user reads them, and on the [0, 1] scale of `payoff_range`
    where a learner makes its index of them.
    """

    value: Array  # J̌_t(x)
    effective_samples: Array  # η_t(x); as small as float64 allows, so see the logarithm
    threshold: Array  # M_t(x)
    width: Array  # sqrt(α log t / η)
    plays: Indices  # T_t(x)
    coverage: Array  # mean of min(M, ω), 1 in expectation but for truncation and what the samples cannot see
    log_effective_samples: Array

    def first(self, count: int) -> Estimates:
        """Those of the first decisions."""
        return Estimates._make(entry[:count] for entry in self)

    def scaled(self, low: float, width: float) -> Estimates:
        """In units where 0 is `low` and 1 is `low + width`, read-only."""
        scaled = self._replace(value=low + width * self.value, width=width * self.width)
        for entry in scaled:
            entry.flags.writeable = False
        return scaled

    def rows(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """What a table shows of each: name, value, effective samples, plays."""
        columns = (self.value, self.effective_samples, self.plays)
        return list(zip(names, *(column.tolist() for column in columns), strict=True))

    def _repr_html_(self) -> str:
        return _html.table(f"Estimates of {len(self.value)} decisions", self.rows(range(len(self.value))), HEADS)

    @classmethod
    def nothing(cls, count: int) -> Estimates:
        """Of decisions that nothing is known of."""
        zeros, unknown = np.zeros(count), np.full(count, np.inf)
        return cls(zeros, zeros, unknown, unknown, zeros.astype(np.int64), zeros, -unknown)
