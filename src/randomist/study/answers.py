"""What the learner of a study says, from all that was told so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from randomist._types import Indices
from randomist.errors import ParameterError, SpaceError
from randomist.histories.estimates import Estimates

if TYPE_CHECKING:
    from randomist.learners.base import Learner
    from randomist.learners.box.auto.interval import Confirmation, Interval
    from randomist.learners.finite.certainty import Intervals


class Answers:
    """Reads off the learner: of a study, which has `look`."""

    learner_name: str
    look: Callable[[Callable[[Any, Any], Any]], Any]
    _finite: bool
    _kind: type[Learner]

    def estimates(self) -> Estimates:
        """What all told trials say about every decision of a Finite space."""
        if not self._finite:
            raise SpaceError(f"{self.learner_name} searches a box; ask for estimate(decisions)")
        found: Estimates = self.look(lambda learner, _: learner.estimates())
        return found

    def estimate(self, decisions: ArrayLike) -> Estimates:
        """What all told trials say about any decisions of a Box."""
        if self._finite:
            raise SpaceError(f"{self.learner_name} searches a finite set; ask for estimates()")
        found: Estimates = self.look(lambda learner, _: learner.estimate(decisions))
        return found

    def intervals(self, level: float = 0.95) -> Intervals:
        """Low and high of every decision's mean payoff; all hold together, however often one looks."""
        self._check_finite("intervals")
        found: Intervals = self.look(lambda learner, _: learner.intervals(level))
        return found

    def surviving(self, level: float = 0.95) -> Indices:
        """The decisions that may still be best: workers can stop when one is left."""
        self._check_finite("survivors")
        found: Indices = self.look(lambda learner, _: learner.surviving(level))
        return found

    def rounds_left(self, level: float = 0.95) -> float:
        """An estimate of how many more rounds it takes until one decision survives."""
        self._check_finite("survivors")
        return float(self.look(lambda learner, _: learner.rounds_left(level)))

    def interval(self, point: ArrayLike | None = None, level: float = 0.95) -> Interval:
        """An interval for the mean payoff at a point, by default the recommended one. `Auto` has it."""
        self._check_has("interval")
        found: Interval = self.look(lambda learner, _: learner.interval(point, level))
        return found

    def confirmed(self, level: float = 0.95) -> Confirmation:
        """What the plays of the last `confirm`, by whichever worker, say about that point alone. `Auto` has it."""
        self._check_has("confirmed")
        found: Confirmation = self.look(lambda learner, _: learner.confirmed(level))
        return found

    def recommend(self) -> Any:
        """The decision with the best estimated value, as the learner says it."""
        return self.look(lambda learner, _: learner.recommend())

    # Inside.

    def _check_finite(self, wanted: str) -> None:
        if not self._finite:
            raise SpaceError(f"{self.learner_name} searches a box, and there are {wanted} of finite sets only")

    def _check_has(self, method: str) -> None:
        if not hasattr(self._kind, method):
            raise ParameterError(f"{self.learner_name} has no {method}, only Auto has; a finite set has intervals()")
