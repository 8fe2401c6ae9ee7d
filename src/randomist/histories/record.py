"""What was told: the one record that all learners share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.histories.growing import Growing

COLUMNS = ("decisions", "mediators", "payoffs", "ids")


class Record:
    """Decisions, mediators and payoffs (in the user's units) as they were told: append-only, with read-only views.

    Rows are in the order of tells; `ids` are those of the trials, which count the asks. With `keep=False` they are
    counted and forgotten, or, where `last` says how many, all but the last ones are.
    """

    def __init__(
        self,
        decision_shape: tuple[int, ...],
        mediator_shape: tuple[int, ...],
        dtypes: tuple[DTypeLike, DTypeLike],
        *,
        keep: bool = True,
        last: int | None = None,
    ) -> None:
        self.keep, self.last = keep or last is not None, None if keep else last
        self._told = 0
        self._decisions = Growing(*decision_shape, dtype=dtypes[0])
        self._mediators = Growing(*mediator_shape, dtype=dtypes[1])
        self._payoffs = Growing()
        self._ids = Growing(dtype=np.int64)
        self._columns = self._ids, self._decisions, self._mediators, self._payoffs

    def append(self, decision: Any, mediator: Any, payoff: float, id_: int | None = None) -> None:
        if self.keep:
            ids, decisions, mediators, payoffs = columns = self._columns  # every round comes here
            used = payoffs.used
            if used == len(payoffs.array):
                for column in columns:
                    column.reserve(used + 1)
            ids.array[used] = self._told if id_ is None else id_
            decisions.array[used] = decision
            mediators.array[used] = mediator
            payoffs.array[used] = payoff
            ids.used = decisions.used = mediators.used = payoffs.used = used + 1
            if self.last is not None:
                self._forget(self.last)
        self._told += 1

    def extend(
        self, decisions: NDArray[Any], mediators: NDArray[Any], payoffs: Array, ids: Indices | None = None
    ) -> None:
        if self.keep:
            self._ids.extend(np.arange(self._told, self._told + len(payoffs)) if ids is None else ids)
            self._decisions.extend(decisions)
            self._mediators.extend(mediators)
            self._payoffs.extend(payoffs)
            if self.last is not None:
                self._forget(self.last)
        self._told += len(payoffs)

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

    @property
    def ids(self) -> Indices:
        return self._view(self._ids)

    def state(self) -> dict[str, Any]:
        if not self.keep:
            return {"told": self._told}
        rows = {name: getattr(self, name).copy() for name in COLUMNS}
        return rows if self.last is None else rows | {"told": self._told}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state` on an empty record."""
        if self.keep:
            decisions, mediators, payoffs = (np.asarray(state[name]) for name in COLUMNS[:3])
            self.extend(decisions, mediators, payoffs, state.get("ids"))  # 0.1.0 did not write ids
        if not self.keep or self.last is not None:
            self._told = int(state["told"])

    def _view(self, column: Growing) -> NDArray[Any]:
        if not self.keep:
            raise ParameterError("a learner with keep_record=False forgets what it was told; leave it at True to look")
        view = column.rows if self.last is None else column.rows[-self.last :]
        view.flags.writeable = False
        return view

    def _forget(self, last: int) -> None:
        """All but the last rows, now and then, so that an append costs O(1) on average."""
        for column in (self._decisions, self._mediators, self._payoffs, self._ids):
            if column.used > 2 * last + 64:
                column.keep(last)
