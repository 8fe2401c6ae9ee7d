"""Arrays that grow by appending."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Growing:
    """Rows that double when they run out, so that an append costs O(1) on average; `rows` is what is used."""

    def __init__(self, *shape: int, dtype: DTypeLike = np.float64) -> None:
        self.array = np.empty((64, *shape), dtype)
        self.used = 0

    def append(self, row: Any) -> None:
        if self.used == len(self.array):
            self.reserve(self.used + 1)
        self.array[self.used] = row
        self.used += 1

    def extend(self, rows: NDArray[Any]) -> None:
        self.reserve(self.used + len(rows))
        self.array[self.used : self.used + len(rows)] = rows
        self.used += len(rows)

    def reserve(self, size: int) -> None:
        """Make room for so many rows."""
        if size > len(self.array):
            grown = np.empty((max(size, 2 * len(self.array)), *self.array.shape[1:]), self.array.dtype)
            grown[: self.used] = self.rows
            self.array = grown

    def keep(self, last: int) -> None:
        """Forget all but the last rows; who has seen the others keeps what was seen."""
        kept = np.empty((2 * last + 65, *self.array.shape[1:]), self.array.dtype)
        kept[:last] = self.rows[self.used - last :]
        self.array, self.used = kept, last

    @property
    def rows(self) -> NDArray[Any]:
        return self.array[: self.used]

    def copy(self) -> Growing:
        other = Growing()
        other.array, other.used = self.array.copy(), self.used
        return other
