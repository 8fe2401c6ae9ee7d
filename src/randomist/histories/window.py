"""Columns that forget: the last n samples, each with its full weight or with a weight that fades with its age.

A sample takes the place of the one that is n samples older, so that memory and the cost of an estimate stay bounded.
Plays, D and η are made anew from what the window holds whenever an estimate is asked for: no sum drifts.

With a discount γ, the sample told a samples ago counts γ^a. The estimate is multiple importance sampling with these
counts: T_j = Σ_{i: x_i = j} γ^{a_i}, m = Σ_j T_j, Φ = Σ_j T_j p_j / m, and

    J̌(x) = (1/m) Σ_i γ^{a_i} min(M, p_x(z_i)/Φ(z_i)) y_i,

whose mean is J(x) wherever payoffs do not drift, but for truncation, whatever γ is. η follows from the discounted
plays, as in discounted UCB (Garivier and Moulines 2011); an average of m = 1/(1-γ) discounted payoffs varies like one
of about 2m payoffs, so widths are on the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from randomist._checks import probability, whole_number
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.histories.columns import Block, Columns
from randomist.histories.growing import Growing
from randomist.importance.passes import layout

LEAST_WEIGHT = 1e-6  # a discounted sample that counts less is dropped
LARGEST = 10**8  # samples that a window may hold


def span(window: Any, discount: Any) -> int | None:
    """How many samples count, by one of these two settings; None where neither is given."""
    if window is not None and discount is not None:
        raise ParameterError(f"give a window or a discount, not both; got window={window!r}, discount={discount!r}")
    if window is not None:
        samples = whole_number(window, "window", why=", the last samples that count, or None for all of them")
    elif discount is not None:
        samples = int(math.log(LEAST_WEIGHT) / math.log(probability(discount, "discount"))) + 1
    else:
        return None
    if samples > LARGEST:
        raise ParameterError(
            f"at most {LARGEST:.0e} samples can be kept at a time, and window={window!r}, discount={discount!r} keeps "
            f"{samples:.1e}; leave both at None for all samples"
        )
    return samples


@dataclass(slots=True)
class Window(Columns):
    """The columns of the last `span` samples."""

    span: int = field(kw_only=True)
    discount: float | None = field(kw_only=True, default=None)
    told: int = field(init=False, default=0)
    drawn_by: Growing = field(init=False)  # the source of each sample, by its place
    values: Growing = field(init=False)  # its payoff in [0, 1]
    _powers: Array = field(init=False)  # γ^a by age
    _settled: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        Columns.__post_init__(self)
        if self.discount is not None:
            self.plays = np.zeros((3, self.sources))  # type: ignore[assignment]
        self.drawn_by, self.values = Growing(dtype=np.int64), Growing()
        self.stored = Block.empty(self.sources, 1, keyed=False)  # never used
        self._powers = np.ones(1)

    @property
    def used(self) -> int:
        """How many samples the window holds."""
        return self.values.used

    @property
    def samples(self) -> float:
        """What they are worth together."""
        return self.used if self.discount is None else float(self._ages_to_powers(self.used).sum())

    # Samples come in.

    def append(
        self, source: int, log_density: Array, payoff: float, log_divergence: Array, eta: Array, *, counted: bool
    ) -> None:
        self._put(source, log_density, payoff)

    def write(self, sources: Indices, log_density: Array, payoffs: Array) -> None:
        for source, row, payoff in zip(sources.tolist(), log_density, payoffs.tolist(), strict=True):
            self._put(source, row, payoff)

    def refill(self, told: int) -> int:
        """Forget all, as the samples of a window are to be written anew in the order of their places.

        Returns how far the oldest of them lies from the first place, where `told` were told in all.
        """
        for block in self.earlier:
            block.used = 0
        self.drawn_by.used = self.values.used = self.told = 0
        return (told - min(told, self.span)) % self.span

    def _put(self, source: int, log_density: Array, payoff: float) -> None:
        place = self.told % self.span
        number, column = divmod(place, self.size)
        if number == len(self.earlier):
            self._open(number)
        block = self.earlier[number]
        if not self.passes.write(block.ratios, block.payoffs, column, log_density, source, payoff):
            capped = np.minimum(log_density, log_density[source] + layout.FAR)  # one in e^600, if drawn honestly
            self.passes.write(block.ratios, block.payoffs, column, capped, source, payoff)
        if place == self.used:
            self.drawn_by.append(source)
            self.values.append(payoff)
            block.used += 1
        else:
            self.drawn_by.rows[place], self.values.rows[place] = source, payoff
        self.told += 1
        self._settled = False

    def _open(self, number: int) -> None:
        block = Block.empty(self.sources, min(self.size, self.span - number * self.size), keyed=self._fades)
        block.repeats = self._fades
        self.earlier.append(block)

    @property
    def _fades(self) -> bool:
        return self.discount is not None

    # Sums.

    def settle(self) -> None:
        """Count the plays anew, and let weights fade."""
        if self._settled:
            return
        self._settled, drawn_by = True, self.drawn_by.rows
        if self._fades:
            ages = (self.told - 1 - np.arange(self.used)) % self.span
            weights = self._ages_to_powers(self.used)[ages]
            self._fade(weights)
            self.plays[:] = np.bincount(drawn_by, weights, minlength=self.sources)
        else:
            self.plays[:] = np.bincount(drawn_by, minlength=self.sources)
        self.recent[layout.SINCE] = 0
        self.recent[layout.ERAS] += 1  # so that mixtures are made anew

    def _fade(self, weights: Array) -> None:
        values, start = self.values.rows, 0
        for block in self.earlier:
            n, end = block.used, start + block.used
            assert block.counts is not None
            assert block.squares is not None
            block.counts[:n] = weights[start:end]
            block.payoffs[:n] = weights[start:end] * values[start:end]
            block.squares[:n] = block.payoffs[:n] * values[start:end]
            start = end

    def _ages_to_powers(self, count: int) -> Array:
        if count > len(self._powers):
            assert self.discount is not None
            self._powers = self.discount ** np.arange(min(2 * count, self.span), dtype=np.float64)
        return self._powers[:count]

    def moments(self, cut: Array) -> Array:
        if not self._fades:
            return Columns.moments(self, cut)
        moments = np.zeros((3, self.sources))
        for block in self._mixed():
            n = block.used
            assert block.counts is not None
            weights = block.counts[:n]  # whose squares count in a variance
            values = block.payoffs[:n] / weights
            self.passes.add_counted_moments(
                block.ratios,
                block.mixture[1],
                weights**2 * values,
                weights**2,
                (weights * values) ** 2,
                n,
                cut,
                moments,
            )
        return moments

    def _blocks(self) -> list[Block]:
        self.settle()
        return self.earlier

    # Payoffs change when the range of payoffs does.

    def replace_payoffs(self, payoffs: Array) -> None:
        """Other payoffs for the samples of the window: the last ones of these."""
        places = np.arange(self.told - self.used, self.told) % self.span
        values, start = self.values.rows, 0
        values[places] = payoffs[len(payoffs) - self.used :]
        for block in self.earlier:
            block.payoffs[: block.used] = values[start : start + block.used]
            start += block.used
        self._settled = False

    def rescale(self, factor: float, shift: float) -> None:
        """Nothing: all samples of a window are recorded."""

    # Save and load.

    def state(self) -> dict[str, Any]:
        """Nothing: all follows from the record."""
        return {}
