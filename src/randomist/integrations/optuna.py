"""Optuna's studies with Auto behind them: `optuna.create_study(sampler=RandomistSampler())`.

T. Akiba, S. Sano, T. Yanase, T. Ohta, M. Koyama, Optuna: A Next-generation Hyperparameter Optimization Framework,
KDD 2019.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

try:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study, StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ImportError as missing:
    raise ImportError(
        f"randomist.integrations.optuna needs the `optuna` extra ({missing}); pip install 'randomist[optuna]'"
    ) from missing

from randomist._checks import flag, whole_number
from randomist._json import frozen
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.integrations.optuna_space import OptunaSpace, searchable
from randomist.learners.box.auto import Auto
from randomist.learners.payoffs import LARGEST
from randomist.learners.trial import Trial

MOST_SEED = 2**32 - 1  # that Optuna's random sampler takes
_logger = logging.getLogger(__name__)


class RandomistSampler(BaseSampler):
    """Suggest the parameters of Optuna's trials with `Auto`, which earns much in all trials and not only in the best.

    Parameters that every completed trial has, with the same distribution, are chosen together. Others, such as those
    inside of an `if`, and all of them until a first trial is complete, are drawn at random.

    The learner is kept here and told what is new in the study: values in the study's direction, pruned trials by their
    last intermediate value, failed ones not at all. Trials that run elsewhere count as pending; those whose parameters
    came from elsewhere are results of earlier work (`Auto.begin`). A trial with a constraint above 0
    (`trial.set_constraint`), or with an infinitely bad value, is infeasible, and the search keeps away from there.
    Another process, or a copy of the sampler, builds a learner of its own from the study.

    Parameters
    ----------
    seed
        A whole number up to 2**32 - 1. The same seed gives the same study, if trials run one after the other; None
        takes one from the system.
    search_space
        The distributions by name, if they are known before the first trial: then no trial is drawn at random, and the
        study does what `rd.optimize` does. By default they are those that completed trials have in common.
    warn_independent_sampling
        Whether to log it once for each parameter that goes on being drawn at random.
    """

    _kept: _Kept | None
    _common: tuple[weakref.ref[Study], IntersectionSearchSpace] | None  # of completed trials, and of which study

    def __init__(
        self,
        *,
        seed: int | None = None,
        search_space: Mapping[str, BaseDistribution] | None = None,
        warn_independent_sampling: bool = True,
    ) -> None:
        if seed is not None and whole_number(seed, "seed", 0, ", or None for one from the system") > MOST_SEED:
            raise ParameterError(f"seed must be at most 2**32 - 1, got {seed}; Optuna's random sampler takes no other")
        self._seed = secrets.randbits(32) if seed is None else int(seed)
        self._given = None if search_space is None else _checked_space(search_space)
        self._warns = flag(warn_independent_sampling, "warn_independent_sampling")
        self._independent = RandomSampler(seed=seed)
        self._begin()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The distributions that are searched together."""
        if self._given is not None:
            return dict(self._given)
        with self._lock:
            if self._common is None or self._common[0]() is not study:
                self._common = weakref.ref(study), IntersectionSearchSpace()
            return searchable(self._common[1].calculate(study))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values that Auto chooses next, given what the study has."""
        _check_single_objective(study)
        distributions = searchable(search_space)
        if not distributions:
            return {}
        with self._lock:
            kept = self._kept
            if kept is None or kept.study() is not study or kept.space.distributions != distributions:
                kept = self._kept = _Kept(study, OptunaSpace(distributions), self._seed + trial.number)
            kept.update(study.get_trials(deepcopy=False), trial.number)
            return kept.ask(trial.number)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value, for a parameter that is not searched together with the others."""
        _check_single_objective(study)
        with self._lock:
            if self._warns and self._kept is not None and param_name not in self._warned:
                self._warned.add(param_name)
                _logger.warning(
                    "%s is drawn at random in trial %d: not every completed trial has it with this distribution",
                    *(param_name, trial.number),
                )
            return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Draw another seed. A learner that is kept goes on: it is shared by threads, and copies have none."""
        self._seed = secrets.randbits(32)
        self._independent.reseed_rng()

    def _begin(self) -> None:
        self._lock = threading.RLock()
        self._kept = self._common = None
        self._warned: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        mine = ("_lock", "_kept", "_common", "_warned")  # of this object; a copy builds them from the study
        return {name: value for name, value in self.__dict__.items() if name not in mine}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


class _Kept:
    """A learner, and which trials of a study it knows."""

    def __init__(self, study: Study, space: OptunaSpace, seed: int) -> None:
        self.study, self.space = weakref.ref(study), space
        self._sign = 1 if study.direction == StudyDirection.MAXIMIZE else -1
        self._learner = Auto(space.parameters, seed=seed)
        self._asked: dict[int, tuple[Trial, dict[str, Any]]] = {}  # by number, and the values that were given out
        self._elsewhere: dict[int, Trial] = {}  # running there, pending here
        self._closed: set[int] = set()
        self._next_id = 0

    def update(self, trials: Sequence[FrozenTrial], current: int) -> None:
        """Learn what the trials of the study say that was not known."""
        points, payoffs = list[Array](), list[float]()  # of results from elsewhere
        for trial in trials:
            if trial.number in self._closed or trial.number == current or trial.state == TrialState.WAITING:
                continue
            if trial.state == TrialState.RUNNING:
                self._see_running(trial)
                continue
            self._closed.add(trial.number)
            ticket, point = self._ticket(trial), self.space.point(trial.params)
            payoff = self._payoff(trial)
            if ticket is None and point is not None and payoff is not None:
                if math.isfinite(payoff):
                    points.append(point)
                    payoffs.append(payoff)
                    continue
                ticket = self._adopt(point)
            if ticket is not None:
                self._close(ticket, payoff)
        if points:
            self._learner.begin(points, payoffs)

    def ask(self, number: int) -> dict[str, Any]:
        """Values for the trial with this number."""
        if number in self._asked:  # asked again: the values before are not played
            self._learner.fail(self._asked.pop(number)[0], "asked again")
        ticket = self._learner.ask()
        self._next_id = ticket.id + 1
        values = self.space.values(ticket.mediator)
        self._asked[number] = ticket, values
        return values

    def _ticket(self, trial: FrozenTrial) -> Trial | None:
        """What the learner asked, where the trial is just that."""
        if trial.number in self._elsewhere:
            self._learner.fail(self._elsewhere.pop(trial.number), "a result from elsewhere")
        if trial.number not in self._asked:
            return None
        ticket, values = self._asked.pop(trial.number)
        if all(name in trial.params and trial.params[name] == value for name, value in values.items()):
            return ticket
        self._learner.fail(ticket, "played with other values")
        return None

    def _see_running(self, trial: FrozenTrial) -> None:
        if trial.number not in self._asked and trial.number not in self._elsewhere:
            point = self.space.point(trial.params)
            if point is not None:
                self._elsewhere[trial.number] = self._adopt(point)

    def _adopt(self, point: Array) -> Trial:
        """A trial that plays just this point, as if it had been asked."""
        ticket = Trial(self._next_id, frozen(self._learner.space.family.join(point, 0.0)), frozen(point))
        self._learner.adopt(ticket)
        self._next_id += 1
        return ticket

    def _close(self, ticket: Trial, payoff: float | None) -> None:
        if payoff is None or payoff == math.inf:
            self._learner.fail(ticket, "no value")
        elif payoff == -math.inf:
            self._learner.tell(ticket, feasible=False)
        else:
            self._learner.tell(ticket, payoff)

    def _payoff(self, trial: FrozenTrial) -> float | None:
        """What a trial paid: -inf where it is infeasible, None where it has no value."""
        if trial.state == TrialState.FAIL:
            return None
        if any(constraint > 0 for constraint in _constraints(trial)):
            return -math.inf
        steps = trial.intermediate_values
        value = trial.value if trial.state == TrialState.COMPLETE else steps[max(steps)] if steps else None
        if value is None or math.isnan(value):
            return None
        payoff = self._sign * float(value)
        return payoff if abs(payoff) <= LARGEST else math.copysign(math.inf, payoff)


def _constraints(trial: FrozenTrial) -> Iterable[float]:
    """Those that a trial has, of Optuna 5 and of Optuna 4."""
    if hasattr(trial, "constraints"):
        return list(trial.constraints.values())
    return trial.system_attrs.get("constraints") or ()


def _check_single_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ParameterError(
            f"RandomistSampler takes studies of one objective, this one has {len(study.directions)}; return a weighted "
            "sum of them, or take one of Optuna's samplers for several"
        )


def _checked_space(search_space: Any) -> dict[str, BaseDistribution]:
    if not isinstance(search_space, Mapping) or not all(isinstance(d, BaseDistribution) for d in search_space.values()):
        raise ParameterError(
            f'search_space must have distributions by name, such as {{"x": FloatDistribution(0, 1)}}, got '
            f"{search_space!r:.80}"
        )
    found = searchable(search_space)
    if found:
        OptunaSpace(found)  # refuses now what it cannot search
    return found
