"""Decisions and mediators as text of a row, and back: checked against the space; an error names the row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from randomist.errors import ShapeError, StudyDataError
from randomist.spaces import Finite, Space


class Shapes:
    """What the decisions and mediators of a space look like."""

    def __init__(self, study: str, space: Space) -> None:
        self.study, self.space = study, space
        self.finite = isinstance(space, Finite)
        self.decision_shape: tuple[int, ...] = () if self.finite else space.family.decision_shape
        self.shape, self.whole = space.family.shape, space.family.dtype is not float

    # Writing.

    def decision_text(self, decision: Any) -> str:
        return json.dumps(int(decision)) if self.finite else _text(decision, self.decision_shape, False)

    def mediator_text(self, mediator: Any) -> str:
        return _text(mediator, self.shape, self.whole)

    # Reading.

    def decisions(self, numbers: Sequence[int], texts: Sequence[Any]) -> NDArray[Any]:
        """(n,) indices, or (n, *shape) points."""
        values = self._read(numbers, texts, "decision", self.decision_shape, self.finite)
        inside = (values >= 0) & (values < self.space.size) if isinstance(self.space, Finite) else self._inside(values)
        if not inside.all():
            at = int(np.argmin(inside))
            where = f"0..{self.space.size - 1}" if isinstance(self.space, Finite) else "inside the box"
            raise self.wrong(numbers[at], f"the decision {texts[at]!r} is not {where}")
        return values

    def mediators(self, numbers: Sequence[int], texts: Sequence[Any]) -> NDArray[Any]:
        """(n, *shape)"""
        return self._read(numbers, texts, "mediator", self.shape, self.whole)

    def wrong(self, number: Any, what: str) -> StudyDataError:
        """The error that names a row."""
        return StudyDataError(
            f"trial {number} of study {self.study!r} (a row of randomist_trials) was changed: {what}; repair the row "
            "or restore a backup"
        )

    def _inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        assert not isinstance(self.space, Finite)
        return self.space.contains(values) if len(values) else np.ones(0, bool)

    def _read(
        self, numbers: Sequence[int], texts: Sequence[Any], name: str, shape: tuple[int, ...], whole: bool
    ) -> NDArray[Any]:
        try:
            return _parse(texts, shape, whole)
        except _UNREADABLE:
            pass
        for number, text in zip(numbers, texts, strict=True):  # which one is it?
            try:
                _parse([text], shape, whole)
            except _UNREADABLE:
                kind = "a whole number" if whole else "a finite number" if shape == () else f"{shape[0]} finite numbers"
                raise self.wrong(number, f"the {name} must be {kind}, got {str(text)[:80]!r}") from None
        raise StudyDataError(f"the {name}s of study {self.study!r} cannot be read; restore a backup")


_UNREADABLE = (TypeError, ValueError, OverflowError, RecursionError)


def plain(value: Any) -> Any:
    """An entry of a column as users see it: a Python number, or a read-only array."""
    if np.ndim(value) == 0:
        return value.item()
    value = np.array(value)
    value.flags.writeable = False
    return value


def _text(value: Any, shape: tuple[int, ...], whole: bool) -> str:
    array = np.asarray(value, np.int64 if whole else np.float64)
    if array.shape != shape:
        raise ShapeError(f"expected an array of shape {shape}, got {array.shape}")
    return json.dumps(array.tolist(), allow_nan=False, separators=(",", ":"))


def _parse(texts: Sequence[Any], shape: tuple[int, ...], whole: bool) -> NDArray[Any]:
    """All texts at once: one JSON list; raises one of `_UNREADABLE`."""
    values = json.loads("[" + ",".join(texts) + "]")
    if len(values) != len(texts):
        raise ValueError("not one value per text")
    flat: Iterable[Any] = values if shape == () else chain.from_iterable(values)
    if not set(map(type, flat)) <= ({int} if whole else {int, float}):
        raise TypeError("not numbers")
    array = np.array(values, np.int64 if whole else np.float64).reshape(len(values), *shape)
    if not np.isfinite(array).all() or (shape and len(values) and len(values[0]) != shape[0]):
        raise ValueError("not finite, or of another shape")
    return array
