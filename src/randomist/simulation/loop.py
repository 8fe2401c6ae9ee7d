"""One run: a learner on a task or on a plain function."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from randomist import __version__, _json
from randomist._checks import choice, flag, number, payoff_range, whole_number
from randomist._types import Indices
from randomist.errors import NoDataError, ParameterError, TaskError
from randomist.learners.payoffs import number as payoff_number
from randomist.learners.registry import LearnerLike, find, make, takes
from randomist.simulation.calls import TASK_STREAM, Calls, Catch, Here, callable_of, checked_catch
from randomist.simulation.endings import sure_level, when_settled, when_sure
from randomist.simulation.journal import Journal
from randomist.simulation.rounds import Outcome, Rounds, carry_out
from randomist.simulation.run import Run
from randomist.tasks.base import Task
from randomist.tasks.base import task as find_task
from randomist.tasks.function import FunctionTask, function_space, is_function

if TYPE_CHECKING:
    from randomist.learners.base import Learner
    from randomist.learners.box.auto.interval import Interval
    from randomist.parameters import Meaning
    from randomist.spaces import Parameters, Space

Problem: TypeAlias = str | Task | Callable[..., Any]
FORMAT = 1  # of the file of a run
SEED_BITS = 63


def optimize(
    task: Problem,
    learner: LearnerLike | None = None,
    rounds: int = 100,
    seed: int | None = 0,
    *,
    parameters: Parameters | Mapping[str, Any] | None = None,
    low: Any = None,
    high: Any = None,
    space: Space | None = None,
    direction: Literal["maximize", "minimize"] = "maximize",
    jobs: int = 1,
    timeout: float | None = None,
    catch: tuple[type[Exception], ...] | None = None,
    fail_fast: bool = True,
    callbacks: Sequence[Callable[[Outcome], Any]] = (),
    progress: Callable[[int], None] | None = None,
    patience: int | None = None,
    until: Literal["sure"] | None = None,
    level: float | None = None,
    begin: tuple[Any, Any] | None = None,
    confirm: int | None = None,
    save: str | PathLike[str] | None = None,
    **settings: Any,
) -> Run:
    """Find what pays most, within `rounds` rounds: of a plain function, or of a task.

    Parameters
    ----------
    task
        A function that returns a number, a task, or the id of one.
    learner
        A class, a name (`randomist list`) or anything callable like one. By default `Auto`, or `Realist` on a finite
        set; further `settings` go to it.
    rounds
        How many trials to make.
    seed
        What the learner draws from, and a task, in a branch of its own. None takes one from the system, which
        `Run.seed` then names.
    parameters
        Of a function that is called with keyword arguments: `Parameters`, or a dict such as {"kp": (0.1, 100)}.
    low, high
        Of a function that is called with a number or an array: the corners of the box.
    space
        Where to search instead of the task's own space; a function is then called with mediators.
    direction
        "maximize", or "minimize" for costs. Payoffs stay as they are returned.
    jobs
        How many processes call the function; a free one is given the next trial at once. The order in which they finish
        then decides what the learner knows. With 1, all happens in this process, unless there is a `timeout`.
    timeout
        Seconds for one call, which is made in another process: what takes longer is killed, and its trial fails.
    catch
        Exceptions that fail a trial instead of ending the run: by default all that a function raises, and none that a
        task raises. What ends a run has the rounds so far as `error.run`.
    fail_fast
        End the run with that error when the first five calls fail with the same one; False goes on.
    callbacks
        Each is called with an `Outcome` after every round; one that returns True ends the run. Where it has them,
        `on_begin(learner, run)` is called before the first round, and `on_end(run, error)` when the run is over: with
        an error that ended it, or None, and after Ctrl-C too.
    progress
        Called with the number of rounds done.
    patience
        End the run when the last so many payoffs are on average no better than as many before, by a standard error.
    until, level
        "sure": end a run on a finite set as soon as one decision is left that may be best, with probability `level`
        (0.95, or what the learner has); `rounds` is then the most.
    begin
        Results of earlier work, (points, payoffs): points of the box, or dicts of named parameters.
    confirm
        After the rounds, play what is recommended so many times more: `Run.best_payoff` is then an interval that stands
        on these plays alone, and does not depend on how the point was found.
    save
        A file that has every ask and tell as it happens. The same call goes on with it, with more `rounds` if you like.
    """
    rounds, jobs = whole_number(rounds, "rounds"), whole_number(jobs, "jobs")
    sign = 1 if choice(direction, ("maximize", "minimize"), "direction") == "maximize" else -1
    timeout = None if timeout is None else number(timeout, "timeout", above=0)
    problem = _problem(task, parameters, low, high, space)
    function = problem if isinstance(problem, FunctionTask) else None
    where = space if function is None else None  # a function's is the problem's own
    learner = default_learner(problem if where is None else where) if learner is None else learner
    named = {"level": level, "patience": patience} | ({"low": low, "high": high} if function is None else {})
    ours = {name for name in ("level", "patience") if not takes(learner, name)}
    settings |= {name: value for name, value in named.items() if value is not None and name not in ours}
    if function is not None and function.named is not None and isinstance(settings.get("first"), Mapping):
        settings["first"] = function.named.point(settings["first"])
    with nullcontext() if save is None else Journal(save) as journal:
        if seed is None:
            saved = None if journal is None else journal.header
            seed = secrets.randbits(SEED_BITS) if saved is None else int(saved["seed"])
        chooser = make(learner, problem, space=where, **({"seed": seed} | _directed(settings, problem, learner, sign)))
        chosen: Any = chooser
        surely = sure_level(chooser, until, level)
        sure = None if surely is None else partial(chosen.surviving, surely)
        if not getattr(chooser, "keep_record", True):
            raise ParameterError(
                "a run is a record: keep_record must be True here; to forget it, ask and tell the learner"
            )
        endings = [] if sure is None else [when_sure(sure)]
        if patience is not None and "patience" in ours:
            endings.append(when_settled(lambda: chooser.record.payoffs, patience))
        if begin is not None:
            _begin(chooser, begin, sign, None if function is None else function.named)
        if confirm is not None and whole_number(confirm, "confirm") and not hasattr(chooser, "confirm"):
            raise ParameterError(f"confirm= is for Auto; {type(chooser).__name__} has no play without noise")
        if journal is not None:
            journal.begin(_header(problem, chooser, seed, direction))
        here = jobs == 1 and timeout is None
        draws = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(TASK_STREAM,))) if here else None
        with closing(calls_of(problem, seed, draws, checked_catch(catch, problem), jobs, timeout)) as calls:
            running = Rounds(
                *(chooser, calls, None if function is None else function.named, sign),
                journal=journal,
                draws=draws if function is None else None,
                progress=progress,
                callbacks=callbacks,
                endings=endings,
                fail_fast=flag(fail_fast, "fail_fast"),
            )
            so_far = partial(_so_far, running, problem, seed, direction, where, sure)
            left = "" if save is None else f"; the same call goes on with {save}"
            return carry_out(running, rounds, confirm, so_far, left, chooser, callbacks, function is not None)


def default_learner(place: Task | Space) -> str:
    """What the docs advise: Realist on a finite set, Auto in a box."""
    from randomist.spaces import Finite

    return "realist" if isinstance(getattr(place, "space", place), Finite) else "auto"


def _problem(task: Any, parameters: Any, low: Any, high: Any, space: Any) -> Task:
    """A task as it is; a plain function together with where to search it."""
    if is_function(task):
        return FunctionTask(task, function_space(task, parameters=parameters, low=low, high=high, space=space))
    found = find_task(task)
    if parameters is not None:
        raise TaskError(f"parameters= are those of a plain function, and {found.id!r} is a task; give it a space=")
    return found


def _directed(settings: dict[str, Any], task: Task, learner: LearnerLike, sign: int) -> dict[str, Any]:
    """Settings for what the learner is told: the range of payoffs, learned of a function, turned around for costs."""
    given = dict(settings)
    learns = getattr(find(learner) if isinstance(learner, str) else learner, "learns_range", False)
    if "payoff_range" not in given and not learns and (sign < 0 or isinstance(task, FunctionTask)):
        given["payoff_range"] = "running" if np.isinf(task.payoff_range).any() else task.payoff_range
    if sign < 0:
        if "prior" in given:
            raise ParameterError('prior= is of payoffs that are maximized; leave it out with direction="minimize"')
        if not isinstance(given.get("payoff_range", "running"), str):
            lowest, highest = payoff_range(given["payoff_range"])
            given["payoff_range"] = (-highest, -lowest)
    return given


def _begin(learner: Any, begin: Any, sign: int, named: Meaning | None) -> None:
    """Tell a learner what is known, points in coordinates of the box."""
    if not hasattr(learner, "begin"):
        raise ParameterError(f"begin= is for learners in a box such as Auto; {type(learner).__name__} has no begin")
    if not isinstance(begin, Sequence) or len(begin) != 2:
        raise ParameterError(f"begin= is (points, payoffs), got {begin!r:.80}")
    points, payoffs = begin
    if named is not None:
        points = np.array([named.point(point) if isinstance(point, Mapping) else point for point in points])
    learner.begin(points, [sign * payoff_number(payoff) for payoff in np.ravel(payoffs).tolist()])


def best_payoff(learner: Any, sign: int) -> Interval | None:
    """Of the mean payoff at what is recommended, where the learner has one."""
    if not hasattr(learner, "confirmed") or not learner.told:
        return None
    try:
        found: Interval = learner.confirmed().mean
    except NoDataError:
        found = learner.interval()
    return found if sign > 0 else found.turned()


def calls_of(
    task: Task, seed: int, draws: np.random.Generator | None, catch: Catch, jobs: int, timeout: float | None
) -> Calls:
    """In this process where one call is made at a time, and takes as long as it takes; else in others."""
    function, arguments = callable_of(task, seed, draws)
    if jobs == 1 and timeout is None:
        return Here(function, arguments, catch)
    from randomist.simulation.workers import Workers

    return Workers(function, arguments, catch, jobs, timeout)


def _header(task: Task, learner: Learner, seed: int, direction: str) -> dict[str, Any]:
    """What a run is: the same for a run that goes on. `rounds` and `jobs` may change."""
    named = task.named if isinstance(task, FunctionTask) else None
    state = learner.state()
    parts = [state["space"], state["settings"]]
    text = _json.dumps([*parts, state["begun"]] if len(state.get("begun", {}).get("payoffs", ())) else parts)
    return {
        "version": __version__,
        "format": FORMAT,
        "task": task.id,
        "parameters": None if named is None else named.describe(),
        "learner": state["learner"],
        "direction": direction,
        "seed": seed,
        "space and settings": hashlib.sha256(text.encode()).hexdigest()[:16],
    }


def _so_far(
    running: Rounds,
    task: Task,
    seed: int,
    direction: Literal["maximize", "minimize"],
    space: Space | None,
    sure: Callable[[], Indices] | None,
    interrupted: bool = False,
) -> Run:
    learner, regret = cast("Learner", running.learner), None
    record, maximizing = learner.record, direction == "maximize"
    optimum = task.optimum if space is None and learner.space is task.space else None  # J(x) is known of these only
    if optimum is not None and len(record) and maximizing:
        regret = np.cumsum(optimum - task.expected_payoff(record.decisions))
    return Run(
        task=task.id,
        learner=type(learner).__name__,
        seed=seed,
        decisions=record.decisions,
        mediators=record.mediators,
        payoffs=record.payoffs if maximizing else -record.payoffs,
        regret=regret,
        recommendation=learner.recommend() if learner.told else None,
        clipped=learner.clipped,
        failures=learner.failures,
        surviving=None if sure is None else tuple(sure().tolist()),
        direction=direction,
        space=running.space,
        ids=record.ids,
        failed=running.failed,
        notes=tuple(running.notes),
        interrupted=interrupted,
        best_payoff=best_payoff(learner, 1 if maximizing else -1),
    )
