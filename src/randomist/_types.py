"""The arrays that everything is made of, named once."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]  # of decisions, or counts
Flags: TypeAlias = NDArray[np.bool_]
