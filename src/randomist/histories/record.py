"""What was told: the one record that all learners share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.histories.growing import Growing


class Record:
    """Decisions, mediators and payoffs (in the user's units) as they were told: append-only, with read-only views.

    Rows are in the order of tells; `ids` are those of the trials, which count the asks. With `keep=False` they are counted and forgotten.
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
        self._decisions = Growing(*decision_shape, dtype=dtypes[0])
        self._mediators = Growing(*mediator_shape, dtype=dtypes[1])
        self._payoffs = Growing()
        self._ids = Growing(dtype=np.int64)

    def append(self, decision: Any, mediator: Any, payoff: float, id_: int | None = None) -> None:
        if self.keep:
            self._ids.append(self._told if id_ is None else id_)
            self._decisions.append(decision)
            self._mediators.append(mediator)
            self._payoffs.append(payoff)
        self._told += 1

    def extend(
        self, decisions: NDArray[Any], mediators: NDArray[Any], payoffs: Array, ids: Indices | None = None
    ) -> None:
        if self.keep:
            self._ids.extend(np.arange(self._told, self._told + len(payoffs)) if ids is None else ids)
            self._decisions.extend(decisions)
            self._mediators.extend(mediators)
            self._payoffs.extend(payoffs)
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

    def _view(self, column: Growing) -> NDArray[Any]:
        if not self.keep:
            raise ParameterError("a learner with keep_record=False forgets what it was told; leave it at True to look")
        view = column.rows
        view.flags.writeable = False
        return view

    def state(self) -> dict[str, Any]:
        if not self.keep:
            return {"told": self._told}
        return {name: getattr(self, name).copy() for name in ("decisions", "mediators", "payoffs", "ids")}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state` on an empty record."""
        if self.keep:
            decisions, mediators, payoffs = (np.asarray(state[name]) for name in ("decisions", "mediators", "payoffs"))
            self.extend(decisions, mediators, payoffs, state.get("ids"))  # 0.1.0 did not write ids
        else:
            self._told = int(state["told"])
