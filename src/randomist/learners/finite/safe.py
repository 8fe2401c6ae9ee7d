"""Never far below a baseline: another learner's choices, played where what has been earned for sure allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from randomist._checks import number, probability
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.histories.estimates import Estimates
from randomist.learners.base import Learner, Proposal
from randomist.learners.finite.base import FiniteLearner
from randomist.learners.finite.changing import decision_number
from randomist.learners.registry import CLASSES, name_of
from randomist.learners.registry import made as made_of
from randomist.learners.trial import Trial

if TYPE_CHECKING:
    from randomist.learners.finite.certainty import Certainty
    from randomist.policies.episodes import Episode

COMMON = tuple(f.name for f in fields(Learner) if f.name != "space")  # settings that the learner inside takes too


@dataclass(eq=False, kw_only=True)
class Safe(FiniteLearner):
    """Play what another learner chooses, unless the total payoff might fall below a part of the baseline's.

    At every round, with probability `level`: the expected total payoff of what was asked is at least 1 - `fraction` of
    what the baseline would have earned in as many rounds, both above the floor of `payoff_range`. A choice of the
    learner is played if that is certain afterwards, by the learner's intervals, which hold at every round and which
    every sample informs; else the baseline is played. Trials that are pending or have failed count as the floor (failed
    ones of the baseline do not count at all).

    `Safe(learner)` guards a learner on a finite set; `Safe(space, learner="realist", settings={...})` makes it. Other
    settings, such as `payoff_range` and `seed`, are the learner's. `inner` is the learner.

    Parameters
    ----------
    learner
        The learner, or its name; "realist" by default.
    settings
        What it is made with, besides the settings that all learners have.
    baseline
        The decision to fall back on.
    fraction
        What part of the baseline's payoff may be risked, in [0, 1].
    level
        With which probability the total stays above.

    Not in the paper: conservative bandits are due to Wu, Shariff, Lattimore and Szepesvári (2016, "Conservative
    bandits"); here the bounds are those of `intervals`, and the baseline's mean need not be known.
    """

    space: Any = field(default=None, kw_only=False)
    learner: Any = "realist"
    settings: dict[str, Any] | None = None
    baseline: int = 0
    fraction: float = 0.1
    level: float = 0.95

    def __post_init__(self) -> None:
        self.inner = self._made()
        self._mirror()
        number(self.fraction, "fraction", least=0, most=1)
        probability(self.level, "level")
        decision_number(self.baseline, self.space.size)
        if self.inner.guard is not None:
            raise ParameterError("this learner is guarded already; make another one for another guard")
        self.inner.certainty.intervals(self.level)  # raises where nothing can be said for sure
        self.inner.guard = self.allowed

    def allowed(self, decision: int) -> int:
        """The decision, if it can be played without risking more than was earned for sure; else the baseline."""
        if decision == self.baseline:
            return decision
        inner, base = self.inner, self.baseline
        plays = np.bincount(inner.record.decisions, minlength=self.space.size)
        failed = len(inner.failures) - sum(decided == base for decided in inner.failed.values())
        rounds = plays.sum() + len(inner.pending) + failed + 1
        if plays[base] >= (1.0 - self.fraction) * rounds:
            return decision
        low, high = inner.certainty.unit_intervals(self.level)
        others = np.delete(plays, base) @ np.delete(low, base)
        for mean in (low[base], high[base]):  # the baseline's own plays earn what it would have earned
            if plays[base] * mean + others < (1.0 - self.fraction) * rounds * mean:
                return base
        return decision

    def _made(self) -> FiniteLearner:
        """The learner inside: the one that was given, or a new one."""
        given = [one for one in (self.space, self.learner) if isinstance(one, Learner)]
        if not given:
            common = {name: getattr(self, name) for name in COMMON}
            if twice := common.keys() & dict(self.settings or {}).keys():
                raise ParameterError(
                    f"{', '.join(sorted(twice))} is a setting of Safe itself: give it beside settings="
                )
            made: Any = made_of(self.learner, self.space, common | dict(self.settings or {}))
        elif len(given) > 1 or self.settings is not None or any(_differs(self, given[0], name) for name in COMMON):
            raise ParameterError(
                "settings of the learner inside are given to it, not to Safe: Safe(Realist(space, ...))"
            )
        else:
            made = given[0]
            for name in COMMON:
                setattr(self, name, getattr(made, name))
        if not isinstance(made, FiniteLearner) or isinstance(made, Safe):
            raise ParameterError(f"Safe guards a learner on a finite set, got {type(made).__name__}")
        return made

    def disown_seed(self) -> None:
        super().disown_seed()
        self.inner.disown_seed()

    # What the state adds to that of the learner inside.

    def state(self) -> dict[str, Any]:
        state = self.inner.state()
        own = {name: getattr(self, name) for name in ("baseline", "fraction", "level")}
        common = {name: value for name, value in state["settings"].items() if name in COMMON}
        rest = {name: value for name, value in state["settings"].items() if name not in COMMON}
        inside = {"learner": _table_name(type(self.inner)), "settings": rest}
        return state | {"learner": name_of(type(self)), "settings": common | own | inside}

    def restore(self, state: dict[str, Any]) -> None:
        self.inner.restore(state)
        self._mirror()

    def restore_decisions(self, state: dict[str, Any]) -> None:
        self.inner.restore_decisions(state)

    def _mirror(self) -> None:
        """What others look at is the learner's inside."""
        inner = self.inner
        self.space, self.record, self.failures, self.failed = inner.space, inner.record, inner.failures, inner.failed
        self.entropy, self.search = inner.entropy, inner.search

    # All else is the learner's inside.

    def ask(self, batch: int | None = None, *, one_decision: bool = False) -> Any:
        return self.inner.ask() if batch is None else self.inner.ask(batch, one_decision=one_decision)

    def propose(
        self, n: int = 1, *, streams: Sequence[tuple[int, ...]] | None = None, confirm: bool = False
    ) -> Proposal:
        return self.inner.propose(n, streams=streams, confirm=confirm)

    def commit(self, proposal: Proposal) -> None:
        self.inner.commit(proposal)

    def adopt(self, trial: Trial, search: dict[str, Any] | None = None) -> None:
        self.inner.adopt(trial, search)

    def replace(self, trial: Trial) -> None:
        self.inner.replace(trial)

    def enter(self, trial: Trial) -> None:
        self.inner.enter(trial)

    def tell(
        self, trial: Trial | int, payoff: Any = None, *, feasible: bool = True, log_likelihoods: Any = None
    ) -> None:
        self.inner.tell(trial, payoff, feasible=feasible, log_likelihoods=log_likelihoods)

    def tell_episode(self, trial: Trial | int, episode: Episode) -> None:
        self.inner.tell_episode(trial, episode)

    def tell_all(self, trials: Sequence[Trial | int], payoffs: Sequence[float]) -> None:
        self.inner.tell_all(trials, payoffs)

    def fail(self, trial: Trial | int, reason: str = "") -> None:
        self.inner.fail(trial, reason)

    def is_pending(self, id_: int) -> bool:
        return self.inner.is_pending(id_)

    @property
    def pending(self) -> list[Trial]:
        return self.inner.pending

    @property
    def told(self) -> int:
        return self.inner.told

    @property
    def clipped(self) -> int:
        return self.inner.clipped

    @property
    def active(self) -> NDArray[np.bool_]:
        return self.inner.active

    @property
    def arrivals(self) -> Indices:
        return self.inner.arrivals

    @cached_property
    def certainty(self) -> Certainty:
        return self.inner.certainty

    def estimates(self) -> Estimates:
        return self.inner.estimates()

    def recommend(self) -> int:
        return self.inner.recommend()

    def add(self, member: Any = None, name: str | None = None, log_likelihoods: Any = None) -> int:
        number_ = self.inner.add(member, name, log_likelihoods)
        self._mirror()
        return number_

    def retire(self, decision: int) -> None:
        if decision == self.baseline:
            raise ParameterError(
                f"decision {decision} is the baseline, which others fall back on; it cannot be retired"
            )
        self.inner.retire(decision)

    def opening(self) -> list[int]:
        return self.inner.opening()

    def index(self, estimates: Estimates, rng: np.random.Generator) -> Array:
        return self.inner.index(estimates, rng)

    def _estimate(self) -> Estimates:
        raise AssertionError("unreachable: the learner inside estimates")

    def _observe(self, decision: int, mediator: Any, payoff: float) -> None:
        raise AssertionError("unreachable: the learner inside is told")

    def _observe_all(self, decisions: Indices, mediators: NDArray[Any], payoffs: Array) -> None:
        raise AssertionError("unreachable: the learner inside is told")

    def _rescale(self, payoffs: Array) -> None:
        raise AssertionError("unreachable: a running range is refused")


def _differs(safe: Safe, learner: Learner, name: str) -> bool:
    """Whether a setting was given to Safe that the learner inside has otherwise."""
    default = Learner.__dataclass_fields__[name].default
    return bool(getattr(safe, name) not in (default, getattr(learner, name)))


def _table_name(cls: type[Learner]) -> str:
    """What `make` calls a class: its name in the table, or module:Class."""
    return CLASSES.get(name_of(cls), name_of(cls))
