"""Where payoffs come from: the contract of a task, and the table of task ids."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._types import Array
from randomist.errors import TaskError
from randomist.policies import Policy
from randomist.spaces import Space

if TYPE_CHECKING:
    import gymnasium


class Task(ABC):
    """A payoff for every mediator, in the user's units.

    `space` is the paper's space of decisions for this task, or None where the user must choose one.
    `out_of_range="clip"` says that payoffs may leave `payoff_range` and are clipped for the learner, reported raw.
    """

    id: ClassVar[str]
    payoff_range: tuple[float, float] = (0.0, 1.0)
    out_of_range: Literal["refuse", "clip"] = "refuse"
    space: Space | None = None
    first: Any = None  # the first decision, where the experiment fixes it

    @abstractmethod
    def payoff(self, mediators: ArrayLike, rng: np.random.Generator) -> Array:
        """One payoff per mediator.  (n, *shape) -> (n,)"""

    def expected_payoff(self, decisions: ArrayLike | None = None) -> Array:
        """J(x) at decisions of `space` (all of a finite one by default), where it is known exactly.  (n,)"""
        raise TaskError(f"the expected payoff of {self.id!r} is not known in closed form; regret cannot be computed")

    @property
    def optimum(self) -> float | None:
        """The best expected payoff in `space`, or None where it is not known."""
        return None


class ControlTask(Task):
    """A task whose mediators are the parameters of `policy`, and whose payoff is the return of an episode.

    The three methods say how `rollout` plays one episode of at most `horizon` steps in Gymnasium.
    """

    policy: Policy
    horizon: int

    @abstractmethod
    def make_env(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """A new environment of this task; it sets no limit to the number of steps."""

    def to_action(self, outputs: Array) -> Any:
        """What the environment is given where the policy puts out this.  (..., action_size) -> (..., *shape)"""
        action: NDArray[Any] = self.policy.choose(outputs)
        return action

    def episode_payoff(self, rewards: ArrayLike) -> float:
        """The payoff of an episode with these rewards: their sum, from first to last.  (T,) -> number"""
        return float(sum(np.asarray(rewards, dtype=np.float64).tolist()))


_TASKS: dict[str, Callable[..., Task]] = {}
_PREFIXES: dict[str, Callable[..., Task]] = {}


def register(task: type[Task]) -> type[Task]:
    """Make a task known by its id: `rd.task(id, **settings)`."""
    _TASKS[task.id] = task
    return task


def register_prefix(prefix: str, make: Callable[..., Task]) -> None:
    """Make the ids "prefix:name" known: `rd.task("prefix:name", **settings)` is `make(name, **settings)`."""
    _PREFIXES[prefix] = make


def task(id: str | Task, **settings: Any) -> Task:
    """The task with this id (`randomist list` names them; `gym:<id>` is any of Gymnasium's), with keyword settings."""
    if isinstance(id, Task):
        return id
    prefix, colon, name = id.partition(":")
    try:
        if colon and prefix in _PREFIXES:
            return _PREFIXES[prefix](name, **settings)
        if id not in _TASKS:
            known = [*sorted(_TASKS), *(f"{prefix}:<id>" for prefix in _PREFIXES)]
            raise TaskError(f"unknown task {id!r}; known tasks: {', '.join(known)}")
        return _TASKS[id](**settings)
    except TypeError as error:
        raise TaskError(f"task {id!r} does not take these settings {settings}: {error}") from error


def registered() -> dict[str, Callable[..., Task]]:
    """What makes each task, by id, sorted."""
    return dict(sorted(_TASKS.items()))


def task_ids() -> list[str]:
    """The registered ids, sorted."""
    return list(registered())
