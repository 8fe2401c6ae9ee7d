"""A study that calls a function: ask, call, tell, in this process or in some of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from randomist._checks import flag, number, whole_number
from randomist._types import Array
from randomist.errors import ParameterError
from randomist.simulation.calls import checked_catch
from randomist.simulation.endings import sure_level, when_settled, when_sure
from randomist.simulation.loop import best_payoff, calls_of
from randomist.simulation.rounds import Outcome, Rounds, carry_out
from randomist.simulation.run import Run
from randomist.spaces import Box
from randomist.tasks.base import Task
from randomist.tasks.base import task as find_task
from randomist.tasks.function import FunctionTask, is_function

if TYPE_CHECKING:
    from randomist.study.study import Study


class Told:
    """What came of the trials of this call, in the order of their tells. Others may have told more."""

    def __init__(self) -> None:
        self.rounds: list[Outcome] = []
        self.failures: dict[int, str] = {}

    def __call__(self, outcome: Outcome) -> None:
        if outcome.payoff is None:
            self.failures[outcome.trial.id] = outcome.failure or ""
        else:
            self.rounds.append(outcome)

    @property
    def payoffs(self) -> Array:
        return np.array([outcome.payoff for outcome in self.rounds], dtype=np.float64)


def optimize(
    study: Study,
    task: Callable[..., Any] | Task | str,
    rounds: int,
    *,
    jobs: int,
    timeout: float | None,
    catch: tuple[type[Exception], ...] | None,
    fail_fast: bool,
    callbacks: Sequence[Callable[[Outcome], Any]],
    progress: Callable[[int], None] | None,
    patience: int | None,
    until: str | None,
    level: float | None,
    confirm: int | None,
) -> Run:
    """`Study.optimize`, which says what the arguments are."""
    rounds, jobs = whole_number(rounds, "rounds"), whole_number(jobs, "jobs")
    timeout = None if timeout is None else number(timeout, "timeout", above=0)
    learner, space = study.learner, study.space
    if not space.family.drawn:
        raise ParameterError(
            "optimize calls a function of what `ask` draws, and the policies of this study act elsewhere: ask, run the "
            "policy, and tell(trial, payoff, log_likelihoods=...)"
        )
    given: Any = task
    problem = FunctionTask(given, space) if is_function(given) else find_task(given)
    surely, told = sure_level(learner, until, level), Told()
    sure = None if surely is None else partial(study.surviving, surely)
    endings = [] if sure is None else [when_sure(sure)]
    if patience is not None:
        endings.append(when_settled(lambda: told.payoffs, patience))
    if confirm is not None and whole_number(confirm, "confirm") and not hasattr(learner, "confirm"):
        raise ParameterError(f"confirm= is for Auto; {study.learner_name} has no play without noise")
    meaning = space.meaning if isinstance(space, Box) else None
    with closing(calls_of(problem, learner.entropy, None, checked_catch(catch, problem), jobs, timeout)) as calls:
        running = Rounds(
            *(study, calls, meaning, 1),
            journal=None,
            draws=None,
            progress=progress,
            callbacks=[told, *callbacks],
            endings=endings,
            fail_fast=flag(fail_fast, "fail_fast"),
        )

        def so_far(interrupted: bool) -> Run:
            return Run(
                task=problem.id,
                learner=study.learner_name,
                seed=learner.entropy,
                decisions=np.array([outcome.trial.decision for outcome in told.rounds]),
                mediators=np.array([outcome.trial.mediator for outcome in told.rounds]),
                payoffs=told.payoffs,
                regret=None,
                recommendation=study.recommend() if study.told else None,
                failures=told.failures,
                surviving=None if sure is None else tuple(sure().tolist()),
                space=meaning,
                ids=np.array([outcome.trial.id for outcome in told.rounds], np.int64),
                failed=running.failed,
                notes=tuple(running.notes),
                interrupted=interrupted,
                best_payoff=study.look(lambda now, _: best_payoff(now, 1)),
            )

        left = f"; what was told is in study {study.name!r}"
        try:
            pays = isinstance(problem, FunctionTask)
            return carry_out(running, rounds, confirm, so_far, left, learner, callbacks, pays)
        finally:
            for trial in running.left():
                study.fail(trial, "its worker was stopped")
