"""PROSPECTOR: greedy on the optimistic estimate, anywhere in a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from randomist._types import Array
from randomist.errors import ParameterError
from randomist.importance import confidence_term
from randomist.importance.ascent import climb
from randomist.importance.estimators import Estimator
from randomist.learners.box.base import BoxLearner
from randomist.learners.box.filling import filling_point

ANYWHERE = 1  # of the candidates


@dataclass(eq=False, kw_only=True)
class Prospector(BoxLearner):
    """Each round, the candidate with the largest value⁺, or a point uphill of it, along the gradient.

    value⁺ is 1 minus the truncated estimate of the loss, and 1 where nothing is known, so that no bonus is needed. The
    first of the `candidates` is the decision before; most others lie around the best so far, some around past
    decisions, and one anywhere. `steps` points lie along the gradient. A round costs O((candidates + steps) t d).

    Pending trials count as if they had been paid the mean so far, so that the trials of a batch keep apart. Not in the
    paper.
    """

    estimator: Estimator = "optimistic"
    candidates: int = 16
    steps: int = 4

    asks_change: ClassVar[tuple[str, ...]] = ("_last",)

    def __post_init__(self) -> None:
        if self.estimator != "optimistic":
            raise ParameterError(f'Prospector is greedy on the "optimistic" estimator, got {self.estimator!r}')
        for name, least in (("candidates", 4), ("steps", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(f"{name} must be a whole number >= {least}, got {value!r}")
        super().__post_init__()
        self._bounds = np.ravel(self.space.low) / self.history.std, np.ravel(self.space.high) / self.history.std
        self._shift = self._rng.random(self.space.dimension)
        self._last: Array | None = None  # the decision before, in units of the std

    def _decide(self) -> Any:
        if self._last is None:
            self._last = self._first() / self.history.std
            return self._point(self._last * self.history.std)
        history = self.history
        if self._pending:
            pending = [(trial.decision, trial.mediator) for trial in self._pending.values()]
            history = history.fantasised(pending, float(history.payoffs.rows.mean()) if self.told else 0.5)
        low, high = self._bounds
        if len(history):
            term = confidence_term(len(history), self.confidence)
            lengths: Array = 0.25 * np.exp2(np.arange(self.steps, dtype=np.float64))
            self._last = climb(self._candidates(), lengths, low, high, term, history.arrays())
        else:  # all that was asked has failed
            self._last = low + filling_point(self._next_id, self._shift) * (high - low)
        inside = np.clip(self._last * self.history.std, np.ravel(self.space.low), np.ravel(self.space.high))
        return self._point(inside)

    def _candidates(self) -> Array:
        """In units of the std.  (candidates, d)"""
        assert self._last is not None
        rng, (low, high), d, played = self._rng, self._bounds, self.space.dimension, self.history.decisions.rows
        others = self.candidates - 1 - ANYWHERE
        local = others if not len(played) else (2 * others) // 3
        around = self._last + rng.choice([0.3, 1.0, 3.0], (local, 1)) * rng.standard_normal((local, d))
        past = np.empty((0, d))
        if local < others:
            past = played[rng.integers(len(played), size=others - local)] + rng.standard_normal((others - local, d))
        anywhere = low + filling_point(self._next_id, self._shift)[None] * (high - low)
        return np.concatenate([self._last[None], np.clip(np.concatenate([around, past]), low, high), anywhere])

    def _caches(self) -> dict[str, Any]:
        return super()._caches() | {"last": None if self._last is None else self._last.copy()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        last = state["caches"]["last"]
        self._last = None if last is None else np.array(last)
