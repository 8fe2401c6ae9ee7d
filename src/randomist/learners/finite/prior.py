"""What is known before a run: a value of each decision, and how many of its own plays that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from randomist._checks import finite_array
from randomist._types import Array, Indices
from randomist.errors import ParameterError, ShapeError
from randomist.histories.estimates import Estimates
from randomist.importance import bounds
from randomist.learners.payoffs import PayoffScale


class Prior:
    """Pseudo-samples: n plays of a decision that paid p each count as n more effective samples of it.

    With η effective samples of value v, the value becomes (η v + n p)/(η + n): what is told outvotes a wrong prior.
    Decisions that are added later have none.
    """

    def __init__(self, given: Any, size: int, added: int) -> None:
        try:
            values, plays = given
        except (TypeError, ValueError):
            raise ParameterError(
                f"prior must be a pair (values, plays), the payoffs to expect and what each is worth in plays; got "
                f"{given!r:.80}"
            ) from None
        expected = (size - added,)
        arrays = finite_array(values, "the values of prior"), finite_array(plays, "the plays of prior")
        try:
            self.values, self.plays = (np.pad(np.broadcast_to(array, expected), (0, added)) for array in arrays)
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise ShapeError(
                f"prior needs a value and a number of plays per decision, {expected}, got {shapes}"
            ) from None
        if not (self.plays >= 0).all():
            raise ParameterError(
                f"the plays of prior must be >= 0, got {self.plays.min()}; 0 says that nothing is known"
            )
        with np.errstate(divide="ignore"):
            self._log_plays = np.log(self.plays)
        self.total = float(self.plays.sum())

    @classmethod
    def joined(cls, parts: Sequence[Prior | None], size: int) -> Prior | None:
        """What several of them say together, for so many decisions; None if there is none."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        plays, weighted = np.zeros(size), np.zeros(size)
        for part in known:
            plays[: len(part.plays)] += part.plays
            weighted[: len(part.plays)] += part.plays * part.values
        return cls((np.divide(weighted, plays, out=np.zeros(size), where=plays > 0), plays), size, 0)

    def check_range(self, scale: PayoffScale) -> None:
        """Refuse values outside of the range of payoffs; a running one begins with them."""
        known = self.values[self.plays > 0]
        if not known.size:
            return
        if scale.running:
            scale.widen(float(known.min()), float(known.max()))
        elif not (scale.covers(float(known.min())) and scale.covers(float(known.max()))):
            raise ParameterError(
                f"the values of prior lie in {known.min()}..{known.max()}, outside payoff_range ({scale.low}, "
                f"{scale.high}); give them in the units of payoffs"
            )

    def mixed_in(
        self, rows: Indices, told: Array, weight: Array, sums: Array, scale: PayoffScale
    ) -> tuple[Array, Array]:
        """Distributions of payoffs by bins, for some decisions, with pseudo-samples among them.  (n, B), (n, B)

        `told` is what the told samples are worth. How pseudo-samples spread is not known: they are all at the ends of
        the range, as far apart as their mean allows, so that they never say more than any samples of that mean would.
        """
        plays, mean = self.plays[rows], np.clip(scale.units(self.values[rows]), 0.0, 1.0)
        total = weight.sum(axis=1)
        share = np.divide(told, total, out=np.zeros(len(rows)), where=total > 0)[:, None]
        weight, sums = weight * share, sums * share
        weight[:, 0] += plays * (1.0 - mean)
        weight[:, -1] += plays * mean
        sums[:, -1] += plays * mean
        return weight, sums

    def combine(self, estimates: Estimates, scale: PayoffScale, worth: float, confidence: float) -> Estimates:
        """Estimates on the [0, 1] scale, from a history of `worth` samples, with what was known before."""
        effective = estimates.effective_samples + self.plays
        values: Array = estimates.effective_samples * estimates.value + self.plays * scale.units(self.values)
        known = (effective > 0) & (self.plays > 0)
        log_effective = np.logaddexp(estimates.log_effective_samples, self._log_plays)
        return estimates._replace(
            value=np.divide(values, effective, out=np.array(estimates.value), where=known),
            effective_samples=effective,
            log_effective_samples=log_effective,
            width=bounds.width(log_effective, worth + self.total, confidence),
        )
