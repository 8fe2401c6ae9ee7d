"""What was told, and what it says: the one record that all learners share, and their estimates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from randomist._types import Array, Indices
from randomist.errors import ParameterError


class Estimates(NamedTuple):
    """What the history says about each decision; payoffs are mapped from `payoff_range` to [0, 1].  (K,) each"""

    value: Array  # J̌_t(x)
    effective_samples: Array  # η_t(x); as small as float64 allows, so see the logarithm
    threshold: Array  # M_t(x)
    width: Array  # sqrt(α log t / η)
    plays: Indices  # T_t(x)
    coverage: Array  # mean of min(M, ω), 1 in expectation but for truncation and what the samples cannot see
    log_effective_samples: Array


class Record:
    """Decisions, mediators and payoffs (in the user's units) as they were told: append-only, with read-only views.

    With `keep=False` they are counted and forgotten.
    """

    def __init__(
        self,
        decision_shape: tuple[int, ...],
        mediator_shape: tuple[int, ...],
        dtypes: tuple[DTypeLike, DTypeLike],
        *,
        keep: bool = True,
    ) -> None:
        self.keep = keep
        self._told = 0
        self._capacity = 64
        self._decisions = np.empty((self._capacity, *decision_shape), dtypes[0])
        self._mediators = np.empty((self._capacity, *mediator_shape), dtypes[1])
        self._payoffs = np.empty(self._capacity)

    def append(self, decision: Any, mediator: Any, payoff: float) -> None:
        told = self._told
        if not self.keep:
            self._told = told + 1
            return
        if told == self._capacity:
            self._capacity *= 2
            self._decisions, self._mediators, self._payoffs = map(
                self._grown, (self._decisions, self._mediators, self._payoffs)
            )
        self._decisions[told] = decision
        self._mediators[told] = mediator
        self._payoffs[told] = payoff
        self._told = told + 1

    def __len__(self) -> int:
        return self._told

    @property
    def decisions(self) -> NDArray[Any]:
        return self._view(self._decisions)

    @property
    def mediators(self) -> NDArray[Any]:
        return self._view(self._mediators)

    @property
    def payoffs(self) -> Array:
        return self._view(self._payoffs)

    def _grown(self, array: NDArray[Any]) -> NDArray[Any]:
        grown = np.empty((self._capacity, *array.shape[1:]), array.dtype)
        grown[: len(array)] = array
        return grown

    def _view(self, array: NDArray[Any]) -> NDArray[Any]:
        if not self.keep:
            raise ParameterError("a learner with keep_record=False forgets what it was told; leave it at True to look")
        view = array[: self._told]
        view.flags.writeable = False
        return view

    def state(self) -> dict[str, Any]:
        if not self.keep:
            return {"told": self._told}
        return {name: getattr(self, name).copy() for name in ("decisions", "mediators", "payoffs")}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state` on an empty record."""
        if not self.keep:
            self._told = int(state["told"])
            return
        for decision, mediator, payoff in zip(state["decisions"], state["mediators"], state["payoffs"], strict=True):
            self.append(decision, mediator, payoff)
