"""The ticket from `ask` to `tell`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from randomist.spaces import Finite, Space

ADDED = ("parameters", "name", "purpose")  # fields of a trial that are shown where there are some


PURPOSES = ("open", "start", "cloud", "axis", "again", "fill", "confirm")  # of the trials of a search


def purpose_of(search: Mapping[str, Any] | None) -> str | None:
    """What a trial was asked for, by what its ask left of the search; None where that does not say."""
    return None if search is None or "purpose" not in search else PURPOSES[int(search["purpose"])]


class Trial(NamedTuple):
    """The ticket from `ask` to `tell`: play `decision`, whose mediator was drawn as `mediator`."""

    id: int
    decision: Any  # an index of a Finite space, a point of a Box
    mediator: Any  # a number, or an array of shape (d,); None where the environment produces it
    parameters: dict[str, Any] | None = None  # what the mediator stands for, where the space is `Parameters`
    name: str | None = None  # what the decision is called, where the decisions of a Finite space have names
    purpose: str | None = None  # what a search asked it for: one of `PURPOSES`

    @classmethod
    def of(cls, space: Space, id_: int, decision: Any, mediator: Any) -> Trial:
        """A trial of a space: with parameters, or the decision's name, where it has names for them."""
        if isinstance(space, Finite):
            known = bool(space.names) and decision < space.size  # one that was added since is in another space
            return cls(id_, decision, mediator, None, space.names[decision] if known else None)
        return cls(id_, decision, mediator, None if space.meaning is None else space.meaning.named(mediator))

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal, arrays entry by entry."""
        if not isinstance(other, Trial):
            return NotImplemented
        return all(np.array_equal(mine, its) for mine, its in zip(self, other, strict=True))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        said = [(name, value) for name, value in self._asdict().items() if name not in ADDED or value is not None]
        return f"Trial({', '.join(f'{name}={value!r}' for name, value in said)})"
