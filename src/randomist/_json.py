"""States as text: JSON, with three marks for what JSON lacks. Nothing that is read is ever executed.

| value | written as |
|---|---|
| array | `{"$array": [dtype, shape, base64 of its little-endian bytes in C order]}` |
| tuple | `{"$tuple": [...]}` |
| inf, -inf, nan | `{"$float": "inf"}` |
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from typing import Any

import numpy as np

from randomist.errors import StateError

DTYPES = ("<f8", "<i8", "|b1")  # all that a state is made of


def dumps(value: Any) -> str:
    """A state of dicts, lists, tuples, arrays, numbers, strings, booleans and None."""
    return json.dumps(_encode(value), allow_nan=False, separators=(",", ":"))


def loads(text: Any) -> Any:
    """Undo `dumps`; anything else is refused."""
    if not isinstance(text, str):
        raise StateError(f"a state is stored as JSON text, got {type(text).__name__}")
    try:
        return _decode(json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise StateError(f"a state is stored as JSON, but this is not: {error}") from error


def for_json(value: Any) -> Any:
    """What others may read as JSON: arrays as lists, numbers of NumPy as Python's; all else as it is."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [for_json(entry) for entry in value] if isinstance(value, list | tuple) else value


def frozen(value: Any) -> Any:
    """An entry of an array as users see it: a Python number for a scalar, else a read-only copy."""
    if np.ndim(value) == 0:
        return value.item()
    array = np.array(value)
    array.flags.writeable = False
    return array


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        array = array.astype(array.dtype.newbyteorder("<")) if array.dtype.kind in "fi" else array
        if array.dtype.str not in DTYPES:
            raise StateError(f"a state has arrays of float64, int64 and bool, got {value.dtype}")
        return {"$array": [array.dtype.str, list(value.shape), base64.b64encode(array.tobytes()).decode("ascii")]}
    if isinstance(value, tuple):
        return {"$tuple": [_encode(entry) for entry in value]}
    if isinstance(value, list):
        return [_encode(entry) for entry in value]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise StateError(f"a state's keys are strings that do not begin with $, got {key!r}")
        return {key: _encode(entry) for key, entry in value.items()}
    raise StateError(f"a state is made of plain numbers, strings and arrays, got {type(value).__name__}")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((mark, content),) = value.items()
        if mark == "$array":
            return _array(content)
        if mark == "$tuple" and isinstance(content, list):
            return tuple(_decode(entry) for entry in content)
        if mark == "$float" and content in ("inf", "-inf", "nan"):
            return float(content)
    for key in value:
        if key.startswith("$"):
            raise StateError(f"unknown mark {key!r} in a stored state; it was written by a newer version, or by hand")
    return {key: _decode(entry) for key, entry in value.items()}


def _array(content: Any) -> np.typing.NDArray[Any]:
    try:
        dtype, shape, data = content
        if dtype not in DTYPES or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"dtype {dtype!r} and shape {shape!r}")
        return np.frombuffer(base64.b64decode(data, validate=True), dtype).reshape(shape).copy()
    except (TypeError, ValueError, binascii.Error) as error:
        raise StateError(f"an array of a stored state is not [dtype, shape, base64]: {error}") from error
