"""PROSPECTOR: greedy on the optimistic estimate, anywhere in a box."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from randomist._checks import whole_number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.histories.gaussian import GaussianHistory
from randomist.histories.truncated import TruncatedHistory
from randomist.importance import confidence_term
from randomist.learners.box.base import FixedStdLearner
from randomist.learners.box.filling import filling_point

ANYWHERE = 1  # of the candidates


@dataclass(frozen=True, eq=False)
class Position:
    """Where the search is."""

    last: Array  # the decision before, in units of the std  (d,)


@dataclass(eq=False, kw_only=True)
class Prospector(FixedStdLearner):
    """Search a box greedily on the optimistic estimate: play the best of a few candidates, or a point uphill of it.

    The optimistic estimate, value⁺, is 1 minus the truncated estimate of the loss, and 1 where nothing is known, so
    that no bonus is needed. The first candidate is the decision before; most others lie around the best so far, some
    around past decisions, and one anywhere. A round costs O((candidates + steps) t d).

    Pending trials count as if they had been paid the mean so far, so that the trials of a batch keep apart. Not in the
    paper.

    Parameters
    ----------
    space
        The box: `Box(Gaussian(std=...), low, high)`, or of a `TruncatedGaussian`; gradients are known of no others.
    candidates
        How many points are compared in a round, 4 or more. More of them find the maximum of the estimate more surely.
    steps
        How many points along the gradient are tried from the best candidate, each twice as far; 0 for none.
    estimator
        "optimistic": nothing else says where little is known.
    payoff_range
        The smallest and the largest payoff, in your units: (0, 1) by default. "running" learns it from what is told.
    out_of_range
        What happens to a payoff outside of the range: "refuse" raises an error, "clip" clips and counts it.
    first
        The first decision, a point of the box; drawn from the seed by default.
    seed
        A whole number. The same seed gives the same run; None takes one from the system, which `entropy` then names.
    confidence
        α: thresholds and widths are made of α log t. 2 in all of the paper's experiments.
    """

    estimator: str = "optimistic"
    candidates: int = 16
    steps: int = 4

    Search: ClassVar[type] = Position

    def __post_init__(self) -> None:
        if self.estimator != "optimistic":
            raise ParameterError(f'Prospector is greedy on the "optimistic" estimator, got {self.estimator!r}')
        whole_number(self.candidates, "candidates", 4, most=10_000)
        whole_number(self.steps, "steps", 0, most=1000)
        super().__post_init__()
        if not isinstance(self.history, GaussianHistory | TruncatedHistory):
            raise ParameterError(
                f"Prospector climbs along gradients of Gaussians, got a Box of {type(self.space.family).__name__}; "
                "take MCMCRandomist or GridOptimist"
            )
        self._bounds = self._scaled_corners()
        self._shift = self._rng.random(self.space.dimension)

    def _decide(self) -> Any:
        if self.search is None:
            self.search = Position(self._first() / self.history.spread)
            return self._point(self.search.last * self.history.spread)
        history = self.history
        if self._pending:
            pending = [(trial.decision, trial.mediator) for trial in self._pending.values()]
            history = history.fantasised(pending, float(history.payoffs.rows.mean()) if self.told else 0.5)
        low, high = self._bounds
        if len(history):
            term = confidence_term(len(history), self.confidence)
            lengths: Array = 0.25 * np.exp2(np.arange(self.steps, dtype=np.float64))
            last = history.climb(self._candidates(self.search.last), lengths, low, high, term)
        else:  # all that was asked has failed
            last = low + filling_point(self._next_id, self._shift) * (high - low)
        self.search = Position(last)
        return self._point(self._inside(last * self.history.spread))

    def _candidates(self, last: Array) -> Array:
        """In units of the std.  (d,) -> (candidates, d)"""
        rng, (low, high), d, played = self._rng, self._bounds, self.space.dimension, self.history.decisions.rows
        others = self.candidates - 1 - ANYWHERE
        local = others if not len(played) else (2 * others) // 3
        around = last + rng.choice([0.3, 1.0, 3.0], (local, 1)) * rng.standard_normal((local, d))
        past = np.empty((0, d))
        if local < others:
            past = played[rng.integers(len(played), size=others - local)] + rng.standard_normal((others - local, d))
        anywhere = low + filling_point(self._next_id, self._shift)[None] * (high - low)
        return np.concatenate([last[None], np.clip(np.concatenate([around, past]), low, high), anywhere])
