"""What is summed for one candidate while rows come: its estimates, the bets on its value, and signs of trouble."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from randomist._types import Array
from randomist.importance.intervals import Constant, ConstantBets, PlugIn, baselines

MODELLED = -1.0  # in the place of a baseline
STEPS = 4  # baselines above 0 that a block can choose from


class Bettor(Protocol):
    """Bets on variables that speak about one unknown mean."""

    def add(self, variables: Sequence[Array]) -> None: ...

    def laid_next(self) -> tuple[Array, Array]: ...

    def take(self, rows: int, growth: Array, powers: Array) -> None: ...

    def lower_bound(self, low: float, high: float) -> float: ...


def bettor(
    rows: int,
    error: float,
    offsets: Sequence[float],
    floors: Sequence[float],
    same_mean: bool,
    spans: Sequence[float] | None = None,
    late: int | None = None,
) -> Bettor:
    """Stakes that follow the rows where all have the same mean; constant ones otherwise."""
    if same_mean:
        return PlugIn(rows, error, offsets, floors, spans, late)
    return Constant(ConstantBets.on(rows, error, offsets, floors))


class Ends:
    """Both ends of a candidate's interval on the [0, 1] scale; each wrong with probability at most `error`.

    J is in [L(ω y), 1 - L(ω (1-y))], where L is a lower bound on a mean. Where no weight exceeds `weight_bound`, the
    mean of ω is 1, and multiples of ω are subtracted. A model helps too, as it is and with `cuts`, the floors that it
    was cut to. Only rows that are summed elsewhere (`sides`) can have it.
    """

    def __init__(
        self,
        rows: int,
        error: float,
        weight_bound: float,
        same_mean: bool,
        model: bool = False,
        cuts: Sequence[float] = (),
    ) -> None:
        self.baselines, floors = baselines(weight_bound, rows, error, steps=STEPS if same_mean else 2)
        self._helped = [weight_bound, *cuts] if model and same_mean and math.isfinite(weight_bound) else []
        offsets = [*self.baselines, *(0.0 for _ in self._helped)]
        floors = [*floors, *self._helped]
        self._gain, self._loss = (
            bettor(rows, error, offsets, floors, same_mean, None, len(self.baselines)) for _ in range(2)
        )

    def add(self, gain: Array, loss: Array, control: Array) -> None:
        """Some more units; `control` is ω, or something else with mean 1 that is below the bound."""
        gains = [gain - c * control if c else gain for c in self.baselines]
        losses = [loss - c * control if c else loss for c in self.baselines]
        self._gain.add(gains)
        self._loss.add(losses)

    @property
    def variables(self) -> list[float]:
        """What is bet on, as `kernel.Plan` says it: c, and -1, -2, ... for what has a model's help."""
        return [*self.baselines, *(MODELLED - j for j in range(len(self._helped)))]

    @property
    def sides(self) -> tuple[Bettor, Bettor]:
        return self._gain, self._loss

    def low(self) -> float:
        return self._gain.lower_bound(0.0, 1.0)

    def high(self) -> float:
        return 1.0 - self._loss.lower_bound(0.0, 1.0)


class Heavy:
    """Whether weights average more than true likelihoods allow: bets on ω, whose mean is at most 1."""

    def __init__(self, rows: int, error: float) -> None:
        self._bets, self._error = Constant(ConstantBets.on(rows, error, [0.0], [0.0])), error

    def add(self, weight: Array) -> None:
        self._bets.add([weight])

    def laid_next(self) -> tuple[Array, float]:
        """(H,) and where weights are cut"""
        stakes, caps = self._bets.laid_next()
        return stakes[0], float(caps[0])

    def take(self, rows: int, growth: Array) -> None:
        self._bets.take(rows, growth[None, :], np.empty(0))

    def found(self) -> bool:
        return self._bets.log_evidence(1.0) >= -math.log(self._error)
