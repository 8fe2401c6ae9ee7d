"""The loop: a learner on a task, for one seed or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from randomist._checks import choice, whole_number
from randomist._types import Array, Indices
from randomist.errors import ParameterError
from randomist.learners.registry import LearnerLike, make, takes
from randomist.tasks.base import Task
from randomist.tasks.base import task as find_task

if TYPE_CHECKING:
    from randomist.learners.base import Learner
    from randomist.spaces import Space


@dataclass(frozen=True, eq=False)
class Run:
    """What happened: one entry per told round, payoffs in the user's units."""

    task: str
    learner: str
    seed: int
    decisions: NDArray[Any]  # (n,) indices or (n, d) points
    mediators: NDArray[Any]  # (n,) or (n, d)
    payoffs: Array  # (n,)
    regret: Array | None  # cumulative, where the expected payoffs are known  (n,)
    recommendation: Any  # the learner's last word
    clipped: int = 0  # payoffs outside the range, clipped for the learner
    failures: dict[int, str] = field(default_factory=dict)  # trials without a payoff, and why
    surviving: tuple[int, ...] | None = None  # decisions that may still be best, of a run `until="sure"`

    @property
    def average_payoff(self) -> Array:
        """The mean payoff of rounds 1..t for every t: exploration counts.  (n,)"""
        return np.cumsum(self.payoffs) / np.arange(1, len(self.payoffs) + 1)


def optimize(
    task: str | Task,
    learner: LearnerLike,
    rounds: int,
    seed: int = 0,
    *,
    space: Space | None = None,
    progress: Callable[[int], None] | None = None,
    until: Literal["sure"] | None = None,
    level: float | None = None,
    **settings: Any,
) -> Run:
    """Run a learner on a task for `rounds` rounds; `settings` go to the learner.

    `learner` is a class, a name (`randomist list`) or anything callable like one; `progress` is called with the number
    of rounds done. The learner draws from `seed`, and so does the task, in a branch of its own. With `until="sure"` a
    run on a finite set ends as soon as one decision is left that may be best, with probability `level` (0.95, or what
    the learner has); `rounds` is then the most.
    """
    rounds = whole_number(rounds, "rounds")
    task = find_task(task)
    if level is not None and takes(learner, "level"):
        settings["level"] = level
    chooser = make(learner, task, space=space, **({"seed": seed} | settings))
    sure = _sureness(chooser, until, level)
    if not getattr(chooser, "keep_record", True):
        raise ParameterError("a run is a record: keep_record must be True here; to forget it, ask and tell the learner")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2,)))  # 0 and 1 are the learner's
    for done in range(1, rounds + 1):
        trial = chooser.ask()
        payoff = float(task.payoff(np.asarray(trial.mediator)[None], rng)[0])
        if np.isfinite(payoff):
            chooser.tell(trial, payoff)
        else:
            chooser.fail(trial, f"the task returned {payoff} for mediator {trial.mediator}")
        if progress is not None:
            progress(done)
        if sure is not None and _is_due(done) and len(sure()) == 1:
            break
    return _finish(task, chooser, seed, space, sure)


def optimize_many(
    task: str | Task,
    learner: LearnerLike,
    rounds: int,
    seeds: int | Sequence[int],
    *,
    jobs: int = 1,
    **settings: Any,
) -> list[Run]:
    """One run per seed (an integer n means 0..n-1), the same for any number of `jobs`; more than one needs joblib."""
    seeds = range(seeds) if isinstance(seeds, int) else seeds
    return list(run_all([(task, learner, rounds, seed, settings) for seed in seeds], jobs=jobs))


def run_all(
    calls: Iterable[tuple[str | Task, LearnerLike, int, int, dict[str, Any]]], *, jobs: int = 1
) -> Iterator[Run]:
    """Runs (task, learner, rounds, seed, settings), yielded in order as they finish."""
    if jobs == 1:
        return (_one(*call) for call in calls)
    from joblib import Parallel, delayed

    runs: Iterator[Run] = Parallel(n_jobs=jobs, return_as="generator")(delayed(_one)(*call) for call in calls)
    return runs


def _one(task: str | Task, learner: LearnerLike, rounds: int, seed: int, settings: dict[str, Any]) -> Run:
    return optimize(task, learner, rounds, seed, **settings)


def _sureness(learner: Learner, until: Any, level: float | None) -> Callable[[], Indices] | None:
    """What names the decisions that may still be best, where a run is to end when one is left."""
    if until is None:
        if level is not None and not hasattr(learner, "level"):
            raise ParameterError(f'level={level!r} says when a run is sure: give until="sure" too')
        return None
    choice(until, ("sure",), "until")
    surviving = getattr(learner, "surviving", None)
    if surviving is None:
        raise ParameterError(
            f'until="sure" is for finite sets, and {type(learner).__name__} searches a box, where there are endless '
            "decisions; give rounds alone"
        )
    chosen = getattr(learner, "level", 0.95) if level is None else level
    surviving(chosen)  # raises where nothing can ever be sure
    return partial(surviving, chosen)


def _is_due(done: int) -> bool:
    """Whether to look if one is left: always in the first 100 rounds, then once in a hundredth of them."""
    return done % max(1, done // 100) == 0


def _finish(
    task: Task, learner: Learner, seed: int, space: Space | None, sure: Callable[[], Indices] | None = None
) -> Run:
    record, regret = learner.record, None
    optimum = task.optimum if space is None and learner.space is task.space else None  # J(x) is known of these only
    if optimum is not None and len(record):
        regret = np.cumsum(optimum - task.expected_payoff(record.decisions))
    return Run(
        task=task.id,
        learner=type(learner).__name__,
        seed=seed,
        decisions=record.decisions,
        mediators=record.mediators,
        payoffs=record.payoffs,
        regret=regret,
        recommendation=learner.recommend() if learner.told else None,
        clipped=learner.clipped,
        failures=learner.failures,
        surviving=None if sure is None else tuple(sure().tolist()),
    )
