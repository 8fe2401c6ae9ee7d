"""What a divergence is: how much the mixture of what was played says about each decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from randomist._lookup import Named
from randomist._types import Array

if TYPE_CHECKING:
    from randomist.histories.columns import Columns
    from randomist.spaces import Finite


class Divergence(Named, ABC):
    """d2(p_x || Φ_t) of every source x of a finite set, as effective samples η = m / d2, and log η.

    An object belongs to one history. `eta` is the paper's harmonic-mean bound, which every history keeps: rows η and
    log η, log η = -inf where all divergences are infinite.  (2, S)
    """

    _ours: ClassVar[str] = "randomist.importance.divergences:DIVERGENCES"

    name: ClassVar[str]
    stepwise: ClassVar[bool] = False  # whether it looks at the mediators, which are trajectories (`observe`)

    def __init__(self, space: Finite) -> None:
        self.space = space

    @classmethod
    def for_space(cls, space: Finite) -> type[Divergence]:
        """The divergence that serves where this one was asked for: itself, or what a space that lacks something has."""
        return cls

    @abstractmethod
    def effective_samples(self, columns: Columns, eta: Array) -> Array:
        """η and log η of every source, for a history that is not empty.  (2, S)"""

    def observe(self, source: int, mediator: Any) -> None:
        """A trajectory that `source` drew."""

    def state(self) -> dict[str, Any]:
        """What follows neither from the plays nor from the record."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Undo `state`."""
