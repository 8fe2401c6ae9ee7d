"""Any way to say which box is searched, as points and scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from randomist._checks import finite_array, whole_number
from randomist.errors import ParameterError
from randomist.families import LocationScale
from randomist.learners.box.climbing import LARGEST
from randomist.spaces import Box


def scaled_box(space: Any, low: Any, high: Any, dimension: Any) -> Box:
    """Points and scales to search, from a box, its two corners, or a number of dimensions."""
    meaning = None
    if isinstance(space, Box):
        meaning, (low, high) = space.meaning, space.corners
        if space.family.shape == ():
            low, high = low[0], high[0]
    elif space is not None:
        raise ParameterError(
            f"Auto searches a box, got a {type(space).__name__}; give low and high, or take Realist on a finite set"
        )
    elif dimension is not None:
        shape = (whole_number(dimension, "dimension"),)
        low = np.broadcast_to(finite_array(-1.0 if low is None else low, "low"), shape)
        high = np.broadcast_to(finite_array(1.0 if high is None else high, "high"), shape)
    elif low is None or high is None:
        raise ParameterError("Auto needs a box: give low and high, or dimension, or a Box")
    low, high = np.broadcast_arrays(finite_array(low, "low"), finite_array(high, "high"))
    if not (low < high).all():
        raise ParameterError(f"low must be below high in every dimension, got low={low} and high={high}")
    return Box(LocationScale(high - low), np.append(low, 0.0), np.append(high, LARGEST), meaning)
