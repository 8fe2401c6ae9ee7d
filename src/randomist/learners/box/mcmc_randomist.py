"""MCMC-RANDOMIST: RANDOMIST in a box (Metelli et al. 2021, Sec. 6 and App. F.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from randomist._checks import finite_array
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.importance import kernels
from randomist.importance.chains import Accepted, full_chain, one_step_chain
from randomist.importance.coins import TABLE
from randomist.importance.rows import Rows
from randomist.learners.box.base import BoxLearner
from randomist.learners.settings import bias_factor, check_scale


class Chain(NamedTuple):
    """The Metropolis path of one round, in the user's units; the last point was played."""

    points: Array  # (steps + 1, d)
    accepted: Accepted  # (steps,)


@dataclass(eq=False, kw_only=True)
class MCMCRandomist(BoxLearner):
    """Each round, a Metropolis chain from the decision played last towards the largest perturbed estimate.

    `density="full"` is g†, against all played decisions, by the tabulated product of their distribution functions
    (`exact=True`: by its definition, slowly); `"one-step"` compares the proposal with the current point only.
    `perturbation_scale` is a, `bias_correction` b: 0 (the default), "paper" for sqrt(α log t / η), or that many of it.
    `proposal_std` is the family's std by default. `chain` is the last round's path.

    Differences from the paper: every decision has its own number of coins ⌈a η⌉ (the display in App. F.2 reuses one). A
    proposal outside the box is refused. Decisions are played with `steps` = 10 Metropolis steps.
    """

    density: Literal["full", "one-step"] = "full"
    steps: int = 10
    perturbation_scale: float = 1.1
    bias_correction: float | Literal["paper"] = 0.0
    proposal_std: Any = None
    exact: bool = False

    asks_change: ClassVar[tuple[str, ...]] = ("_current",)

    def __post_init__(self) -> None:
        if self.density not in ("full", "one-step"):
            raise ParameterError(f'density must be "full" or "one-step", got {self.density!r}')
        if not isinstance(self.steps, int | np.integer) or self.steps < 1:
            raise ParameterError(f"steps must be a whole number >= 1, got {self.steps!r}")
        check_scale(self.perturbation_scale)
        self._bias = bias_factor(self.bias_correction)
        super().__post_init__()
        std = self.history.std if self.proposal_std is None else finite_array(self.proposal_std, "proposal_std")
        if not (std > 0).all() or std.ndim > 1 or std.size not in (1, self.space.dimension):
            raise ParameterError(f"proposal_std must be > 0, a number or one per dimension, got {self.proposal_std}")
        self._proposal = np.broadcast_to(std, self.history.std.shape) / self.history.std  # in units of the std
        self._bounds = np.ravel(self.space.low) / self.history.std, np.ravel(self.space.high) / self.history.std
        self._rows = Rows(self.space.dimension)  # of the played decisions, for the full density
        self._current: Array | None = None  # the decision that was asked last, where the next chain starts
        self.chain: Chain | None = None

    def _decide(self) -> Any:
        if self._current is None:
            self._current = self._first()
        else:
            normals = self._rng.standard_normal((self.steps, self.space.dimension)) * self._proposal
            path, accepted = self._walk(self._current / self.history.std, normals, self._rng.random(self.steps))
            inside = np.clip(
                path * self.history.std, np.ravel(self.space.low), np.ravel(self.space.high)
            )  # but for an ulp
            self.chain = Chain(inside, accepted)
            if accepted.any():
                self._current = self.chain.points[-1]
        return self._point(self._current)

    def _walk(self, start: Array, normals: Array, uniforms: Array) -> tuple[Array, Accepted]:
        """A chain in units of the std."""
        history = self.history
        if not self.told:  # nothing is known of any decision: all of the box is equally likely
            return _free_walk(start, normals, *self._bounds)
        a, term = self.perturbation_scale, self._term()
        given = (start, normals, uniforms, *self._bounds, a, self._bias, term, history.arrays(), self._kind)
        coins = TABLE.upto(math.ceil(a * self.told) + 1)
        if self.density == "one-step":
            return one_step_chain(*given, coins)
        played = self._rows.estimate(term, history.log_mixture.array, history.payoffs.array)
        values = self._combined(played[kernels.VALUE], played[kernels.COVERAGE])
        log_effective = played[kernels.LOG_EFFECTIVE]
        return full_chain(*given, values, log_effective, self.exact, coins)

    def _follow(self, sample: int) -> None:
        """The rows of the played decisions learn of a told sample, and of its decision if it is a new one."""
        if self.density != "full":
            return
        history, rows = self.history, self._rows
        decisions, plays, played = history.decisions.array, history.plays.array, history.decisions.used - 1
        rows.add_sample(history.mediators.array, sample, decisions, played)
        if rows.used < history.decisions.used:
            rows.add_decision(decisions[played], history.mediators.array, decisions, plays, history.decisions.used)

    def _caches(self) -> dict[str, Any]:
        current = None if self._current is None else self._current.copy()
        return super()._caches() | {"current": current}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        current = state["caches"]["current"]
        self._current = None if current is None else np.array(current)


def _free_walk(start: Array, normals: Array, low: Array, high: Array) -> tuple[Array, Accepted]:
    """A chain over a constant density: every proposal inside the box is accepted."""
    path, accepted = [start], np.zeros(len(normals), np.bool_)
    for step, normal in enumerate(normals):
        proposal = path[-1] + normal
        accepted[step] = bool(((low <= proposal) & (proposal <= high)).all())
        path.append(proposal if accepted[step] else path[-1])
    return np.array(path), accepted
