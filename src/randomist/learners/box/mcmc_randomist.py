"""MCMC-RANDOMIST: RANDOMIST in a box (Metelli et al. 2021, Sec. 6 and App. F.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from randomist._checks import choice, finite_array, number, whole_number
from randomist._types import Array, Flags
from randomist.errors import ParameterError
from randomist.histories.gaussian import GaussianHistory
from randomist.importance.chains import all_perturbed, metropolis, perturbed
from randomist.importance.coins import TABLE
from randomist.importance.passes.layout import COVERAGE, LOG_EFFECTIVE, VALUE
from randomist.importance.perturbed import log_both_ways, log_direct_density, log_tabulated_density, tabulate
from randomist.importance.rows import Rows
from randomist.learners.box.base import FixedStdLearner
from randomist.learners.settings import bias_factor


@dataclass(frozen=True, eq=False)
class Position:
    """Where the next chain starts."""

    current: Array  # the decision that was asked last  (d,)


class Chain(NamedTuple):
    """The Metropolis path of one round, in the user's units; the last point was played."""

    points: Array  # (steps + 1, d)
    accepted: Flags  # (steps,)


@dataclass(eq=False, kw_only=True)
class MCMCRandomist(FixedStdLearner):
    """Search a box by Metropolis chains: each one leads from the last decision towards the largest perturbed estimate.

    Where a chain ends is played. `chain` is the path of the last round.

    Differences from the paper: every decision has its own number of coins ⌈a η⌉ (the display in App. F.2 reuses one). A
    proposal outside the box is refused. Decisions are played with `steps` = 10 Metropolis steps.

    Parameters
    ----------
    space
        The box: `Box(Gaussian(std=...), low, high)`, or of another family with a `spread`.
    density
        What the chain samples from: "full" is g†, the probability of beating all played decisions; "one-step" compares
        the proposal with the current point only, and is much faster.
    steps
        Metropolis steps a round. More of them come closer to a draw from the density, and cost as much more.
    perturbation_scale
        a: pseudo-rewards per effective sample. More of them explore more; 0 has none.
    bias_correction
        b, what is added for the truncation: 0 by default, "paper" for sqrt(α log t / η), or a multiple of that.
    proposal_std
        How far a proposal lies from the current point, a number or one per dimension; the family's std by default.
    exact
        True computes the full density by its definition instead of from a table: slow, for comparison.
    estimator
        What becomes of the weighted samples: "paper", "optimistic", "self-normalised", "log-smoothing", or
        "module:Class" for one of your own.
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

    density: Literal["full", "one-step"] = "full"
    steps: int = 10
    perturbation_scale: float = 1.1
    bias_correction: float | Literal["paper"] = 0.0
    proposal_std: Any = None
    exact: bool = False

    Search: ClassVar[type] = Position

    def __post_init__(self) -> None:
        choice(self.density, ("full", "one-step"), "density")
        whole_number(self.steps, "steps")
        number(self.perturbation_scale, "perturbation_scale", least=0)
        super().__post_init__()
        bias = bias_factor(self.bias_correction, self._estimator)
        if bias is None:
            raise ParameterError(f'bias_correction must be "paper" or a number >= 0, got {self.bias_correction!r}')
        self._bias = bias
        spread = self.history.spread
        std = spread if self.proposal_std is None else finite_array(self.proposal_std, "proposal_std")
        if not (std > 0).all() or std.ndim > 1 or std.size not in (1, self.space.dimension):
            raise ParameterError(f"proposal_std must be > 0, a number or one per dimension, got {self.proposal_std}")
        self._proposal = np.broadcast_to(std, spread.shape) / spread  # in units of the spread
        self._bounds = self._scaled_corners()
        fast = self.density == "full" and self._estimator.of_sums and isinstance(self.history, GaussianHistory)
        self._rows = Rows(self.space.dimension) if fast else None  # of the played decisions, for the full density
        self.chain: Chain | None = None

    def _decide(self) -> Any:
        if self.search is None:
            self.search = Position(self._first())
        else:
            normals = self._rng.standard_normal((self.steps, self.space.dimension)) * self._proposal
            start = self.search.current / self.history.spread
            path, accepted = self._walk(start, normals, self._rng.random(self.steps))
            self.chain = Chain(self._inside(path * self.history.spread), accepted)
            if accepted.any():
                self.search = Position(self.chain.points[-1])
        return self._point(self.search.current)

    def _walk(self, start: Array, normals: Array, uniforms: Array) -> tuple[Array, Flags]:
        """A chain in units of the spread."""
        chain = start, normals, uniforms, *self._bounds
        if not self.told:  # nothing is known of any decision: all of the box is equally likely
            return metropolis(*chain, lambda point: None, lambda here, there: (0.0, 0.0))
        a, b, term = self.perturbation_scale, self._bias, self._term()
        coins = TABLE.upto(math.ceil(a * self.told) + 1)

        def look(point: Array) -> Any:
            """The perturbed estimate at a point."""
            value, log_effective = self.history.one(point, term, self._estimator)
            return perturbed(value, log_effective, a, b, term)

        if self.density == "one-step":
            return metropolis(*chain, look, lambda here, there: log_both_ways(coins, here, there))
        values, log_effective = self._played(term)
        centers, flips = all_perturbed(values, log_effective, a, b, term)
        rivals = (centers, log_effective, flips, self.history.plays.rows)
        if self.exact:
            density = lambda point: log_direct_density(coins, look(point), rivals)  # noqa: E731
        else:
            grid = tabulate(coins, rivals)
            density = lambda point: log_tabulated_density(coins, look(point), rivals, grid)  # noqa: E731
        return metropolis(*chain, density, lambda here, there: (there, here))

    def _played(self, term: float) -> tuple[Array, Array]:
        """Values and log η of the distinct played decisions.  (n,), (n,)"""
        if self._rows is None:
            value, log_effective, _ = self.history.sums(self.history.decisions.rows, term, self._estimator)
            return value, log_effective
        table = self._rows.estimate(term, self.history.arrays())
        return self._estimator.combine(table[VALUE], table[COVERAGE]), table[LOG_EFFECTIVE]

    def _follow(self) -> None:
        """The rows of the played decisions learn of a told sample, and of its decision if it is a new one."""
        if self._rows is None:
            return
        samples = self.history.arrays()
        self._rows.add_sample(samples)
        if self._rows.used < samples.used:
            self._rows.add_decision(samples.decisions[samples.used - 1], samples)
