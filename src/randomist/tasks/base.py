"""Where payoffs come from: the contract of a task, and the table of task ids."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from randomist._lookup import Named, check_module, imported, is_foreign, known, ours, registered
from randomist._types import Array
from randomist.errors import TaskError

if TYPE_CHECKING:
    import gymnasium

    from randomist.policies import Policy
    from randomist.spaces import Space


class Task(Named, ABC):
    """A payoff for every mediator, in the user's units.

    `space` is the paper's space of decisions for this task, or None where the user must choose one.
    `out_of_range="clip"` says that payoffs may leave `payoff_range` and are clipped for the learner, reported raw.
    """

    _ours: ClassVar[str] = "randomist.tasks.base:TASKS"

    id: str  # of the class; a task that has one per environment sets its own
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


Maker: TypeAlias = "Callable[..., Task] | str"  # a string says where it is defined: "module:name"

# A task of ours is its file and one line here; it is imported when it is first asked for.
TASKS: dict[str, Maker] = {
    "bernoulli": "randomist.tasks.bandits:Bernoulli",
    "cartpole": "randomist.tasks.cartpole:Cartpole",
    "fact-1": "randomist.tasks.lower_bounds:FollowTheLeaderTrap",
    "illustrative": "randomist.tasks.illustrative:Illustrative",
    "lqg": "randomist.tasks.lqg:LQG",
    "mountain-car": "randomist.tasks.mountain_car:MountainCar",
    "rare-loss": "randomist.tasks.lower_bounds:RareLoss",
    "jackpot": "randomist.tasks.lower_bounds:Jackpot",
    "theorem-1": "randomist.tasks.lower_bounds:ConstantRegretPair",
    "theorem-2": "randomist.tasks.lower_bounds:LogarithmicRegretPair",
}
_PREFIXES: dict[str, Maker] = {
    "gym": "randomist.tasks.gym:GymnasiumTask",
    "gym-vector": "randomist.tasks.vector:VectorTask",
}


def register_prefix(prefix: str, make: Callable[..., Task]) -> None:
    """Make the ids "prefix:name" known: `rd.task("prefix:name", **settings)` is `make(name, **settings)`."""
    _PREFIXES[prefix] = make


def task(
    id: str | Task | type[Task] | gymnasium.Env[Any, Any] | type[gymnasium.Env[Any, Any]], /, **settings: Any
) -> Task:
    """The task with this id, with keyword settings.

    `randomist list` names the ids; `gym:<id>` is any environment of Gymnasium, and `gym-vector:<id>` a vector of them;
    "module:Class", or "module:function", is a task that is not ours. The class of a task will do, and so will a class
    or an instance of an environment, or of a vector environment.
    """
    if isinstance(id, Task):
        return id
    if isinstance(id, type) and issubclass(id, Task):
        return id(**settings)
    if (kind := _environment_kind(id)) is not None:
        return _maker(_PREFIXES[kind])(id, **settings)
    if not isinstance(id, str):
        raise TaskError(f"a task is an id, a Task, or an environment of Gymnasium, got {id!r:.80}")
    make = named(id)
    try:
        found = make(**settings)
    except TypeError as error:
        raise TaskError(f"task {id!r} does not take these settings {settings}: {error}") from error
    if not isinstance(found, Task):
        raise TaskError(f"{id!r} gives {found!r:.80}, which is not a task; it must be a randomist.Task")
    return found


def named(id: str) -> Callable[..., Task]:
    """What makes the task with this id of its settings. An id in data imports nothing."""
    prefix, colon, name = id.partition(":")
    if colon and prefix in _PREFIXES:
        check_module(name)  # Gymnasium would import it
        return partial(_maker(_PREFIXES[prefix]), name)
    if id in TASKS:
        return _maker(TASKS[id])
    found: Callable[..., Task] | None = known(id, Task)
    if found is None and is_foreign(id):
        found = imported(id)
    if found is not None:
        return found
    ids = [*task_ids(), *(f"{prefix}:<id>" for prefix in _PREFIXES)]
    raise TaskError(f"unknown task {id!r}; known tasks: {', '.join(ids)}; one of your own is module:Class")


def _environment_kind(thing: Any) -> str | None:
    """Whether this is of Gymnasium, one environment or a vector; where that was not imported, nothing is."""
    gym = sys.modules.get("gymnasium")
    if gym is None:
        return None
    for kind, bases in (("gym", gym.Env), ("gym-vector", gym.vector.VectorEnv)):
        if isinstance(thing, bases) or (isinstance(thing, type) and issubclass(thing, bases)):
            return kind
    return None


def _maker(maker: Maker) -> Callable[..., Task]:
    found: Callable[..., Task] = ours(maker) if isinstance(maker, str) else maker
    return found


def task_ids() -> list[str]:
    """The ids of our tasks, and those that were registered, sorted."""
    return sorted([*TASKS, *registered(Task)])
